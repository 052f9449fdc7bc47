//! Commands at the drive, in dispatch order, and the held command.

use headtime_disk::{Dur, Time};

#[derive(Clone, Copy, Debug)]
pub(super) struct Command {
    number: u64,
    /// Its request; `None`: not a stream's.
    pub request: Option<usize>,
    worst: Dur,
    likely: Dur,
    at: Time,
    /// It was dispatched while a stream's request was held.
    in_gap: bool,
    /// The stream and period whose reservation is charged, because a request of it waits.
    pub costs: Option<(usize, u64)>,
}

/// The request, if it is a stream's; the charged reservation, if another stream's.
type For = (Option<usize>, Option<(usize, u64)>);

#[derive(Clone, Debug, Default)]
pub(super) struct AtDrive {
    sent: Vec<Command>,
    /// Chosen, and not dispatched yet.
    held: Option<Command>,
    last_done: Time,
    /// Duration of the commands that filled the gap before the next request.
    gap: Dur,
    /// Until then the arm may move autonomously after the last completed command.
    moves_until: Time,
}

impl AtDrive {
    /// Dispatches a command with the worst-case and likely `times`.
    pub(super) fn send(&mut self, number: u64, (request, costs): For, times: (Dur, Dur), now: Time) {
        let in_gap = self.held.is_some_and(|held| held.request.is_some());
        self.sent.push(Command { number, request, worst: times.0, likely: times.1, at: now, in_gap, costs });
    }

    /// Holds a chosen request, or best effort; its command is dispatched later.
    pub(super) fn hold(&mut self, (request, costs): For, times: (Dur, Dur), now: Time) {
        self.held =
            Some(Command { number: 0, request, worst: times.0, likely: times.1, at: now, in_gap: false, costs });
    }

    /// Dispatches the held command.
    pub(super) fn send_held(&mut self, number: u64, now: Time) {
        let held = self.held.take().expect("something is held");
        self.sent.push(Command { number, at: now, ..held });
    }

    /// Withdraws the held command.
    pub(super) fn withdraw(&mut self) {
        self.held = None;
    }

    /// Completes a command; returns it with its busy time, including the filled gap before it.
    pub(super) fn completed(&mut self, number: u64, moves_on: Dur, now: Time) -> (Command, Dur) {
        let at = self.sent.iter().position(|c| c.number == number).expect("it was sent");
        let gone = self.sent.remove(at);
        let began = gone.at.max(self.last_done);
        self.moves_until = began + moves_on;
        self.last_done = now;
        self.gap += now.since(began);
        (gone, if gone.in_gap { Dur::ZERO } else { std::mem::take(&mut self.gap) })
    }

    /// Commands at the drive, and the held one, that are charged to this stream's reservation of
    /// this period.
    pub(super) fn older_of(&self, of: (usize, u64)) -> u64 {
        self.sent.iter().chain(&self.held).filter(|c| c.costs == Some(of)).count() as u64
    }

    /// Number of commands at the drive, with the held one.
    pub(super) fn all(&self) -> usize {
        self.sent.len() + usize::from(self.held.is_some())
    }

    /// When the drive is free, with all commands at their worst case and the arm's autonomous move.
    pub(super) fn free(&self, now: Time) -> Time {
        self.free_from(self.last_done.max(self.moves_until), now, |c| c.worst)
    }

    /// When it is likely to be free.
    pub(super) fn likely_free(&self, now: Time) -> Time {
        self.free_from(self.last_done, now, |c| c.likely)
    }

    /// When it is free, if each command takes the time `each` and the first begins at `from`.
    fn free_from(&self, from: Time, now: Time, each: impl Fn(&Command) -> Dur) -> Time {
        let free = self.sent.iter().fold(from, |t, c| t.max(c.at) + each(c)).max(now);
        self.held.iter().fold(free, |t, c| t + each(c))
    }
}
