//! Staying with a stream: while the drive reads one, nothing that leaves it is dispatched before its last read has
//! ended.
//!
//! A program that reads in order with two requests outstanding submits the next one when the last but one has ended,
//! and that is while the drive reads the last. A small read may be nearly over by then. Late commitment would dispatch
//! another program's request just before: the drive would leave the stream after every two reads, for two positioning
//! times. A drive with its own queue decides at the end of the read and goes on. So the decision is left until the read
//! has ended. Where the stream ends there, that costs the time from the end of a read to the next command's arrival at
//! the drive, a few tenths of a millisecond. Where it goes on, it saves two positioning times.
//!
//! What it brings is learned: the outcome of the last [`REMEMBERED`] waits decides, and where they brought nothing, one
//! of [`TRY`] is tried.
//!
//! Streams with guarantees and ADMIT's shares exclude this: both decide themselves when a queue has had enough.

use super::Core;
use crate::dispatch::Purpose;
use crate::request::Request;

/// Outcomes that are remembered.
const REMEMBERED: u32 = 32;
/// It pays when at least this many of the last [`REMEMBERED`] waits brought the next read: one in sixteen. A wait costs
/// up to 0.4 ms, and saves two positioning times, some 16 ms, which is 40 times as much.
const PAYS: u32 = 2;
/// Where it does not pay, one of so many is tried.
const TRY: u32 = 32;

/// What waiting for streams has brought.
#[derive(Clone, Copy, Debug)]
pub(super) struct Staying {
    /// The last outcomes, the latest in the lowest bit: whether the next read came in time.
    history: u32,
    /// Commands for which it was not tried.
    skipped: u32,
    /// The last command that was decided about, and whether its end is waited for.
    decided: Option<(u64, bool)>,
}

impl Default for Staying {
    fn default() -> Staying {
        Staying { history: u32::MAX, skipped: 0, decided: None }
    }
}

impl Staying {
    /// Whether to wait for the end of this command.
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

    /// The wait for `command`, if there is one, ends: the next read came in time or not.
    fn ends(&mut self, command: u64, went_on: bool) {
        if self.decided.take_if(|decided| *decided == (command, true)).is_some() {
            self.history = self.history << 1 | u32::from(went_on);
        }
    }
}

const _: () = assert!(REMEMBERED == u32::BITS);

impl Core {
    /// The only command at the drive, if it is a foreground read that begins where the one before ended.
    fn stream_at_drive(&self) -> Option<u64> {
        let [sent] = self.dispatch.at_drive() else { return None };
        let foreground = !matches!(sent.purpose, Purpose::Free(_));
        (foreground && self.dispatch.continues() && self.model.reads_ahead()).then_some(sent.command.id)
    }

    /// Whether nothing is dispatched before the end of the command at the drive, because the next read of its stream
    /// may arrive until then.
    pub(super) fn stays_with_stream(&mut self) -> bool {
        let shares = self.admit.is_some() || self.streams.is_some();
        let Some(command) = self.stream_at_drive().filter(|_| !shares) else { return false };
        !self.pool.begins_at(self.dispatch.lbn()) && self.staying.waits_behind(command)
    }

    /// A request was submitted: the stream at the drive goes on.
    pub(super) fn note_stream(&mut self, request: &Request) {
        if request.kind.is_read()
            && request.lbn == self.dispatch.lbn()
            && let Some(command) = self.stream_at_drive()
        {
            self.staying.ends(command, true);
        }
    }

    /// A command has ended, and with it the wait for what would continue it.
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
        assert!((first..first + 1_000 / u64::from(TRY) * 2).contains(&waited), "{waited}");
    }

    #[test]
    fn two_streams_that_went_on_are_enough() {
        let mut s = Staying { history: 0, ..Staying::default() };
        let mut command = 0;
        for _ in 0..PAYS {
            while !s.waits_behind(command) {
                command += 1;
            }
            s.ends(command, true);
            command += 1;
        }
        assert!(s.waits_behind(command));
        // The end of another command is none of this one.
        s.ends(command + 1, false);
        assert_eq!(s.history.count_ones(), PAYS);
    }
}
