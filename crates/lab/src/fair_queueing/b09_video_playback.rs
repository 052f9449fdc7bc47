//! B9: frames dropped during program starts.
//!
//! Valente (2014), section 7.4, figure 7.

use headtime_disk::{Dur, Time};
use headtime_sim::workload::suite::Actor;
use headtime_sim::workload::suite::files::{FILES, Load};
use headtime_sim::workload::suite::startup::{Program, Starts};
use headtime_sim::workload::suite::video::Player;

use super::beside;
use super::paper::FIGURE_7;
use crate::common::policy_run::{DRIVE_1, PolicyRun, STATISTICS, by_load, compared};
use crate::experiment::{Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test};

/// The experiment.
pub(crate) const B9: Experiment = Experiment { spec: &SPEC, steps: 12, run };

static SPEC: Spec = Spec {
    id: "B9",
    title: "Playing a clip on a loaded disk",
    source: "Valente, New version of BFQ, benchmark suite and experimental results (2014), section 7.4, figure 7",
    drive: DRIVE_1,
    workload: "a clip of 30 s and 1 MB/s, bash started every three seconds from the tenth on, beside each of the four \
            loads",
    claims: &[Claim {
        id: "B9",
        claim: "dropped frames, BFQ+ against CFQ",
        paper: "at most 1.6 times",
        rule: "at most 1.6 times; alone, a player drops no frame (0) under each of the schedulers",
        checks: &[
            Check { what: "BFQ+ over CFQ, largest of the loads", unit: "times", test: Test::AtMost(1.6) },
            Check { what: "dropped by a player alone, largest of the schedulers", unit: "", test: Test::AtMost(0.0) },
        ],
        quick: true,
        note: "Frames of the last 20 seconds. One frame more or less in a run says nothing: a load on which neither \
               drops more than one in a run counts as equal.",
    }],
    length: Length::Minutes,
    alone: false,
};

fn run(run: &Run) -> Result<Findings, RunError> {
    let mut f = Findings::default();
    let (rows, means) = by_load(run, &compared(), "", |policy, load, seed| {
        let play = |seconds| {
            let mut who = 0;
            let (suite, _) = PolicyRun::new(DRIVE_1, policy.clone(), seconds, seed).run(&SPEC, |disk| {
                let mut actors: Vec<Box<dyn Actor>> = load.actors(disk, seed);
                who = actors.len();
                let begun = Time::ZERO + Dur::from_secs(LOAD_FIRST);
                actors.push(Box::new(Player::new(disk, BYTES_A_SECOND, CLIP, begun, (10, FILES))));
                let first = begun + Dur::from_secs(CLIP - COUNTED_S);
                let starts = Starts::new(disk, Program::BASH, first, Dur::ZERO, 100, seed);
                actors.push(Box::new(starts.every(Dur::from_secs(3))));
                actors
            })?;
            Ok::<u64, RunError>(suite.account(who).dropped)
        };
        // Drops in the last seconds are all drops less the earlier ones.
        Ok((play(LOAD_FIRST + CLIP + 1)? - play(LOAD_FIRST + CLIP + 1 - COUNTED_S)?) as f64)
    })?;
    let ratio = |load: usize| means[0][load].max(1.0) / means[2][load].max(1.0);
    let mut alone = 0;
    for policy in compared() {
        let seconds = LOAD_FIRST + CLIP + 1;
        let (suite, _) = PolicyRun::new(DRIVE_1, policy, seconds, run.seed).run(&SPEC, |disk| {
            vec![Box::new(Player::new(
                disk,
                BYTES_A_SECOND,
                CLIP,
                Time::ZERO + Dur::from_secs(LOAD_FIRST),
                (10, FILES),
            ))]
        })?;
        alone = alone.max(suite.account(0).dropped);
    }
    f.figure("B9", &[(0..Load::ALL.len()).map(ratio).fold(0.0, f64::max), alone as f64]);
    let about = "Of the 540 frames of the last 20 seconds, mean of the runs.";
    f.charts.push(beside::chart(&FIGURE_7, about, &beside::means(&rows)));
    f.tables.push(Table { name: "dropped_frames", columns: STATISTICS, rows });
    Ok(f)
}

const BYTES_A_SECOND: u64 = 1_000_000;
/// Seconds of the clip, of its end in which frames are counted, and of load before it begins.
const CLIP: u64 = 30;
const COUNTED_S: u64 = 20;
const LOAD_FIRST: u64 = 10;
