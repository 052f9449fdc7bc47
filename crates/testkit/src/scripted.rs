//! A drive with scripted answers: each command takes the next delay and outcome of a script.

use std::collections::VecDeque;

use headtime_disk::{Command, Completion, Dur, Outcome, Time};

/// The scripted answer to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Delay after dispatch.
    pub after: Dur,
    /// Result.
    pub outcome: Outcome,
}

/// A drive without a platter. Commands may overtake each other, as scripted; equal times complete
/// in dispatch order.
#[derive(Clone, Debug, Default)]
pub struct Scripted {
    script: VecDeque<Answer>,
    outstanding: Vec<(Time, Outcome, Command)>,
}

impl Scripted {
    /// Returns a drive that follows `script`; after its end commands take 1 ms each.
    pub fn new(script: impl IntoIterator<Item = Answer>) -> Scripted {
        Scripted { script: script.into_iter().collect(), outstanding: Vec::new() }
    }

    /// The outstanding commands, in dispatch order.
    pub fn outstanding(&self) -> impl Iterator<Item = &Command> {
        self.outstanding.iter().map(|(.., c)| c)
    }

    /// Sends a command.
    pub fn submit(&mut self, command: Command, now: Time) {
        let answer = self.script.pop_front().unwrap_or(Answer { after: Dur::from_ms(1), outcome: Outcome::Ok });
        self.outstanding.push((now + answer.after, answer.outcome, command));
    }

    /// Time of the next completion.
    pub fn next_event(&self) -> Option<Time> {
        self.outstanding.iter().map(|&(at, ..)| at).min()
    }

    /// Returns one completion due by `now`, the earliest first.
    pub fn advance(&mut self, now: Time) -> Option<Completion> {
        let due = self.next_event().filter(|&at| at <= now)?;
        let first = self.outstanding.iter().position(|&(at, ..)| at == due)?;
        let (at, outcome, command) = self.outstanding.remove(first);
        Some(Completion { id: command.id, outcome, at, media: None })
    }
}
