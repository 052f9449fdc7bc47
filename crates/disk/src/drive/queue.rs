//! The command queue: which command, or which cached write, the mechanism serves next.

use crate::command::{Command, Kind};
use crate::drive::cache::Found;
use crate::drive::{Busy, Drive};
use crate::mechanics::Head;
use crate::profile::FirmwareOrder;
use crate::time::{Dur, Time};

impl Drive {
    /// Starts the next queued command, or a cached write.
    pub(super) fn next_work(&mut self, at: Time) {
        while self.busy == Busy::No {
            if !self.queue.is_empty() && self.hangs(at) && self.hang(at) {
                return;
            }
            self.cache_waiting_writes(at);
            let Some(i) = self.choose(at, None) else { return self.destage_if_due(at) };
            let command = self.queue[i].command;
            if self.needs_destage(&command)
                && let Some(d) = self.choose_dirty(at)
            {
                self.destage(d, at);
                return;
            }
            let waiting = self.queue.remove(i);
            self.start(waiting, at, true);
        }
    }

    /// Returns whether a command that is not in the cache waits for cached writes: a flush, or a
    /// write for which the cache has no room.
    pub(super) fn needs_destage(&self, command: &Command) -> bool {
        match command.kind {
            Kind::Flush => true,
            Kind::Write => !self.completes_on_media(command),
            Kind::Read => false,
        }
    }

    /// Selects the command to serve next: the first one, or with firmware SPTF the one with the
    /// shortest positioning time. `filled` is the segment just filled from the media.
    pub(super) fn choose(&mut self, at: Time, filled: Option<usize>) -> Option<usize> {
        if self.queue.is_empty() {
            return None;
        }
        // A flush waits only for cached writes, so reordering it gains nothing.
        let oldest = &self.queue[0];
        let only = self.queue.len() == 1 || oldest.command.kind == Kind::Flush;
        if self.order == FirmwareOrder::Fcfs || only || at.saturating_since(oldest.arrived) > self.oldest_after {
            return Some(0);
        }
        if filled.is_none() {
            self.sync_stream(at);
        }
        let continued = filled.or(self.stream.running.then_some(self.stream.segment)).filter(|&s| self.may_continue(s));
        let head = self.head(at);
        let model = &self.mech.model;
        (0..self.queue.len()).filter(|&i| self.queue[i].command.kind != Kind::Flush).min_by_key(|&i| {
            let w = &self.queue[i];
            let end = w.command.lbn + w.command.count as u64;
            if w.command.kind.is_read() && matches!(self.cache.look_up(w.command.lbn, end), Found::Full(_)) {
                return (Dur::ZERO, i);
            }
            if continued.is_some_and(|segment| self.continues(&w.command, segment)) {
                return (Dur::ZERO, i);
            }
            let place = w.place.as_ref().expect("translated on arrival");
            let access = model.access(&head, place, w.command.kind);
            (access.head_time().saturating_sub(place.transfer), i)
        })
    }

    /// Returns the head's position at `at`, for command selection.
    pub(super) fn head(&self, at: Time) -> Head {
        let arm = match self.stream.running.then(|| self.stream.stop(at, self.cache_spec.stop_in_sector)).flatten() {
            Some(s) => s.arm,
            None => self.mech.arm,
        };
        Head { cylinder: arm.0, surface: arm.1, angle: self.mech.spindle.angle_at(at), at }
    }
}
