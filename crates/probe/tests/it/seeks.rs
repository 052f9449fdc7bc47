//! Seek tables of known drives, found by timing alone, with noise.

use crate::common::{DRIVES, Lab};
use headtime_disk::profile::Skew;
use headtime_disk::{Angle, Geometry};
use headtime_probe::seeks::{SeekPoint, Seeks, distances, longest, measure};

/// The largest difference between a found table and the drive's, in microseconds, with its
/// distance.
fn worst(lab: &Lab, seeks: &Seeks) -> (f64, u32) {
    let truth = &lab.truth.mechanics;
    let off = |p: &SeekPoint| (p.time.0 as f64 - truth.seek.time(p.distance).0 as f64).abs() / 1e3;
    seeks.points.iter().map(|p| (off(p), p.distance)).fold((0.0, 0), |a, b| if b.0 > a.0 { b } else { a })
}

#[test]
fn seeks_are_within_30_us_at_every_distance_and_head_switches_too() {
    for name in DRIVES {
        let mut lab = Lab::of(name);
        let geometry = lab.truth.geometry.clone();
        let truth = lab.truth.clone();
        let asked = distances(longest(&geometry));
        let (seeks, seconds) = lab.probe(|sampler, spindle| {
            let begun = sampler.now();
            let seeks = measure(sampler, spindle, &geometry, &asked).expect("it is measured");
            (seeks, sampler.now().since(begun).as_secs_f64())
        });
        let (us, at) = worst(&lab, &seeks);
        let mean_spread = seeks.points.iter().map(|p| p.spread.0).sum::<u64>() / seeks.points.len() as u64 / 1000;
        println!(
            "{name}: {} distances in {seconds:.0} s, worst {us:.1} us at {at}, spread {mean_spread} us, command {} us, \
             stop {}, switch {:?}, both {:?}",
            seeks.points.len(),
            seeks.command.0 / 1000,
            seeks.stop.0 / 1000,
            seeks.head_switch.map(|p| p.time.0 / 1000),
            seeks.both.map(|p| p.time.0 / 1000),
        );
        assert!(seeks.lost.is_empty(), "{name}: {:?} of {}", seeks.lost, asked.len());
        assert!(us < 30.0, "{name}: {us} us at {at}");
        // Seeks differ by 20 us.
        assert!((5..45).contains(&mean_spread), "{name}: {mean_spread}");
        let off = |found: Option<SeekPoint>, distance| {
            let is = truth.mechanics.reposition((0, 0), (distance, 1), headtime_disk::Kind::Read);
            (found.expect("a border").time.0 as f64 - is.0 as f64).abs() / 1e3
        };
        assert!(off(seeks.head_switch, 0) < 30.0 && off(seeks.both, 1) < 30.0, "{name}");
        assert!(seconds < 900.0, "{name}: {seconds} s of the drive's time");
    }
}

#[test]
fn angles_that_count_from_elsewhere_change_nothing_and_a_geometry_of_another_drive_is_refused() {
    let mut lab = Lab::of("cheetah36es");
    let mut spec = lab.profile.geometry.clone();
    for zone in &mut spec.zones {
        zone.offset = zone.offset.map(|o| Skew::Turn(o.angle(zone.sectors_per_track[0]) + Angle::fraction(37, 100)));
    }
    spec.zones[0].offset = Some(Skew::Turn(Angle::fraction(37, 100)));
    let shifted = Geometry::new(&spec).expect("a geometry");
    let asked = [1, 4, 50, 1_000, 20_000];
    let seeks = lab.probe(|sampler, spindle| measure(sampler, spindle, &shifted, &asked).expect("it is measured"));
    let (us, at) = worst(&lab, &seeks);
    assert!(seeks.points.len() == 5 && us < 30.0, "{us} us at {at}: {seeks:?}");

    // If some zones are wrong, the others suffice.
    spec.zones[3].track_skew = Skew::Turn(Angle::fraction(1, 7));
    let partly = Geometry::new(&spec).expect("a geometry");
    let seeks = lab.probe(|sampler, spindle| measure(sampler, spindle, &partly, &asked[1..3]).expect("it is measured"));
    assert!(seeks.points.len() == 2 && worst(&lab, &seeks).0 < 30.0, "{seeks:?}");
    for zone in &mut spec.zones {
        (zone.track_skew, zone.cylinder_skew) = (Skew::Turn(Angle::fraction(1, 7)), Skew::Turn(Angle::fraction(1, 9)));
    }
    let wrong = Geometry::new(&spec).expect("a geometry");
    let refused = lab.probe(|sampler, spindle| measure(sampler, spindle, &wrong, &asked));
    assert!(refused.is_err(), "{refused:?}");
}
