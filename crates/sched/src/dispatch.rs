//! The dispatch queue: the commands at the drive.
//!
//! It keeps the drive supplied with up to two commands, one being served and one waiting behind it (seed 001 sections
//! 3.3 and 4.1): with one the drive would stand still while a completion is on its way to the host and the next
//! command on its way back; with more than two the drive could choose among those that wait. Whenever there is room
//! the next request is chosen at that moment and sent at once, so every choice is made as late as it can be and
//! nothing is ever taken back.

use headtime_disk::command::Command;
use headtime_disk::time::Time;

use crate::request::Request;

/// A command at the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The command's name.
    pub command: u64,
    /// The slot of the request it carries out.
    pub slot: u32,
    /// When it was sent.
    pub at: Time,
}

/// The commands at the drive, in the order in which they were sent.
#[derive(Clone, Debug)]
pub struct Dispatch {
    max_outstanding: usize,
    next_command: u64,
    at_drive: Vec<Sent>,
    /// One past the last LBN of the read or write sent last.
    lbn: u64,
}

impl Dispatch {
    /// An empty queue for a drive that gets at most so many commands at a time.
    pub fn new(max_outstanding: usize) -> Dispatch {
        assert!(max_outstanding > 0, "nothing could ever be sent");
        Dispatch { max_outstanding, next_command: 0, at_drive: Vec::with_capacity(max_outstanding), lbn: 0 }
    }

    /// Whether another command may be sent.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.at_drive.len() < self.max_outstanding
    }

    /// One past the last LBN of the read or write sent last; 0 before the first.
    #[inline]
    pub fn lbn(&self) -> u64 {
        self.lbn
    }

    /// Makes the command that carries out `request`, which is in `slot`.
    #[inline]
    pub fn send(&mut self, slot: u32, request: &Request, now: Time) -> Command {
        assert!(self.has_room());
        let command = Command {
            id: self.next_command,
            kind: request.kind,
            lbn: request.lbn,
            count: request.count,
            fua: request.fua,
        };
        self.next_command += 1;
        self.at_drive.push(Sent { command: command.id, slot, at: now });
        if request.kind != headtime_disk::command::Kind::Flush {
            self.lbn = request.lbn + request.count as u64;
        }
        command
    }

    /// Takes a completed command out. Panics when the drive was not sent it.
    #[inline]
    pub fn complete(&mut self, command: u64) -> Sent {
        let at = self.at_drive.iter().position(|s| s.command == command);
        let at = at.unwrap_or_else(|| panic!("command {command} is not at the drive"));
        self.at_drive.remove(at)
    }
}
