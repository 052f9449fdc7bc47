//! The commands at the drive: until when it may be busy with them, and how long each of them took.
//!
//! A guarantee counts from when the drive is free, not from now. With one command in service and
//! one waiting behind it, both may take their worst case. A completion says that what is left takes
//! no longer, from now on, than the worst cases of what is left, in whatever order the drive serves
//! it.
//!
//! A request that was chosen is *held* until its command goes: something that fills the gap before
//! it may be sent first. As long as it is held, its worst case counts behind those of everything at
//! the drive.
//!
//! A read that the drive's cache answers takes next to nothing, but some drives send the arm behind
//! it, to read on where it ended, and a command that comes then waits for that move. So a command
//! that was done quickly keeps the drive for the time of such a move.
//!
//! A drive is busy with one command at a time, so a command's service time is the time from the
//! completion before it, or from when it was sent if that is later, to its own completion.

use headtime_disk::time::{Dur, Time};

/// One command at the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sent<T> {
    command: u64,
    what: T,
    worst: Dur,
    likely: Dur,
    at: Time,
}

/// A request that was chosen and whose command was not sent yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held<T> {
    token: u32,
    what: T,
    worst: Dur,
    likely: Dur,
}

/// A command that has come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done<T> {
    /// What it was sent for.
    pub what: T,
    /// How long the drive was busy with it, its arm's move for itself before it included.
    pub took: Dur,
    /// How long it could have taken at most.
    pub worst: Dur,
    /// It took longer than that from when the drive was free for it at the latest: the worst case
    /// is none.
    pub overdue: bool,
    /// How long it was likely to take at most.
    pub likely: Dur,
}

/// The commands at the drive, each with what it was sent for.
#[derive(Clone, Debug)]
pub struct AtDrive<T> {
    sent: Vec<Sent<T>>,
    held: Vec<Held<T>>,
    /// When the drive is done with all of them at the latest, and when it is likely to be.
    latest: Time,
    likely: Time,
    last_done: Time,
    /// Until when the arm may move for itself behind what was done last.
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
    /// A command goes to the drive, which is busy with it for `worst` at most and likely for
    /// `likely` at most. Panics when it is there already.
    pub fn sent(&mut self, command: u64, what: T, (worst, likely): (Dur, Dur), now: Time) {
        assert!(self.sent.iter().all(|s| s.command != command), "command {command} is at the drive already");
        self.latest = self.latest.max(now) + worst;
        self.likely = self.likely.max(now) + likely;
        self.sent.push(Sent { command, what, worst, likely, at: now });
    }

    /// A request was chosen, which is known as `token` until its command is sent.
    pub fn hold(&mut self, token: u32, what: T, (worst, likely): (Dur, Dur)) {
        assert!(self.held.iter().all(|h| h.token != token), "{token} is held already");
        self.held.push(Held { token, what, worst, likely });
    }

    /// The command of a request that was held goes to the drive; its worst case is `worst` if that
    /// is more than was thought. Panics when nothing of this name is held.
    pub fn sent_held(&mut self, token: u32, command: u64, worst: Dur, now: Time) {
        let held = self.withdraw(token);
        self.sent(command, held.0, (held.1.max(worst), held.2), now);
    }

    /// A request that was held is not sent; what it was chosen for, and its times. Panics when
    /// nothing of this name is held.
    pub fn withdraw(&mut self, token: u32) -> (T, Dur, Dur) {
        let at = self.held.iter().position(|h| h.token == token);
        let held = self.held.remove(at.unwrap_or_else(|| panic!("{token} is not held")));
        (held.what, held.worst, held.likely)
    }

    /// What is at the drive, and what is held.
    pub fn each(&self) -> impl Iterator<Item = T> + '_ {
        self.sent.iter().map(|sent| sent.what).chain(self.held())
    }

    /// What is held.
    pub fn held(&self) -> impl Iterator<Item = T> + '_ {
        self.held.iter().map(|h| h.what)
    }

    /// A command comes back. The drive may be at work for itself for so long after it began with
    /// it, `moves_on`. Panics when it was not sent.
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

    /// When the drive is free at the latest, with what is held.
    #[inline]
    pub fn free_by(&self, now: Time) -> Time {
        self.held.iter().fold(self.latest.max(now), |t, h| t + h.worst)
    }

    /// When it is likely to be free, with what is held.
    #[inline]
    pub fn likely_free_by(&self, now: Time) -> Time {
        self.held.iter().fold(self.likely.max(now), |t, h| t + h.likely)
    }

    /// Commands at the drive, and what is held.
    #[inline]
    pub fn all(&self) -> usize {
        self.sent.len() + self.held.len()
    }

    /// Commands at the drive.
    #[inline]
    pub fn len(&self) -> usize {
        self.sent.len()
    }

    /// Whether there is none.
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
        // The first is done early: the other has no more than its own time left.
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
        // It counts from now, however long it is held, and behind what is sent before it.
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
        // What took longer than that was no such read.
        drive.done(2, moves_on, ms(30));
        assert_eq!(drive.free_by(ms(30)), ms(30));
        // Behind such a read the worst case counts from the end of the move.
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
