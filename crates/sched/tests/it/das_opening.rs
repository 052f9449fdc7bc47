//! Streams begin one after another in a core: sets that admission allows can be opened, although
//! those at work must be served differently from before.

use headtime_disk::{Dur, Model, Time, profile};
use headtime_sched::streams::{Disk, Exhausted, GuaranteeConfig, Kinds, Quality, Stream, admit};
use headtime_sched::{Config, Core, Order};

/// Requests, period in ms and quality in parts per million. Found by trying random sets: when the
/// last of each begins, one of those before it has a reservation from then on and another is served
/// as a mandatory one.
const EXCHANGED: [&[(u32, u64, u32)]; 4] = [
    &[(2, 200, 900_000), (2, 100, 900_000), (6, 400, 950_000)],
    &[(2, 100, 950_000), (5, 200, 950_000), (2, 200, 950_000)],
    &[(3, 200, 800_000), (2, 100, 800_000), (7, 400, 800_000)],
    &[(1, 200, 950_000), (4, 200, 950_000), (2, 100, 950_000), (9, 400, 800_000)],
];

fn barracuda() -> GuaranteeConfig {
    let profile = profile::builtin("barracuda36es2").expect("a built-in drive");
    let model = Model::new(&profile).expect("a drive that works");
    let disk = Disk::of(&profile, &model, 2).expect("its times");
    GuaranteeConfig::of(disk, &profile, &model, Exhausted::Skip).expect("a worst case")
}

fn core(setup: &GuaranteeConfig) -> Core {
    let profile = profile::builtin("barracuda36es2").expect("a built-in drive");
    let config = Config::new(Order::Sptf).with_capacity(256);
    Core::new(config, Model::new(&profile).expect("a drive that works")).guaranteeing(setup)
}

fn asked(set: &[(u32, u64, u32)]) -> Vec<Stream> {
    let stream = |&(requests, ms, ppm): &(u32, u64, u32)| {
        let quality = Quality::from_ppm(ppm).expect("a quality");
        Stream::new(requests, Dur::from_ms(ms), quality, 128).expect("a stream").only(Kinds::Reads)
    };
    set.iter().map(stream).collect()
}

/// There is no time for both as mandatory ones, so the reservation is set first.
#[test]
fn one_stream_makes_room_for_another_that_is_served_as_a_mandatory_one() {
    let setup = barracuda();
    for set in EXCHANGED {
        let streams = asked(set);
        let admitted = admit(&setup.disk, &streams);
        assert!(admitted.is_ok(), "{set:?}: {admitted:?}");
        let mut core = core(&setup);
        let reserved =
            |core: &Core| -> Vec<bool> { core.standings().iter().map(|s| s.reservation.is_some()).collect() };
        let mut before = Vec::new();
        for (owner, &stream) in (0..).zip(&streams) {
            before = reserved(&core);
            let opened = core.open_stream(owner, stream, Time::ZERO);
            assert!(opened.is_ok(), "{set:?}: stream {owner}: {opened:?}");
        }
        let after = reserved(&core);
        let change = |from, to| before.iter().zip(&after).any(|(&b, &a)| (b, a) == (from, to));
        assert!(change(false, true) && change(true, false), "{set:?}: {before:?}, then {after:?}");
    }
}

/// The others' reservations were computed beside it, and are recomputed without it.
#[test]
fn a_stream_that_does_not_begin_leaves_the_others_what_they_had() {
    let setup = barracuda();
    for set in EXCHANGED {
        let streams = asked(set);
        let (last, first) = streams.split_last().expect("three at least");
        let mut together = admit(&setup.disk, &streams).expect("room for all");
        let mut core = core(&setup);
        for (owner, &stream) in (0..).zip(first) {
            core.open_stream(owner, stream, Time::ZERO).expect("room");
        }
        let reserved = |core: &Core| -> Vec<Option<Dur>> { core.standings().iter().map(|s| s.reservation).collect() };
        let without = reserved(&core);
        // Another than the admitted one: all of a thousand requests.
        let much = Stream { requests: 1_000, quality: Quality::MANDATORY, ..*last };
        *together.reservations.last_mut().expect("the last") = None;
        let why = core.begin_stream(9, much, &together, Time::ZERO).expect_err("no time for it");
        assert!(why.to_string().contains("expected a period"), "{why}");
        assert_eq!(reserved(&core), together.reservations[..first.len()], "{set:?}");
        assert_ne!(reserved(&core), without, "{set:?}");
        assert!(core.find_streams_anew(Time::ZERO), "{set:?}");
        assert_eq!(reserved(&core), without, "{set:?}");
        assert!(!core.find_streams_anew(Time::ZERO), "{set:?}: twice");
    }
}
