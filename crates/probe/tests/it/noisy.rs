//! Drives whose answers scatter, or are late occasionally.

use crate::common::{Through, device, wrong};
use headtime_disk::profile::{Profile, builtin};
use headtime_disk::{Dur, Geometry, Time};
use headtime_probe::device::{Ask, Device};
use headtime_probe::layout::lay_out;
use headtime_probe::map::Mapper;
use headtime_probe::sampler::Sampler;
use headtime_probe::spindle::Spindle;
use headtime_probe::tracks::Tracer;
use headtime_probe::watch::Unwatched;
use headtime_probe::{Options, characterize};

/// Uniformly up to 100 us late: an error of about 30 us, at sectors of 8 us.
fn scattering() -> Profile {
    let mut profile = builtin("cheetah36es").expect("a built-in drive");
    profile.noise.completion_jitter = Dur::from_us(100);
    profile
}

#[test]
fn a_drive_whose_answers_scatter_is_found_all_the_same() {
    let profile = scattering();
    let truth = Geometry::new(&profile.geometry).expect("a geometry");
    for seed in 1..9 {
        let options = Options { seed, ..Options::default() };
        let found = characterize(&mut device(&profile, seed), &mut Unwatched, &options).expect("a disk");
        let wrong = wrong(&Geometry::new(&found.profile.geometry).expect("a geometry"), &truth);
        assert!(found.good && wrong == 0, "seed {seed}: {wrong} tracks wrong, {:?}", found.findings);
        // Hits are not mistaken for media reads or vice versa: no seek is longer because of it.
        let seeks = &found.profile.mechanics.seek;
        let both =
            |d: &u32| Some((seeks.iter().find(|s| s.0 == *d)?.1, profile.mechanics.seek.iter().find(|s| s.0 == *d)?.1));
        let off: Vec<f64> =
            seeks.iter().filter_map(|s| both(&s.0)).map(|(f, t)| (f.0 as f64 - t.0 as f64) / 1e3).collect();
        println!("seed {seed}: seeks {off:.0?} us off");
        assert!(off.len() > 20 && off.iter().all(|us| us.abs() < 60.0), "seed {seed}: {off:?}");
    }
}

#[test]
fn answers_that_are_late_now_and_then_put_no_tracks_elsewhere() {
    let profile = scattering();
    let truth = Geometry::new(&profile.geometry).expect("a geometry");
    for seed in 1..9u64 {
        let mut drive = device(&profile, seed);
        let mut state = seed;
        // One in fifty is up to a millisecond late, as on a machine with a busy processor.
        let late = |drive: &mut dyn Device, now: &mut Time, asks: &[Ask], outstanding| {
            let mut answers = drive.run(asks, outstanding)?;
            for answer in &mut answers {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                if (state >> 33).is_multiple_of(50) {
                    answer.done += Dur(300_000 + (state >> 12) % 700_000);
                }
                *now = answer.done;
            }
            Ok(answers)
        };
        let mut device = Through { drive: &mut drive, now: Time::ZERO, run: late };
        let mut watch = Unwatched;
        let mut sampler = Sampler::new(&mut device, &mut watch, seed);
        sampler.find_cache().expect("it answers");
        let mut spindle = Spindle::find(&mut sampler).expect("it turns");
        let mut tracer = Tracer { sampler: &mut sampler, spindle: &mut spindle };
        let spans = Mapper::new(&mut tracer).map().expect("it is a disk");
        let laid = lay_out(&mut sampler, &mut spindle, &spans).expect("it answers");
        let wrong = wrong(&Geometry::new(&laid.spec).expect("a geometry"), &truth);
        println!("seed {seed}: {wrong} tracks wrong, {:?}", laid.order);
        // A late hit looks like a media read, wherever its sector is: a track may then be one
        // sector too long.
        assert!(wrong <= 2, "seed {seed}: {wrong} tracks wrong, {:?}", laid.order);
    }
}
