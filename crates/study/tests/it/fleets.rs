//! Fleet studies: figures that do not depend on the seed.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use headtime_disk::profile::builtin;
use headtime_study::fleet::run::{Outcome, RunError, run};
use headtime_study::fleet::study::Study;

const STUDY: &str = "title = 't'\ndisk = 'hitachi-7k1000c'\ndrives = 1000\nseed = SEED\n[load]\nper_second = 40.0\n\
                     spread = 0.3\n[policies]\nfast = 'fast'\nlimited = 'rate:50'\n";

fn outcome(seed: u64, stop: bool) -> Result<Outcome, RunError> {
    let study = Study::parse(&STUDY.replace("SEED", &seed.to_string()), "s.toml", Path::new("")).unwrap();
    let profile = builtin(&study.disk).unwrap();
    run(&study, &profile, None, &AtomicBool::new(stop), &|_, _| {})
}

/// A scan of the simulated drive takes half a minute, in which the lightest load has a dozen
/// requests.
#[test]
fn figures_of_a_small_drive_do_not_depend_on_the_seed() {
    let all = [2, 3, 4].map(|seed| outcome(seed, false).unwrap());
    let figures: [(&str, fn(&Outcome, &str) -> f64); 3] = [
        ("median days", |o, policy| o.policies[policy].scan_days[1]),
        ("95% days", |o, policy| o.policies[policy].scan_days[2]),
        ("mean ms", |o, policy| o.policies[policy].mean_ms),
    ];
    for policy in ["fast", "limited"] {
        for (name, figure) in figures {
            let found = all.each_ref().map(|o| figure(o, policy));
            println!("{policy}: {name}: {found:?}");
            let (least, most) =
                (found.iter().copied().fold(f64::MAX, f64::min), found.iter().copied().fold(0.0, f64::max));
            assert!(least > 0.0 && most < 1.06 * least, "{policy}: {name}: {found:?}");
        }
        let loads = all.each_ref().map(|o| o.policies[policy].highest_load);
        assert!(loads.iter().all(|load| *load >= 60.0), "{policy}: {loads:?}");
    }
    for o in &all {
        let above = o.policies.values().filter(|f| f.drives_above > 0).count();
        assert_eq!(o.warnings().len(), above);
    }
}

#[test]
fn a_stopped_study_has_no_results() {
    assert!(matches!(outcome(1, true), Err(RunError::Stopped)));
}
