//! BFQ and BFQ+ with requests submitted by hand: which application has its turn when, and for how
//! long.

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
fn a_new_application_is_raised_and_one_that_comes_back_after_two_seconds_is_again() {
    // Counts the requests of an established application until the newcomer has had those for which
    // a raised weight lasts: 24 MB are 183 of them. While the newcomer's weight falls from ten to
    // one, the other is due the integral of 1 / w over them, which is 183 ln(10) / 9 = 47, and may
    // be ahead by one slice, 63; in fair shares it is due 183, and may be one slice behind.
    let part = |pause: u64, rules: BfqRules| {
        let mut d = Desk::new(rules);
        d.read(1);
        // Until its own raised weight is over.
        while d.now < Time::ZERO + Dur::from_secs(10) {
            d.serve(2_000);
            d.read(1);
        }
        let run = |d: &mut Desk| {
            let mut got = [0; 3];
            d.read(2);
            while got[2] < 183 {
                let owner = d.serve(2_000);
                got[owner as usize] += 1;
                d.read(owner);
            }
            got[1]
        };
        let first = run(&mut d);
        // Its last request is served, and it stops.
        while d.whose() != Some(2) {
            d.serve(2_000);
            d.read(1);
        }
        d.serve(2_000);
        let from = d.now;
        while d.now < from + Dur::from_ms(pause) {
            d.now += Dur::from_ms(9);
            if d.whose() == Some(1) {
                d.serve(2_000);
                d.read(1);
            }
        }
        (first, run(&mut d))
    };
    let (new, back) = part(2_500, BfqRules::plus());
    assert!(new <= 47 + 63 && back <= 47 + 63, "{new} {back}");
    let (_, soon) = part(1_000, BfqRules::plus());
    assert!(soon >= 183 - 63, "{soon} after a second");
    let (plain, _) = part(2_500, fair());
    assert!(plain >= 183 - 63, "{plain}");
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
fn asynchronous_writes_are_one_queue_and_charged_tenfold() {
    let mut d = Desk::new(fair());
    d.read(1);
    (2..6).for_each(|owner| (0..4).for_each(|_| d.write(owner)));
    let mut got = [0u64; 2];
    while d.now < Time::ZERO + Dur::from_secs(60) {
        match d.serve(2_000) {
            ASYNCHRONOUS => {
                got[1] += 1;
                d.write(2);
            }
            owner => {
                got[0] += 1;
                d.read(owner);
            }
        }
    }
    let ratio = got[0] as f64 / got[1] as f64;
    assert!((8.0..12.0).contains(&ratio), "{ratio}");
}

impl Desk {
    fn write(&mut self, owner: u32) {
        let at = &mut self.at[owner as usize];
        let r = Desk::request(owner, Kind::Write, u64::from(owner) * 10_000_000 + *at, 256);
        *at += 256;
        self.ask(r);
    }

    /// Dispatches a request of this queue, which has the turn.
    fn send(&mut self, queue: u32) -> Request {
        assert_eq!(self.whose(), Some(queue), "{:?}", self.bfq.turn(self.now));
        let at = self.waiting.iter().position(|r| queue_of(r) == queue).expect("it has a request");
        let r = self.waiting.remove(at);
        self.bfq.sent(queue, &r, self.now);
        r
    }

    fn finish(&mut self, r: Request) {
        self.bfq.completed(queue_of(&r), &r, self.now);
    }
}

#[test]
fn the_asynchronous_queue_has_four_requests_or_40_ms_a_turn_beside_others() {
    let turn = |us: u64, rules: BfqRules| {
        let mut d = Desk::new(rules);
        d.read(1);
        (0..100).for_each(|_| d.write(2));
        // Whatever remains of its first turn, which began before the reader was known.
        while d.serve(us) != 1 {}
        d.read(1);
        while d.whose() == Some(1) {
            d.serve(us);
            d.read(1);
        }
        let mut writes = 0;
        while d.whose() == Some(ASYNCHRONOUS) {
            d.serve(us);
            writes += 1;
        }
        writes
    };
    assert_eq!(turn(2_000, fair()), 4);
    assert_eq!(turn(15_000, fair()), 3);
    // With another limit it goes on until its budget is used up: 2,560 of 16,384 sectors each.
    let more = AsynchronousLimits { requests: 100, ..AsynchronousLimits::default() };
    assert_eq!(turn(2_000, BfqRules { asynchronous: Some(more), ..fair() }), 7);
    // Alone it continues.
    let mut d = Desk::new(fair());
    (0..100).for_each(|_| d.write(2));
    assert!((0..100).all(|_| d.serve(2_000) == ASYNCHRONOUS));
}

#[test]
fn no_asynchronous_request_is_dispatched_beside_a_synchronous_one() {
    let mut d = Desk::new(BfqRules { idle: Dur::ZERO, ..fair() });
    d.read(1);
    let read = d.send(1);
    d.write(2);
    assert_eq!((d.bfq.turn(d.now), d.bfq.next_wakeup()), (Turn::Wait(Time::NEVER), None));
    d.finish(read);
    d.send(ASYNCHRONOUS);
    // Without limits it is.
    let mut d = Desk::new(BfqRules { idle: Dur::ZERO, asynchronous: None, ..fair() });
    d.read(1);
    d.send(1);
    d.write(2);
    d.send(ASYNCHRONOUS);
}

#[test]
fn an_application_has_four_requests_at_the_drive_beside_others_and_16_alone() {
    let mut d = Desk::new(BfqRules { ncq: true, ..fair() });
    (0..40).for_each(|_| d.read(1));
    let mut sent: Vec<Request> = (0..16).map(|_| d.send(1)).collect();
    assert_eq!(d.bfq.turn(d.now), Turn::Wait(Time::NEVER));
    d.read(2);
    (0..12).for_each(|_| d.finish(sent.pop().expect("it was sent")));
    assert_eq!(d.bfq.turn(d.now), Turn::Wait(Time::NEVER));
    d.finish(sent.pop().expect("it was sent"));
    d.send(1);
    assert_eq!(d.bfq.turn(d.now), Turn::Wait(Time::NEVER));
}

#[test]
fn with_a_command_queue_the_disk_idles_for_all_but_scattered_applications() {
    let ncq = |rules| BfqRules { ncq: true, ..rules };
    let mut d = Desk::new(ncq(fair()));
    d.read(1);
    d.read(2);
    d.serve(2_000);
    assert_eq!(d.bfq.turn(d.now), Turn::Wait(d.now + Dur::from_ms(8)), "a sequential one");
    // A scattered one keeps it for an eighth of the largest budget: 2,048 sectors, 256 requests.
    let served_before_another = |rules: BfqRules| {
        let mut d = Desk::new(BfqRules { slice: Dur::from_secs(60), ..ncq(rules) });
        d.read(1);
        d.serve(100);
        d.now += Dur::from_ms(20);
        let mut requests = 0;
        d.read_far(3);
        loop {
            assert_eq!(d.serve(100), 3);
            requests += 1;
            if requests == 9 {
                d.read(1);
            }
            if d.whose() == Some(1) || requests == 1_000 {
                return requests;
            }
            d.read_far(3);
        }
    };
    assert_eq!(served_before_another(fair()), 256);
    // Without H-fairness, for as long as it is not known: two requests are far apart.
    assert_eq!(served_before_another(BfqRules { fairness: false, ..fair() }), 9);
    // A raised one keeps it for as long as it is raised.
    assert_eq!(served_before_another(BfqRules::plus()), 1_000);
}

#[test]
fn a_new_application_is_not_charged_a_budget_for_a_slice_with_little_service() {
    let served_in_a_row = |fairness, turns: usize| {
        let mut d = Desk::new(BfqRules { fairness, throughput: false, ..fair() });
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
    assert_eq!(served_in_a_row(true, 3), [14, 7, 7]);
    assert_eq!(served_in_a_row(false, 3), [7, 7, 7]);
}

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
fn a_raised_queue_preempts_an_ordinary_one() {
    let displaced = |rules: BfqRules| {
        let mut d = Desk::new(rules);
        d.read(1);
        while d.now < Time::ZERO + Dur::from_secs(10) {
            d.serve(2_000);
            d.read(1);
        }
        // In the middle of a slice.
        d.read(2);
        d.whose() == Some(2)
    };
    assert!(displaced(BfqRules::plus()));
    let low_latency = BfqRules::plus().low_latency.map(|l| LowLatency { preempts: false, ..l });
    assert!(!displaced(BfqRules { low_latency, ..BfqRules::plus() }));
}

#[test]
fn a_raised_queue_is_idled_for_longer() {
    // A think time of 15 ms: a starting application continues after it, an established one has lost
    // its turn to a waiting one.
    let continues = |rules: BfqRules| {
        let mut d = Desk::new(rules);
        d.read(1);
        d.read(2);
        let first = d.serve(2_000);
        d.now += Dur::from_ms(15);
        let waits = d.whose().is_none();
        d.read(first);
        (waits, d.whose() == Some(first))
    };
    assert_eq!(continues(BfqRules::plus()), (true, true));
    assert_eq!(continues(fair()), (false, false));
    let low_latency = BfqRules::plus().low_latency.map(|l| LowLatency { wait: Dur::ZERO, ..l });
    assert_eq!(continues(BfqRules { low_latency, ..BfqRules::plus() }), (false, false));
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

#[test]
fn a_raised_queue_displaces_one_selected_while_nothing_could_be_dispatched() {
    let mut d = Desk::new(BfqRules::plus());
    d.read(1);
    while d.now < Time::ZERO + Dur::from_secs(10) {
        d.serve(2_000);
        d.read(1);
    }
    d.serve(2_000);
    d.now += Dur::from_ms(30);
    assert_eq!(d.whose(), None);
    // Streams have the disk: the policy is queried, and nothing is dispatched.
    d.read(1);
    assert_eq!(d.whose(), Some(1));
    d.now += Dur::from_ms(100);
    d.read(2);
    assert_eq!(d.whose(), Some(2));
    assert!(d.bfq.is_boosted(d.now));
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
