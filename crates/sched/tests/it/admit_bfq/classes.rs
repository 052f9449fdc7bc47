//! Service classes, and applications that have gone.

use super::*;

#[test]
fn the_idle_class_is_served_on_an_idle_disk_and_once_in_a_while() {
    let mut d = Desk::new(fair());
    d.bfq.set_share(1, Share { class: Class::Idle, ..Share::default() });
    d.read(1);
    assert_eq!(d.serve(2_000), 1);
    d.read(1);
    d.read(2);
    let mut got = [0u64; 3];
    for _ in 0..5_000 {
        let owner = d.serve(2_000);
        got[owner as usize] += 1;
        d.read(owner);
    }
    // Ten seconds: one request every 200 ms.
    assert!((20..=50).contains(&got[1]), "{got:?}");
}

#[test]
fn a_sweep_ends_the_turn_of_the_last_queue() {
    let mut d = Desk::new(BfqRules::plus());
    for owner in 0..1_100u32 {
        d.ask(Desk::request(owner, Kind::Read, u64::from(owner) * 1000, 8));
        d.serve(100);
        d.now += Dur::from_ms(21);
    }
    d.now += Dur::from_secs(100);
    for owner in 5_000..6_200 {
        d.ask(Desk::request(owner, Kind::Read, 8, 8));
        assert_eq!(d.serve(100), owner);
        d.now += Dur::from_ms(21);
    }
}

#[test]
fn a_class_may_change_while_one_waits_and_while_one_is_served() {
    let mut d = Desk::new(fair());
    d.read(1);
    d.read(2);
    d.read(3);
    d.bfq.set_share(2, Share { class: Class::Idle, ..Share::default() });
    let Turn::Queue(active, _) = d.bfq.turn(d.now) else { panic!("three wait") };
    d.bfq.set_share(active, Share { class: Class::Idle, ..Share::default() });
    let mut got = [0; 4];
    for _ in 0..2_000 {
        let owner = d.serve(2_000);
        got[owner as usize] += 1;
        d.read(owner);
    }
    let other = (1..4).find(|&o| o != 2 && o != active).unwrap() as usize;
    assert!(got[other] > 1_800, "{got:?}");
}

#[test]
fn who_has_gone_is_forgotten() {
    let mut d = Desk::new(BfqRules::plus());
    for owner in 0..50_000u32 {
        let r = Desk::request(owner, Kind::Read, u64::from(owner) * 1000, 8);
        d.ask(r);
        assert_eq!(d.serve(100), owner);
        d.now += Dur::from_ms(50);
    }
    // 60 s of them, and 60 s more until they are purged.
    assert!(d.bfq.known_applications() < 5_000, "{}", d.bfq.known_applications());
}
