//! The one clock: nanoseconds since the server began, never going back; and waiting for a moment.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use headtime_disk::time::{Dur, Time};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Time as the engine sees it. There is one real one; tests have another, in which nothing takes
/// any time.
pub trait Timer {
    /// What the clock shows.
    fn now(&self) -> Time;
    /// Whether a sleeper that must be awake at `at` may go to sleep now, or had better stay awake.
    fn may_sleep(&self, at: Time) -> bool;
    /// Sleeps until shortly before `at` (`None`: for ever), or until something can be read from one
    /// of `fds`.
    fn sleep(&self, at: Option<Time>, fds: &[BorrowedFd<'_>]) -> io::Result<()>;
    /// Called once on the thread that will sleep.
    fn prepare(&self) {}
}

/// How long before a moment a sleeper gets up to wait for it awake. A sleep ends some 40 us late on
/// an idle machine and now and then 100; waiting awake costs processor time, this much at most for
/// each command.
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

    /// How long a sleeper may sleep that must be awake at `at`; `None`: it had better stay awake.
    #[inline]
    fn sleep_before(at: Time, now: Time) -> Option<Duration> {
        let left = at.saturating_since(now);
        (left > SPIN).then(|| Duration::from_nanos((left - SPIN).0))
    }
}

impl Timer for Clock {
    #[inline]
    fn now(&self) -> Time {
        // 584 years fit.
        Time(self.began.elapsed().as_nanos() as u64)
    }

    #[inline]
    fn may_sleep(&self, at: Time) -> bool {
        Clock::sleep_before(at, self.now()).is_some()
    }

    fn sleep(&self, at: Option<Time>, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        let timeout = match at.map(|at| Clock::sleep_before(at, self.now())) {
            Some(None) => return Ok(()),
            Some(Some(d)) => Some(Timespec { tv_sec: d.as_secs() as i64, tv_nsec: i64::from(d.subsec_nanos()) }),
            None => None,
        };
        let mut set: Vec<PollFd<'_>> = fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
        match poll(&mut set, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    fn prepare(&self) {
        // The kernel may add 50 us to a sleep to wake several sleepers at once.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        // The platter waits for nobody. This thread sleeps most of the time; where it may, it goes
        // before others when it does not. (The system call is about the calling thread, in spite of
        // its name.)
        let _ = rustix::process::nice(-20);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleeper_gets_up_before_the_moment_and_stays_awake_close_to_it() {
        let at = Time(10_000_000);
        assert_eq!(Clock::sleep_before(at, Time(9_000_000)), Some(Duration::from_nanos(1_000_000 - SPIN.0)));
        assert_eq!(Clock::sleep_before(at, Time(at.0 - SPIN.0)), None);
        assert_eq!(Clock::sleep_before(at, Time(at.0 + 1)), None);
    }
}
