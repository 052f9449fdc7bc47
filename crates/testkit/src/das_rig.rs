//! Streams on a drive without geometry: each command takes a drawn time, in dispatch order. The
//! choice among the active subset is the least favourable to guarantees.

use std::collections::VecDeque;

use headtime_disk::{Dur, Time};
use headtime_sched::internals::subset::{Event, Member, Rules, Sent, Subset};
use headtime_sched::streams::{Exhausted, Service, Stream};
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::profiles::between;

/// The choice among the active subset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Best effort if eligible, then the stream with the latest deadline.
    Spiteful,
    /// Any of the eligible requests, best effort as one of them.
    Random,
    /// The stream with the latest deadline; there is no best effort.
    Streams,
}

/// Observations of a run.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Decisions.
    pub decisions: u64,
    /// Decisions with only streams eligible.
    pub streams_only: u64,
    /// Completed best-effort requests.
    pub best_effort: u64,
    /// Busy time of the drive.
    pub busy: Dur,
    /// Violations.
    pub events: Vec<Event>,
}

/// A request that waits for older ones, which are served one after the other.
struct Waiting {
    member: Member,
    due: Time,
    /// Number of older requests left, and the command of the one at the drive.
    older: u32,
    command: Option<u64>,
}

struct Streaming {
    number: u32,
    stream: Stream,
    next: Time,
    /// Offset of a period's requests from its start.
    after: Dur,
}

/// Running streams.
pub struct Rig<'a> {
    /// The subset.
    pub subset: Subset,
    rules: Rules,
    streams: Vec<Streaming>,
    choice: Choice,
    rng: Xoshiro256PlusPlus,
    /// Duration of a command, by stream and worst case.
    takes: Box<dyn FnMut(Option<u32>, Dur) -> Dur + 'a>,
    /// End of each command at the drive.
    drive: VecDeque<(u64, Time, bool)>,
    /// Requests that wait for older ones.
    waiting: Vec<Waiting>,
    commands: u64,
    now: Time,
    /// Observations.
    pub seen: Seen,
    worst: Vec<(u32, Dur)>,
}

impl<'a> Rig<'a> {
    /// Creates a rig without streams; `takes` returns the duration of a command of a stream, or of
    /// best effort, for its worst case.
    pub fn new(
        rules: Rules,
        choice: Choice,
        rng: Xoshiro256PlusPlus,
        takes: impl FnMut(Option<u32>, Dur) -> Dur + 'a,
    ) -> Rig<'a> {
        Rig {
            subset: Subset::new(rules),
            rules,
            streams: Vec::new(),
            choice,
            rng,
            takes: Box::new(takes),
            drive: VecDeque::new(),
            waiting: Vec::new(),
            commands: 0,
            now: Time::ZERO,
            seen: Seen::default(),
            worst: Vec::new(),
        }
    }

    /// Opens a stream, which submits all of a period's requests `after` the period began. Each
    /// waits for up to as many older ones as allowed.
    pub fn open(&mut self, number: u32, stream: Stream, service: &Service, reservation: Option<Dur>, after: Dur) {
        let begins = self.subset.open(number, stream, service, reservation, self.now).expect("it was admitted");
        self.streams.push(Streaming { number, stream, next: begins + after, after });
        self.worst.push((number, service.worst));
    }

    /// Runs until `end`.
    pub fn run(&mut self, end: Time) {
        loop {
            let asks = self.streams.iter().map(|s| s.next).min();
            let done = self.drive.front().map(|c| c.1);
            let wakes = self.subset.next_wakeup();
            let next = [asks, done, wakes].into_iter().flatten().min().expect("streams go on for ever");
            assert!(next > self.now || next == Time::ZERO, "time stands still at {next}");
            if next > end {
                return;
            }
            self.now = next;
            self.subset.tick(next);
            while let Some(&(command, _, best_effort)) = self.drive.front().filter(|c| c.1 == next) {
                self.drive.pop_front();
                self.subset.completed(command, next);
                self.seen.best_effort += u64::from(best_effort);
                self.older_done(command);
            }
            self.give_up();
            for s in self.streams.iter_mut().filter(|s| s.next == next) {
                for _ in 0..s.stream.requests {
                    let member = self.subset.submit(s.number, next);
                    let older = between(&mut self.rng, 0, u64::from(s.stream.blocked_by)) as u32;
                    if older == 0 {
                        self.subset.ready(member);
                        continue;
                    }
                    self.subset.blocked(member);
                    let due = Time((member.period + 1) * s.stream.period.0);
                    self.waiting.push(Waiting { member, due, older, command: None });
                }
                s.next = s.stream.period_start(next) + s.stream.period + s.after;
            }
            while self.drive.len() < self.rules.outstanding as usize && self.send() {}
            self.seen.events.extend(self.subset.events());
        }
    }

    /// With [`Exhausted::Skip`], drops an optional stream's requests that still wait for older ones
    /// at the end of their period.
    fn give_up(&mut self) {
        let optional = |number| self.streams.iter().any(|s| s.number == number && !s.stream.is_mandatory());
        let over = |w: &Waiting| w.due <= self.now && w.command.is_none() && optional(w.member.stream);
        if self.rules.exhausted == Exhausted::Skip {
            let subset = &mut self.subset;
            self.waiting.extract_if(.., |w| over(w)).for_each(|w| subset.give_up(w.member, false));
        }
    }

    /// Completes a command: requests that wait for it have one older request less.
    fn older_done(&mut self, command: u64) {
        for waiting in self.waiting.iter_mut().filter(|w| w.command == Some(command)) {
            (waiting.older, waiting.command) = (waiting.older - 1, None);
            if waiting.older == 0 {
                self.subset.unblocked(waiting.member, self.now);
            }
        }
        self.waiting.retain(|w| w.older > 0);
    }

    /// Dispatches an older request: among the requests with an eligible one, the earliest deadline
    /// wins.
    fn send_older(&mut self) -> bool {
        let worst = self.rules.best_effort;
        let mut waiting: Vec<usize> = (0..self.waiting.len()).filter(|&w| self.waiting[w].command.is_none()).collect();
        waiting.sort_by_key(|&w| self.waiting[w].due);
        let may = |&w: &usize| self.subset.inherits(self.waiting[w].member, Sent::BestEffort, worst, self.now);
        let Some(at) = waiting.into_iter().find(may) else { return false };
        self.commands += 1;
        self.waiting[at].command = Some(self.commands);
        self.put(None, worst);
        true
    }

    /// Dispatches a command.
    fn put(&mut self, chosen: Option<Member>, worst: Dur) {
        let what = chosen.map_or(Sent::BestEffort, Sent::Stream);
        self.subset.sent(self.commands, what, worst, self.now);
        let takes = (self.takes)(chosen.map(|m| m.stream), worst);
        self.seen.busy += takes;
        let begins = self.drive.back().map_or(self.now, |c| c.1.max(self.now));
        self.drive.push_back((self.commands, begins + takes, chosen.is_none()));
    }

    /// Makes one decision; returns whether a command was dispatched.
    fn send(&mut self) -> bool {
        if self.send_older() {
            return true;
        }
        let active = self.subset.decide(self.now);
        let best_effort = active.best_effort && self.choice != Choice::Streams;
        let members = active.members.clone();
        self.seen.decisions += 1;
        self.seen.streams_only += u64::from(!best_effort);
        let all = members.len() as u64 + u64::from(best_effort);
        if all == 0 {
            return false;
        }
        let end = |m: &Member| {
            let s = self.streams.iter().find(|s| s.number == m.stream).expect("it is at work");
            ((m.period + 1) * s.stream.period.0, s.stream.is_mandatory())
        };
        let chosen = match self.choice {
            Choice::Spiteful if best_effort => None,
            Choice::Spiteful | Choice::Streams => members.iter().copied().max_by_key(end),
            Choice::Random => members.get((self.rng.next_u64() % all) as usize).copied(),
        };
        let number = chosen.map(|m| m.stream);
        let worst = self.worst.iter().find(|w| Some(w.0) == number).map_or(self.rules.best_effort, |w| w.1);
        self.commands += 1;
        self.put(chosen, worst);
        true
    }
}

/// Times for tests: most of them around a mean, a few of them long; in `bin`, up to `worst`.
pub fn made_up_times(
    rng: &mut Xoshiro256PlusPlus,
    samples: usize,
    bin: Dur,
    (least, mean): (u64, u64),
    worst: u64,
) -> Vec<Dur> {
    let width = (mean - least) * 2 / 3;
    let one = |rng: &mut Xoshiro256PlusPlus| match between(rng, 1, 1000) {
        // The head did not settle at once.
        1..=3 => between(rng, least, worst),
        _ => (0..3).map(|_| between(rng, 0, width)).sum::<u64>() + least,
    };
    (0..samples).map(|_| Dur(one(rng).min(worst) * bin.0)).collect()
}
