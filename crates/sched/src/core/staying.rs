//! Staying with a stream: while the drive reads a stream, no request that leaves it is dispatched
//! before the stream's last command has ended. The same holds for a stream of writes on a drive
//! that continues from write to write.
//!
//! A sequential reader with two requests outstanding submits the next one at the completion of the
//! last but one, while the drive reads the last. A small read may be nearly over by then. Late
//! commitment would dispatch another client's request just before: the drive would leave the stream
//! after every two reads, for two positioning times. A drive with its own queue decides at the end
//! of the read and continues the stream. So the decision is deferred until the read has ended. If
//! the stream ends there, that costs the time from the end of a read to the next command's arrival
//! at the drive, a few tenths of a millisecond. If it continues, it saves two positioning times.
//!
//! Its benefit is learned: the outcome of the last [`REMEMBERED`] waits decides, and if they
//! brought nothing, one of [`TRY`] is tried.
//!
//! With ADMIT this applies within a queue: ADMIT ends the queue's turn. It does not apply to
//! streams with guarantees, nor to orders that do not continue streams (FCFS).

use headtime_disk::Command;

use super::admission::Eligible;
use super::{Core, Order};
use crate::dispatch::Purpose;

/// Number of outcomes kept.
const REMEMBERED: u32 = 32;
/// Staying pays if at least this number of the last [`REMEMBERED`] waits brought the next read: one
/// in sixteen. A wait costs the time of a command to reach the drive after a completion: about 0.4
/// ms in the simulator, plus the wake-up latency on a real host. It saves two positioning times,
/// about 16 ms. One in sixteen covers a wait of 1 ms.
const PAYS: u32 = 2;
/// If it does not pay, one wait in this number is tried.
const TRY: u32 = 32;

/// Outcomes of waiting for streams.
#[derive(Clone, Copy, Debug)]
pub(super) struct Staying {
    /// Latest outcomes, the last in the lowest bit: whether the next read came in time.
    history: u32,
    /// Number of commands for which it was not tried.
    skipped: u32,
    /// The last command decided on, and whether its end is waited for.
    decided: Option<(u64, bool)>,
}

impl Default for Staying {
    fn default() -> Staying {
        Staying { history: u32::MAX, skipped: 0, decided: None }
    }
}

impl Staying {
    /// Returns whether to wait for the end of this command.
    fn waits_behind(&mut self, command: u64) -> bool {
        if let Some((_, waits)) = self.decided.filter(|decided| decided.0 == command) {
            return waits;
        }
        self.skipped += 1;
        let waits = self.history.count_ones() >= PAYS || self.skipped >= TRY;
        if waits {
            self.skipped = 0;
        }
        self.decided = Some((command, waits));
        waits
    }

    /// Ends the wait for `command`, if there is one; `continued`: the next read came in time.
    fn ends(&mut self, command: u64, continued: bool) {
        if self.decided.take_if(|decided| *decided == (command, true)).is_some() {
            self.history = self.history << 1 | u32::from(continued);
        }
    }
}

const _: () = assert!(REMEMBERED == u32::BITS);

impl Core {
    /// Returns the only command in flight and its queue, if it is a foreground request that
    /// continues the previous one, and the drive continues without a break from one to the next.
    fn stream_at_drive(&self) -> Option<(u64, u32)> {
        let [sent] = self.dispatch.at_drive() else { return None };
        let (Purpose::Request(slot) | Purpose::Merged(slot, ..)) = sent.purpose else { return None };
        let Command { kind, fua, .. } = sent.command;
        let by_drive = if kind.is_read() { self.model.reads_ahead() } else { self.writes_on(fua) };
        let continues = by_drive && !self.is_piece(slot) && self.dispatch.stream() == Some(sent.command.id);
        continues.then(|| (sent.command.id, self.pool.get(slot).queue))
    }

    /// Returns whether nothing is dispatched before the end of the command in flight, because the
    /// next read of its stream may arrive until then.
    pub(super) fn stays_with_stream(&mut self) -> bool {
        if self.streams.is_some() || self.config.order == Order::Fcfs {
            return false;
        }
        let Some((command, queue)) = self.stream_at_drive() else { return false };
        if self.pool.begins_at(self.dispatch.lbn()) {
            return false;
        }
        let has_turn =
            self.admit.is_none() || self.select_eligible() != Eligible::NoRequest && self.eligible_queues == [queue];
        has_turn && self.staying.waits_behind(command)
    }

    /// Records a dispatched foreground command. If it continues the one in flight, the wait was
    /// successful.
    pub(super) fn note_stream(&mut self, command: &Command) {
        if let [.., before, _] = self.dispatch.at_drive()
            && self.dispatch.stream() == Some(command.id)
        {
            self.staying.ends(before.command.id, true);
        }
    }

    /// Ends the wait for the continuation of a completed command.
    pub(super) fn note_end_of_stream(&mut self, command: u64) {
        self.staying.ends(command, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_waits_until_it_has_brought_nothing_for_long_and_tries_again_now_and_then() {
        let mut s = Staying::default();
        let mut waited = 0;
        for command in 0..1_000 {
            let waits = s.waits_behind(command);
            assert_eq!(waits, s.waits_behind(command), "a command is decided about once");
            waited += u64::from(waits);
            s.ends(command, false);
        }
        let first = u64::from(REMEMBERED - PAYS + 1);
        assert_eq!(waited, first + (1_000 - first) / u64::from(TRY));
    }

    #[test]
    fn two_streams_that_went_on_are_enough() {
        let mut s = Staying { history: 0, ..Staying::default() };
        let mut command = 0;
        for _ in 0..PAYS {
            while !s.waits_behind(command) {
                command += 1;
                assert!(command < 1_000, "it never tries");
            }
            s.ends(command, true);
            command += 1;
        }
        assert!(s.waits_behind(command));
        // The end of another command does not affect this one.
        s.ends(command + 1, false);
        assert_eq!(s.history.count_ones(), PAYS);
    }
}
