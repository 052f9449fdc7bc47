//! All tracks of drives, found by timing alone.

use headtime_disk::profile::{GeometrySpec, Profile, builtin};
use headtime_disk::{DriveConfig, Dur, Geometry, Model};
use headtime_probe::layout::lay_out;
use headtime_probe::map::{Mapper, Span};
use headtime_probe::sampler::Sampler;
use headtime_probe::spindle::Spindle;
use headtime_probe::tracks::Tracer;
use headtime_probe::virtual_drive::VirtualDrive;
use headtime_probe::watch::Unwatched;
use headtime_testkit::profiles::cut;

use crate::common::angles;

/// The map of a drive, its layout, the truth, and the duration in minutes.
fn mapped(profile: &Profile, seed: u64) -> (Vec<Span>, GeometrySpec, Model, f64) {
    let config = DriveConfig::default().with_seed(seed);
    let mut device = VirtualDrive::new(profile, config, Dur::from_us(20)).expect("a drive that works");
    let truth = device.drive().truth().clone();
    let mut watch = Unwatched;
    let mut sampler = Sampler::new(&mut device, &mut watch, seed + 10);
    sampler.find_cache().expect("it answers");
    let mut spindle = Spindle::find(&mut sampler).expect("it turns");
    let mut tracer = Tracer { sampler: &mut sampler, spindle: &mut spindle };
    let spans = Mapper::new(&mut tracer).map().expect("it is a disk");
    let laid = lay_out(&mut sampler, &mut spindle, &spans).expect("it is a disk");
    println!("{}: {:?}; {}", profile.name, laid.order, laid.sure);
    let minutes = sampler.now().0 as f64 / 60e9;
    (spans, laid.spec, truth, minutes)
}

/// Tracks with another start, another length or other sectors, or another surface; and all tracks.
fn wrong(found: &Geometry, truth: &Geometry, surfaces: bool) -> (u64, u64) {
    let (mut wrong, mut all, mut lbn) = (0, 0, 0);
    while let Some(t) = truth.track_of(lbn) {
        let f = found.track_of(lbn).expect("as large");
        let is_right = (f.first_lbn, f.lbns, f.spt) == (t.first_lbn, t.lbns, t.spt);
        wrong += u64::from(!is_right || surfaces && f.surface != t.surface);
        (lbn, all) = (t.first_lbn + u64::from(t.lbns), all + 1);
    }
    (wrong, all)
}

#[test]
fn every_track_of_a_drive_is_found_and_the_angle_of_every_sector() {
    // Zones with spare ends; a group of tracks on each surface in turn, some of equal length;
    // cylinders of four heads; defects.
    for (name, cylinders) in [
        ("cheetah36es", 26_302),
        ("ultrastar36z15", 12_750),
        ("maxtor-7l250s0", 40_000),
        ("hitachi-7k1000c", 30_000),
        ("maxtor-6l080l0", 20_000),
        ("atlas10k", 2_000),
    ] {
        let profile = cut(builtin(name).expect("a built-in drive"), cylinders);
        for seed in 1..4 {
            let (_, spec, truth, minutes) = mapped(&profile, seed);
            let found = Geometry::new(&spec).expect("a geometry");
            // On the Atlas no head switch takes longer than a seek: an alternating order looks like
            // a forward one.
            let (wrong, all) = wrong(&found, &truth.geometry, name != "atlas10k");
            let off = angles(&found, &truth);
            println!(
                "{name}, seed {seed}: {minutes:.1} min, {wrong} of {all} tracks wrong, {} zones; angles: median {:.1} \
                 us, p99 {:.1}, worst {:.1}",
                spec.zones.len(),
                off[500],
                off[990],
                off[999]
            );
            assert_eq!(found.capacity(), truth.geometry.capacity());
            assert!(wrong == 0, "{name}: {wrong} of {all} tracks");
            assert!(off[500] < 3.0 && off[999] < 10.0, "{name}: {} us, {} us", off[500], off[999]);
        }
    }
}

#[test]
fn the_map_follows_from_the_drive_and_the_seed() {
    let profile = cut(builtin("cheetah36es").expect("a built-in drive"), 3_000);
    let (a, b) = (mapped(&profile, 1), mapped(&profile, 1));
    assert_eq!(a.0, b.0);
    assert_eq!(a.1, b.1);
}
