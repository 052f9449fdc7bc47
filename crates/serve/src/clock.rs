//! The server's clock: monotonic nanoseconds since the start, and waiting until a given time.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use headtime_disk::{Dur, Time};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The engine's clock. Tests replace the real one by one in which no operation takes time.
pub trait Timer {
    /// Returns the current time.
    fn now(&self) -> Time;
    /// Returns whether a thread that must be awake at `at` may sleep now rather than busy-wait.
    fn may_sleep(&self, at: Time) -> bool;
    /// Sleeps until shortly before `at` (`None`: indefinitely), or until one of `fds` is readable.
    fn sleep(&self, at: Option<Time>, fds: &[BorrowedFd<'_>]) -> io::Result<()>;
    /// Called once on the thread that will sleep.
    fn prepare(&self) {}
}

/// How long before a known event a thread wakes up to busy-wait. A sleep ends some 40 us late on an
/// idle machine and occasionally 100 us; busy-waiting costs at most this much processor time per
/// command.
pub const SPIN: Dur = Dur::from_us(150);

/// Monotonic time since its creation. Copies show the same time.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    began: Instant,
}

impl Clock {
    /// Creates a clock that shows zero now.
    pub fn start() -> Clock {
        Clock { began: Instant::now() }
    }

    /// Returns how long a thread that must be awake at `at` may sleep, or `None` if it must
    /// busy-wait.
    #[inline]
    fn sleep_before(at: Time, now: Time) -> Option<Duration> {
        let left = at.saturating_since(now);
        (left > SPIN).then(|| Duration::from_nanos((left - SPIN).0))
    }
}

impl Timer for Clock {
    #[inline]
    fn now(&self) -> Time {
        // 64 bits hold 584 years.
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
        // The kernel may delay a wake-up by 50 us to combine several.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        // The platter keeps rotating, so the engine's thread, which sleeps most of the time, gets
        // the highest priority if permitted. (Despite its name the system call applies to the
        // calling thread.)
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
