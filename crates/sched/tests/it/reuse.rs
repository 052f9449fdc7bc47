//! Cached data to which the foreground returns stays in the drive's cache while gaps are filled.

use crate::filling_rig::{Rig, gaps_only};
use headtime_disk::{Dur, Kind, Time, profile};
use headtime_sched::{Algorithm, FillConfig};
use headtime_testkit::profiles::between;

/// Segments of the drive's cache.
const SEGMENTS: u64 = 32;
const ROUNDS: u64 = 60;

/// A program returns to `places` in turn, with a random read between two visits. Returns the number
/// of visits that hit the drive's cache, and the rig.
fn visits(places: u64, fill: Option<FillConfig>) -> (u64, Rig) {
    let p = profile::builtin("hitachi-7k1000c").expect("a built-in drive");
    assert_eq!(u64::from(p.electronics.cache.segments), SEGMENTS);
    let scans = fill.is_some();
    let mut rig = Rig::new(&p, fill, vec![]);
    if scans {
        rig.scan();
    }
    let all = rig.capacity();
    let mut hits = 0;
    for round in 0..ROUNDS {
        for place in 0..places {
            let lbn = place * (all / places) + round * 8;
            let asked = rig.now;
            rig.submit(Kind::Read, lbn, 8);
            rig.finish();
            hits += u64::from(rig.now.since(asked) < Dur::from_ms(1));
            // The drive reads ahead in this time: far enough for all rounds.
            rig.run(Dur::from_ms(4));
            let elsewhere = between(&mut rig.rng, 0, all / 8 - 1) * 8;
            rig.submit(Kind::Read, elsewhere, 8);
            rig.finish();
        }
    }
    (hits, rig)
}

#[test]
fn what_the_foreground_comes_back_to_is_still_in_the_cache_beside_a_scan() {
    let planner = FillConfig { idle: None, ..FillConfig::new(Algorithm::Headtime) };
    // With eight places most segments are free for background work, with 14 four are, and with 16
    // none: then a gap is filled only with what the request's own command reads.
    for (places, fill, sectors) in
        [8, 14, 16].into_iter().flat_map(|places| [(places, gaps_only(), 300_000), (places, planner.clone(), 150_000)])
    {
        let (alone, rig) = visits(places, None);
        assert!(alone >= (ROUNDS - 2) * places, "{alone} hits without a scan");
        let without = rig.now.since(Time::ZERO);
        let name = format!("{places} places, {}", fill.algorithm.name());
        let (beside, rig) = visits(places, Some(fill));
        let with = rig.now.since(Time::ZERO);
        println!(
            "{name}: {alone} hits alone in {without}, {beside} beside a scan in {with}, {} sectors",
            rig.delivered()
        );
        // One round shows it the places.
        assert!(beside + places >= alone, "{name}: {beside} hits of {alone}");
        assert!(with.0 * 100 < without.0 * 102, "{name}: {without} alone, {with} beside a scan");
        assert!(rig.delivered() > sectors, "{name}: {} sectors", rig.delivered());
    }
}
