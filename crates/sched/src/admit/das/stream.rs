//! Parameters of a stream: a number of requests in each period, and the fraction of them that must
//! complete in it (Reuther and Pohlack 2003, definition 4).
//!
//! Periods do not start when a stream is opened but lie on one grid: period p of a stream is `[p t,
//! (p + 1) t)`, counted from the start of the run. Streams with the same t then have simultaneous
//! periods, as in the paper, and if one t divides the other the shorter periods fill the longer
//! exactly; both make more streams feasible.

use headtime_disk::{Dur, Time};

/// Fraction of a stream's requests that complete in their period, in parts per million; all: the
/// stream is mandatory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quality(u32);

impl Quality {
    /// Every request: q = 1.
    pub const MANDATORY: Quality = Quality(1_000_000);

    /// Returns the quality of this number of parts per million, 1 to 1,000,000.
    ///
    /// # Errors
    /// A value outside of this range.
    pub fn from_ppm(ppm: u32) -> Result<Quality, StreamError> {
        match ppm {
            1..=1_000_000 => Ok(Quality(ppm)),
            found => Err(StreamError::Quality { found }),
        }
    }

    /// Returns the parts per million.
    pub fn ppm(self) -> u32 {
        self.0
    }

    /// Returns whether it is every request.
    pub fn is_mandatory(self) -> bool {
        self == Quality::MANDATORY
    }
}

/// Kinds of a stream's requests, which have different X.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kinds {
    /// Reads, writes, or both.
    #[default]
    Any,
    /// Reads only.
    Reads,
    /// Writes only.
    Writes,
}

impl Kinds {
    /// All variants.
    pub const ALL: [Kinds; 3] = [Kinds::Any, Kinds::Reads, Kinds::Writes];
    /// Their names.
    pub const NAMES: [&str; 3] = ["any", "reads", "writes"];

    /// Returns the variant of that name.
    pub fn named(name: &str) -> Option<Kinds> {
        Kinds::ALL.into_iter().zip(Kinds::NAMES).find(|k| k.1 == name).map(|k| k.0)
    }

    /// Returns its name.
    pub fn name(self) -> &'static str {
        Kinds::NAMES[self as usize]
    }
}

/// Parameters of a stream (c, t, q and the request size for X and w).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stream {
    /// c: requests in each period.
    pub requests: u32,
    /// t: the period.
    pub period: Dur,
    /// q: the fraction of them that must complete in it.
    pub quality: Quality,
    /// Sectors of its largest request.
    pub sectors: u32,
    /// Kinds of its requests.
    pub kinds: Kinds,
    /// Maximum number of older requests to the same sectors that may block each of its requests.
    /// Admission counts them at their worst case for a mandatory stream, and at their real times
    /// for an optional one.
    pub blocked_by: u32,
}

/// Maximum number of requests in a period.
pub const MAX_REQUESTS: u32 = 10_000;

/// Maximum number of older requests that may block one request.
pub const MAX_BLOCKERS: u32 = 100;

/// Minimum and maximum period. Shorter ones have no room for a disk's worst case; longer ones would
/// have more bins than can be summed in the time of an answer (`ledger`).
pub const PERIODS: (Dur, Dur) = (Dur::from_ms(1), Dur::from_secs(10));

/// Invalid parameters of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// Requests in a period.
    #[error("requests per period: expected 1 to {MAX_REQUESTS}, found {found}")]
    Requests {
        /// The requested number.
        found: u32,
    },
    /// The period.
    #[error("period: expected {} to {}, found {found}", PERIODS.0, PERIODS.1)]
    Period {
        /// The requested period.
        found: Dur,
    },
    /// The quality.
    #[error(
        "quality: expected more than 0 and at most 1 (1,000,000 parts per million), found {found} parts per million"
    )]
    Quality {
        /// The requested quality, in parts per million.
        found: u32,
    },
    /// The size of a request.
    #[error("sectors of a request: expected 1 or more, found 0")]
    Sectors,
    /// Older requests that may block one.
    #[error("older requests that one waits for: expected at most {MAX_BLOCKERS}, found {found}")]
    Blockers {
        /// The requested number.
        found: u32,
    },
}

impl Stream {
    /// Returns the stream with these parameters.
    ///
    /// # Errors
    /// A parameter outside of its limits.
    pub fn new(requests: u32, period: Dur, quality: Quality, sectors: u32) -> Result<Stream, StreamError> {
        if requests == 0 || requests > MAX_REQUESTS {
            return Err(StreamError::Requests { found: requests });
        }
        if period < PERIODS.0 || period > PERIODS.1 {
            return Err(StreamError::Period { found: period });
        }
        if sectors == 0 {
            return Err(StreamError::Sectors);
        }
        Ok(Stream { requests, period, quality, sectors, kinds: Kinds::Any, blocked_by: 0 })
    }

    /// Returns the blocking time: worst case of the older requests that may block one of its own,
    /// each `blocker`.
    pub fn blocking(&self, blocker: Dur) -> Dur {
        Dur(blocker.0.saturating_mul(u64::from(self.blocked_by)))
    }

    /// Returns the same stream with requests of these kinds only; by default they may be any.
    #[must_use]
    pub fn only(self, kinds: Kinds) -> Stream {
        Stream { kinds, ..self }
    }

    /// Returns the same stream, each of whose requests may be blocked by this number of older ones;
    /// by default by none.
    ///
    /// # Errors
    /// The number exceeds its limit.
    pub fn blocked_by(self, older: u32) -> Result<Stream, StreamError> {
        match older {
            0..=MAX_BLOCKERS => Ok(Stream { blocked_by: older, ..self }),
            found => Err(StreamError::Blockers { found }),
        }
    }

    /// Returns whether each of its requests must complete in its period.
    pub fn is_mandatory(&self) -> bool {
        self.quality.is_mandatory()
    }

    /// Returns the start of the period that contains `now`.
    pub fn period_start(&self, now: Time) -> Time {
        Time(now.0 - now.0 % self.period.0)
    }

    /// Returns the required number of requests per period, in millionths: q c.
    pub fn wanted_millionths(&self) -> u64 {
        u64::from(self.quality.0) * u64::from(self.requests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every(ms: u64) -> Stream {
        Stream::new(5, Dur::from_ms(ms), Quality::MANDATORY, 128).expect("a stream")
    }

    #[test]
    fn a_stream_outside_of_its_limits_is_refused_with_what_was_expected() {
        let q = Quality::from_ppm(950_000).expect("a quality");
        let ms = Dur::from_ms;
        assert_eq!(Stream::new(0, ms(500), q, 128), Err(StreamError::Requests { found: 0 }));
        assert_eq!(Stream::new(10_001, ms(500), q, 128), Err(StreamError::Requests { found: 10_001 }));
        assert_eq!(Stream::new(5, Dur(999_999), q, 128), Err(StreamError::Period { found: Dur(999_999) }));
        assert_eq!(Stream::new(5, ms(10_001), q, 128), Err(StreamError::Period { found: ms(10_001) }));
        assert_eq!(Stream::new(5, ms(500), q, 0), Err(StreamError::Sectors));
        for ppm in [0, 1_000_001] {
            assert_eq!(Quality::from_ppm(ppm), Err(StreamError::Quality { found: ppm }));
        }
        let said = StreamError::Period { found: ms(11_000) }.to_string();
        assert_eq!(said, "period: expected 1.000000 ms to 10000.000000 ms, found 11000.000000 ms");
        assert!(!Stream::new(5, ms(500), q, 128).expect("a stream").is_mandatory());
        assert!(every(500).is_mandatory());
    }

    #[test]
    fn periods_lie_on_one_grid() {
        let s = every(500);
        assert_eq!(s.period_start(Time(499_999_999)), Time(0));
        assert_eq!(s.period_start(Time(500_000_000)), Time(500_000_000));
    }
}
