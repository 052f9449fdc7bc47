//! The dispatch queue: the commands at the drive.
//!
//! It keeps the drive supplied with up to two commands, one in service and one queued (Lumb 2002
//! sections 3.3 and 4.1): with one the drive would be idle while a completion is on its way to the
//! host and the next command on its way back; with more than two the drive could choose among those
//! that wait. `core/commit` decides when the next request is dispatched; until then the choice is
//! tentative. A command at the drive is never cancelled. In handover and chains (`core/handover`,
//! `core/chain`) the drive receives more commands.

use headtime_disk::{Command, Kind, Time};

use crate::request::Request;

/// Purpose of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A foreground request, in this slot of the pool, and those merged after it.
    Request(u32),
    /// A foreground request, in the first slot, that begins earlier for free: with the given number
    /// of sectors at its front, which have the second slot.
    Merged(u32, u32, u32),
    /// Freeblock work alone, in this slot.
    Free(u32),
}

/// A command at the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    /// The command.
    pub command: Command,
    /// What it is for.
    pub purpose: Purpose,
    /// When it was sent.
    pub at: Time,
    /// One past its last LBN, or that of the commands that continued it and completed before it.
    pub end: u64,
}

/// The commands at the drive, in the order in which they were sent.
#[derive(Clone, Debug)]
pub(crate) struct Dispatch {
    max_outstanding: usize,
    next_command: u64,
    at_drive: Vec<Sent>,
    /// One past the last LBN of the foreground read or write sent last.
    lbn: u64,
    /// The kind of the foreground read or write sent last.
    kind: Kind,
    /// Its ID, if it begins where the one before it ended, and is of the same kind.
    stream: Option<u64>,
}

impl Dispatch {
    /// Creates an empty queue for a drive that receives at most `max_outstanding` commands at a
    /// time.
    pub(crate) fn new(max_outstanding: usize) -> Dispatch {
        assert!(max_outstanding > 0, "nothing could ever be sent");
        Dispatch {
            max_outstanding,
            next_command: 0,
            at_drive: Vec::with_capacity(max_outstanding),
            lbn: 0,
            kind: Kind::Flush,
            stream: None,
        }
    }

    /// Sets the maximum number of commands at the drive.
    #[inline]
    pub(crate) fn set_limit(&mut self, max_outstanding: usize) {
        self.max_outstanding = max_outstanding;
    }

    /// Returns whether another command may be sent.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.at_drive.len() < self.max_outstanding
    }

    /// Returns one past the last LBN of the foreground read or write sent last; 0 before the first.
    #[inline]
    pub(crate) fn lbn(&self) -> u64 {
        self.lbn
    }

    /// Returns the ID of the foreground read or write sent last, if it begins where the one before
    /// it ended, and is of the same kind.
    #[inline]
    pub(crate) fn stream(&self) -> Option<u64> {
        self.stream
    }

    /// Returns the ID of the command that is sent next.
    #[inline]
    pub(crate) fn next_command(&self) -> u64 {
        self.next_command
    }

    /// Creates the command that carries out `request`, for `purpose`.
    #[inline]
    pub(crate) fn send(&mut self, purpose: Purpose, request: &Request, now: Time) -> Command {
        assert!(self.has_room());
        let command = Command {
            id: self.next_command,
            kind: request.kind,
            lbn: request.lbn,
            count: request.count,
            fua: request.fua,
        };
        self.next_command += 1;
        self.at_drive.push(Sent { command, purpose, at: now, end: command.end() });
        // An order that continues from the last position uses the last foreground request.
        if request.kind != Kind::Flush && !matches!(purpose, Purpose::Free(_)) {
            self.stream = (request.kind == self.kind && request.lbn == self.lbn).then_some(command.id);
            self.kind = request.kind;
            self.lbn = request.lbn + request.count as u64;
        }
        command
    }

    /// Returns the commands at the drive, in the order in which they were sent.
    #[inline]
    pub(crate) fn at_drive(&self) -> &[Sent] {
        &self.at_drive
    }

    /// Returns whether one more command could be sent after the next.
    #[inline]
    pub(crate) fn has_room_for_two(&self) -> bool {
        self.at_drive.len() + 1 < self.max_outstanding
    }

    /// Removes a completed command. Panics when it is not at the drive.
    #[inline]
    pub(crate) fn complete(&mut self, command: u64) -> Sent {
        let at = self.at_drive.iter().position(|s| s.command.id == command);
        let at = at.unwrap_or_else(|| panic!("command {command} is not at the drive"));
        let sent = self.at_drive.remove(at);
        // The completion of a command may arrive before that of the command that it continued.
        let flush = |s: &Sent| s.command.kind == Kind::Flush;
        let continued = |s: &&mut Sent| !flush(s) && !flush(&sent) && s.end == sent.command.lbn;
        if let Some(before) = self.at_drive[..at].iter_mut().rev().find(continued) {
            before.end = sent.end;
        }
        sent
    }
}
