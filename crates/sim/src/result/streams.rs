//! Output of `simulate --json` on streams.

use std::collections::BTreeMap;

use serde::Serialize;

use super::round6;
use crate::stats::Stats;
use crate::stats::streams::StreamAccount;

/// A stream's request and result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StreamResult {
    /// Requests per period.
    pub requests: u32,
    /// The period.
    pub period_ms: f64,
    /// Required share of them that is done in its period; 1: mandatory.
    pub quality_asked: f64,
    /// Begin of its first period, in seconds.
    pub begins_s: f64,
    /// Reservation per period; `null` for a mandatory stream, and without guarantees.
    pub reservation_ms: Option<f64>,
    /// Periods that ended during the run; the figures down to `missed` refer to these.
    pub periods: u64,
    /// Of these, periods in which all requests were in time.
    pub whole_periods: u64,
    /// The fewest requests in time in one of them; `null` without periods.
    pub fewest_in_a_period: Option<u32>,
    /// Share of the requests that were in time; `null` without periods.
    pub quality: Option<f64>,
    /// Half the width of its 95% confidence interval; `null` with fewer than two periods.
    pub quality_plus_minus: Option<f64>,
    /// Requests in time.
    pub in_time: u64,
    /// Requests not in time.
    pub missed: u64,
    /// Requests done after their period, in the whole run.
    pub late: u64,
    /// Requests dropped by the scheduler, in the whole run.
    pub dropped: u64,
    /// Megabytes (10^6) per second of virtual time, including late requests.
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

/// The guarantees, and their cost in scheduling freedom.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Guarantees {
    /// Share of the drive's time that mandatory streams take in the worst case (condition 2);
    /// `null` before the first stream.
    pub worst_load: Option<f64>,
    /// Expected share of all streams.
    pub expected_load: Option<f64>,
    /// Active subsets computed.
    pub decisions: u64,
    /// Share of them in which only streams were eligible; `null` without subsets.
    pub streams_only: Option<f64>,
    /// Share of them in which no request was eligible.
    pub nobody: Option<f64>,
    /// Mean number of requests of mandatory streams in a subset.
    pub mandatory: Option<f64>,
    /// Mean number of requests of optional streams.
    pub optional: Option<f64>,
    /// Mean number of best-effort requests.
    pub best_effort: Option<f64>,
    /// Commands that exceeded the worst case; the guarantees do not hold then.
    pub overdue: u64,
}

/// Computes the guarantees; `None` without any.
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

/// Computes the results of all streams, by name.
pub(super) fn of(stats: &Stats, sector_bytes: u32) -> BTreeMap<String, StreamResult> {
    let seconds = stats.ended_at.as_secs_f64();
    let result = |s: &StreamAccount| (s.name.clone(), StreamResult::new(s, sector_bytes, seconds));
    stats.streams.iter().map(result).collect()
}
