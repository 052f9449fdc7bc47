//! The predictor: where the head will be, and when.
//!
//! Every command sent is simulated with the model: it begins when the preceding one has ended and
//! the overhead between the two has passed (Reuther 2003 section 3.3.1, eq. 6), or, on an idle
//! drive, once the command has reached the drive; then seek, rotational latency and transfer
//! follow. The result is its head time, and the head's position at its end, from which the next
//! request is chosen.
//!
//! A media transfer always ends at the same angle, that of the request's last sector, however long
//! it took (Lumb 2002 section 3.3). So each completion shows the angle of the platter again: an
//! error affects one prediction, and at most the next, which began from it.
//!
//! A completion does not show whether a command was answered from the drive's cache without a move.
//! Most of these are predicted ([`crate::cache_model`]); the others are recognised by completing
//! too early ([`crate::classify`]). Either way the head stays where it was. A read that was
//! predicted to hit and completes as late as from the media has moved the head like any other.

mod cache;
mod unknown_habit;

use std::collections::VecDeque;

use headtime_disk::{Dur, Head, Kind, Model, Outcome, Place, Time};

use crate::cache_model::CacheModel;
use crate::classify::CLOSE;
use crate::flight::{Flight, Known, Served};
use crate::overheads::off_bus;
use crate::request::{Prediction, Surprise};
use cache::{left_alone, through_cache};
use unknown_habit::UnknownHabit;

/// A command that takes longer than this hangs, or the drive repeatedly retries to read something.
/// Not tuned: thirty revolutions at 7,200 rpm.
const OVERDUE: Dur = Dur::from_ms(250);

/// What a completion tells.
struct Told {
    /// The prediction and the observation, where they are comparable.
    prediction: Option<Prediction>,
    /// Whether the command was served as predicted, as far as that can be told.
    reliable: bool,
    /// Whether the drive served it from a read-ahead that continued the command before.
    kept_reading: bool,
}

impl Told {
    fn reliably(prediction: Option<Prediction>) -> Told {
        Told { prediction, reliable: true, kept_reading: false }
    }
}

/// Predictor of the head's position through the commands sent to the drive.
#[derive(Clone, Debug)]
pub struct Predictor {
    known: Known,
    flights: VecDeque<Flight>,
    cached: CacheModel,
    unknown_habit: UnknownHabit,
    resyncs: bool,
}

impl Predictor {
    /// Creates a predictor without a known head position: the first command will show it.
    pub fn new(max_outstanding: usize, model: &Model) -> Predictor {
        Predictor {
            known: Known {
                head: Head::default(),
                free_at: Time::ZERO,
                kind: Kind::Read,
                sure: false,
                bus_free: Time::ZERO,
            },
            flights: VecDeque::with_capacity(max_outstanding),
            cached: CacheModel::new(model),
            unknown_habit: UnknownHabit::default(),
            resyncs: true,
        }
    }

    /// Returns the same predictor, which completions do not correct
    /// ([`Config::resyncs`](crate::Config)).
    #[must_use]
    pub fn without_resync(self) -> Predictor {
        Predictor { resyncs: false, ..self }
    }

    /// Returns the number of commands at the drive.
    #[inline]
    pub fn outstanding(&self) -> usize {
        self.flights.len()
    }

    /// Returns the predicted state after everything sent has ended.
    #[inline]
    fn last(&self) -> &Known {
        self.flights.back().map_or(&self.known, |f| &f.after)
    }

    /// Returns the head at the instant a read and a write, sent now, would begin to move it.
    #[inline]
    pub fn next_heads(&mut self, model: &Model, now: Time) -> (Head, Head) {
        self.wait_for_overdue(model, now);
        let known = self.last();
        let (mut delay, mut arm) = (Dur::ZERO, None);
        if !self.cached.at_rest() {
            let (left, at) = left_alone(model, known, now);
            (delay, arm) = self.cached.finds(model, left.as_ref(), at);
        }
        let head = |kind| known.wait_until(model, known.begin(model, kind, now) + delay, arm);
        (head(Kind::Read), head(Kind::Write))
    }

    /// Returns whether the head's position after everything sent has ended is known.
    #[inline]
    pub fn is_sure(&self) -> bool {
        self.last().sure
    }

    /// Returns the kind of the command sent last.
    #[inline]
    pub fn last_kind(&self) -> Kind {
        self.last().kind
    }

    /// Returns when the next completion is expected at the host; `None` when nothing is at the
    /// drive.
    #[inline]
    pub fn first_due(&self) -> Option<Time> {
        self.flights.front().map(|f| f.due)
    }

    /// Returns when the head will be free of all commands at the drive; `None` when that is not
    /// known.
    pub fn head_free_behind_all(&self) -> Option<Time> {
        let known = self.last();
        Some(known.free_at).filter(|_| known.sure && !self.flights.is_empty())
    }

    /// Returns when the head will be free of the only command at the drive; `None` when there is
    /// none or more than one, when it is not known, or when the cache holds all of it. If a running
    /// read-ahead must still bring some of it, the head is free when the last sector has passed.
    #[inline]
    pub fn head_free_at(&self) -> Option<Time> {
        match &self.flights.front() {
            Some(f) if self.flights.len() == 1 && f.place.is_some() && !f.passed && f.after.sure => {
                let free_at = if f.is_hit() { f.there } else { f.after.free_at };
                f.predicted.map(|_| free_at).filter(|&at| at > Time::ZERO)
            }
            _ => None,
        }
    }

    /// Returns when the drive's read-ahead after the last completed command ends, if that delays a
    /// command that is at the drive, or is sent now. A drive that reorders commands may still begin
    /// another one before.
    #[inline]
    pub fn reads_on_until(&self, now: Time) -> Option<Time> {
        let waits = self.known.sure && self.known.keeps_waiting(now);
        waits.then_some(self.known.free_at)
    }

    /// Returns how much of `lbn..end` the drive's read-ahead brings into its buffer if nothing is
    /// sent to it: the end, and when. `None` when it brings none, or when something is at the
    /// drive.
    pub fn reads_ahead(&mut self, model: &Model, lbn: u64, end: u64, now: Time) -> Option<(u64, Time)> {
        if !self.flights.is_empty() {
            return None;
        }
        let (left, _) = left_alone(model, &self.known, now);
        self.cached.reads_ahead(model, left.as_ref(), lbn, end, now)
    }

    /// Returns one past the last LBN of the read sent last.
    #[inline]
    pub fn read_end(&self) -> Option<u64> {
        self.cached.exists().then(|| self.cached.read_end())
    }

    /// Returns whether a read at [`Predictor::read_end`], sent now, would not move the head: the
    /// drive continues reading for it without a break, or its cache has it.
    pub fn continues(&mut self, model: &Model, now: Time) -> bool {
        let lbn = self.cached.read_end();
        let reads_on = match self.flights.is_empty() {
            true => self.reads_ahead(model, lbn, lbn + 1, now).is_some(),
            false => self.cached.reads_behind(model),
        };
        self.last().sure && (reads_on || self.cached.holds_block(model, lbn))
    }

    /// Returns whether completions showed that the drive reads a track to its end after a second
    /// read there, which its profile does not say.
    #[inline]
    pub fn shows_unknown_habit(&self) -> bool {
        self.unknown_habit.is_shown()
    }

    /// Returns whether a command is long overdue.
    pub fn is_overdue(&self, now: Time) -> bool {
        self.flights.front().is_some_and(|f| now.saturating_since(f.sent) > OVERDUE)
    }

    /// Delays an overdue command by whole revolutions.
    fn wait_for_overdue(&mut self, model: &Model, now: Time) {
        let Some(first) = self.flights.front_mut() else {
            return;
        };
        let late = now.saturating_since(first.due);
        if late <= CLOSE || first.place.is_none() || first.is_hit() || first.passed {
            return;
        }
        let period = model.mechanics.rotation.period();
        first.is_late_by(Dur(late.0.div_ceil(period.0) * period.0));
        let after = first.after;
        self.follow(model, 1, after);
    }

    /// Records a command that was sent to the drive.
    #[inline]
    pub fn sent(&mut self, model: &Model, command: u64, kind: Kind, place: Option<&Place>, now: Time) {
        let known = *self.last();
        self.flights.push_back(Flight::new(command, kind, place, now, &known));
        let flight = self.flights.back_mut().expect("it was put there");
        let access = match place {
            Some(place) if self.cached.exists() => through_cache(&mut self.cached, model, flight, place, &known),
            _ => flight.follow(model, &known),
        };
        flight.predicted = access.filter(|_| known.sure);
    }

    /// Recomputes the predictions of the flights from `from` on, the one before having ended as
    /// `known`.
    #[inline]
    fn follow(&mut self, model: &Model, from: usize, mut known: Known) {
        for flight in self.flights.iter_mut().skip(from) {
            let access = flight.follow(model, &known);
            known = flight.after;
            // What passed under the head depends on its wait, which has changed.
            if let (Some(access), Some(segment), Some(place)) = (access, flight.segment, &flight.place)
                && matches!(flight.served, Served::Media)
                && flight.reads_on.is_none()
                && access.latency.0.abs_diff(flight.latency.0) * place.count as u64 > place.media.0
            {
                flight.latency = access.latency;
                self.cached.correct_pass(model, segment, place, &access);
            }
        }
    }

    /// Handles a completion; returns the prediction and the observation, where they are comparable.
    #[inline]
    pub fn completed(&mut self, model: &Model, command: u64, outcome: Outcome, now: Time) -> Option<Prediction> {
        let at = self.flights.iter().position(|f| f.command == command);
        let at = at.unwrap_or_else(|| panic!("the drive completed {command}, which it was not sent"));
        let flight = &self.flights[at];
        let (kind, segment) = (flight.kind, flight.segment);
        let told = match (&flight.place, outcome) {
            (Some(_), Outcome::Ok) if flight.is_hit() => return self.completed_hit(model, at, now),
            // The head has moved on since.
            (Some(_), Outcome::Ok) if at == 0 && flight.passed => {
                Told::reliably(flight.compare(model, flight.ended(model, now)))
            }
            (Some(_), Outcome::Ok) if at == 0 => self.completed_first(model, now),
            (Some(_), Outcome::Ok) if self.only_bus_is_behind(at) && flight.is_in_order(now) => {
                let ended = flight.ended(model, now);
                let prediction = flight.compare(model, ended);
                self.known = flight.known_after(model, ended);
                self.flights.iter_mut().take(at).for_each(|f| f.passed = true);
                Told::reliably(prediction)
            }
            (Some(_), Outcome::Ok) => {
                if let Some(known) = flight.served_alone(model, &self.known, now) {
                    self.known = known;
                }
                self.doubt(at);
                Told { prediction: None, reliable: false, kept_reading: false }
            }
            // A flush may have moved the head, and how far a failed command got is unknown.
            _ => {
                self.known.sure = false;
                self.known.free_at = flight.ended(model, now).max(self.known.head.at);
                self.doubt(2);
                if let Some(segment) = segment {
                    self.cached.failed(command, segment);
                }
                Told::reliably(None)
            }
        };
        if let (false, Some(segment)) = (told.reliable, segment) {
            self.correct_segment(model, at, segment, &told);
        }
        self.gone(model, at, kind, now);
        told.prediction
    }

    /// Handles the completion of the first flight: it shows where the head is.
    #[inline]
    fn completed_first(&mut self, model: &Model, now: Time) -> Told {
        let flight = &self.flights[0];
        let ended = flight.ended(model, now);
        let prediction = flight.compare(model, ended);
        if !model.cache.same_track_prefetch_delays {
            self.unknown_habit.completed(model, &self.known, flight, prediction.as_ref());
        }
        let surprise = prediction.map_or(Surprise::None, |p| p.surprise);
        let media = matches!(flight.served, Served::Media);
        if prediction.is_some_and(|p| p.surprise == Surprise::None)
            && flight.kind.is_read()
            && !flight.background
            && media
        {
            self.cached.surprises.refute(&model.cache, flight.lbn);
        }
        let reliable = matches!(surprise, Surprise::None | Surprise::Overlap);
        let mut kept_reading = false;
        if let Some(p) = &prediction {
            // Only if no command was sent after it, or one that continues it.
            let alone = self.flights.len() == 1 || self.flights[1].sequential;
            let taken_up = flight.sent.max(self.known.free_at);
            kept_reading = alone && self.cached.kept_reading(flight, p, taken_up);
            // One without latency is inconclusive: media and prefetch would have been equally fast.
            if !media || flight.latency > CLOSE {
                self.cached.served(flight.command, if media { kept_reading } else { reliable });
            }
        }
        if surprise != Surprise::CacheHit || kept_reading {
            // The first completion shows where the platter is.
            let believes = !self.resyncs && self.known.sure;
            self.known = if believes { flight.after } else { flight.known_after(model, ended) };
        } else if flight.kind == Kind::Write {
            // The drive's cache took it, and its arm moves at an unknown time.
            self.known.sure = false;
            self.doubt(2);
        }
        Told { prediction, reliable, kept_reading }
    }

    /// Returns whether the media serves all flights before that at `at`, and all are reads.
    #[cold]
    fn only_bus_is_behind(&self, at: usize) -> bool {
        let media = |f: &Flight| matches!(f.served, Served::Media | Served::GoesOn);
        self.flights.iter().take(at).all(|f| f.kind.is_read() && f.place.is_some() && media(f))
    }

    /// Removes the flight at `at`, and recomputes the others.
    #[inline]
    fn gone(&mut self, model: &Model, at: usize, kind: Kind, now: Time) {
        let passed = self.flights.remove(at).is_some_and(|f| f.passed);
        if kind != Kind::Flush && !passed {
            self.known.kind = kind;
        }
        if kind.is_read() {
            self.known.bus_free = off_bus(model, now);
        }
        let known = self.known;
        self.follow(model, 0, known);
    }

    /// Handles the completion of a predicted cache hit. If it was one, the head has not moved, and
    /// the predictions of commands that the read overtook on the way to the host still hold.
    #[cold]
    fn completed_hit(&mut self, model: &Model, at: usize, now: Time) -> Option<Prediction> {
        let flight = self.flights[at];
        let Some((media, access)) = flight.instead_of_hit(model, &self.known, now) else {
            if at == 0 {
                self.known = flight.after;
                self.gone(model, 0, flight.kind, now);
            } else {
                self.flights.remove(at);
            }
            return flight.compare_hit(now, true);
        };
        self.doubt(at);
        self.known = media.known_after(model, media.ended(model, now));
        if let (Some(segment), Some(place)) = (flight.segment, &flight.place) {
            self.cached.correct_false_hit(model, segment, place, &access);
        }
        self.gone(model, at, flight.kind, now);
        flight.compare_hit(now, false).filter(|_| at == 0)
    }

    /// Invalidates the predictions of the first `n` flights, which did not begin where predicted.
    fn doubt(&mut self, n: usize) {
        for flight in self.flights.iter_mut().take(n) {
            flight.predicted = None;
        }
    }
}
