//! CFQ told of requests by hand: slices, who is waited for, and who displaces whom.

use headtime_disk::command::Kind;
use headtime_disk::time::{Dur, Time};
use headtime_sched::admit::cfq::{Cfq, Rules};
use headtime_sched::admit::{ASYNCHRONOUS, Admission, Class, Share, Turn, queue_of};
use headtime_sched::request::Request;

struct Desk {
    cfq: Cfq,
    now: Time,
    at: u64,
}

impl Desk {
    fn new(rules: Rules) -> Desk {
        Desk { cfq: Cfq::new(rules, 512), now: Time::ZERO, at: 0 }
    }

    fn ask(&mut self, owner: u32, kind: Kind, far: bool) {
        self.at += if far { 1_000_000 } else { 0 };
        let lbn = if far { self.at } else { u64::from(owner) * 100_000_000 };
        let r = Request { id: 0, kind, lbn, count: 8, fua: false, sync: kind == Kind::Read, owner };
        self.cfq.arrived(queue_of(&r), &r, self.now);
    }

    /// Whose turn it is; serves him in so many microseconds.
    fn serve(&mut self, us: u64) -> u32 {
        let Turn::Queue(queue, _) = self.cfq.turn(self.now) else { panic!("nobody's turn") };
        let r = Request { id: 0, kind: Kind::Read, lbn: 0, count: 8, fua: false, sync: true, owner: queue };
        self.cfq.sent(queue, &r, self.now);
        self.now += Dur::from_us(us);
        self.cfq.completed(queue, &r, self.now);
        queue
    }

    /// How long one queue after another is served, of so many that go on at once.
    fn slices(&mut self, owners: u32) -> Vec<(u32, Dur)> {
        let mut slices: Vec<(u32, Dur)> = vec![];
        (0..owners).for_each(|o| self.ask(o, Kind::Read, false));
        for _ in 0..4_000 {
            let from = self.now;
            let owner = self.serve(1_000);
            match slices.last_mut().filter(|s| s.0 == owner) {
                Some(last) => last.1 += self.now.since(from),
                None => slices.push((owner, self.now.since(from))),
            }
            self.ask(owner, Kind::Read, false);
        }
        slices.pop();
        slices
    }
}

#[test]
fn slices_of_100_ms_go_round() {
    let slices = Desk::new(Rules { low_latency: false, ..Rules::default() }).slices(4);
    assert!(slices.iter().all(|s| s.1 == Dur::from_ms(100)), "{slices:?}");
    assert!(slices.windows(5).all(|w| w[0].0 == w[4].0), "{slices:?}");
}

#[test]
fn with_low_latency_a_round_of_many_takes_300_ms() {
    let slices = Desk::new(Rules::default()).slices(10);
    for round in slices[10..].chunks_exact(10) {
        let all: u64 = round.iter().map(|s| s.1.0).sum();
        assert!((280_000_000..330_000_000).contains(&all), "{all}");
    }
    // Not shorter than twice what is waited for the next request.
    let slices = Desk::new(Rules::default()).slices(100);
    assert!(slices[100..].iter().all(|s| s.1 == Dur::from_ms(16)), "{:?}", &slices[100..]);
}

#[test]
fn who_reads_in_order_is_waited_for_and_who_is_scattered_is_not() {
    let mut d = Desk::new(Rules::default());
    d.ask(1, Kind::Read, false);
    assert_eq!(d.serve(1_000), 1);
    d.ask(2, Kind::Read, false);
    assert_eq!(d.cfq.turn(d.now), Turn::Wait(d.now + Dur::from_ms(8)));
    let mut d = Desk::new(Rules::default());
    for owner in [1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1] {
        d.ask(owner, Kind::Read, true);
        while let Turn::Wait(until) = d.cfq.turn(d.now) {
            d.now = until;
        }
        assert_eq!(d.serve(1_000), owner);
    }
    // Now that this is known, both wait at once, and the one is served after the other.
    d.ask(1, Kind::Read, true);
    d.ask(2, Kind::Read, true);
    let one = d.serve(1_000);
    assert_eq!(d.serve(1_000), 3 - one);
}

#[test]
fn a_read_displaces_what_nobody_waits_for() {
    let mut d = Desk::new(Rules::default());
    (0..50).for_each(|_| d.ask(1, Kind::Write, false));
    assert_eq!((d.serve(1_000), d.serve(1_000)), (ASYNCHRONOUS, ASYNCHRONOUS));
    d.ask(2, Kind::Read, false);
    assert_eq!(d.serve(1_000), 2);
}

#[test]
fn the_idle_class_waits_until_nobody_else_has_asked_for_a_while() {
    let mut d = Desk::new(Rules::default());
    d.cfq.set_share(1, Share { class: Class::Idle, ..Share::default() });
    d.ask(2, Kind::Read, false);
    assert_eq!(d.serve(1_000), 2);
    let last = d.now;
    d.ask(1, Kind::Read, false);
    while let Turn::Wait(until) = d.cfq.turn(d.now) {
        d.now = until;
    }
    assert_eq!((d.now.since(last), d.serve(1_000)), (Dur::from_ms(100), 1));
    d.ask(1, Kind::Read, false);
    d.ask(2, Kind::Read, false);
    assert_eq!(d.serve(1_000), 2);
}

#[test]
fn a_larger_weight_has_longer_slices() {
    let mut d = Desk::new(Rules { low_latency: false, ..Rules::default() });
    d.cfq.set_share(1, Share::weighing(150).unwrap());
    let slices = d.slices(3);
    assert!(slices.iter().all(|s| s.1 == Dur::from_ms(if s.0 == 1 { 150 } else { 100 })), "{slices:?}");
}
