//! Fleet studies: figures that do not depend on the seed.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use headtime_disk::profile::builtin;
use headtime_study::fleet::disk::{Policy, rates, small};
use headtime_study::fleet::run::{Outcome, PolicyOutcome, RunError, run};
use headtime_study::fleet::study::Study;

const STUDY: &str = "title = 't'\ndisk = 'hitachi-7k1000c'\ndrives = 1000\nseed = SEED\n[load]\nper_second = 40.0\n\
                     spread = 0.3\n[policies]\nfast = 'fast'\n";

fn outcome(seed: u64, stop: &AtomicBool) -> Result<Outcome, RunError> {
    let study = Study::parse(&STUDY.replace("SEED", &seed.to_string()), "s.toml", Path::new("")).unwrap();
    let profile = builtin(&study.disk).unwrap();
    run(&study, &profile, None, stop, &|_, _| {})
}

/// A figure of a policy, with its name.
type Figure = (&'static str, fn(&PolicyOutcome) -> f64);

/// A scan of the simulated drive takes half a minute, in which the lightest load has a dozen
/// requests. The median of 1,000 drives' loads, which are drawn, too, has an error of 1.2%.
#[test]
fn figures_of_a_small_drive_do_not_depend_on_the_seed() {
    let all = [2, 3, 4].map(|seed| outcome(seed, &AtomicBool::new(false)).unwrap());
    let figures: [Figure; 2] = [("median days", |f| f.scan_days[1]), ("mean ms", |f| f.mean_ms)];
    for (name, figure) in figures {
        let found = all.each_ref().map(|o| figure(&o.policies["fast"]));
        println!("{name}: {found:?}");
        let (least, most) = found.iter().fold((f64::MAX, 0.0), |(l, m): (f64, f64), v| (l.min(*v), m.max(*v)));
        assert!(least > 0.0 && most < 1.1 * least, "{name}: {found:?}");
    }
    for o in &all {
        let fast = &o.policies["fast"];
        assert!(fast.highest_load >= 60.0, "{}", fast.highest_load);
        assert_eq!(o.warnings().len(), usize::from(fast.drives_above > 0));
    }
}

/// At two requests a second a scan has sixty of them. With no more, the mean response depends on
/// the seed by 18%, and with ten times as many by 12%.
#[test]
fn a_light_load_is_measured_over_enough_requests() {
    let drive = small(&builtin("hitachi-7k1000c").unwrap()).unwrap();
    let mean = |seed| rates(&drive, 400.0, Policy::Fast, 2.0, seed, &AtomicBool::new(false)).unwrap().mean_ms;
    let found = [1, 2, 3, 4].map(mean);
    println!("{found:?}");
    let (least, most) = found.iter().fold((f64::MAX, 0.0), |(l, m): (f64, f64), v| (l.min(*v), m.max(*v)));
    assert!(least > 0.0 && most < 1.08 * least, "{found:?}");
}

#[test]
fn a_study_is_stopped_within_its_runs() {
    let stop = AtomicBool::new(false);
    let took = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(300));
            stop.store(true, Ordering::Relaxed);
        });
        let began = Instant::now();
        assert!(matches!(outcome(1, &stop), Err(RunError::Stopped)));
        began.elapsed()
    });
    assert!(took < Duration::from_secs(5), "{took:?}");
}
