//! A run, as the command line makes it, and what the page draws of it.

use std::io::Write;

use headtime_sim::result::SimResult;
use headtime_sim::scenario::{DEFAULT_DISK, Outcome, Prepared, Scenario, load_disk};
use headtime_sim::stats::Stats;
use serde::Serialize;

use crate::line;
use crate::recorder::Recorder;
use crate::request::Simulate;

/// Name of the scenario in messages.
const SCENARIO: &str = "scenario";
/// Most points of a distribution; a curve of more looks the same.
const MOST_POINTS: usize = 240;

/// The last line of a run.
#[derive(Serialize)]
struct Finished<'a> {
    /// What `headtime simulate --json` prints.
    result: &'a SimResult,
    /// Response times in milliseconds, and the share of requests up to each.
    distribution: Vec<(f64, f64)>,
    /// First lines of a trace that lie beyond the drive.
    refused_lines: &'a [u64],
    /// Why the run ended.
    end: String,
}

/// Runs a scenario and writes what happens, then its result.
///
/// # Errors
/// The scenario or its trace is wrong; the message has the line.
pub fn run(wanted: &Simulate, out: &mut impl Write) -> Result<(), String> {
    let scenario = Scenario::parse(&wanted.scenario, SCENARIO).map_err(|e| e.to_string())?;
    scenario.check().map_err(|e| e.to_string())?;
    let name = scenario.disk.as_deref().unwrap_or(DEFAULT_DISK);
    let loaded = load_disk(name).map_err(|e| scenario.fault_at("disk", e))?;
    let prepared = Prepared::new(&scenario, loaded.profile, None).map_err(|e| e.to_string())?;
    let mut recorder = Recorder::new(&prepared, wanted, &mut *out);
    let outcome = prepared.run(None, &mut recorder).map_err(|e| e.to_string())?;
    let Outcome { result, stats } = outcome;
    recorder.finish(stats.ended_at).map_err(|e| format!("cannot write what happened: {e}"))?;
    let finished = Finished {
        result: &result,
        distribution: distribution(&stats),
        refused_lines: &stats.refused.lines,
        end: format!("{:?}", stats.end),
    };
    line(out, &finished).map_err(|e| format!("cannot write the result: {e}"))
}

/// Returns the distribution of response times, with at most [`MOST_POINTS`] points.
fn distribution(stats: &Stats) -> Vec<(f64, f64)> {
    let all = stats.responses().cdf();
    let step = all.len().div_ceil(MOST_POINTS).max(1);
    let last = all.len().saturating_sub(1);
    let kept = all.iter().enumerate().filter(|(i, _)| i % step == 0 || *i == last);
    kept.map(|(_, (time, share))| (time.as_ms_f64(), (share * 1e6).round() / 1e6)).collect()
}
