//! Chains: more than two commands at the drive where each continues the one before.
//!
//! Two commands hide the overheads of requests that move the head. Short reads in order move nothing: a command of 4
//! KiB passes under the head in some 20 us, less than it takes to reach the drive, and with two of them outstanding the
//! drive is done before it hears of the next. So while every command at the drive is a read that continues the one
//! before, and ORDER's choice continues the last, it is sent at once, up to the depth of the drive's queue. This gives
//! up no choice: each command continues the one before, so there is nothing to reorder.
//!
//! Streams with guarantees exclude this: what they are promised was measured with fewer commands outstanding.

use headtime_disk::command::Command;

use super::{Core, Order};

impl Core {
    /// The next command of a chain, if all that is at the drive is one and ORDER chooses to continue it.
    pub(super) fn send_chained(&mut self) -> Option<Command> {
        let depth = self.chain;
        let selects = self.config.order != Order::Fcfs || self.admit.is_some() || self.fill.is_some();
        if self.dispatch.at_drive().len() >= depth
            || !selects
            || self.held.is_some()
            || !self.again.is_empty()
            || self.streams.is_some()
        {
            return None;
        }
        let next = self.continuation()?;
        let piece = self.fill.as_ref().is_some_and(|f| f.is_piece(next));
        if piece || !self.is_chain(self.pool.get(next).request.lbn) || self.choose() != Some(next) {
            return None;
        }
        self.take(next);
        self.dispatch.set_limit(depth);
        let command = self.send_request(next);
        self.limit_outstanding();
        Some(command)
    }

    /// Whether all commands at the drive are reads, each of which continues the one before, up to `end`.
    fn is_chain(&self, end: u64) -> bool {
        let at_drive = self.dispatch.at_drive();
        let ends = |i: usize| at_drive[i].command.lbn + u64::from(at_drive[i].command.count);
        let follows = |i: usize| ends(i) == at_drive.get(i + 1).map_or(end, |next| next.command.lbn);
        (0..at_drive.len()).all(|i| at_drive[i].command.kind.is_read() && follows(i))
    }
}
