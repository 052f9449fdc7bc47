//! Raised weights of applications that have just started.

use super::*;

#[test]
fn a_new_application_is_raised_and_one_that_comes_back_after_two_seconds_is_again() {
    // Counts the requests of an established application until the newcomer has had those for which
    // a raised weight lasts: the paper's 24 MB are 183 of them. While the newcomer's weight falls
    // from ten to one, the other is due the integral of 1 / w over them, which is 183 ln(10) / 9 =
    // 47, and may be ahead by one slice, 63; in fair shares it is due 183, and may be one slice
    // behind.
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
    let paper = BfqRules { low_latency: Some(LowLatency::published()), ..BfqRules::plus() };
    let (new, back) = part(2_500, paper.clone());
    assert!(new <= 47 + 63 && back <= 47 + 63, "{new} {back}");
    // A weight that does not fall: the other is due a tenth.
    let (new, back) = part(2_500, BfqRules::plus());
    assert!(new <= 19 + 63 && back <= 19 + 63, "{new} {back}");
    let (_, soon) = part(1_000, paper);
    assert!(soon >= 183 - 63, "{soon} after a second");
    let (plain, _) = part(2_500, fair());
    assert!(plain >= 183 - 63, "{plain}");
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
fn a_raised_queue_preempts_as_soon_as_it_is_not_ahead_of_its_share_any_more() {
    // Counts the requests of an established reader that are served in a row while a raised
    // application waits: all of a slice, 63 of 2 ms, or those that it is due for a budget of the
    // raised one, 64 / 10.
    let most = |preempts: bool| {
        let low_latency = BfqRules::plus().low_latency.map(|l| LowLatency { preempts, ..l });
        let mut d = Desk::new(BfqRules { low_latency, ..BfqRules::plus() });
        d.read(1);
        while d.now < Time::ZERO + Dur::from_secs(10) {
            d.serve(2_000);
            d.read(1);
        }
        d.read(2);
        let (mut run, mut most, mut got) = (0, 0, 0);
        while got < 450 {
            let owner = d.serve(2_000);
            d.read(owner);
            match owner {
                1 => run += 1,
                _ => (run, got) = (0, got + 1),
            }
            most = run.max(most);
        }
        most
    };
    assert_eq!((most(true), most(false)), (7, 63));
}
