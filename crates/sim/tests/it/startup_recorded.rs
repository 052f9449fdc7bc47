//! Recorded start-ups of two programs beside ten readers under each policy (Valente 2014 section
//! 7.3, with recordings in place of models).
//!
//! The recordings are not part of this project. They are expected in `$HEADTIME_DATA/startup`, else
//! in `../shared/data/startup` beside the workspace; without them the test reports that and passes.

use std::path::PathBuf;

use headtime_disk::{Dur, Time, profile};
use headtime_sched::{Order, Policy};
use headtime_sim::background::Nothing;
use headtime_sim::run::Limits;
use headtime_sim::simulate::{Setup, Simulation};
use headtime_sim::workload::suite::files::Load;
use headtime_sim::workload::suite::recorded::{Recorded, Step, read};
use headtime_sim::workload::suite::{Actor, Disk, Suite};

/// Returns a recording, if there is one.
fn recording(program: &str) -> Option<Vec<Step>> {
    let root = match std::env::var_os("HEADTIME_DATA") {
        Some(data) => PathBuf::from(data),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
    };
    let Ok(text) = std::fs::read_to_string(root.join("startup").join(program).with_extension("trace")) else {
        println!("skipped: no recorded starts (set HEADTIME_DATA to the folder that holds startup/)");
        return None;
    };
    Some(read(&text, program).unwrap())
}

/// Returns the mean seconds of five start-ups, three seconds apart, under a policy beside ten
/// sequential readers, or alone.
fn seconds(steps: &[Step], policy: &str, load: Option<Load>) -> f64 {
    let profile = profile::builtin("maxtor-stm332061").unwrap();
    let setup = Setup { admit: Policy::named(policy).unwrap(), ..Setup::new(&profile, Order::Clook, 1) };
    let simulation = Simulation::new(&setup).unwrap();
    let target = simulation.target();
    let disk = Disk { capacity: target.capacity, sector_bytes: u64::from(target.sector_bytes) };
    let mut actors: Vec<Box<dyn Actor>> = load.map_or_else(Vec::new, |l| l.actors(&disk, 1));
    let who = actors.len();
    let (first, pause) = (Time::ZERO + Dur::from_secs(10), Dur::from_secs(3));
    actors.push(Box::new(Recorded::new(&disk, steps.to_vec(), first, pause, 5)));
    let mut suite = Suite::new(target, actors);
    let limits = Limits { until: Some(Time::ZERO + Dur::from_secs(1_000)), ..Limits::default() };
    simulation.run_with(&mut suite, &mut Nothing, limits, None, &mut ()).unwrap();
    let starts = suite.account(who).starts;
    assert_eq!(starts.len(), 5, "under {policy}");
    starts.iter().map(|s| s.as_secs_f64()).sum::<f64>() / 5.0
}

/// `most`: upper bounds of the duration of a start-up under BFQ+ relative to an idle disk, to BFQ,
/// and to CFQ.
fn starts(program: &str, most: [f64; 3]) {
    let Some(steps) = recording(program) else { return };
    let idle = seconds(&steps, "none", None);
    let [raised, plain, cfq] = ["bfq+", "bfq", "cfq"].map(|p| seconds(&steps, p, Some(Load::Readers10Seq)));
    println!("{program}: idle {idle:.2} s; bfq+ {raised:.2} s, bfq {plain:.2} s, cfq {cfq:.2} s");
    for (most, other) in most.into_iter().zip([idle, plain, cfq]) {
        assert!(raised < most * other, "{raised} s, beside {other} s");
    }
}

#[test]
fn a_small_program_starts_nearly_as_on_an_idle_disk() {
    starts("xterm", [1.6, 0.5, 0.2]);
}

#[test]
fn a_large_program_starts_sooner_than_without() {
    // It reads 46 MB.
    starts("lowriter", [3.0, 0.8, 0.3]);
}
