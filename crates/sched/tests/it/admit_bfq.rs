//! BFQ and BFQ+ with requests submitted by hand: which application has its turn when, and for how
//! long.

mod classes;
mod limits;
mod raising;
mod switches;

use headtime_disk::{Dur, Kind, Time};
use headtime_sched::internals::admit::{ASYNCHRONOUS, Admission, Turn, queue_of};
use headtime_sched::internals::bfq::Bfq;
use headtime_sched::{AsynchronousLimits, BfqRules, Class, LowLatency, Request, Share};

/// A disk with a given time for every request, and applications whose requests are submitted by
/// hand.
struct Desk {
    bfq: Bfq,
    now: Time,
    waiting: Vec<Request>,
    /// The next LBN of each sequential application.
    at: [u64; 8],
}

impl Desk {
    fn new(rules: BfqRules) -> Desk {
        Desk { bfq: Bfq::new(rules, 512), now: Time::ZERO, waiting: vec![], at: [0; 8] }
    }

    fn request(owner: u32, kind: Kind, lbn: u64, count: u32) -> Request {
        Request { id: 0, kind, lbn, count, fua: false, sync: kind == Kind::Read, owner }
    }

    fn ask(&mut self, r: Request) {
        self.bfq.arrived(queue_of(&r), &r, self.now);
        self.waiting.push(r);
    }

    /// Submits the next read of a sequential application.
    fn read(&mut self, owner: u32) {
        let at = &mut self.at[owner as usize];
        let r = Desk::request(owner, Kind::Read, u64::from(owner) * 10_000_000 + *at, 256);
        *at += 256;
        self.ask(r);
    }

    /// Submits a read far from the previous one.
    fn read_far(&mut self, owner: u32) {
        let at = &mut self.at[owner as usize];
        let r = Desk::request(owner, Kind::Read, u64::from(owner) * 10_000_000 + *at, 8);
        *at = (*at + 3_456_789) % 9_000_000;
        self.ask(r);
    }

    /// Serves the queue whose turn it is, in the given number of microseconds; returns its owner.
    fn serve(&mut self, us: u64) -> u32 {
        let Turn::Queue(queue, _) = self.bfq.turn(self.now) else { panic!("no queue has the turn at {}", self.now) };
        let at = self.waiting.iter().position(|r| queue_of(r) == queue).expect("whose turn it is has a request");
        let r = self.waiting.remove(at);
        self.bfq.sent(queue, &r, self.now);
        self.now += Dur::from_us(us);
        self.bfq.completed(queue, &r, self.now);
        queue
    }

    /// Serves a sequential reader that continues at once, until it is another application's turn;
    /// returns the duration.
    fn slice(&mut self, owner: u32, us: u64) -> Dur {
        let from = self.now;
        while self.bfq.turn(self.now) == self.bfq.turn(self.now) && self.whose() == Some(owner) {
            self.serve(us);
            self.read(owner);
        }
        self.now.since(from)
    }

    fn whose(&mut self) -> Option<u32> {
        match self.bfq.turn(self.now) {
            Turn::Queue(queue, _) => Some(queue),
            Turn::Together | Turn::Wait(_) | Turn::Idle => None,
        }
    }
}

/// BFQ+ without raised weights.
fn fair() -> BfqRules {
    BfqRules { low_latency: None, ..BfqRules::plus() }
}

#[test]
fn the_disk_idles_for_a_sequential_reader_and_serves_another_when_it_does_not_come() {
    let mut d = Desk::new(fair());
    d.read(1);
    d.read(2);
    assert_eq!(d.serve(2_000), 1);
    let until = d.now + Dur::from_ms(8);
    assert_eq!((d.bfq.turn(d.now), d.bfq.next_wakeup()), (Turn::Wait(until), Some(until)));
    // The application returns in time and continues, although another has been waiting throughout.
    d.now += Dur::from_ms(7);
    d.read(1);
    assert_eq!(d.serve(2_000), 1);
    d.now += Dur::from_ms(8);
    assert_eq!(d.whose(), Some(2));
}

#[test]
fn the_disk_does_not_idle_for_an_application_whose_next_request_is_held_back() {
    for rules in [fair(), BfqRules::plus()] {
        let mut d = Desk::new(rules);
        d.read(1);
        d.read(2);
        assert_eq!((d.serve(2_000), d.whose()), (1, None));
        d.bfq.set_held_back(1, true, d.now);
        assert_eq!((d.whose(), d.serve(2_000), d.whose()), (Some(2), 2, None));
        // The disk idles for 2, and would for 1 again.
        d.bfq.set_held_back(1, false, d.now);
        d.read(1);
        d.now += Dur::from_ms(21);
        assert_eq!((d.whose(), d.serve(2_000), d.whose()), (Some(1), 1, None));
    }
}

#[test]
fn a_slice_that_ends_while_the_next_request_is_prepared_ends_at_once_if_much_of_the_budget_is_left() {
    // Whether the disk idles for 1 after a slice in which it was served `us` a request.
    let idles = |rules: BfqRules, us| {
        let mut d = Desk::new(rules);
        d.read(1);
        d.read(2);
        let begun = d.now;
        while d.now < begun + Dur::from_ms(125) {
            assert_eq!(d.serve(us), 1);
            if d.now < begun + Dur::from_ms(125) {
                d.read(1);
            }
        }
        d.whose().is_none()
    };
    let published = || BfqRules { low_latency: None, ..BfqRules::published() };
    // Of 8,192 sectors 1,024 and 6,400 were served.
    assert_eq!([idles(published(), 32_000), idles(published(), 5_000)], [false, true]);
    assert_eq!([idles(fair(), 32_000), idles(fair(), 5_000)], [true, true]);
}

#[test]
fn an_application_that_was_held_back_is_not_new_again() {
    let is_raised = |is_held| {
        let mut d = Desk::new(BfqRules::plus());
        d.read(1);
        d.serve(2_000);
        // Its raised weight is over after 6 s.
        d.now += Dur::from_ms(5_000);
        d.bfq.set_held_back(1, is_held, d.now);
        d.now += Dur::from_ms(3_000);
        d.bfq.set_held_back(1, false, d.now);
        d.read(1);
        d.whose();
        d.bfq.is_boosted(d.now)
    };
    assert_eq!((is_raised(true), is_raised(false)), (false, true));
}

#[test]
fn the_disk_idles_for_no_queue_when_the_drive_has_an_order_of_its_own() {
    let mut d = Desk::new(BfqRules { idle: Dur::ZERO, ..fair() });
    d.read(1);
    d.read(2);
    assert_eq!((d.serve(2_000), d.whose()), (1, Some(2)));
}

#[test]
fn a_seeky_queue_is_not_idled_for_long_once_known() {
    let mut d = Desk::new(BfqRules { fairness: false, ..fair() });
    d.read(2);
    d.serve(1_000);
    for _ in 0..20 {
        d.read_far(1);
        d.now += Dur::from_ms(9);
        while d.whose() != Some(1) {
            d.serve(1_000);
        }
        d.serve(8_000);
    }
    d.read(2);
    assert_eq!(d.bfq.turn(d.now), Turn::Wait(d.now + Dur::from_ms(2)));
}

#[test]
fn a_slice_ends_after_125_ms_and_a_budget_before_when_it_is_used_up() {
    let mut d = Desk::new(fair());
    d.read(1);
    d.read(2);
    // 32,000 sectors a second: the first budget, 8,192, is not exhausted in a slice.
    let slow = d.slice(1, 8_000);
    assert!((Dur::from_ms(125)..Dur::from_ms(134)).contains(&slow), "{slow}");
    // 256,000 sectors a second: it is, in 32 ms.
    let quick = d.slice(2, 1_000);
    assert_eq!(quick, Dur::from_ms(32));
}

#[test]
fn service_to_streams_is_charged_to_no_slice() {
    let served = |streams_ms: u64| {
        let mut d = Desk::new(fair());
        d.read(1);
        d.read(2);
        let first = d.serve(2_000);
        let mut served = 1;
        d.read(first);
        while d.whose() == Some(first) {
            d.now += Dur::from_ms(streams_ms);
            d.bfq.charge_external(Dur::from_ms(streams_ms), d.now);
            d.serve(2_000);
            d.read(first);
            served += 1;
        }
        served
    };
    assert_eq!(served(8), served(0));
    assert!(served(0) > 20);
}

#[test]
fn what_the_disk_did_before_a_slice_began_does_not_make_it_longer() {
    let mut d = Desk::new(fair());
    d.read(1);
    d.read(2);
    let first = d.serve(8_000);
    d.read(first);
    // A stream's command that was already at the drive.
    d.bfq.charge_external(Dur::from_ms(60), d.now);
    let slice = d.slice(first, 8_000);
    assert!((Dur::from_ms(125)..Dur::from_ms(134)).contains(&slice), "{slice}");
}

#[test]
fn a_slow_application_has_its_share_of_time_and_not_of_sectors() {
    let mut d = Desk::new(fair());
    d.read(1);
    d.read_far(2);
    let (mut time, mut sectors) = ([0u64; 3], [0u64; 3]);
    while d.now < Time::ZERO + Dur::from_secs(60) {
        let owner = d.whose().expect("both always ask");
        let us = if owner == 1 { 2_000 } else { 9_000 };
        d.serve(us);
        time[owner as usize] += us;
        sectors[owner as usize] += if owner == 1 { 256 } else { 8 };
        if owner == 1 { d.read(1) } else { d.read_far(2) }
    }
    let share = time[2] as f64 / (time[1] + time[2]) as f64;
    assert!((0.4..0.6).contains(&share), "{share}");
    assert!(sectors[1] > 50 * sectors[2]);
}

#[test]
fn shares_follow_weights_and_a_new_weight_has_effect() {
    let mut d = Desk::new(fair());
    d.bfq.set_share(1, Share::weighing(300).unwrap());
    let share = |d: &mut Desk| {
        let mut got = [0.0_f64; 3];
        let until = d.now + Dur::from_secs(60);
        while d.now < until {
            let owner = d.serve(2_000);
            got[owner as usize] += 1.0;
            d.read(owner);
        }
        got[1] / (got[1] + got[2])
    };
    d.read(1);
    d.read(2);
    let before = share(&mut d);
    assert!((before - 0.75).abs() < 0.02, "{before}");
    d.bfq.set_share(2, Share::weighing(900).unwrap());
    let after = share(&mut d);
    assert!((after - 0.25).abs() < 0.02, "{after}");
    for found in [0, 1001] {
        assert_eq!(Share::weighing(found).unwrap_err().found, found);
    }
}

#[test]
fn a_short_think_time_does_not_reduce_a_share() {
    let mut d = Desk::new(fair());
    d.bfq.set_share(1, Share::weighing(300).unwrap());
    let mut got = [0.0_f64; 3];
    d.read(1);
    d.read(2);
    while d.now < Time::ZERO + Dur::from_secs(60) {
        // So slowly that slices end, and not budgets.
        let owner = d.serve(8_000);
        got[owner as usize] += 1.0;
        // The disk is free before the application has received its completion.
        let _ = d.bfq.turn(d.now);
        d.now += Dur::from_us(100);
        d.read(owner);
    }
    let share = got[1] / (got[1] + got[2]);
    assert!((share - 0.75).abs() < 0.03, "{share}");
}

#[test]
fn a_new_application_is_not_charged_a_budget_for_a_slice_with_little_service() {
    let served_in_a_row = |rules: BfqRules, turns: usize| {
        let mut d = Desk::new(BfqRules { throughput: false, ..rules });
        (0..3).for_each(|owner| d.read(owner + 1));
        // The third is scattered and slow: a slice is over after seven requests of 20 ms.
        let mut runs = vec![];
        while runs.len() < turns {
            let mut requests = 0;
            while d.whose() == Some(3) {
                d.serve(20_000);
                d.read_far(3);
                requests += 1;
            }
            runs.extend((requests > 0).then_some(requests));
            let owner = d.serve(2_000);
            d.read(owner);
        }
        runs
    };
    // Two slices in a row, once: afterwards it is known to be slow.
    assert_eq!(served_in_a_row(fair(), 3), [14, 7, 7]);
    assert_eq!(served_in_a_row(BfqRules { fairness: false, ..fair() }, 3), [7, 7, 7]);
    assert_eq!(served_in_a_row(BfqRules { excepts_first_timeout: false, ..fair() }, 3), [7, 7, 7]);
    assert!(!BfqRules::published().excepts_first_timeout);
}

#[test]
fn an_application_that_comes_back_after_two_seconds_is_new_again() {
    // Requests of a slow application in its first turns after a pause, until another's turn.
    let in_a_row = |pause: u64| {
        let mut d = Desk::new(fair());
        (1..4).for_each(|owner| d.read(owner));
        let mut rows = vec![];
        for n in 0..20 {
            // The pause begins with its last completion.
            let mut until = d.now;
            while d.now < until || d.waiting.iter().any(|r| r.owner == 4) {
                match d.whose() {
                    Some(4) => {
                        d.serve(20_000);
                        until = d.now + Dur::from_ms(pause + n);
                    }
                    Some(owner) => {
                        d.serve(2_000);
                        d.read(owner);
                    }
                    None => d.now += Dur::from_ms(1),
                }
            }
            d.read_far(4);
            while d.whose() != Some(4) {
                let owner = d.serve(2_000);
                d.read(owner);
            }
            let mut row = 0;
            while d.whose() == Some(4) {
                d.serve(20_000);
                d.read_far(4);
                row += 1;
            }
            rows.push(row);
        }
        rows
    };
    // A slice is over after seven requests of 20 ms. The first time it has just begun.
    assert_eq!(in_a_row(2_001), [14; 20]);
    let soon = in_a_row(1_900);
    assert!(soon[0] == 14 && soon[1..].iter().all(|row| *row == 7), "{soon:?}");
}

#[test]
fn idle_time_is_charged_to_no_application() {
    let mut d = Desk::new(fair());
    for _ in 0..100 {
        for owner in [1, 2] {
            d.read(owner);
            assert_eq!(d.serve(2_000), owner);
            d.now += Dur::from_ms(500);
        }
    }
    // Neither was slow, and nothing was learned of the disk: its rate and the largest budget are
    // initial.
    assert_eq!(d.bfq.peak_rate(), None);
}

#[test]
fn what_the_disk_does_for_streams_when_an_application_has_gone_is_not_taken_off_its_time() {
    let rate = |streams_ms: u64| {
        let mut d = Desk::new(fair());
        for _ in 0..80 {
            // 102,400 sectors a second.
            for _ in 0..20 {
                d.read(1);
                d.serve(2_500);
            }
            assert_eq!(d.whose(), None);
            // It is waited for, and a stream has the disk in that time.
            d.now += Dur::from_ms(streams_ms);
            d.bfq.charge_external(Dur::from_ms(streams_ms), d.now);
            d.now += Dur::from_ms(60 - streams_ms);
            assert_eq!(d.bfq.turn(d.now), Turn::Idle);
        }
        d.bfq.peak_rate().expect("enough samples")
    };
    let (alone, beside) = (rate(0), rate(25));
    assert!((beside / alone - 1.0).abs() < 0.01, "{alone} alone, {beside} beside streams");
}
