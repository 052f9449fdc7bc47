//! The commands in flight: until when the drive may be busy with them, and their service times.
//!
//! A guarantee counts from when the drive is free, not from now. With one command in service and
//! one waiting behind it, both may take their worst case. At a completion the remaining time is
//! bounded by the worst cases of the remaining commands, in whatever order the drive serves them.
//!
//! A chosen request is *held* until its command is dispatched: gap filling may be sent first. While
//! it is held, its worst case counts after those of all commands in flight.
//!
//! A cache hit takes next to no time, but some drives then move the arm to read ahead from its end,
//! and a command that arrives then waits for that move. So a command that completed quickly keeps
//! the drive busy for the time of such a move.
//!
//! A drive serves one command at a time, so a command's service time is the time from the previous
//! completion, or from its dispatch if that is later, to its own completion.

use headtime_disk::{Dur, Time};

/// A command in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sent<T> {
    command: u64,
    what: T,
    worst: Dur,
    likely: Dur,
    at: Time,
}

/// A chosen request whose command was not sent yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held<T> {
    token: u32,
    what: T,
    worst: Dur,
    likely: Dur,
}

/// A completed command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done<T> {
    /// Its purpose.
    pub what: T,
    /// Its service time.
    pub took: Dur,
    /// Its worst case.
    pub worst: Dur,
    /// Whether it exceeded the worst case, counted from when the drive was free for it at the
    /// latest: the worst case does not hold.
    pub overdue: bool,
    /// Its likely service time.
    pub likely: Dur,
}

/// The commands in flight, each with its purpose.
#[derive(Clone, Debug)]
pub struct AtDrive<T> {
    sent: Vec<Sent<T>>,
    held: Vec<Held<T>>,
    /// When the drive completes all of them at the latest, and when it is likely to.
    latest: Time,
    likely: Time,
    last_done: Time,
    /// Until when the arm may move on its own after the last completion.
    moves_until: Time,
}

impl<T: Copy> Default for AtDrive<T> {
    fn default() -> AtDrive<T> {
        AtDrive {
            sent: Vec::new(),
            held: Vec::new(),
            latest: Time::ZERO,
            likely: Time::ZERO,
            last_done: Time::ZERO,
            moves_until: Time::ZERO,
        }
    }
}

impl<T: Copy> AtDrive<T> {
    /// Adds a command with this worst case and likely service time. Panics if it is in flight
    /// already.
    pub fn sent(&mut self, command: u64, what: T, (worst, likely): (Dur, Dur), now: Time) {
        assert!(self.sent.iter().all(|s| s.command != command), "command {command} is at the drive already");
        self.latest = self.latest.max(now) + worst;
        self.likely = self.likely.max(now) + likely;
        self.sent.push(Sent { command, what, worst, likely, at: now });
    }

    /// Adds a chosen request, identified by `token` until its command is sent.
    pub fn hold(&mut self, token: u32, what: T, (worst, likely): (Dur, Dur)) {
        assert!(self.held.iter().all(|h| h.token != token), "{token} is held already");
        self.held.push(Held { token, what, worst, likely });
    }

    /// Sends the command of a held request, with worst case `worst` if that is longer than assumed.
    /// Panics if no such request is held.
    pub fn sent_held(&mut self, token: u32, command: u64, worst: Dur, now: Time) {
        let held = self.withdraw(token);
        self.sent(command, held.0, (held.1.max(worst), held.2), now);
    }

    /// Removes a held request that is not sent; returns its purpose and times. Panics if no such
    /// request is held.
    pub fn withdraw(&mut self, token: u32) -> (T, Dur, Dur) {
        let at = self.held.iter().position(|h| h.token == token);
        let held = self.held.remove(at.unwrap_or_else(|| panic!("{token} is not held")));
        (held.what, held.worst, held.likely)
    }

    /// Returns the purposes of commands in flight and held requests.
    pub fn each(&self) -> impl Iterator<Item = T> + '_ {
        self.sent.iter().map(|sent| sent.what).chain(self.held())
    }

    /// Returns the purposes of held requests.
    pub fn held(&self) -> impl Iterator<Item = T> + '_ {
        self.held.iter().map(|h| h.what)
    }

    /// Records a completion. The drive may move its arm on its own until `moves_on` after the start
    /// of the command. Panics if the command was not sent.
    pub fn done(&mut self, command: u64, moves_on: Dur, now: Time) -> Done<T> {
        let at = self.sent.iter().position(|s| s.command == command);
        let at = at.unwrap_or_else(|| panic!("command {command} is not at the drive"));
        let sent = self.sent.remove(at);
        let began = sent.at.max(self.last_done);
        let took = now.since(began);
        let overdue = now > began.max(self.moves_until) + sent.worst;
        self.last_done = now;
        self.moves_until = now.max(began + moves_on);
        self.latest = self.moves_until + self.sent.iter().map(|s| s.worst).sum();
        self.likely = now + self.sent.iter().map(|s| s.likely).sum();
        Done { what: sent.what, took, worst: sent.worst, overdue, likely: sent.likely }
    }

    /// Returns when the drive is free at the latest, including held requests.
    #[inline]
    pub fn free_by(&self, now: Time) -> Time {
        self.held.iter().fold(self.latest.max(now), |t, h| t + h.worst)
    }

    /// Returns when it is likely to be free, including held requests.
    #[inline]
    pub fn likely_free_by(&self, now: Time) -> Time {
        self.held.iter().fold(self.likely.max(now), |t, h| t + h.likely)
    }

    /// Returns the number of commands in flight and held requests.
    #[inline]
    pub fn all(&self) -> usize {
        self.sent.len() + self.held.len()
    }

    /// Returns the number of commands in flight.
    #[inline]
    pub fn len(&self) -> usize {
        self.sent.len()
    }

    /// Returns whether no command is in flight.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    const TIMES: (Dur, Dur) = (Dur::from_ms(30), Dur::from_ms(8));

    #[test]
    fn the_drive_may_take_the_worst_case_of_everything_that_is_there() {
        let mut drive = AtDrive::default();
        assert_eq!(drive.free_by(ms(3)), ms(3));
        drive.sent(1, 'a', TIMES, ms(10));
        drive.sent(2, 'b', TIMES, ms(12));
        assert_eq!((drive.free_by(ms(12)), drive.likely_free_by(ms(12))), (ms(70), ms(26)));
        // The first completes early: the other has only its own time left.
        let done = drive.done(1, Dur::ZERO, ms(15));
        assert_eq!((done.what, done.took), ('a', Dur::from_ms(5)));
        assert_eq!((drive.free_by(ms(15)), drive.likely_free_by(ms(15)), drive.len()), (ms(45), ms(23), 1));
        let done = drive.done(2, Dur::ZERO, ms(50));
        assert_eq!((done.took, done.worst), (Dur::from_ms(35), Dur::from_ms(30)));
        assert!(drive.is_empty() && drive.free_by(ms(50)) == ms(50));
    }

    #[test]
    fn what_is_held_counts_behind_whatever_goes_before_it() {
        let mut drive = AtDrive::default();
        drive.hold(7, 'a', TIMES);
        assert_eq!((drive.free_by(ms(0)), drive.likely_free_by(ms(0))), (ms(30), ms(8)));
        // It counts from now, however long it is held, and after what is sent before it.
        assert_eq!(drive.free_by(ms(5)), ms(35));
        drive.sent(1, 'f', (Dur::from_ms(10), Dur::from_ms(10)), ms(5));
        assert_eq!(drive.free_by(ms(5)), ms(45));
        drive.sent_held(7, 2, Dur::from_ms(40), ms(6));
        assert_eq!((drive.free_by(ms(6)), drive.held().count()), (ms(55), 0));
        drive.hold(8, 'b', TIMES);
        assert_eq!(drive.withdraw(8), ('b', TIMES.0, TIMES.1));
        assert_eq!(drive.free_by(ms(6)), ms(55));
    }

    #[test]
    fn a_command_that_was_done_quickly_keeps_the_drive_while_the_arm_may_move() {
        let mut drive = AtDrive::default();
        let moves_on = Dur::from_ms(8);
        drive.sent(1, 'a', TIMES, ms(10));
        drive.sent(2, 'b', TIMES, ms(10));
        drive.done(1, moves_on, ms(11));
        assert_eq!((drive.free_by(ms(11)), drive.likely_free_by(ms(11))), (ms(48), ms(19)));
        // A longer command was no such hit.
        drive.done(2, moves_on, ms(30));
        assert_eq!(drive.free_by(ms(30)), ms(30));
        // Behind a hit the worst case counts from the end of the move.
        for (late, overdue) in [(Dur::ZERO, false), (Dur(1), true)] {
            let start = ms(100) + drive.free_by(ms(0)).since(Time::ZERO);
            drive.sent(3, 'c', TIMES, start);
            drive.sent(4, 'd', TIMES, start);
            drive.done(3, moves_on, start + Dur::from_ms(1));
            let done = drive.done(4, moves_on, start + Dur::from_ms(38) + late);
            assert_eq!((done.took, done.overdue), (Dur::from_ms(37) + late, overdue));
        }
    }

    #[test]
    fn service_begins_when_the_drive_is_free_in_whatever_order_it_serves() {
        let mut drive = AtDrive::default();
        drive.sent(1, 'a', TIMES, ms(0));
        drive.sent(2, 'b', TIMES, ms(1));
        assert_eq!(drive.done(2, Dur::ZERO, ms(9)).took, Dur::from_ms(8));
        assert_eq!(drive.done(1, Dur::ZERO, ms(20)).took, Dur::from_ms(11));
        drive.sent(3, 'c', TIMES, ms(100));
        assert_eq!(drive.done(3, Dur::ZERO, ms(104)).took, Dur::from_ms(4));
    }

    #[test]
    #[should_panic(expected = "command 7 is not at the drive")]
    fn what_was_not_sent_does_not_come_back() {
        AtDrive::<()>::default().done(7, Dur::ZERO, ms(0));
    }
}
