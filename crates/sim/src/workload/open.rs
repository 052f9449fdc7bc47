//! `open:RATE`: requests with open arrivals.

use headtime_disk::{Dur, Time};

use super::oltp::mix;
use super::population::{Arrivals, Gaps, GroupSpec};
use super::{HostTime, WorkloadError};

/// Slowest rate, requests per second.
pub(super) const MIN_RATE_PER_S: f64 = 0.001;
/// Fastest rate, requests per second.
pub(super) const MAX_RATE_PER_S: f64 = 1_000_000.0;

/// Returns a Poisson process of `per_second` requests per second (gaps exponentially distributed,
/// rounded down to whole nanoseconds), with requests drawn as in `oltp`: two reads to one write,
/// mean 8 KiB in steps of 4 KiB, uniform over the disk.
pub fn open(per_second: f64) -> Result<GroupSpec, WorkloadError> {
    if !(MIN_RATE_PER_S..=MAX_RATE_PER_S).contains(&per_second) {
        return Err(WorkloadError::range(
            "RATE of workload open:RATE (requests per second)",
            per_second,
            MIN_RATE_PER_S,
            MAX_RATE_PER_S,
        ));
    }
    Ok(GroupSpec {
        name: format!("open:{per_second}"),
        arrivals: Arrivals::Open { mean_gap: Dur((1e9 / per_second).round() as u64), gaps: Gaps::Exponential },
        pattern: mix(),
        start: Time::ZERO,
        host: HostTime::default(),
    })
}
