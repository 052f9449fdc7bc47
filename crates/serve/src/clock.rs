//! The one clock: nanoseconds since the server began, never going back.

use std::time::{Duration, Instant};

use headtime_disk::time::{Dur, Time};

/// How long before a moment a sleeper gets up to wait for it awake. A sleep ends some 40 us late on an idle machine and
/// now and then 100; waiting awake costs processor time, this much at most for each command.
pub const SPIN: Dur = Dur::from_us(150);

/// Monotonic time since it was made. Copies agree with each other.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    began: Instant,
}

impl Clock {
    /// A clock that shows zero now.
    pub fn start() -> Clock {
        Clock { began: Instant::now() }
    }

    /// What it shows.
    #[inline]
    pub fn now(&self) -> Time {
        // 584 years fit.
        Time(self.began.elapsed().as_nanos() as u64)
    }

    /// How long a sleeper may sleep that must be awake at `at`; `None`: it had better stay awake.
    #[inline]
    pub fn sleep_before(&self, at: Time, now: Time) -> Option<Duration> {
        let left = at.saturating_since(now);
        (left > SPIN).then(|| Duration::from_nanos((left - SPIN).0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleeper_gets_up_before_the_moment_and_stays_awake_close_to_it() {
        let clock = Clock::start();
        let at = Time(10_000_000);
        assert_eq!(clock.sleep_before(at, Time(9_000_000)), Some(Duration::from_nanos(1_000_000 - SPIN.0)));
        assert_eq!(clock.sleep_before(at, Time(at.0 - SPIN.0)), None);
        assert_eq!(clock.sleep_before(at, Time(at.0 + 1)), None);
    }
}
