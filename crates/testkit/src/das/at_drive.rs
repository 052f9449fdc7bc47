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
    /// Something that is no stream's went right before it.
    pub behind_others: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct AtDrive {
    sent: Vec<Command>,
    /// Chosen, and not sent yet.
    held: Option<Command>,
    last_done: Time,
    /// The arm may move by itself until then, behind the command that was done last.
    moves_until: Time,
    /// What went last, or is held, is no stream's.
    others_last: bool,
}

impl AtDrive {
    /// A command goes, which takes `times` at its worst and likely.
    pub fn send(&mut self, number: u64, request: Option<usize>, times: (Dur, Dur), now: Time) {
        let command = self.command(number, request, times, now);
        self.sent.push(command);
    }

    /// A request, or best effort, is chosen; its command goes later.
    pub fn hold(&mut self, request: Option<usize>, times: (Dur, Dur), now: Time) {
        self.held = Some(self.command(0, request, times, now));
    }

    fn command(&mut self, number: u64, request: Option<usize>, (worst, likely): (Dur, Dur), now: Time) -> Command {
        let behind_others = self.others_last;
        // What goes while a request is held goes before that one.
        if self.held.is_none() {
            self.others_last = request.is_none();
        }
        Command { number, request, worst, likely, at: now, behind_others }
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

    /// A command comes back; how long the drive was busy with it.
    pub fn completed(&mut self, number: u64, moves_on: Dur, now: Time) -> (Command, Dur) {
        let at = self.sent.iter().position(|c| c.number == number).expect("it was sent");
        let gone = self.sent.remove(at);
        let began = gone.at.max(self.last_done);
        self.moves_until = began + moves_on;
        self.last_done = now;
        (gone, now.since(began))
    }

    /// Commands at the drive, and what is held.
    pub fn all(&self) -> usize {
        self.sent.len() + usize::from(self.held.is_some())
    }

    /// When the drive is free, if everything there takes its worst case and the arm moves by itself.
    pub fn free(&self, now: Time) -> Time {
        self.free_from(self.last_done.max(self.moves_until), now, |c| c.worst)
    }

    /// When it is likely to be free.
    pub fn likely_free(&self, now: Time) -> Time {
        self.free_from(self.last_done, now, |c| c.likely)
    }

    /// When it is free, if everything there takes as long as `each` says and the first begins at `from`.
    fn free_from(&self, from: Time, now: Time, each: impl Fn(&Command) -> Dur) -> Time {
        let free = self.sent.iter().fold(from, |t, c| t.max(c.at) + each(c)).max(now);
        self.held.iter().fold(free, |t, c| t + each(c))
    }
}
