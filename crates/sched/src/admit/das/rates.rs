//! Linearly growing demand: rates, and the demand they accumulate.
//!
//! Actual demand is in whole nanoseconds and at most the value computed here. So the remaining time
//! may be rounded up. Rates, each rounded up by [`PARTS`] of a nanosecond per nanosecond, sum to an
//! error of less than one (10,000 streams of 10 s: 0.4 ns), so that a set that needs all of the
//! time is admitted.

use headtime_disk::{Dur, Time};

/// Rates are in 2^-48, and accumulated demand in 2^-48 ns.
pub(super) const PARTS: u32 = 48;

#[inline]
pub(super) fn fine(span: Dur) -> i128 {
    i128::from(span.0) << PARTS
}

/// Returns the time from one instant until another, which may be the earlier one.
#[inline]
pub(super) fn fine_between(from: Time, until: Time) -> i128 {
    (i128::from(until.0) - i128::from(from.0)) << PARTS
}

/// Returns the demand of a rate in `span` ns.
#[inline]
pub(super) fn grown(rate: u64, span: u64) -> i128 {
    (u128::from(rate) * u128::from(span)) as i128
}

/// Returns whole ns, rounded up.
#[inline]
pub(super) fn bounded(left: i128) -> i64 {
    ((left + ((1 << PARTS) - 1)) >> PARTS).clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}
