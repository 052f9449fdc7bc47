//! What `simulate --json` says of streams.

use std::collections::BTreeMap;

use serde::Serialize;

use super::round6;
use crate::stats::Stats;
use crate::stats::streams::StreamAccount;

/// What one stream asked for and had.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StreamResult {
    /// Requests in a period.
    pub requests: u32,
    /// The period.
    pub period_ms: f64,
    /// The part of them that is to be done in its period; 1: mandatory.
    pub quality_asked: f64,
    /// When its first period began, seconds.
    pub begins_s: f64,
    /// What admission reserved of each period; `null` of a mandatory stream, and without
    /// guarantees.
    pub reservation_ms: Option<f64>,
    /// Periods that were over when the run was; the figures down to `missed` are of these.
    pub periods: u64,
    /// Of these, periods in which all requests were in time.
    pub whole_periods: u64,
    /// The fewest requests that were in time in one of them; `null` when there was none.
    pub fewest_in_a_period: Option<u32>,
    /// The part of the requests that was in time; `null` when there was none.
    pub quality: Option<f64>,
    /// Half the width of that figure's 95% confidence interval; `null` with fewer than two periods.
    pub quality_plus_minus: Option<f64>,
    /// Requests that were in time.
    pub in_time: u64,
    /// Requests that were not.
    pub missed: u64,
    /// Requests that were done later, in the whole run.
    pub late: u64,
    /// Requests that the scheduler gave up, in the whole run.
    pub dropped: u64,
    /// Megabytes (10^6) per second of virtual time, late ones included.
    pub mb_s: f64,
}

impl StreamResult {
    fn new(account: &StreamAccount, sector_bytes: u32, seconds: f64) -> StreamResult {
        let bytes = account.sectors as f64 * f64::from(sector_bytes);
        StreamResult {
            requests: account.stream.requests,
            period_ms: account.stream.period.as_ms_f64(),
            quality_asked: f64::from(account.stream.quality.ppm()) / 1e6,
            begins_s: account.begins.as_secs_f64(),
            reservation_ms: account.reservation.map(|r| r.as_ms_f64()),
            periods: account.periods(),
            whole_periods: account.whole(),
            fewest_in_a_period: account.fewest(),
            quality: account.quality().map(round6),
            quality_plus_minus: account.quality_plus_minus().map(round6),
            in_time: account.in_time(),
            missed: account.missed(),
            late: account.late,
            dropped: account.dropped,
            mb_s: round6(if seconds > 0.0 { bytes / 1e6 / seconds } else { 0.0 }),
        }
    }
}

/// What was promised, and what it cost in freedom.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Guarantees {
    /// The part of the drive's time that mandatory streams take at their worst (condition 2);
    /// `null` before a stream began.
    pub worst_load: Option<f64>,
    /// The part that all streams are expected to take.
    pub expected_load: Option<f64>,
    /// Active subsets that were made.
    pub decisions: u64,
    /// The part of them in which streams alone might go; `null` when none was made.
    pub streams_only: Option<f64>,
    /// The part of them in which nobody might.
    pub nobody: Option<f64>,
    /// How many requests of mandatory streams there were in one of them, in the mean.
    pub mandatory: Option<f64>,
    /// Of optional streams.
    pub optional: Option<f64>,
    /// Of nobody's stream.
    pub best_effort: Option<f64>,
    /// Commands that took longer than the worst case: nothing that was promised need be true then.
    pub overdue: u64,
}

/// What was promised; `None` where nothing is.
pub(super) fn guarantees(stats: &Stats) -> Option<Guarantees> {
    let subset = stats.subset?;
    let part = |n: u64| (subset.made > 0).then(|| round6(n as f64 / subset.made as f64));
    let share = |ppm: u64| ppm as f64 / 1e6;
    let (mandatory, optional, best_effort) = subset.requests;
    Some(Guarantees {
        worst_load: stats.load.map(|load| share(load.worst_ppm)),
        expected_load: stats.load.map(|load| share(load.expected_ppm)),
        decisions: subset.made,
        streams_only: part(subset.streams_only),
        nobody: part(subset.empty),
        mandatory: part(mandatory),
        optional: part(optional),
        best_effort: part(best_effort),
        overdue: stats.overdue_commands,
    })
}

/// All streams of a run by their names.
pub(super) fn of(stats: &Stats, sector_bytes: u32) -> BTreeMap<String, StreamResult> {
    let seconds = stats.ended_at.as_secs_f64();
    let result = |s: &StreamAccount| (s.name.clone(), StreamResult::new(s, sector_bytes, seconds));
    stats.streams.iter().map(result).collect()
}
