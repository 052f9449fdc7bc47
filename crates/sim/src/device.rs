//! Interface of the event loop to a drive.

use headtime_disk::{Command, Completion, Drive, HiddenWork, SubmitError, Time};

/// A drive in virtual time: its inputs are commands and time, its outputs completions.
pub trait Device {
    /// Returns the number of usable sectors.
    fn capacity(&self) -> u64;
    /// Submits a command. Everything due before `now` has been taken with [`Device::advance`].
    fn submit(&mut self, command: Command, now: Time) -> Result<(), SubmitError>;
    /// Returns the time of the next internal event; `None` when there is none without a new
    /// command.
    fn next_event(&self) -> Option<Time>;
    /// Advances to `now`; returns a due completion. To be called until `None`.
    fn advance(&mut self, now: Time) -> Option<Completion>;
    /// Returns the media work so far that no completion reports (write-backs).
    fn hidden_work(&self) -> HiddenWork {
        HiddenWork::default()
    }
}

impl Device for Drive {
    fn capacity(&self) -> u64 {
        Drive::capacity(self)
    }
    #[inline]
    fn submit(&mut self, command: Command, now: Time) -> Result<(), SubmitError> {
        Drive::submit(self, command, now)
    }
    #[inline]
    fn next_event(&self) -> Option<Time> {
        Drive::next_event(self)
    }
    #[inline]
    fn advance(&mut self, now: Time) -> Option<Completion> {
        Drive::advance(self, now)
    }
    fn hidden_work(&self) -> HiddenWork {
        Drive::hidden_work(self)
    }
}

/// A device for tests: every command takes the same time, one after another.
#[cfg(test)]
pub(crate) mod fixed {
    use super::*;
    use headtime_disk::{Dur, MediaTimes, Outcome};
    use std::collections::VecDeque;

    pub(crate) struct Fixed {
        pub(crate) takes: Dur,
        pub(crate) depth: usize,
        pub(crate) queue: VecDeque<(Command, Time)>,
        pub(crate) free_at: Time,
        pub(crate) dies_at: Time,
        pub(crate) most: usize,
        pub(crate) served: Vec<u64>,
    }

    impl Fixed {
        pub(crate) fn new(takes: Dur, depth: usize) -> Fixed {
            Fixed {
                takes,
                depth,
                queue: VecDeque::new(),
                free_at: Time::ZERO,
                dies_at: Time::NEVER,
                most: 0,
                served: Vec::new(),
            }
        }
    }

    impl Device for Fixed {
        fn capacity(&self) -> u64 {
            1_000_000
        }
        fn submit(&mut self, command: Command, now: Time) -> Result<(), SubmitError> {
            if self.queue.len() == self.depth {
                return Err(SubmitError::Full { depth: self.depth as u32 });
            }
            let start = self.free_at.max(now);
            self.free_at = start + self.takes;
            self.queue.push_back((command, start));
            self.most = self.most.max(self.queue.len());
            Ok(())
        }
        fn next_event(&self) -> Option<Time> {
            self.queue.front().map(|(_, start)| *start + self.takes)
        }
        fn advance(&mut self, now: Time) -> Option<Completion> {
            let (c, start) = *self.queue.front()?;
            let end = start + self.takes;
            if end > now {
                return None;
            }
            self.queue.pop_front();
            self.served.push(c.lbn);
            let quarter = Dur(self.takes.0 / 4);
            Some(Completion {
                id: c.id,
                outcome: if end >= self.dies_at { Outcome::Dead } else { Outcome::Ok },
                at: end,
                media: Some(MediaTimes {
                    turned: Dur::ZERO,
                    start,
                    seek_end: start + quarter,
                    transfer_start: start + quarter + quarter,
                    end,
                }),
            })
        }
    }
}
