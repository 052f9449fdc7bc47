//! B9: frames dropped during program starts.
//!
//! Valente (2014), section 7.4, figure 7.

use headtime_disk::{Dur, Time};
use headtime_sim::workload::suite::files::{FILES, Load};
use headtime_sim::workload::suite::startup::{Program, Starts};
use headtime_sim::workload::suite::video::Player;
use headtime_sim::workload::suite::{Actor, Disk};

use super::beside;
use super::paper::FIGURE_7;
use crate::common::policy_run::{DRIVE_1, PolicyRun, STATISTICS, by_load, compared};
use crate::experiment::{Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test};

/// The experiment.
pub(crate) const B9: Experiment = Experiment { spec: &SPEC, steps: 24, run };

static SPEC: Spec = Spec {
    id: "B9",
    title: "Playing a clip on a loaded disk",
    source: "Valente, New version of BFQ, benchmark suite and experimental results (2014), section 7.4, figure 7",
    drive: DRIVE_1,
    workload: "a clip of 30 s, of 1 MB/s and of 0.5 MB/s, bash started every three seconds from the tenth on, beside \
            each of the four loads",
    claims: &[Claim {
        id: "B9",
        claim: "dropped frames, BFQ+ against CFQ",
        paper: "at most 1.6 times",
        rule: "at most 1.6 times; alone, a player drops no frame (0) under each of the schedulers",
        checks: &[
            Check { what: "BFQ+ over CFQ, largest of loads and clips", unit: "times", test: Test::AtMost(1.6) },
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
    let (mut rows, mut ratio) = (Vec::new(), 0.0_f64);
    for (name, bytes_a_second) in CLIPS {
        let (more, means) = by_load(run, &compared(), name, |policy, load, seed| {
            let play = |seconds| {
                let mut who = 0;
                let (suite, _) = PolicyRun::new(DRIVE_1, policy.clone(), seconds, seed).run(&SPEC, |disk| {
                    let mut actors: Vec<Box<dyn Actor>> = load.actors(disk, seed);
                    who = actors.len();
                    actors.push(player(disk, bytes_a_second));
                    let first = BEGUN + Dur::from_secs(CLIP - COUNTED_S);
                    let starts = Starts::new(disk, Program::BASH, first, Dur::ZERO, 100, seed);
                    actors.push(Box::new(starts.every(Dur::from_secs(3))));
                    actors
                })?;
                Ok::<u64, RunError>(suite.account(who).dropped)
            };
            // Drops in the last seconds are all drops less the earlier ones.
            Ok((play(LOAD_FIRST + CLIP + 1)? - play(LOAD_FIRST + CLIP + 1 - COUNTED_S)?) as f64)
        })?;
        rows.extend(more);
        let of_load = |load: usize| means[0][load].max(1.0) / means[2][load].max(1.0);
        ratio = (0..Load::ALL.len()).map(of_load).fold(ratio, f64::max);
    }
    let mut alone = 0;
    for policy in compared() {
        let seconds = LOAD_FIRST + CLIP + 1;
        let (suite, _) =
            PolicyRun::new(DRIVE_1, policy, seconds, run.seed).run(&SPEC, |disk| vec![player(disk, CLIPS[0].1)])?;
        alone = alone.max(suite.account(0).dropped);
    }
    f.figure("B9", &[ratio, alone as f64]);
    let about = "Clip of 1 MB/s; of the 540 frames of the last 20 seconds, mean of the runs.";
    f.charts.push(beside::chart(&FIGURE_7, about, &beside::means(&rows)));
    f.tables.push(Table { name: "dropped_frames", columns: STATISTICS, rows });
    Ok(f)
}

/// Plays a clip of this rate.
fn player(disk: &Disk, bytes_a_second: u64) -> Box<dyn Actor> {
    Box::new(Player::new(disk, bytes_a_second, CLIP, BEGUN, (10, FILES)))
}

/// The report does not say how large its clip is (medium resolution). Beside three of the loads CFQ
/// drops half of the first one's frames or more; a comparison needs one that it can play, too: of
/// the second it drops 3 to 14%.
const CLIPS: [(&str, u64); 2] = [("", 1_000_000), (", 0.5 MB/s", 500_000)];
/// Seconds of the clip, of its end in which frames are counted, and of load before it begins.
const CLIP: u64 = 30;
const COUNTED_S: u64 = 20;
const LOAD_FIRST: u64 = 10;
/// When the clip begins.
const BEGUN: Time = Time(LOAD_FIRST * 1_000_000_000);
