//! Instants and durations in integer nanoseconds.
//!
//! The standard library's instants are not used because they cannot be made from a number, and
//! because the pure crates must not read a clock: time is always an argument.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// An instant: nanoseconds since the start of the run. Never decreases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

/// A duration in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dur(pub u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Time = Time(0);
    /// Later than any instant that occurs (584 years).
    pub const NEVER: Time = Time(u64::MAX);

    /// Returns the duration since `earlier`. Panics when `earlier` is later, which is a bug in the
    /// caller.
    #[inline]
    pub fn since(self, earlier: Time) -> Dur {
        assert!(self.0 >= earlier.0, "time went back: {} < {}", self.0, earlier.0);
        Dur(self.0 - earlier.0)
    }

    /// Returns the duration since `earlier`, or zero when `earlier` is later.
    #[inline]
    pub fn saturating_since(self, earlier: Time) -> Dur {
        Dur(self.0.saturating_sub(earlier.0))
    }

    /// Returns the seconds since the start of the run, for reports only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Dur {
    /// Zero.
    pub const ZERO: Dur = Dur(0);

    /// Returns a duration of whole microseconds.
    pub const fn from_us(us: u64) -> Dur {
        Dur(us * 1_000)
    }

    /// Returns a duration of whole milliseconds.
    pub const fn from_ms(ms: u64) -> Dur {
        Dur(ms * 1_000_000)
    }

    /// Returns a duration of whole seconds.
    pub const fn from_secs(s: u64) -> Dur {
        Dur(s * 1_000_000_000)
    }

    /// Returns a duration from milliseconds, rounded to the nearest nanosecond. For input only;
    /// negative and non-finite figures give zero.
    pub fn from_ms_f64(ms: f64) -> Dur {
        if ms.is_finite() && ms > 0.0 { Dur((ms * 1e6).round() as u64) } else { Dur::ZERO }
    }

    /// Returns the milliseconds, for reports only.
    pub fn as_ms_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Returns the seconds, for reports only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns this duration minus `other`, or zero.
    #[inline]
    pub fn saturating_sub(self, other: Dur) -> Dur {
        Dur(self.0.saturating_sub(other.0))
    }

    /// Returns this duration plus a signed number of nanoseconds, never below zero.
    #[inline]
    pub fn saturating_add_signed(self, ns: i64) -> Dur {
        Dur(self.0.saturating_add_signed(ns))
    }
}

impl Add<Dur> for Time {
    type Output = Time;
    #[inline]
    fn add(self, d: Dur) -> Time {
        Time(self.0.saturating_add(d.0))
    }
}

impl AddAssign<Dur> for Time {
    #[inline]
    fn add_assign(&mut self, d: Dur) {
        *self = *self + d;
    }
}

impl Add for Dur {
    type Output = Dur;
    #[inline]
    fn add(self, d: Dur) -> Dur {
        Dur(self.0.saturating_add(d.0))
    }
}

impl AddAssign for Dur {
    #[inline]
    fn add_assign(&mut self, d: Dur) {
        *self = *self + d;
    }
}

impl Sub for Dur {
    type Output = Dur;
    #[inline]
    fn sub(self, d: Dur) -> Dur {
        assert!(self.0 >= d.0, "a span of time below zero: {} - {}", self.0, d.0);
        Dur(self.0 - d.0)
    }
}

impl std::iter::Sum for Dur {
    fn sum<I: Iterator<Item = Dur>>(it: I) -> Dur {
        it.fold(Dur::ZERO, |a, b| a + b)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6} ms", self.0 as f64 / 1e6)
    }
}

impl fmt::Display for Dur {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6} ms", self.0 as f64 / 1e6)
    }
}
