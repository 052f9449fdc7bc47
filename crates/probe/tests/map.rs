//! All tracks of drives, found without looking.

use headtime_disk::drive::DriveConfig;
use headtime_disk::profile::builtin;
use headtime_disk::time::Dur;
use headtime_probe::map::Mapper;
use headtime_probe::sampler::{Sampler, Unwatched};
use headtime_probe::spindle::Spindle;
use headtime_probe::tracks::Tracer;
use headtime_probe::virtual_drive::VirtualDrive;

#[test]
fn explore() {
    for name in std::env::var("DRIVES").unwrap_or("cheetah36es".into()).split(',') {
        let profile = builtin(name).expect("a built-in drive");
        let config = DriveConfig { seed: 3, ..DriveConfig::default() };
        let mut device = VirtualDrive::new(&profile, config, Dur::from_us(20)).expect("a drive that works");
        let truth = device.drive().truth().clone();
        let mut watch = Unwatched;
        let mut sampler = Sampler::new(&mut device, &mut watch, 7);
        sampler.find_cache().expect("it answers");
        let mut spindle = Spindle::find(&mut sampler).expect("it turns");
        let mut tracer = Tracer { sampler: &mut sampler, spindle: &mut spindle };
        let spans = Mapper::new(&mut tracer).map();
        println!("{name}: {:.1} s, {:?}", sampler.now().0 as f64 / 1e9, sampler.surprises());
        match spans {
            Ok(spans) => {
                for s in spans.iter().take(60) {
                    let r: Vec<(u64, u32, f64)> =
                        s.runs.iter().map(|r| (r.tracks, r.sectors, (r.skew * 1e4).round() / 1e4)).collect();
                    println!("  {} x{} {:?} adv {:.4}", s.first(), s.times, r, s.advance);
                }
                let (mut wrong, mut all) = (0u64, 0u64);
                for s in &spans {
                    for r in &s.runs {
                        for i in [0, s.times / 2, s.times - 1] {
                            let lbn = r.first + i * s.sectors();
                            all += 1;
                            let t = truth.geometry.track_of(lbn).unwrap();
                            if t.first_lbn != lbn && wrong < 12 {
                                println!("  wrong: {lbn} in {r:?} x{}, truth {} spt {}", s.times, t.first_lbn, t.lbns);
                            }
                            wrong += u64::from(t.first_lbn != lbn);
                        }
                    }
                }
                println!("  {} spans, {wrong} of {all} wrong", spans.len());
                let spec = headtime_probe::layout::geometry(&spans);
                let found = headtime_disk::geometry::Geometry::new(&spec).expect("a geometry");
                let mut rng = headtime_testkit::profiles::rng(5);
                let mut off = Vec::new();
                let end = |g: &headtime_disk::geometry::Geometry, lbn| {
                    let p = g.locate(lbn).expect("on the drive");
                    p.angle.turns() + 1.0 / f64::from(p.spt)
                };
                assert_eq!(found.capacity(), truth.geometry.capacity());
                for _ in 0..1000 {
                    let lbn = headtime_testkit::profiles::between(&mut rng, 0, truth.geometry.capacity() - 1);
                    off.push(headtime_probe::spindle::apart(end(&truth.geometry, lbn), end(&found, lbn)));
                }
                let base = off[0];
                let mut off: Vec<f64> = off.iter().map(|o| headtime_probe::spindle::apart(base, *o)).collect();
                off.sort_by(f64::total_cmp);
                let median = off[500];
                let us = truth.mechanics.rotation.period().0 as f64 / 1e3;
                let mut off: Vec<f64> = off.iter().map(|o| (o - median).abs() * us).collect();
                off.sort_by(f64::total_cmp);
                println!(
                    "  {} zones, {} cylinders of {}; angles: median {:.1} us, p90 {:.1}, p99 {:.1}, worst {:.1}",
                    spec.zones.len(),
                    spec.cylinders,
                    spec.surfaces,
                    off[500],
                    off[900],
                    off[990],
                    off[999]
                );
            }
            Err(e) => println!("  {e}"),
        }
    }
}
