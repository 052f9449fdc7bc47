//! Writes that continue each other and are sent to the drive as one command.

use crate::common::{Rig, noiseless, profile};
use headtime_disk::profile::Profile;
use headtime_disk::{Dur, Kind, Model, Outcome};
use headtime_sched::internals::merge::MAX_REQUESTS;
use headtime_sched::{Action, Config, Core, Order, Policy, Request};

/// A drive without a write cache.
fn through() -> Profile {
    let mut p = profile(3);
    p.electronics.cache.write_back = false;
    p
}

fn core(p: &Profile, order: Order, policy: &str) -> Core {
    let config = Config::new(order).with_capacity(1_000);
    Core::new(config, Model::new(p).expect("a drive that works")).admitting(&Policy::named(policy).expect("a policy"))
}

/// Returns the commands that a core sends for requests that arrive at once: first sector, sectors,
/// and their requests.
fn sent(mut core: Core, requests: &[Request]) -> Vec<(u64, u32, Vec<u64>)> {
    let mut now = headtime_disk::Time::ZERO;
    for r in requests {
        core.submit(*r, now).expect("there is room");
    }
    let (mut sent, mut ended, mut at_drive) = (vec![], 0, vec![]);
    while ended < requests.len() {
        while let Some(action) = core.poll() {
            match action {
                Action::Issue(c) => {
                    let ids = core.request_of(c.id).into_iter().chain(core.requests_behind(c.id)).collect();
                    sent.push((c.lbn, c.count, ids));
                    at_drive.push(c.id);
                }
                Action::Finish(_) => ended += 1,
                other => panic!("{other:?}"),
            }
        }
        if ended == requests.len() {
            break;
        }
        now += Dur::from_ms(30);
        match at_drive.is_empty() {
            true => core.tick(now),
            false => core.complete(at_drive.remove(0), Outcome::Ok, now),
        }
    }
    sent
}

fn write(id: u64, lbn: u64, count: u32) -> Request {
    Request { id, kind: Kind::Write, lbn, count, fua: false, sync: true, owner: 0 }
}

#[test]
fn what_waits_in_order_goes_as_one_command_on_a_drive_without_a_write_cache() {
    // In no order of arrival.
    let all = [write(0, 116, 4), write(1, 100, 8), write(2, 108, 8), write(3, 120, 1)];
    let one = vec![(100, 21, vec![1, 2, 0, 3])];
    assert_eq!(sent(core(&through(), Order::SptfAhead, "none"), &all), one);
    for order in [Order::Sptf, Order::Clook, Order::Fcfs] {
        assert_eq!(sent(core(&through(), order, "none"), &all).len(), 4, "{order:?}");
    }
    let mut cached = through();
    cached.electronics.cache.write_back = true;
    assert_eq!(sent(core(&cached, Order::SptfAhead, "none"), &all).len(), 4);
}

#[test]
fn what_must_not_be_together_is_not() {
    let commands = |all: &[Request], policy| sent(core(&through(), Order::SptfAhead, policy), all).len();
    let (a, b) = (write(0, 100, 8), write(1, 108, 8));
    assert_eq!(commands(&[a, b], "none"), 1);
    assert_eq!(commands(&[a, Request { fua: true, ..b }], "none"), 2);
    assert_eq!(commands(&[a, Request { kind: Kind::Read, ..b }], "none"), 2);
    assert_eq!(commands(&[a, Request { lbn: 109, ..b }], "none"), 2);
    // Two applications, each with its own account.
    assert_eq!(commands(&[a, Request { owner: 1, ..b }], "none"), 1);
    assert_eq!(commands(&[a, Request { owner: 1, ..b }], "bfq+"), 2);
    assert_eq!(commands(&[a, b], "bfq+"), 1);
    // A flush waits for the writes before it, and is not merged with them.
    let flush = Request { id: 2, kind: Kind::Flush, lbn: 0, count: 0, ..a };
    assert_eq!(commands(&[a, flush, b], "none"), 2);
}

#[test]
fn a_command_is_bounded_in_bytes_and_in_requests() {
    let small: Vec<Request> = (0..600).map(|i| write(i, i, 1)).collect();
    let of = |all: &[Request]| sent(core(&through(), Order::SptfAhead, "none"), all);
    let most = of(&small).iter().map(|c| c.2.len()).max();
    assert_eq!(most, Some(MAX_REQUESTS));
    // A mebibyte of sectors of 512 bytes.
    let large: Vec<Request> = (0..12).map(|i| write(i, i * 250, 250)).collect();
    let counts: Vec<u32> = of(&large).iter().map(|c| c.1).collect();
    assert_eq!(counts, [2_000, 1_000]);
}

#[test]
fn a_write_that_fails_fails_alone() {
    let p = through();
    // A virtual drive's writes do not fail, so the drive's completions are simulated.
    let mut rig = Rig::new(&p, noiseless(), Order::SptfAhead, 2);
    for (id, lbn) in [(1, 100), (2, 108), (3, 116)] {
        rig.core.submit(write(id, lbn, 8), rig.now).expect("there is room");
    }
    let (mut ended, mut commands) = (vec![], 0);
    let mut at_drive = vec![];
    while ended.len() < 3 {
        while let Some(action) = rig.core.poll() {
            match action {
                Action::Issue(c) => at_drive.push(c),
                Action::Finish(f) => ended.push((f.request, f.outcome)),
                other => panic!("{other:?}"),
            }
        }
        assert!(!at_drive.is_empty() || ended.len() == 3, "nothing is sent");
        if at_drive.is_empty() {
            break;
        }
        let c = at_drive.remove(0);
        commands += 1;
        rig.now += Dur::from_ms(20);
        let bad = 110;
        let hit = (c.lbn..c.lbn + u64::from(c.count)).contains(&bad);
        let outcome = if hit { Outcome::MediaError { lbn: bad } } else { Outcome::Ok };
        rig.core.complete(c.id, outcome, rig.now);
    }
    ended.sort_by_key(|e| e.0);
    assert_eq!(ended, [(1, Outcome::Ok), (2, Outcome::MediaError { lbn: 110 }), (3, Outcome::Ok)]);
    assert_eq!(commands, 4);
}

/// The purpose: a drive without a write cache loses a revolution for each command that continues
/// the one before.
#[test]
fn together_they_take_less_time_than_apart() {
    let p = through();
    let took = |order| {
        let mut rig = Rig::new(&p, noiseless(), order, 2);
        (0..60).for_each(|i| rig.submit(Kind::Write, i * 8, 8));
        while rig.step().is_some() {}
        assert_eq!(rig.finished.len(), 60);
        rig.now
    };
    let (together, apart) = (took(Order::SptfAhead), took(Order::Fcfs));
    assert!(together.as_secs_f64() < 0.5 * apart.as_secs_f64(), "{together} together, {apart} one by one");
}
