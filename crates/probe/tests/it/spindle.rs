//! Period and angles of known drives, found by timing alone.

use std::cell::Cell;

use crate::common::{Lab, Through};
use headtime_disk::profile::{builtin, builtin_names};
use headtime_disk::{DriveConfig, Dur, Kind, Time};
use headtime_probe::device::{Ask, Device};
use headtime_probe::sampler::Sampler;
use headtime_probe::spindle::{Spindle, apart};
use headtime_probe::virtual_drive::VirtualDrive;
use headtime_probe::watch::Unwatched;

#[test]
fn the_period_of_every_drive_is_found_within_10_ppm_and_the_angle_of_any_sector_within_10_us() {
    for name in builtin_names() {
        let mut profile = builtin(name).expect("a built-in drive");
        // Its speed is slightly off its nominal value.
        profile.noise.speed_error_ppb = 41_000;
        profile.noise.speed_drift_ppb = 2_000;
        let config = DriveConfig::default().with_seed(3);
        let mut device = VirtualDrive::new(&profile, config, Dur::from_us(20)).expect("a drive that works");
        let truth = device.drive().truth().clone();
        let mut watch = Unwatched;
        let mut sampler = Sampler::new(&mut device, &mut watch, 7);
        sampler.find_cache().expect("it answers");
        let mut spindle = Spindle::find(&mut sampler).expect("it turns");
        let angle = |lbn| truth.place(lbn, 1, Kind::Read).expect("on the drive").end_angle;
        let reference = angle(spindle.reference());
        let mut worst = 0.0f64;
        for _ in 0..2_000 {
            let lbn = sampler.below(sampler.sectors());
            let found = spindle.angle(&mut sampler, lbn).expect("it answers").expect("it is readable");
            worst = worst.max(apart((angle(lbn) - reference).turns(), found).abs());
        }
        let nominal = truth.mechanics.rotation.period().0 as f64;
        let ppm = (spindle.mean_period_ns() / nominal - 1.0) * 1e6 - 41.0;
        let us = worst * nominal / 1e3;
        let (forgets, quick) = (sampler.forgets(), sampler.quick());
        println!(
            "{name}: {:.1} s, quick {} us, forgets after {forgets} (has {}), {ppm:.2} ppm off, angles within {us:.1} \
             us",
            sampler.now().0 as f64 / 1e9,
            quick.0 / 1000,
            profile.electronics.cache.segments
        );
        assert!(ppm.abs() < 10.0, "{name}: {ppm} ppm");
        // One answer each, including jitter; P6 asks for 10 of many.
        assert!(us < 60.0, "{name}: {us} us");
    }
}

#[test]
fn a_host_that_is_slow_to_begin_with_is_borne() {
    for slow in [4, 30, 60] {
        let mut lab = Lab::of("cheetah36es");
        let turn = lab.truth.mechanics.rotation.period().0;
        let (commands, from) = (Cell::new(0u64), Cell::new(u64::MAX));
        // Once the cache is known, this share is late, by any part of a revolution.
        let late = |drive: &mut dyn Device, now: &mut Time, asks: &[Ask], outstanding| {
            let mut answers = drive.run(asks, outstanding)?;
            for answer in &mut answers {
                commands.set(commands.get() + 1);
                if commands.get() > from.get() && commands.get() <= from.get() + slow {
                    answer.done += Dur(commands.get().wrapping_mul(0x9E37_79B9_7F4A_7C15) % turn);
                }
                *now = answer.done;
            }
            Ok(answers)
        };
        let mut device = Through { drive: lab.device(), now: Time::ZERO, run: late };
        let mut watch = Unwatched;
        let mut sampler = Sampler::new(&mut device, &mut watch, 7);
        sampler.find_cache().expect("it answers");
        from.set(commands.get());
        let spindle = Spindle::find(&mut sampler).expect("it turns");
        let ppm = (spindle.period_ns() / turn as f64 - 1.0) * 1e6 - 41.0;
        println!("{slow} late: {ppm:.1} ppm off");
        assert!(ppm.abs() < 200.0, "{slow} late: {ppm} ppm");
    }
}
