//! The predictor: where the head will be, and when.
//!
//! Every command sent is followed through the model: it begins when the one before has ended and the overhead between
//! the two has passed (seed 004 section 3.3.1, eq. 6), or, when the drive was idle, once the command has reached the
//! drive; then seek, rotational latency and transfer follow. That gives its head time, and the head's position at its
//! end, from which the next request is chosen.
//!
//! A media transfer always ends at the same angle, that of the request's last sector, however long it took (seed 001
//! section 3.3). So each completion tells the angle of the platter again, and a surprise spoils one prediction only: when
//! the head turns out to be elsewhere (a cache hit; another edge, on a drive that reads on arrival), what is predicted of
//! the command that begins there is worked out again. What a completion does not tell is when a command that moved nothing was answered
//! from the drive's cache; such completions are recognised by coming too early ([`classify`]) and leave the head where
//! it was.

use std::collections::VecDeque;

use headtime_disk::angle::Angle;
use headtime_disk::command::{Kind, Outcome};
use headtime_disk::mechanics::Head;
use headtime_disk::model::{Access, Model, Place};
use headtime_disk::time::{Dur, Time};

use crate::overheads::{between, crossing, lead_in, tail};
use crate::request::{Prediction, Surprise};

/// Errors up to this are none.
const CLOSE: Dur = Dur::from_us(150);
/// Errors up to this can come from bus and media overlapping more or less than usual; turns are recognised with as
/// much tolerance.
const OVERLAP: Dur = Dur::from_ms(1);
/// A completion this much earlier than seek and transfer alone would allow came from the cache.
const IMPOSSIBLE: Dur = Dur::from_us(400);

/// What is known of the mechanism at the end of some command.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// The head.
    head: Head,
    /// From when on the mechanism is free. Later than `head.at` when it was not the mechanism that answered last.
    free_at: Time,
    /// The kind of the command that ended.
    kind: Kind,
    /// Whether `head` can be relied on.
    sure: bool,
    /// From when on the bus is free of this command and those before it.
    bus_free: Time,
}

/// A command at the drive.
#[derive(Clone, Copy, Debug)]
struct Flight {
    command: u64,
    kind: Kind,
    /// `None` for a flush.
    place: Option<Place>,
    sent: Time,
    /// As predicted when it was sent; `None` when the head was not known.
    predicted: Option<Access>,
    /// When the mechanism begins to work for it, by what is known now.
    begins: Time,
    /// From the end of its media transfer until the host hears of it, when nobody else uses the bus.
    tail: Dur,
    /// When the host will hear of it; later than that when the command before is still on the bus.
    due: Time,
    /// What will be known when it has ended.
    after: Known,
}

/// Follows the head through the commands sent to the drive.
#[derive(Clone, Debug)]
pub struct Predictor {
    known: Known,
    flights: VecDeque<Flight>,
}

/// `known.head` at `at`, having stayed on its track.
fn wait_until(model: &Model, known: &Known, at: Time) -> Head {
    Head { angle: known.head.angle_at(at, &model.mechanics.rotation), at, ..known.head }
}

impl Predictor {
    /// A predictor that does not know where the head is: the first command will tell.
    pub fn new(max_outstanding: usize) -> Predictor {
        Predictor {
            known: Known {
                head: Head::default(),
                free_at: Time::ZERO,
                kind: Kind::Read,
                sure: false,
                bus_free: Time::ZERO,
            },
            flights: VecDeque::with_capacity(max_outstanding),
        }
    }

    /// Commands at the drive.
    #[inline]
    pub fn outstanding(&self) -> usize {
        self.flights.len()
    }

    /// What will be known when everything sent has ended.
    #[inline]
    fn last(&self) -> &Known {
        self.flights.back().map_or(&self.known, |f| &f.after)
    }

    /// When the mechanism would begin to work for a command sent at `sent` behind what ends as `known`.
    #[inline]
    fn begin(model: &Model, known: &Known, busy: bool, kind: Kind, sent: Time) -> Time {
        let ready = sent + lead_in(model, known.kind, kind);
        match busy && sent < known.free_at {
            true => ready.max(known.free_at + between(model, known.kind, kind)),
            false => ready,
        }
    }

    /// The head at the instant a read and a write, sent now, would begin to move it.
    #[inline]
    pub fn next_heads(&mut self, model: &Model, now: Time) -> (Head, Head) {
        self.wait_for_overdue(model, now);
        let (known, busy) = (self.last(), !self.flights.is_empty());
        let head = |kind| {
            let at = Self::begin(model, known, busy, kind, now);
            wait_until(model, known, at)
        };
        (head(Kind::Read), head(Kind::Write))
    }

    /// A command that should have completed and has not is taking whole turns more.
    fn wait_for_overdue(&mut self, model: &Model, now: Time) {
        let Some(first) = self.flights.front_mut() else {
            return;
        };
        let late = now.saturating_since(first.due);
        if late <= CLOSE || first.place.is_none() {
            return;
        }
        let period = model.mechanics.rotation.period();
        let turns = Dur(late.0.div_ceil(period.0) * period.0);
        first.due += turns;
        first.after.free_at += turns;
        first.after.head.at = first.after.free_at;
        let after = first.after;
        self.follow(model, 1, after);
    }

    /// Takes note of a command that was sent to the drive.
    #[inline]
    pub fn sent(&mut self, model: &Model, command: u64, kind: Kind, place: Option<&Place>, now: Time) {
        let (known, busy) = (*self.last(), !self.flights.is_empty());
        let mut flight = Flight {
            command,
            kind,
            place: place.copied(),
            sent: now,
            predicted: None,
            begins: now,
            tail: Dur::ZERO,
            due: now,
            after: known,
        };
        let access = flight.follow(model, &known, busy);
        flight.predicted = access.filter(|_| known.sure);
        self.flights.push_back(flight);
    }

    /// Works out again what is expected of the flights from `from` on, the one before having ended as `known`.
    #[inline]
    fn follow(&mut self, model: &Model, from: usize, mut known: Known) {
        for flight in self.flights.iter_mut().skip(from) {
            flight.follow(model, &known, true);
            known = flight.after;
        }
    }

    /// Takes note of a completion: what was predicted and what was observed, where one can say.
    #[inline]
    pub fn completed(&mut self, model: &Model, command: u64, outcome: Outcome, now: Time) -> Option<Prediction> {
        let at = self.flights.iter().position(|f| f.command == command);
        let at = at.unwrap_or_else(|| panic!("the drive completed {command}, which it was not sent"));
        let flight = self.flights.remove(at).expect("its position is known");
        let ended = flight.ended(now);
        let mut prediction = None;
        let moved = match (&flight.place, outcome) {
            (Some(_), Outcome::Ok) if at > 0 => {
                self.doubt(at);
                self.was_served_alone(model, &flight, ended)
            }
            (Some(_), Outcome::Ok) => {
                prediction = flight.compare(model, ended);
                prediction.is_none_or(|p| p.surprise != Surprise::CacheHit)
            }
            // A flush may have moved the head, and nobody knows how far a failed command got.
            _ => {
                self.known.sure = false;
                self.doubt(1);
                false
            }
        };
        if moved {
            self.known = flight.after;
            self.known.head.angle = flight.end_angle(model, ended);
            self.known.head.at = ended;
        }
        self.known.free_at = ended.max(self.known.head.at);
        self.known.kind = flight.after.kind;
        if flight.kind.is_read() {
            self.known.bus_free = now;
        }
        let known = self.known;
        let place = |h: &Head| (h.cylinder, h.surface, h.angle);
        let elsewhere = at == 0 && known.sure && place(&known.head) != place(&flight.after.head);
        self.follow(model, 0, known);
        if elsewhere {
            self.predict_again(model, &known);
        }
        prediction
    }

    /// The head is not where the command at the drive was predicted to begin from: what is predicted of it is its head
    /// time from where it does begin, as known when it begins (a host hears of the end of the one before only then).
    #[cold]
    fn predict_again(&mut self, model: &Model, known: &Known) {
        if let Some(next) = self.flights.front_mut()
            && next.predicted.is_some()
        {
            next.predicted = next.follow(model, known, true);
        }
    }

    /// The first `n` flights did not begin where they were predicted to: the predictions no longer count.
    fn doubt(&mut self, n: usize) {
        for flight in self.flights.iter_mut().take(n) {
            flight.predicted = None;
        }
    }

    /// Whether a command that overtook others took long enough to have used the media.
    fn was_served_alone(&self, model: &Model, flight: &Flight, ended: Time) -> bool {
        let mut alone = *flight;
        alone.follow(model, &self.known, true);
        ended + CLOSE >= alone.after.head.at
    }
}

impl Flight {
    /// Works out when it begins and how it ends behind what ended as `known`. `None` for a flush.
    #[inline]
    fn follow(&mut self, model: &Model, known: &Known, busy: bool) -> Option<Access> {
        self.begins = Predictor::begin(model, known, busy, self.kind, self.sent);
        let Some(place) = &self.place else {
            self.due = self.begins;
            self.after = Known { free_at: self.begins, sure: false, ..*known };
            return None;
        };
        let head = wait_until(model, known, self.begins);
        let access = model.access(&head, place, self.kind);
        self.tail = tail(model, self.kind, place, &access);
        self.due = access.end.at + self.tail;
        let mut bus_free = known.bus_free;
        if self.kind.is_read() {
            self.due = self.due.max(bus_free + crossing(model, place.count));
            bus_free = self.due;
        }
        self.after = Known {
            head: access.end,
            free_at: access.end.at,
            kind: self.kind,
            // Wherever the head was before, it is at this request's end now.
            sure: true,
            bus_free,
        };
        Some(access)
    }

    /// When its media transfer ended, to be concluded from its completion at `now`.
    #[inline]
    fn ended(&self, now: Time) -> Time {
        let end = self.after.free_at;
        if self.due > end + self.tail && now.0.abs_diff(self.due.0) <= CLOSE.0 {
            // It waited for the bus, and its completion says nothing about the media.
            return end.min(now);
        }
        Time(now.0.saturating_sub(self.tail.0))
    }

    /// The angle under the head at the end of the transfer, which was at `ended`.
    ///
    /// A transfer from front to back ends at the same angle however long it took. A drive that reads on arrival and
    /// just misses the first sector lands inside the request instead, and ends at the edge at which it began. So when
    /// such a drive took another time than predicted, the edge nearest to where the platter has turned meanwhile is
    /// taken.
    fn end_angle(&self, model: &Model, ended: Time) -> Angle {
        let end = self.after.head;
        let on_arrival = |p: &Place| p.tracks == 1 && model.mechanics.on_arrival(self.kind);
        let Some(place) = self.place.filter(on_arrival) else {
            return end.angle;
        };
        let rotation = &model.mechanics.rotation;
        if end.at.0.abs_diff(ended.0) <= CLOSE.0 {
            return end.angle;
        }
        let turned = match ended >= end.at {
            true => end.angle + rotation.angle_after(ended.since(end.at)),
            false => end.angle - rotation.angle_after(end.at.since(ended)),
        };
        let step = Angle::fraction(1, place.spt as u64);
        // Half a sector is added before the division so that it rounds; before the first edge it wraps to the last.
        let edge = (turned - place.angle + Angle(step.0 / 2)).0 / step.0;
        match edge <= place.count as u64 {
            true => place.angle + step * edge,
            false => end.angle,
        }
    }

    /// The prediction against the observation.
    #[inline]
    fn compare(&self, model: &Model, ended: Time) -> Option<Prediction> {
        let (access, place) = (self.predicted?, self.place?);
        let observed = ended.saturating_since(self.begins);
        let period = model.mechanics.rotation.period();
        Some(Prediction {
            predicted: access.head_time(),
            observed,
            seek: access.seek,
            latency: access.latency,
            transfer: access.transfer,
            surprise: classify(&access, place.media, observed, period),
        })
    }
}

/// What the difference between a predicted access and the head time observed looks like (seed 001 section 5.2 and
/// figure 7 show all of these). `media` is the time in which the request's sectors pass under the head.
pub fn classify(access: &Access, media: Dur, observed: Dur, period: Dur) -> Surprise {
    let predicted = access.head_time();
    let error = observed.0.abs_diff(predicted.0);
    if error <= CLOSE.0 {
        return Surprise::None;
    }
    let off_whole_turns = {
        let rest = error % period.0;
        rest.min(period.0 - rest)
    };
    let whole_turns = error >= period.0 / 2 && off_whole_turns <= OVERLAP.0 / 2;
    if observed > predicted {
        if whole_turns {
            return Surprise::ExtraTurn;
        }
    } else {
        // A turn can be saved only by a move that was quicker than thought, where the sector seemed just missed.
        let moved = access.seek > Dur::ZERO;
        if whole_turns && moved && access.latency + OVERLAP >= period {
            return Surprise::EarlyTurn;
        }
        // Without a move there is nothing to be mistaken about.
        if (!moved && error > OVERLAP.0) || observed + IMPOSSIBLE < access.seek + media {
            return Surprise::CacheHit;
        }
    }
    match error <= OVERLAP.0 {
        true => Surprise::Overlap,
        false => Surprise::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: Dur = Dur(5_985_037);

    /// Of a predicted access, in us, against an observed head time.
    fn seen(seek: u64, latency: u64, observed: u64) -> Surprise {
        let media = Dur::from_us(140);
        let access =
            Access { seek: Dur::from_us(seek), latency: Dur::from_us(latency), transfer: media, end: Head::default() };
        classify(&access, media, Dur::from_us(observed), TURN)
    }

    #[test]
    fn small_errors_are_no_surprise() {
        assert_eq!(seen(3_000, 2_000, 5_140 + 150), Surprise::None);
        assert_eq!(seen(3_000, 2_000, 5_140 - 150), Surprise::None);
        assert_eq!(seen(0, 0, 0), Surprise::None);
    }

    #[test]
    fn whole_turns_late_are_turns_and_parts_of_one_are_not() {
        assert_eq!(seen(3_000, 50, 3_190 + 5_985), Surprise::ExtraTurn);
        assert_eq!(seen(3_000, 50, 3_190 + 5_985 - 300), Surprise::ExtraTurn);
        assert_eq!(seen(3_000, 50, 3_190 + 3 * 5_985), Surprise::ExtraTurn);
        assert_eq!(seen(3_000, 50, 3_190 + 1_500), Surprise::Other);
        assert_eq!(seen(3_000, 50, 3_190 + 4_500), Surprise::Other);
        assert_eq!(seen(3_000, 50, 3_190 + 800), Surprise::Overlap);
    }

    #[test]
    fn a_turn_is_saved_only_where_a_sector_was_thought_to_be_just_missed() {
        assert_eq!(seen(3_000, 5_900, 9_040 - 5_985), Surprise::EarlyTurn);
        // The same difference cannot be a turn where the wait was short: nothing but the cache is that quick.
        assert_eq!(seen(3_000, 3_000, 6_140 - 5_985), Surprise::CacheHit);
        // Neither can it be where the head did not move at all: the same sector was read again.
        assert_eq!(seen(0, 5_900, 6_040 - 5_985), Surprise::CacheHit);
        assert_eq!(seen(3_000, 5_900, 300), Surprise::CacheHit);
        assert_eq!(seen(3_000, 4_000, 5_640), Surprise::Other);
    }
}
