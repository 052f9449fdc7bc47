//! Demand that grows evenly: rates, and what they come to.
//!
//! What really falls due is whole nanoseconds, and no more than what is reckoned here. So what is
//! left may be rounded up. Rates, of which each is rounded up by [`PARTS`] of a nanosecond a
//! nanosecond, make less than one of it together (10,000 streams of 10 s: 0.4 ns), so that a set
//! that takes all of the time has all of it.

use headtime_disk::time::{Dur, Time};

/// Rates are in 2^-48, and what they come to in 2^-48 ns.
pub(super) const PARTS: u32 = 48;

#[inline]
pub(super) fn fine(span: Dur) -> i128 {
    i128::from(span.0) << PARTS
}

/// From one instant until another, which may be the earlier one.
#[inline]
pub(super) fn fine_between(from: Time, until: Time) -> i128 {
    (i128::from(until.0) - i128::from(from.0)) << PARTS
}

/// What a rate comes to in `span` ns.
#[inline]
pub(super) fn grown(rate: u64, span: u64) -> i128 {
    (u128::from(rate) * u128::from(span)) as i128
}

/// In whole ns, rounded up.
#[inline]
pub(super) fn bounded(left: i128) -> i64 {
    ((left + ((1 << PARTS) - 1)) >> PARTS).clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}
