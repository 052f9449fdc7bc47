//! Adaptive conservatism: with streams whose true errors are known, and on the virtual drive.

use crate::common::looped::{Loop, Pick};
use headtime_disk::profile::{self, Profile};
use headtime_disk::{Dur, Kind, Model, Time};
use headtime_sched::Surprise;
use headtime_sched::internals::adaptive::{Adaptive, CEILING, FLOOR, START};
use headtime_sched::internals::evidence::Seen;
use headtime_testkit::profiles::{between, rng};

/// Returns the drive with every seek longer by a percentage; head switches and settling are
/// unchanged.
fn slower(p: &Profile, percent: i64) -> Profile {
    let mut p = p.clone();
    let longer = |t: Dur| Dur((t.0 as i64 * (100 + percent) / 100) as u64);
    p.mechanics.seek.iter_mut().for_each(|s| s.1 = longer(s.1));
    p.mechanics.write_seek.iter_mut().flatten().for_each(|s| s.1 = longer(s.1));
    p
}

fn atlas() -> Profile {
    profile::builtin("atlas10k").expect("a built-in drive")
}

#[test]
fn seeks_5_percent_slower_are_known_after_ten_busy_seconds() {
    for name in ["atlas10k", "cheetah36es", "cheetah18lp"] {
        let belief = profile::builtin(name).expect("a built-in drive");
        let truth = slower(&belief, 5);
        for seed in 1..=3 {
            for (pick, waiting) in [(Pick::Sptf, 10), (Pick::Sptf, 20), (Pick::First, 4)] {
                let run = |it: &mut Loop| it.run(Dur::from_secs(40), Dur::from_secs(10));
                let without = run(&mut Loop::new(&belief, &truth, seed, pick, waiting).not_adaptive());
                let best = run(&mut Loop::new(&truth, &truth, seed, pick, waiting).not_adaptive());
                let mut it = Loop::new(&belief, &truth, seed, pick, waiting);
                let with = run(&mut it);
                let adaptive = it.adaptive.as_ref().expect("it is");
                println!("{name} seed {seed} {pick:?} of {waiting}, {} ppm", adaptive.scale_ppm());
                println!("  blind {without:?}\n  adaptive {with:?}\n  knowing {best:?}");
                assert!(with.close_per_mille() >= 970 && with.close_per_mille() > without.close_per_mille());
                assert!(with.requests * 100 > best.requests * 98, "the foreground loses 2%");
                assert!(adaptive.scale_ppm().abs_diff(50_000) < 5_000);
                assert!((0..24).all(|c| adaptive.margins().of_class(c) < START));
                assert!(it.gate.times_shut() == 0);
            }
        }
    }
}

#[test]
fn a_drive_that_is_as_its_profile_says_is_believed_to_be_so() {
    for seed in 1..=3 {
        for (pick, waiting) in [(Pick::Sptf, 10), (Pick::First, 4)] {
            let run = |it: &mut Loop| it.run(Dur::from_secs(60), Dur::from_secs(10));
            let without = run(&mut Loop::new(&atlas(), &atlas(), seed, pick, waiting).not_adaptive());
            let mut it = Loop::new(&atlas(), &atlas(), seed, pick, waiting);
            let with = run(&mut it);
            let ppm = it.adaptive.as_ref().expect("it is").scale_ppm();
            println!("seed {seed} {pick:?}: {ppm} ppm\n  fixed {without:?}\n  adaptive {with:?}");
            assert!(ppm.abs() <= 5_000);
            assert!(with.close_per_mille() + 3 >= without.close_per_mille());
            assert!(with.requests * 100 >= without.requests * 99);
        }
    }
}

#[test]
fn quicker_seeks_are_noticed_where_turns_come_early_and_never_cost_a_turn() {
    // With FCFS every latency occurs, long ones too.
    let mut it = Loop::new(&atlas(), &slower(&atlas(), -5), 1, Pick::First, 4);
    let all = it.run(Dur::from_secs(60), Dur::from_secs(20));
    let ppm = it.adaptive.as_ref().expect("it is").scale_ppm();
    println!("{ppm} ppm, {all:?}");
    assert!((-60_000..=-40_000).contains(&ppm), "{ppm}");
    assert!(all.close_per_mille() >= 980);
    // With SPTF latencies are short, and completions can only show that no seek is longer.
    let mut it = Loop::new(&atlas(), &slower(&atlas(), -5), 1, Pick::Sptf, 10);
    let all = it.run(Dur::from_secs(60), Dur::from_secs(20));
    println!("{} ppm, {all:?}", it.adaptive.as_ref().expect("it is").scale_ppm());
    assert!(all.close_per_mille() >= 980 && it.adaptive.as_ref().expect("it is").scale_ppm() <= 2_000);
}

#[test]
fn a_drive_that_lands_inside_long_requests_shows_its_seeks_too() {
    let belief = atlas();
    assert!(belief.mechanics.read_on_arrival);
    let mut it = Loop::new(&belief, &slower(&belief, 5), 4, Pick::Sptf, 6);
    (it.sectors, it.writes_percent) = (240, 0);
    let all = it.run(Dur::from_secs(60), Dur::from_secs(20));
    println!("{} ppm, {all:?}", it.adaptive.as_ref().expect("it is").scale_ppm());
    assert!(it.adaptive.as_ref().expect("it is").scale_ppm().abs_diff(50_000) < 6_000);
}

#[test]
fn landing_inside_a_long_request_a_little_late_is_not_taken_for_a_slow_seek() {
    for (seed, waiting) in [(1, 6), (2, 16), (3, 32)] {
        let mut it = Loop::new(&atlas(), &atlas(), seed, Pick::Sptf, waiting);
        (it.sectors, it.writes_percent) = (256, 0);
        let all = it.run(Dur::from_secs(120), Dur::from_secs(20));
        let ppm = it.adaptive.as_ref().expect("it is").scale_ppm();
        println!("{waiting} waiting: {ppm} ppm, {all:?}");
        assert!(ppm.abs() < 2_000, "{ppm}");
    }
}

#[test]
fn settling_that_fails_often_is_not_taken_for_slow_seeks() {
    let mut truth = atlas();
    truth.noise.settle_retry_ppm = 20_000;
    let mut it = Loop::new(&atlas(), &truth, 5, Pick::Sptf, 10);
    let all = it.run(Dur::from_secs(60), Dur::from_secs(20));
    let adaptive = it.adaptive.as_ref().expect("it is");
    println!("{} ppm, {all:?}, {:?}", adaptive.scale_ppm(), adaptive.margins());
    assert!(adaptive.scale_ppm().abs() < 8_000, "{}", adaptive.scale_ppm());
    assert!((0..24).all(|c| adaptive.margins().of_class(c) < Dur(CEILING.0 / 3)));
    assert!(it.gate.is_open());
}

/// Moves with normally distributed errors, as FILL makes them: each with a slack of the margin and
/// up to 600 us more. Returns the share of misses in the second half, in a million, and its mean
/// margin.
fn stream(sd_us: u64, bias_us: i64, seed: u64) -> (u64, Dur) {
    let model = Model::new(&atlas()).expect("a drive that works");
    let (mut it, mut rng) = (Adaptive::new(&model, Dur::ZERO), rng(seed));
    let turn = model.mechanics.rotation.period();
    let (mut moves, mut missed, mut margins) = (0u64, 0u64, Dur::ZERO);
    const ALL: u64 = 40_000;
    for i in 0..ALL {
        // Twelve uniform numbers less their mean: the standard deviation is 1000.
        let even: i64 = (0..12).map(|_| between(&mut rng, 0, 1_000) as i64).sum::<i64>() - 6_000;
        let error_us = even * sd_us as i64 / 1_000 + bias_us;
        let (from, to) = ((1_000, 0), (1_000 + between(&mut rng, 1, 2_000) as u32, 0));
        let slack = it.margins().of_move(from, to) + Dur::from_us(between(&mut rng, 0, 600));
        let miss = error_us * 1_000 > slack.0 as i64;
        let surprise = if miss { Surprise::ExtraTurn } else { Surprise::None };
        let seek = model.mechanics.reposition(from, to, Kind::Read);
        it.observe(&Seen {
            kind: Kind::Read,
            from,
            to,
            seek,
            latency: slack,
            media: Dur::from_us(140),
            one_track: true,
            error_ns: if miss { turn.0 as i64 } else { 0 },
            surprise,
            alone: false,
        });
        if i >= ALL / 2 {
            (moves, missed) = (moves + 1, missed + u64::from(miss));
            margins += it.margins().of_move(from, to);
        }
    }
    (missed * 1_000_000 / moves, Dur(margins.0 / moves))
}

#[test]
fn margins_settle_where_misses_of_filled_gaps_are_rare() {
    for (sd, bias, at_least) in [(5, 0, 50), (40, 0, 60), (100, 0, 150), (60, 300, 350), (200, 400, 650)] {
        for seed in 1..=3 {
            let (ppm, margin) = stream(sd, bias, seed);
            println!("deviation {sd} us, bias {bias} us, seed {seed}: {ppm} ppm missed, margin {margin}");
            // Of all moves, not only of those near the margin.
            assert!(ppm < 10_000);
            assert!(margin >= Dur::from_us(at_least) && margin >= FLOOR);
            assert!(margin < Dur::from_us(at_least) + Dur::from_us(4 * sd + 100));
        }
    }
}

#[test]
fn a_host_that_is_slow_to_send_is_distinguished_from_a_drive_that_is_slow_to_move() {
    // One command in eight that is sent to an idle drive arrives 150 to 400 us after the decision;
    // others find the drive busy.
    let model = Model::new(&atlas()).expect("a drive that works");
    let least = Dur::from_us(50);
    let (mut it, mut rng) = (Adaptive::new(&model, least), rng(1));
    let turn = model.mechanics.rotation.period();
    let (mut moves, mut missed) = (0u64, 0u64);
    const ALL: u64 = 40_000;
    for i in 0..ALL {
        let alone = i % 2 == 0;
        let delay = match (alone, between(&mut rng, 1, 8)) {
            (false, _) => 0,
            (true, 1) => between(&mut rng, 150, 400),
            (true, _) => between(&mut rng, 10, 60),
        };
        let (from, to) = ((1_000, 0), (1_000 + between(&mut rng, 1, 2_000) as u32, 0));
        let host = if alone { it.delay() } else { Dur::ZERO };
        let slack = it.margins().of_move(from, to) + host + Dur::from_us(between(&mut rng, 0, 600));
        let miss = Dur::from_us(delay) > slack;
        let surprise = if miss { Surprise::ExtraTurn } else { Surprise::None };
        it.observe(&Seen {
            kind: Kind::Read,
            from,
            to,
            seek: model.mechanics.reposition(from, to, Kind::Read),
            latency: slack,
            media: Dur::from_us(140),
            one_track: true,
            error_ns: if miss { turn.0 as i64 } else { 0 },
            surprise,
            alone,
        });
        if i >= ALL / 2 && alone {
            (moves, missed) = (moves + 1, missed + u64::from(miss));
        }
    }
    let ppm = missed * 1_000_000 / moves;
    println!("{ppm} ppm missed, delay {}, margins {:?}", it.delay(), it.margins().of_class(5));
    assert!(ppm < 5_000, "{ppm} of a million missed");
    assert!(it.delay() > Dur::from_us(200) && it.delay() < Dur::from_us(450));
    // The drive is not at fault: a command sent after another needs no larger margin than before.
    assert!(it.margins().of_class(20) < FLOOR + Dur::from_us(15));
}

#[test]
fn a_drive_with_a_write_back_cache_shuts_the_gate() {
    // Whether or not the scheduler knows of the write-back cache, it cannot predict when the arm
    // moves.
    for known in [false, true] {
        for seed in 1..=3 {
            let mut truth = atlas();
            truth.electronics.cache.write_back = true;
            let belief = if known { truth.clone() } else { atlas() };
            let mut it = Loop::new(&belief, &truth, seed, Pick::Sptf, 10);
            let all = it.run(Dur::from_secs(60), Dur::ZERO);
            println!("known {known}, seed {seed}: {all:?}, turned {:?}", it.turned);
            assert!(all.close_per_mille() < 500);
            assert!(!it.gate.is_open() && it.turned.len() == 1);
            assert!(it.turned[0].0 < Time::ZERO + Dur::from_secs(3));
        }
    }
}
