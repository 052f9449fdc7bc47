//! A journal of answers, and a device that replays it before it issues new commands.
//!
//! The probe's next command is determined by its answers, clock readings and the seed. So an
//! interrupted run is resumed by replaying all answers: within a second the probe reaches the same
//! point, and only then the drive is used. No state is saved, and no stage needs to support
//! resuming. Only the platter's position has to be found again ([`Device::resumed_at`]).

use std::cell::{Cell, RefCell};

use headtime_disk::{Dur, Kind, Outcome, Time};

use crate::device::{Answer, Ask, Device, DeviceError};

/// Virtual pause between an earlier run's last answer and the resumed run, on its clock.
const PAUSE: Dur = Dur::from_secs(1);

/// An event: one command, or one clock reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The clock was read.
    Now(Time),
    /// A command was answered.
    Ran(Ask, Answer),
    /// Another run resumed at this time.
    Resumed(Time),
}

impl Entry {
    /// Formats an entry.
    fn words(&self) -> String {
        match self {
            Entry::Now(t) => format!("now {}", t.0),
            Entry::Resumed(t) => format!("resumed {}", t.0),
            Entry::Ran(ask, answer) => {
                let kind = match ask.kind {
                    Kind::Read => "read",
                    Kind::Write => "write",
                    Kind::Flush => "flush",
                };
                let outcome = match answer.outcome {
                    Outcome::Ok => "ok".into(),
                    Outcome::MediaError { lbn } => format!("bad {lbn}"),
                    Outcome::Dead => "dead".into(),
                };
                let (sent, done) = (answer.sent.0, answer.done.0);
                format!("{kind} {} {} {} {sent} {done} {outcome}", ask.lbn, ask.count, ask.not_before.0)
            }
        }
    }

    /// Parses an entry; `None`: malformed or truncated.
    fn parse(text: &str) -> Option<Entry> {
        let mut words = text.split(' ');
        let kind = match words.next()? {
            kind @ ("now" | "resumed") => {
                let at = Time(words.next()?.parse().ok()?);
                let entry = if kind == "now" { Entry::Now(at) } else { Entry::Resumed(at) };
                return words.next().is_none().then_some(entry);
            }
            "read" => Kind::Read,
            "write" => Kind::Write,
            "flush" => Kind::Flush,
            _ => return None,
        };
        let mut number = || words.next()?.parse::<u64>().ok();
        let (lbn, count) = (number()?, u32::try_from(number()?).ok()?);
        let (not_before, sent, done) = (Time(number()?), Time(number()?), Time(number()?));
        let outcome = match words.next()? {
            "ok" => Outcome::Ok,
            "bad" => Outcome::MediaError { lbn: words.next()?.parse().ok()? },
            "dead" => Outcome::Dead,
            _ => return None,
        };
        let entry = Entry::Ran(Ask { kind, lbn, count, not_before }, Answer { sent, done, outcome });
        (words.next().is_none() && sent <= done).then_some(entry)
    }
}

/// Formats commands that were dispatched together as a line, without its end.
pub fn line(entries: &[Entry]) -> String {
    entries.iter().map(Entry::words).collect::<Vec<_>>().join("; ")
}

/// Parses such a line; `None`: malformed or truncated.
pub fn parse(line: &str) -> Option<Vec<Entry>> {
    line.split("; ").map(Entry::parse).collect()
}

/// A callback for new events.
pub type Tell<'t> = dyn FnMut(&[Entry]) + 't;

/// A device that replays an earlier run's answers first, and reports all new events.
pub struct Journaled<'d> {
    device: &'d mut dyn Device,
    past: Vec<Entry>,
    at: Cell<usize>,
    /// The probe issued another command than in the replayed run.
    differs: Cell<bool>,
    /// Times of this run's clock and the device's at the end of the replay.
    since: Cell<Option<(Time, Time)>>,
    /// When a run last resumed.
    resumed: Cell<Option<Time>>,
    tell: RefCell<&'d mut Tell<'d>>,
}

impl<'d> Journaled<'d> {
    /// Creates a device with an earlier run's entries, or none. New entries are reported, those of
    /// commands dispatched together in one call.
    pub fn new(device: &'d mut dyn Device, past: Vec<Entry>, tell: &'d mut Tell<'d>) -> Journaled<'d> {
        let (at, differs) = (Cell::new(0), Cell::new(false));
        let (since, resumed) = (Cell::new(None), Cell::new(None));
        Journaled { device, past, at, differs, since, resumed, tell: RefCell::new(tell) }
    }

    /// End time of the earlier run.
    fn ended(&self) -> Option<Time> {
        self.past.last().map(|e| match e {
            Entry::Now(t) | Entry::Resumed(t) => *t,
            Entry::Ran(_, answer) => answer.done,
        })
    }

    /// Returns the next replay entry after any `Resumed` entries.
    fn next(&self) -> Option<&Entry> {
        // There are several if a run ended before its first answer.
        while let Some(Entry::Resumed(t)) = self.past.get(self.at.get()) {
            self.resumed.set(Some(*t));
            self.at.set(self.at.get() + 1);
        }
        self.past.get(self.at.get())
    }

    /// Returns the two clock times from which new times count.
    fn since(&self) -> (Time, Time) {
        if let Some(since) = self.since.get() {
            return since;
        }
        let device = self.device.now();
        let ended = self.ended().map(|t| t + PAUSE);
        if let Some(t) = ended {
            self.resumed.set(Some(t));
            (self.tell.borrow_mut())(&[Entry::Resumed(t)]);
        }
        let since = (ended.unwrap_or(device), device);
        self.since.set(Some(since));
        since
    }

    /// Converts a device time to this run's clock.
    fn here(&self, t: Time) -> Time {
        let (here, there) = self.since();
        here + t.saturating_since(there)
    }

    fn other(&self) -> DeviceError {
        self.differs.set(true);
        DeviceError("the answers that were kept are of another run: expected those to the same questions".into())
    }
}

impl Device for Journaled<'_> {
    fn sectors(&self) -> u64 {
        self.device.sectors()
    }

    fn sector_bytes(&self) -> u32 {
        self.device.sector_bytes()
    }

    fn depth(&self) -> u32 {
        self.device.depth()
    }

    fn now(&self) -> Time {
        match self.next() {
            Some(Entry::Now(t)) => {
                self.at.set(self.at.get() + 1);
                *t
            }
            // The replayed run issued a command at this point, so the next command is refused.
            Some(Entry::Ran(_, Answer { sent: t, .. }) | Entry::Resumed(t)) => {
                self.differs.set(true);
                *t
            }
            None => {
                let t = self.here(self.device.now());
                (self.tell.borrow_mut())(&[Entry::Now(t)]);
                t
            }
        }
    }

    fn run(&mut self, asks: &[Ask], outstanding: u32) -> Result<Vec<Answer>, DeviceError> {
        if self.differs.get() {
            return Err(self.other());
        }
        self.next();
        let at = self.at.get();
        let left = &self.past[at..];
        if !left.is_empty() && !asks.is_empty() {
            let known = asks.iter().zip(left).map(|(ask, entry)| match entry {
                Entry::Ran(asked, answer) if asked == ask => Some(*answer),
                _ => None,
            });
            let answers = known.collect::<Option<Vec<Answer>>>().filter(|a| a.len() == asks.len());
            let Some(answers) = answers else { return Err(self.other()) };
            self.at.set(at + asks.len());
            return Ok(answers);
        }
        let (here, there) = self.since();
        let then = |ask: &Ask| {
            let not_before = if ask.not_before > here { there + ask.not_before.since(here) } else { Time::ZERO };
            Ask { not_before, ..*ask }
        };
        let live: Vec<Ask> = asks.iter().map(then).collect();
        let mut answers = self.device.run(&live, outstanding)?;
        for answer in &mut answers {
            (answer.sent, answer.done) = (self.here(answer.sent), self.here(answer.done));
        }
        let entries: Vec<Entry> = asks.iter().zip(&answers).map(|(ask, answer)| Entry::Ran(*ask, *answer)).collect();
        (self.tell.borrow_mut())(&entries);
        Ok(answers)
    }

    fn is_past(&self) -> bool {
        self.at.get() < self.past.len()
    }

    fn resumed_at(&self) -> Option<Time> {
        let next = self.past.get(self.at.get()..).unwrap_or_default();
        let places = next.iter().map_while(|e| if let Entry::Resumed(t) = e { Some(*t) } else { None });
        match (places.last(), next.first()) {
            (Some(t), _) => Some(t),
            (None, None) if self.since.get().is_none() => self.ended().map(|t| t + PAUSE),
            (None, _) => self.resumed.get(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_as_they_were_written_and_cut_off_ones_are_none() {
        let ask = Ask { kind: Kind::Write, lbn: 7, count: 8, not_before: Time(5) };
        let answer = |outcome| Answer { sent: Time(10), done: Time(20), outcome };
        let all = [
            Entry::Now(Time(3)),
            Entry::Resumed(Time(4)),
            Entry::Ran(ask, answer(Outcome::Ok)),
            Entry::Ran(Ask::read(1, 1), answer(Outcome::MediaError { lbn: 1 })),
            Entry::Ran(Ask { kind: Kind::Flush, ..ask }, answer(Outcome::Dead)),
        ];
        for entry in all {
            let text = line(&[entry]);
            assert_eq!(parse(&text), Some(vec![entry]), "{text}");
            assert_eq!(parse(&format!("{text} 1")), None);
        }
        assert_eq!(parse(&line(&all)), Some(all.to_vec()));
        for bad in [
            "",
            "now",
            "now x",
            "read 1 1 0 5",
            "read 1 1 0 5 6 o",
            "read 1 1 0 6 5 ok",
            "walk 1",
            "read 1 9999999999 0 1 1 ok",
            "read 1 1 0 5 6 bad",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
