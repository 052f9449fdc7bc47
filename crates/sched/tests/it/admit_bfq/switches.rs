//! What today's kernel has beyond the report: soft real-time applications, bursts, and latency
//! targets.

use super::*;
use headtime_sched::{Bursts, SoftRealTime};

/// Serves the next request, in 2 ms, after the disk has idled.
fn next(d: &mut Desk) -> u32 {
    while d.whose().is_none() {
        d.now = d.bfq.next_wakeup().expect("it idles for an application");
    }
    d.serve(2_000)
}

/// Serves applications that continue at once until `until`.
fn go_on(d: &mut Desk, until: Time) {
    while d.now < until {
        let owner = next(d);
        d.read(owner);
    }
}

/// Three readers whose raised weights are over.
fn established(rules: BfqRules) -> Desk {
    let mut d = Desk::new(rules);
    (1..4).for_each(|owner| d.read(owner));
    go_on(&mut d, Time::ZERO + Dur::from_secs(20));
    d
}

/// Serves the readers until application 4 has had a request of its own; returns how long that took.
fn until_served(d: &mut Desk) -> Dur {
    let from = d.now;
    loop {
        let owner = next(d);
        if owner == 4 {
            return d.now.since(from);
        }
        d.read(owner);
    }
}

/// The wait for each read of application 4, which reads as `read` does every `every` ms.
fn waits(rules: BfqRules, every: u64, read: fn(&mut Desk, u32)) -> Vec<Dur> {
    let mut d = established(rules);
    let mut all = vec![];
    // Its own raised weight is over after 6 s.
    let from = d.now + Dur::from_secs(7);
    while all.len() < 30 {
        let next = d.now + Dur::from_ms(every);
        read(&mut d, 4);
        let took = until_served(&mut d);
        if d.now > from {
            all.push(took);
        }
        go_on(&mut d, next);
    }
    all
}

#[test]
fn the_reads_of_a_soft_real_time_application_do_not_wait_for_a_turn() {
    let soft = BfqRules { soft_real_time: Some(SoftRealTime::default()), ..BfqRules::plus() };
    let longest = |rules: &BfqRules, every| waits(rules.clone(), every, Desk::read).into_iter().max().unwrap();
    // 2.6 sectors a millisecond; the request at the disk has just ended.
    assert_eq!(longest(&soft, 100), Dur::from_ms(2));
    assert!(longest(&BfqRules::plus(), 100) > Dur::from_ms(60));
    // 10 sectors a millisecond are more than 7.
    assert!(longest(&soft, 25) > Dur::from_ms(60));
    // 4 KiB in 100 ms are few, but scattered: that is no player.
    assert!(waits(soft, 100, Desk::read_far).into_iter().max() > Some(Dur::from_ms(60)));
}

#[test]
fn applications_that_begin_in_a_burst_are_not_raised() {
    let got = |rules: BfqRules, newcomers: u32| {
        let mut d = Desk::new(rules);
        d.read(1);
        go_on(&mut d, Time::ZERO + Dur::from_secs(10));
        (2..2 + newcomers).for_each(|owner| d.read(owner));
        let until = d.now + Dur::from_ms(1_400);
        let mut mine = 0;
        while d.now < until {
            let owner = next(&mut d);
            mine += u32::from(owner == 1);
            d.read(owner);
        }
        mine
    };
    // 700 requests: in equal shares a fifth of them, and a slice more or less; with the others'
    // weights raised at most half of that.
    let burst =
        |applications| BfqRules { bursts: Some(Bursts { applications, ..Bursts::default() }), ..BfqRules::plus() };
    let counts = [BfqRules::plus(), burst(4), burst(5)].map(|rules| got(rules, 4));
    assert!(counts[0] <= 70 && counts[1] > 110 && counts[2] <= 70, "{counts:?}");
}

#[test]
fn an_application_that_joins_a_large_burst_loses_the_weight_it_has_from_before() {
    let mut d =
        Desk::new(BfqRules { bursts: Some(Bursts { applications: 2, ..Bursts::default() }), ..BfqRules::plus() });
    d.read(1);
    assert_eq!(next(&mut d), 1);
    assert!(d.bfq.is_boosted(d.now));
    // Two begin, and 40 ms later the first again, which was raised 2.1 s ago for 6 s.
    d.now += Dur::from_ms(2_100);
    d.read(2);
    d.read(3);
    d.now += Dur::from_ms(40);
    d.read(1);
    while next(&mut d) != 1 {}
    assert!(!d.bfq.is_boosted(d.now));
}

#[test]
fn an_application_that_is_always_overdue_leaves_the_idle_class_its_turns() {
    let served = |target: Option<Dur>| {
        let mut d = Desk::new(fair());
        // It is always behind its share, so always eligible.
        d.bfq.set_latency_target(1, target);
        d.bfq.set_share(1, Share::weighing(1000).unwrap());
        d.bfq.set_share(3, Share::weighing(1).unwrap());
        d.bfq.set_share(2, Share { class: Class::Idle, ..Share::default() });
        (0..16).for_each(|_| d.read(1));
        [2, 3].into_iter().for_each(|owner| d.read(owner));
        let mut idle = 0;
        while d.now < Time::ZERO + Dur::from_secs(10) {
            let owner = next(&mut d);
            idle += u32::from(owner == 2);
            d.read(owner);
        }
        idle
    };
    let (without, with) = (served(None), served(Some(Dur::from_ms(2))));
    assert!(without > 10 && with >= without * 9 / 10, "{without} {with}");
}

#[test]
fn an_application_is_raised_again_when_it_begins_alone() {
    let mut d =
        Desk::new(BfqRules { bursts: Some(Bursts { applications: 2, ..Bursts::default() }), ..BfqRules::plus() });
    d.read(1);
    d.read(2);
    for _ in 0..2 {
        next(&mut d);
        assert!(!d.bfq.is_boosted(d.now));
    }
    d.now += Dur::from_secs(3);
    d.read(1);
    assert_eq!(next(&mut d), 1);
    assert!(d.bfq.is_boosted(d.now));
}

#[test]
fn a_latency_target_brings_a_turn_forward_and_no_larger_share() {
    // Application 4 reads 128 KiB of each megabyte.
    let longest = |target: Option<u64>| {
        let mut d = established(fair());
        d.bfq.set_latency_target(4, target.map(Dur::from_ms));
        let mut longest = Dur::ZERO;
        for _ in 0..50 {
            d.read(4);
            longest = longest.max(until_served(&mut d));
            let until = d.now + Dur::from_ms(14);
            go_on(&mut d, until);
        }
        longest
    };
    assert!(longest(None) > Dur::from_ms(100), "{}", longest(None));
    // Half of it, the request at the disk, and its own.
    assert!(longest(Some(40)) <= Dur::from_ms(24), "{}", longest(Some(40)));
    assert!(longest(Some(10)) <= Dur::from_ms(9), "{}", longest(Some(10)));
    // One that is greedy has its share, whatever its target is.
    let mut d = established(fair());
    d.bfq.set_latency_target(4, Some(Dur::from_ms(4)));
    d.read(4);
    let (from, mut got) = (d.now, 0);
    while d.now < from + Dur::from_secs(40) {
        let owner = next(&mut d);
        got += u32::from(owner == 4);
        d.read(owner);
    }
    assert!((4_750..=5_250).contains(&got), "{got} of 20,000");
}

#[test]
fn a_latency_target_holds_among_applications_without_turns() {
    // Four greedy applications, and one that reads 60 ms after its last answer.
    let longest = |target: Option<Dur>| {
        let mut d = Desk::new(fair());
        d.bfq.set_latency_target(3, target);
        (1..6).for_each(|owner| d.read_far(owner));
        let (mut since, mut due, mut longest, mut together) = (d.now, Time::NEVER, Dur::ZERO, 0);
        for n in 0..1_000 {
            if due <= d.now {
                (since, due) = (d.now, Time::NEVER);
                d.read_far(3);
            }
            let queue = match d.bfq.turn(d.now) {
                Turn::Queue(queue, _) => queue,
                Turn::Together => {
                    together += 1;
                    let mut queues = vec![];
                    d.bfq.together(&mut queues);
                    // An order that avoids it.
                    queues.into_iter().min_by_key(|&queue| (queue == 3, queue)).expect("one is eligible")
                }
                Turn::Wait(until) => {
                    d.now = until;
                    continue;
                }
                Turn::Idle => panic!("four have requests"),
            };
            let at = d.waiting.iter().position(|r| queue_of(r) == queue).expect("whose turn it is has a request");
            let r = d.waiting.remove(at);
            d.bfq.sent(queue, &r, d.now);
            d.now += Dur::from_ms(8);
            d.bfq.completed(queue, &r, d.now);
            if queue != 3 {
                d.read_far(queue);
                continue;
            }
            // Until it is known that all are scattered, there are turns.
            longest = longest.max(if n > 500 { d.now.since(since) } else { Dur::ZERO });
            due = d.now + Dur::from_ms(60);
        }
        assert!(together > 500, "{together}");
        longest
    };
    // Half of it, the request at the disk, and its own.
    let (without, with) = (longest(None), longest(Some(Dur::from_ms(50))));
    assert!(without > Dur::from_ms(60) && with <= Dur::from_ms(25 + 8 + 8), "{without} and {with}");
}

#[test]
fn the_disk_idles_for_another_no_longer_than_until_an_application_is_overdue() {
    let until = |target: Option<Dur>| {
        let mut d = Desk::new(fair());
        d.bfq.set_latency_target(2, target);
        d.read(1);
        d.serve(2_000);
        d.read(2);
        let Turn::Wait(until) = d.bfq.turn(d.now) else { panic!("it does not idle") };
        until.since(d.now)
    };
    assert_eq!((until(None), until(Some(Dur::from_ms(6)))), (Dur::from_ms(8), Dur::from_ms(3)));
}

#[test]
fn the_application_that_has_been_overdue_for_longest_goes_first() {
    let order = |targets: [u64; 3]| {
        let mut d = Desk::new(fair());
        for (owner, ms) in (2..).zip(targets) {
            // A target that is changed holds with its last value.
            d.bfq.set_latency_target(owner, Some(Dur::from_ms(1_000)));
            d.bfq.set_latency_target(owner, Some(Dur::from_ms(ms)));
        }
        d.read(1);
        d.serve(2_000);
        d.read(1);
        (2..5).for_each(|owner| d.read(owner));
        d.now += Dur::from_ms(30);
        [(); 3].map(|()| d.serve(2_000))
    };
    assert_eq!(order([40, 10, 20]), [3, 4, 2]);
    assert_eq!(order([10, 20, 40]), [2, 3, 4]);
}

#[test]
fn the_oldest_request_of_an_overdue_application_goes_first() {
    let patience = |target: Option<u64>| {
        let mut d = Desk::new(fair());
        d.bfq.set_latency_target(1, target.map(Dur::from_ms));
        (0..3).for_each(|_| d.read(1));
        d.serve(6_000);
        let Turn::Queue(1, patience) = d.bfq.turn(d.now) else { panic!("its requests wait") };
        patience
    };
    // 6 ms are half of 12.
    assert_eq!([None, Some(13), Some(12)].map(patience), [Dur(u64::MAX), Dur(u64::MAX), Dur::ZERO]);
}

#[test]
fn the_slice_of_a_soft_real_time_application_is_no_longer_than_others() {
    let mut d = established(BfqRules { soft_real_time: Some(SoftRealTime::default()), ..BfqRules::plus() });
    // Its weight as a new application's is over after 6 s.
    for _ in 0..80 {
        let next = d.now + Dur::from_ms(100);
        d.read(4);
        until_served(&mut d);
        go_on(&mut d, next);
    }
    d.read(4);
    assert!(until_served(&mut d) <= Dur::from_ms(4) && d.bfq.is_boosted(d.now));
    // Scattered and slow requests now, which use up no budget: at most for as long as it is raised,
    // 15 of 20 ms, and a slice.
    let mut requests = 0;
    loop {
        d.read_far(4);
        if requests == 1_000 || d.whose() != Some(4) {
            break;
        }
        d.serve(20_000);
        requests += 1;
    }
    assert!(requests <= 15 + 7, "{requests}");
}

#[test]
fn an_application_of_a_burst_is_not_raised_as_a_soft_real_time_one_either() {
    let boosted = |applications| {
        let bursts = Some(Bursts { applications, ..Bursts::default() });
        let mut d = Desk::new(BfqRules { bursts, soft_real_time: Some(SoftRealTime::default()), ..BfqRules::plus() });
        (1..5).for_each(|owner| d.read(owner));
        let mut boosted = 0;
        for n in 0..100 {
            let until = d.now + Dur::from_ms(100);
            let begins = d.now;
            while d.now < until {
                let Some(owner) = d.whose() else {
                    d.now = d.bfq.next_wakeup().expect("it idles for an application");
                    continue;
                };
                boosted += u32::from(owner == 4 && n > 70 && d.bfq.is_boosted(d.now));
                d.serve(2_000);
                if owner != 4 {
                    d.read(owner);
                }
            }
            assert!(d.now > begins);
            if !d.waiting.iter().any(|r| r.owner == 4) {
                d.read(4);
            }
        }
        boosted
    };
    let (alone, burst) = (boosted(5), boosted(4));
    assert!(alone > 20 && burst == 0, "{alone} {burst}");
}
