//! CFQ with requests submitted by hand: slices, idling, and preemption.

mod limits;

use headtime_disk::{Dur, Kind, Time};
use headtime_sched::internals::admit::{ASYNCHRONOUS, Admission, Turn, queue_of};
use headtime_sched::internals::cfq::Cfq;
use headtime_sched::{CfqRules, Class, Request, Share};

struct Desk {
    cfq: Cfq,
    now: Time,
    at: u64,
}

impl Desk {
    fn new(rules: CfqRules) -> Desk {
        Desk { cfq: Cfq::new(rules, 512), now: Time::ZERO, at: 0 }
    }

    fn ask(&mut self, owner: u32, kind: Kind, far: bool) {
        self.at += if far { 1_000_000 } else { 0 };
        let lbn = if far { self.at } else { u64::from(owner) * 100_000_000 };
        let r = Request { id: 0, kind, lbn, count: 8, fua: false, sync: kind == Kind::Read, owner };
        self.cfq.arrived(queue_of(&r), &r, self.now);
    }

    /// Serves the queue whose turn it is, in the given number of microseconds; returns its owner.
    fn serve(&mut self, us: u64) -> u32 {
        let Turn::Queue(queue, _) = self.cfq.turn(self.now) else { panic!("no queue has the turn") };
        let r = Request { id: 0, kind: Kind::Read, lbn: 0, count: 8, fua: false, sync: true, owner: queue };
        self.cfq.sent(queue, &r, self.now);
        self.now += Dur::from_us(us);
        self.cfq.completed(queue, &r, self.now);
        queue
    }

    /// Returns how long each queue in turn is served, with N owners that continue at once.
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
    let slices = Desk::new(CfqRules { low_latency: false, ..CfqRules::default() }).slices(4);
    assert!(slices.iter().all(|s| s.1 == Dur::from_ms(100)), "{slices:?}");
    assert!(slices.windows(5).all(|w| w[0].0 == w[4].0), "{slices:?}");
}

#[test]
fn with_low_latency_a_round_of_many_takes_300_ms() {
    let slices = Desk::new(CfqRules::default()).slices(10);
    for round in slices[10..].chunks_exact(10) {
        let all: u64 = round.iter().map(|s| s.1.0).sum();
        assert!((280_000_000..330_000_000).contains(&all), "{all}");
    }
    // At least twice the idling time.
    let slices = Desk::new(CfqRules::default()).slices(100);
    assert!(slices[100..].iter().all(|s| s.1 == Dur::from_ms(16)), "{:?}", &slices[100..]);
}

#[test]
fn the_disk_does_not_idle_for_a_queue_whose_next_request_is_held_back() {
    let mut d = Desk::new(CfqRules::default());
    d.ask(1, Kind::Read, false);
    assert_eq!(d.serve(1_000), 1);
    d.ask(2, Kind::Read, false);
    d.cfq.set_held_back(1, true, d.now);
    assert!(matches!(d.cfq.turn(d.now), Turn::Queue(2, _)));
}

#[test]
fn a_sequential_queue_is_idled_for_and_a_seeky_one_is_not() {
    let mut d = Desk::new(CfqRules::default());
    d.ask(1, Kind::Read, false);
    assert_eq!(d.serve(1_000), 1);
    d.ask(2, Kind::Read, false);
    assert_eq!(d.cfq.turn(d.now), Turn::Wait(d.now + Dur::from_ms(8)));
    let mut d = Desk::new(CfqRules::default());
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
fn a_read_preempts_asynchronous_writes() {
    let mut d = Desk::new(CfqRules::default());
    (0..50).for_each(|_| d.ask(1, Kind::Write, false));
    assert_eq!((d.serve(1_000), d.serve(1_000)), (ASYNCHRONOUS, ASYNCHRONOUS));
    d.ask(2, Kind::Read, false);
    assert_eq!(d.serve(1_000), 2);
}

#[test]
fn the_idle_class_waits_until_the_disk_was_idle_for_a_while() {
    let mut d = Desk::new(CfqRules::default());
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
    let mut d = Desk::new(CfqRules { low_latency: false, ..CfqRules::default() });
    d.cfq.set_share(1, Share::weighing(150).unwrap());
    let slices = d.slices(3);
    assert!(slices.iter().all(|s| s.1 == Dur::from_ms(if s.0 == 1 { 150 } else { 100 })), "{slices:?}");
}

impl Desk {
    /// Sequential readers, scattered ones and the cache's writes, all of them backlogged. Returns
    /// which queue is served for how long.
    fn deep(&mut self, in_order: &[u32], scattered: &[u32], writes: bool, turns: usize) -> Vec<(u32, Dur)> {
        for _ in 0..8 {
            in_order.iter().for_each(|o| self.ask(*o, Kind::Read, false));
            scattered.iter().for_each(|o| self.ask(*o, Kind::Read, true));
            if writes {
                self.ask(999, Kind::Write, false);
            }
        }
        let mut slices: Vec<(u32, Dur)> = vec![];
        for _ in 0..100_000 {
            if slices.len() == turns {
                break;
            }
            let owner = self.serve(1_000);
            match slices.last_mut().filter(|s| s.0 == owner) {
                Some(last) => last.1 += Dur::from_ms(1),
                None => slices.push((owner, Dur::from_ms(1))),
            }
            match owner {
                ASYNCHRONOUS => self.ask(999, Kind::Write, false),
                _ => self.ask(owner, Kind::Read, scattered.contains(&owner)),
            }
        }
        assert_eq!(slices.len(), turns, "some are served for ever: {slices:?}");
        slices.pop();
        slices
    }

    /// Makes an application known as scattered.
    fn scatter(&mut self, owner: u32) {
        for _ in 0..8 {
            self.ask(owner, Kind::Read, true);
            assert_eq!(self.serve(1_000), owner);
        }
        self.now += Dur::from_ms(20);
        assert_eq!(self.cfq.turn(self.now), Turn::Idle);
    }

    fn waits(&mut self) -> bool {
        matches!(self.cfq.turn(self.now), Turn::Wait(_))
    }
}

#[test]
fn a_service_class_has_its_part_of_the_target_latency_and_asynchronous_writes_two_fifths_of_that() {
    let rules = CfqRules { slice_async_requests: u32::MAX, ..CfqRules::default() };
    let slices = Desk::new(rules).deep(&[1], &[], true, 12);
    // Half of 300 ms is two slices of 100 ms, and two fifths of that two of 40 ms.
    let ms = |owner| Dur::from_ms(if owner == ASYNCHRONOUS { 80 } else { 200 });
    assert!(slices[1..].iter().all(|s| s.1 == ms(s.0)), "{slices:?}");
}

#[test]
fn a_kind_has_the_disk_for_twice_what_is_waited_for_a_request_at_least() {
    let mut d = Desk::new(CfqRules { low_latency: false, ..CfqRules::default() });
    d.cfq.set_share(1, Share::weighing(10).unwrap());
    let others: Vec<u32> = (100..130).collect();
    others.iter().for_each(|o| d.scatter(*o));
    let slices = d.deep(&[1], &others, false, 200);
    let mine: Vec<Dur> = slices.iter().filter(|s| s.0 == 1).map(|s| s.1).collect();
    // A thirtieth of 300 ms would end with one slice of 10 ms. At first the others' places are
    // later.
    assert!(mine.len() > 2 && mine[1..].iter().all(|s| *s == Dur::from_ms(20)), "{mine:?}");
}

#[test]
fn without_idling_all_queues_share_one_round() {
    let rules = CfqRules { low_latency: false, slice_idle: Dur::ZERO, ..CfqRules::default() };
    let mut d = Desk::new(rules);
    d.scatter(2);
    let slices = d.deep(&[1], &[2], false, 12);
    assert!(slices[1..].iter().all(|s| s.1 == Dur::from_ms(100)), "{slices:?}");
}

#[test]
fn more_than_four_scattered_requests_of_the_last_32_make_a_queue_scattered() {
    let mut d = Desk::new(CfqRules::default());
    d.scatter(2);
    for n in 0..=5 {
        d.ask(1, Kind::Read, true);
        assert_eq!(d.serve(1_000), 1);
        d.ask(2, Kind::Read, true);
        // The first request has no predecessor to be far from.
        assert_eq!(d.waits(), n < 5, "{n}");
        d.now += Dur::from_ms(8);
        assert_eq!(d.serve(1_000), 2);
        d.now += Dur::from_ms(8);
        assert_eq!(d.cfq.turn(d.now), Turn::Idle);
    }
}

#[test]
fn a_queue_with_a_long_think_time_is_not_idled_for_once_known() {
    let mut d = Desk::new(CfqRules::default());
    d.scatter(2);
    let (mut at, mut waited) = (0, vec![]);
    for _ in 0..120 {
        let r = Request { id: 0, kind: Kind::Read, lbn: at, count: 8, fua: false, sync: true, owner: 1 };
        at += 8;
        d.cfq.arrived(1, &r, d.now);
        assert_eq!(d.serve(1_000), 1);
        d.ask(2, Kind::Read, true);
        waited.push(d.waits());
        d.now += Dur::from_ms(8);
        assert_eq!(d.serve(1_000), 2);
        d.now += Dur::from_ms(12);
        assert_eq!(d.cfq.turn(d.now), Turn::Idle);
    }
    // 80 think times between 81 requests are not enough to decide.
    assert!(waited[..81].iter().all(|w| *w) && !waited[81..].iter().any(|w| *w), "{waited:?}");
}

#[test]
fn of_scattered_queues_the_last_is_waited_for() {
    let mut d = Desk::new(CfqRules::default());
    d.scatter(1);
    d.ask(1, Kind::Read, true);
    assert_eq!(d.serve(1_000), 1);
    d.ask(2, Kind::Read, false);
    assert_eq!(d.cfq.turn(d.now), Turn::Wait(d.now + Dur::from_ms(8)));
}

#[test]
fn no_queue_is_idled_for_beyond_its_slice_and_asynchronous_writes_never() {
    let mut d = Desk::new(CfqRules::default());
    d.ask(1, Kind::Read, false);
    d.serve(50_000);
    d.ask(1, Kind::Read, false);
    d.serve(46_000);
    assert_eq!(d.cfq.turn(d.now), Turn::Wait(d.now + Dur::from_ms(4)));
    let mut d = Desk::new(CfqRules::default());
    d.ask(1, Kind::Write, false);
    assert_eq!((d.serve(1_000), d.cfq.turn(d.now)), (ASYNCHRONOUS, Turn::Idle));
}

#[test]
fn a_turn_that_has_not_begun_is_not_taken_away() {
    let mut d = Desk::new(CfqRules::default());
    d.ask(1, Kind::Write, false);
    let turn = d.cfq.turn(d.now);
    assert!(matches!(turn, Turn::Queue(ASYNCHRONOUS, _)));
    d.ask(2, Kind::Read, false);
    assert_eq!(d.cfq.turn(d.now), turn);
}

#[test]
fn a_read_that_displaces_goes_before_those_that_have_waited() {
    let mut d = Desk::new(CfqRules::default());
    (0..300).for_each(|_| d.ask(1, Kind::Write, false));
    (0..300).for_each(|_| d.ask(3, Kind::Read, false));
    while d.serve(1_000) != ASYNCHRONOUS {}
    // The third has more requests, and waits in its round.
    d.ask(2, Kind::Read, false);
    assert_eq!((d.serve(1_000), d.waits()), (2, true));
}

#[test]
fn a_queue_that_overran_its_slice_is_selected_later_by_that() {
    let mut d = Desk::new(CfqRules::default());
    d.ask(2, Kind::Read, false);
    d.now += Dur::from_ms(1);
    [0, 1].iter().for_each(|o| d.ask(*o, Kind::Read, false));
    d.ask(2, Kind::Read, false);
    // Three times its slice, of which one counts: it is placed as late as the queue with a slice
    // after it, and would precede it.
    assert_eq!(d.serve(300_000), 2);
    for owner in [0, 1] {
        for _ in 0..100 {
            d.ask(owner, Kind::Read, false);
            assert_eq!(d.serve(1_000), owner);
        }
    }
    assert_eq!(d.serve(1_000), 0);
}

#[test]
fn the_idle_class_is_not_idled_for_and_continues_on_an_idle_disk() {
    let mut d = Desk::new(CfqRules::default());
    for owner in [1, 3] {
        d.cfq.set_share(owner, Share { class: Class::Idle, ..Share::default() });
    }
    d.now += Dur::from_ms(200);
    d.ask(1, Kind::Read, false);
    d.ask(3, Kind::Read, false);
    assert_eq!((d.serve(1_000), d.serve(1_000)), (1, 3));
}

#[test]
fn a_smaller_weight_comes_around_less_often() {
    let mut d = Desk::new(CfqRules { low_latency: false, ..CfqRules::default() });
    d.cfq.set_share(1, Share::weighing(10).unwrap());
    let slices = d.slices(10);
    let of = |owner| slices.iter().filter(|s| s.0 == owner).count();
    assert!(of(1) * 3 < of(0) * 2, "{slices:?}");
}

#[test]
fn a_weight_given_to_a_waiting_queue_counts_at_once_and_costs_no_place() {
    let order = |again: u32| {
        let mut d = Desk::new(CfqRules { low_latency: false, ..CfqRules::default() });
        d.ask(0, Kind::Read, false);
        assert_eq!(d.serve(1_000), 0);
        [1, 2].iter().for_each(|o| d.ask(*o, Kind::Read, false));
        (0..again).for_each(|_| d.cfq.set_share(1, Share::default()));
        d.now += Dur::from_ms(8);
        d.serve(1_000)
    };
    assert_eq!((order(0), order(5)), (1, 1));
    let mut d = Desk::new(CfqRules { low_latency: false, ..CfqRules::default() });
    d.ask(0, Kind::Read, false);
    assert_eq!(d.serve(1_000), 0);
    [1, 2].iter().for_each(|o| d.ask(*o, Kind::Read, false));
    // With a smaller weight it comes around later.
    d.cfq.set_share(1, Share::weighing(10).unwrap());
    d.now += Dur::from_ms(8);
    assert_eq!(d.serve(1_000), 2);
}

#[test]
fn who_has_gone_is_forgotten() {
    let mut d = Desk::new(CfqRules::default());
    for owner in 0..5_000 {
        d.ask(owner, Kind::Read, false);
        d.serve(1_000);
        d.now += Dur::from_ms(1_000);
    }
    assert!(d.cfq.known_queues() < 2_000, "{}", d.cfq.known_queues());
}

#[test]
fn service_to_streams_is_charged_to_no_slice() {
    let slices = |streams_ms: u64| {
        let mut d = Desk::new(CfqRules { low_latency: false, ..CfqRules::default() });
        (0..3).for_each(|o| d.ask(o, Kind::Read, false));
        let mut order: Vec<(u32, u32)> = vec![];
        for _ in 0..1_000 {
            d.now += Dur::from_ms(streams_ms);
            d.cfq.charge_external(Dur::from_ms(streams_ms), d.now);
            let owner = d.serve(1_000);
            match order.last_mut().filter(|s| s.0 == owner) {
                Some(last) => last.1 += 1,
                None => order.push((owner, 1)),
            }
            d.ask(owner, Kind::Read, false);
        }
        order
    };
    let alone = slices(0);
    assert!(alone.len() > 9);
    assert_eq!(slices(8), alone);
}

#[test]
fn what_the_disk_did_before_a_slice_began_does_not_make_it_longer() {
    let mut d = Desk::new(CfqRules { low_latency: false, ..CfqRules::default() });
    d.ask(0, Kind::Read, false);
    d.ask(1, Kind::Read, false);
    assert_eq!(d.serve(1_000), 0);
    d.ask(0, Kind::Read, false);
    // A stream's command that was already at the drive.
    d.cfq.charge_external(Dur::from_ms(30), d.now);
    let mut served = 0;
    while d.serve(1_000) == 0 {
        served += 1;
        d.ask(0, Kind::Read, false);
    }
    assert_eq!(served, 100);
}
