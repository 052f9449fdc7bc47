//! What is at the drive, in the order in which it went, and what is held.

use headtime_disk::time::{Dur, Time};

#[derive(Clone, Copy, Debug)]
pub(super) struct Command {
    number: u64,
    /// Whose it is; `None`: no stream's.
    pub request: Option<usize>,
    worst: Dur,
    likely: Dur,
    at: Time,
    /// It went while a stream's request was held.
    in_gap: bool,
    /// The stream and period whose reservation it costs what it takes, since a request of it waits.
    pub costs: Option<(usize, u64)>,
}

/// A request, if it is a stream's; whose reservation it costs something, if another's.
type For = (Option<usize>, Option<(usize, u64)>);

#[derive(Clone, Debug, Default)]
pub(super) struct AtDrive {
    sent: Vec<Command>,
    /// Chosen, and not sent yet.
    held: Option<Command>,
    last_done: Time,
    /// What filled the gap before the request that comes next took so long.
    gap: Dur,
    /// The arm may move by itself until then, behind the command that was done last.
    moves_until: Time,
}

impl AtDrive {
    /// A command goes, which takes `times` at its worst and likely.
    pub fn send(&mut self, number: u64, (request, costs): For, times: (Dur, Dur), now: Time) {
        let in_gap = self.held.is_some_and(|held| held.request.is_some());
        self.sent.push(Command { number, request, worst: times.0, likely: times.1, at: now, in_gap, costs });
    }

    /// A request, or best effort, is chosen; its command goes later.
    pub fn hold(&mut self, (request, costs): For, times: (Dur, Dur), now: Time) {
        self.held =
            Some(Command { number: 0, request, worst: times.0, likely: times.1, at: now, in_gap: false, costs });
    }

    /// What is held goes.
    pub fn send_held(&mut self, number: u64, now: Time) {
        let held = self.held.take().expect("something is held");
        self.sent.push(Command { number, at: now, ..held });
    }

    /// What is held does not go.
    pub fn withdraw(&mut self) {
        self.held = None;
    }

    /// A command comes back; how long the drive was busy with it, what filled the gap before it
    /// included.
    pub fn completed(&mut self, number: u64, moves_on: Dur, now: Time) -> (Command, Dur) {
        let at = self.sent.iter().position(|c| c.number == number).expect("it was sent");
        let gone = self.sent.remove(at);
        let began = gone.at.max(self.last_done);
        self.moves_until = began + moves_on;
        self.last_done = now;
        self.gap += now.since(began);
        (gone, if gone.in_gap { Dur::ZERO } else { std::mem::take(&mut self.gap) })
    }

    /// Commands at the drive, and what is held, that cost this stream's reservation of this period.
    pub fn older_of(&self, of: (usize, u64)) -> u64 {
        self.sent.iter().chain(&self.held).filter(|c| c.costs == Some(of)).count() as u64
    }

    /// Commands at the drive, and what is held.
    pub fn all(&self) -> usize {
        self.sent.len() + usize::from(self.held.is_some())
    }

    /// When the drive is free, if everything there takes its worst case and the arm moves by
    /// itself.
    pub fn free(&self, now: Time) -> Time {
        self.free_from(self.last_done.max(self.moves_until), now, |c| c.worst)
    }

    /// When it is likely to be free.
    pub fn likely_free(&self, now: Time) -> Time {
        self.free_from(self.last_done, now, |c| c.likely)
    }

    /// When it is free, if everything there takes as long as `each` says and the first begins at
    /// `from`.
    fn free_from(&self, from: Time, now: Time, each: impl Fn(&Command) -> Dur) -> Time {
        let free = self.sent.iter().fold(from, |t, c| t.max(c.at) + each(c)).max(now);
        self.held.iter().fold(free, |t, c| t + each(c))
    }
}
