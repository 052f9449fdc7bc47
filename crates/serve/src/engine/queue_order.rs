//! The order in which the engine serves its queues. Requests of NBD clients and of the control
//! interface's clients are taken at once; then those that waited for the limit of their export;
//! calls of the control interface's clients when there is time, so that no request of an NBD client
//! waits for a call.

use headtime_disk::{Dur, Time};
use headtime_sched::Scheduler;

use super::messages::EngineMessage;
use super::paced::{MAX_CREDIT, OTHER_WORK_RATIO};
use super::{Engine, MAX_A_ROUND};
use crate::clock::{SPIN, Timer};
use crate::device::Device;

impl<S: Scheduler, D: Device, T: Timer> Engine<S, D, T> {
    /// Takes the requests of the control interface's clients like those of NBD clients, up to the
    /// next call, since a client's messages are processed in order. Returns whether there were any.
    pub(super) fn handle_interface_requests(&mut self, now: Time) -> bool {
        for n in 0..MAX_A_ROUND {
            let next = self.next_interface_message.take().or_else(|| self.inbox.take_of_interface());
            match next {
                Some(message @ EngineMessage::Submit(_)) => self.handle(message, now),
                call => {
                    self.next_interface_message = call;
                    return n > 0;
                }
            }
        }
        true
    }

    /// Submits requests that their export's limit lets pass now; returns whether there were any.
    /// The rest of many that are due passes in the next rounds.
    pub(super) fn release_limited(&mut self, now: Time) -> bool {
        for n in 0..MAX_A_ROUND {
            let Some((mut submission, arrived)) = self.limited.next(now) else { return n > 0 };
            submission.limited = now.saturating_since(arrived);
            self.tell_held_back(submission.owner, now);
            self.submit(submission, now);
        }
        true
    }

    /// Tells the core whether a request of this owner waits for its limit, so that the disk does
    /// not idle for it.
    pub(super) fn tell_held_back(&mut self, owner: u32, now: Time) {
        let is = self.limited.holds_back(owner);
        if let Some(core) = self.core.core() {
            core.set_held_back(owner, is, now);
        }
    }

    /// Carries out calls of the control interface's clients when there is time. Work that follows
    /// from them counts as their time.
    pub(super) fn handle_interface_calls(&mut self, now: Time) {
        if self.next_interface_message.is_none() || !self.has_time_for_calls(now) {
            return;
        }
        let begun = self.clock.now();
        for _ in 0..MAX_A_ROUND {
            let next = self.next_interface_message.take().or_else(|| self.inbox.take_of_interface());
            match next {
                // A request is not a call and does not count as call time.
                Some(EngineMessage::Submit(_)) | None => {
                    self.next_interface_message = next;
                    break;
                }
                Some(call) => self.handle(call, now),
            }
        }
        self.drain(now);
        let took = self.clock.now().saturating_since(begun);
        self.calls_from =
            self.calls_from.max(Time(now.0.saturating_sub(MAX_CREDIT.0))) + Dur(took.0 * (1 + OTHER_WORK_RATIO));
    }

    /// Returns whether there is time for calls; during shutdown there always is.
    fn has_time_for_calls(&self, now: Time) -> bool {
        now >= self.calls_from || self.ends_by.is_some()
    }

    /// Carries out the next piece of a long call when it is due.
    pub(super) fn continue_long_call(&mut self, now: Time) -> bool {
        if !self.background.is_paced() || !self.pace.may_begin(now, self.device_or_core_event(), self.ends_by.is_some())
        {
            return false;
        }
        let Some(core) = self.core.core() else { return false };
        self.background.continue_long_call(core, now);
        true
    }

    /// Returns the time of the next known event.
    pub(super) fn soonest(&self) -> Option<Time> {
        let now = self.clock.now();
        // These need no busy-waiting, for which the engine would wake up SPIN earlier.
        let unhurried = |at: Time| if at > now { at + SPIN } else { at };
        let paced = self.background.is_paced().then(|| unhurried(self.pace.next(now)));
        let calls = self.next_interface_message.as_ref().map(|_| match self.has_time_for_calls(now) {
            true => now,
            false => unhurried(self.calls_from),
        });
        let limited = self.limited.next_wakeup().map(unhurried);
        [self.device_or_core_event(), limited, self.ends_by, paced, calls].into_iter().flatten().min()
    }

    /// Returns when the device or the core must be served next.
    fn device_or_core_event(&self) -> Option<Time> {
        [self.device.next_event(), self.core.next_wakeup()].into_iter().flatten().min()
    }

    /// Enables wake-ups by messages. A message that arrived before would wake nothing, so it is
    /// taken now and the engine stays awake; returns whether there was one.
    pub(super) fn handle_message_before_park(&mut self) -> bool {
        self.inbox.prepare_park();
        if self.next_interface_message.is_none() {
            // While a message of the interface is pending, further ones need not wake the engine.
            self.inbox.wake_on_interface();
            self.next_interface_message = self.inbox.take_of_interface();
            if self.next_interface_message.is_some() {
                self.inbox.unpark();
                return true;
            }
        }
        let Some(message) = self.inbox.take() else { return false };
        self.inbox.unpark();
        let now = self.clock.now();
        self.handle(message, now);
        self.drain(now);
        true
    }
}
