//! How long the disk has idled while requests waited: ADMIT waited for the next request of another
//! application, or a stream's guarantee left no time for them.

use headtime_disk::{Dur, Time};

use super::Core;

/// The sum of these times.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Idled {
    ended: Dur,
    since: Option<Time>,
}

impl Core {
    /// Notes that no eligible request may be dispatched. The disk idles if it has no command.
    pub(super) fn begin_idling(&mut self) {
        if self.dispatch.at_drive().is_empty() {
            self.idled.since.get_or_insert(self.now);
        }
    }

    /// Notes that a command was dispatched.
    pub(super) fn end_idling(&mut self) {
        if let Some(since) = self.idled.since.take() {
            self.idled.ended += self.now.since(since);
        }
    }

    /// Returns for how long the disk has idled until `now` although requests were eligible. While a
    /// request is at the drive it does not grow: its growth from a request's submission to its
    /// completion is the part of the request's waiting time in which the disk idled for another
    /// application.
    pub fn idled(&self, now: Time) -> Dur {
        self.idled.ended + self.idled.since.map_or(Dur::ZERO, |since| now.saturating_since(since))
    }
}
