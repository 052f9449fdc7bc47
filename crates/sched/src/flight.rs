//! A command at the drive: its predicted start and end, and what its completion shows.

use headtime_disk::{Access, Angle, Dur, Head, Kind, Model, Place, Time};

use crate::classify::{CLOSE, OVERLAP, classify};
use crate::overheads::{asked, between, crossing, hit_ready, lead_in, off_bus, rest_tail, tail};
use crate::passage::{ReadsOn, Track, passed_in_order};
use crate::request::{Prediction, Surprise};

/// State of the mechanism at the end of a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    /// The head.
    pub head: Head,
    /// When the mechanism becomes free. Later than `head.at` when the last command was not served
    /// by the mechanism.
    pub free_at: Time,
    /// The kind of the command that ended.
    pub kind: Kind,
    /// Whether `head` is reliable.
    pub sure: bool,
    /// When the bus becomes free of this command and those before it.
    pub bus_free: Time,
}

impl Known {
    /// Returns the head at `at`, on its track, or with its arm at `arm`.
    #[inline]
    pub(crate) fn wait_until(&self, model: &Model, at: Time, arm: Option<Track>) -> Head {
        let (cylinder, surface) = arm.unwrap_or((self.head.cylinder, self.head.surface));
        Head { cylinder, surface, angle: self.head.angle_at(at, &model.mechanics.rotation), at }
    }

    /// Returns whether a command sent at `sent` has to wait for the mechanism. This can happen with
    /// nothing else at the drive, during read-ahead.
    #[inline]
    pub(crate) fn keeps_waiting(&self, sent: Time) -> bool {
        sent < self.free_at
    }

    /// Returns when the mechanism would begin to work for a command sent at `sent`.
    #[inline]
    pub(crate) fn begin(&self, model: &Model, kind: Kind, sent: Time) -> Time {
        let ready = sent + lead_in(model, self.kind, kind);
        match self.keeps_waiting(sent) {
            true => ready.max(self.free_at + between(model, self.kind, kind)),
            false => ready,
        }
    }
}

/// Predicted source of a command's data.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Served {
    /// The media.
    Media,
    /// The drive's cache alone.
    Cache,
    /// The cache for its first sectors, the media for the rest, to which the head moves.
    Rest,
    /// The same, with a prefetch that is already bringing the rest.
    Running,
    /// The media, which continues after the preceding command without a break; the cache for its
    /// first sectors if it has them.
    GoesOn,
}

/// A command at the drive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    /// Its ID.
    pub command: u64,
    /// Its kind.
    pub kind: Kind,
    /// Its first LBN.
    pub lbn: u64,
    /// Its sectors.
    pub count: u32,
    /// Its place on the media, if it needs the media; `None` for a flush.
    pub place: Option<Place>,
    /// When it was sent.
    pub sent: Time,
    /// Its source.
    pub served: Served,
    /// The segment of the drive's cache that it is in, or goes to.
    pub segment: Option<usize>,
    /// How long a prefetch takes to stop for it.
    pub delay: Dur,
    /// When a running prefetch has brought what it needs; time zero when none does.
    pub there: Time,
    /// Whether that prefetch reads its last block.
    pub to_end: bool,
    /// Where that leaves the arm; `None`: where the last command did.
    pub arm: Option<Track>,
    /// Whether it continues the read sent before it.
    pub sequential: bool,
    /// Background work, or a request with background sectors at its front.
    pub background: bool,
    /// The drive's read-ahead after it.
    pub reads_on: Option<ReadsOn>,
    /// The same on a drive that reads a track to its end after a second read there, where the
    /// profile says that this one does not.
    pub might_read_on: Option<ReadsOn>,
    /// The media is done with it, since a later command has completed; only the bus is not.
    pub passed: bool,
    /// As predicted when it was sent; `None` when the head was not known.
    pub predicted: Option<Access>,
    /// The rotational latency on which the cache model's update was based.
    pub latency: Dur,
    /// When the mechanism begins to work for it, by present knowledge.
    pub begins: Time,
    /// When its media transfer ends.
    pub ends: Time,
    /// From the end of its media transfer until its completion at the host, with the bus otherwise
    /// idle.
    pub tail: Dur,
    /// When it will complete at the host; later when the preceding command is still on the bus.
    pub due: Time,
    /// The state of the mechanism after it.
    pub after: Known,
}

impl Flight {
    /// Creates a command sent at `sent`, with nothing else known of it.
    #[inline]
    pub(crate) fn new(command: u64, kind: Kind, place: Option<&Place>, sent: Time, known: &Known) -> Flight {
        Flight {
            command,
            kind,
            lbn: place.map_or(0, |p| p.lbn),
            count: place.map_or(0, |p| p.count),
            place: place.copied(),
            sent,
            served: Served::Media,
            segment: None,
            delay: Dur::ZERO,
            there: Time::ZERO,
            to_end: false,
            arm: None,
            sequential: false,
            background: false,
            reads_on: None,
            might_read_on: None,
            passed: false,
            predicted: None,
            latency: Dur::ZERO,
            begins: sent,
            ends: sent,
            tail: Dur::ZERO,
            due: sent,
            after: *known,
        }
    }

    /// Returns whether the drive's cache is predicted to answer it alone.
    #[inline]
    pub(crate) fn is_hit(&self) -> bool {
        matches!(self.served, Served::Cache)
    }

    /// Returns whether it does so, and none of it has to be read ahead first.
    #[inline]
    pub(crate) fn is_held(&self) -> bool {
        self.is_hit() && self.there == Time::ZERO
    }

    /// Computes when it begins and how it ends after a command that ended as `known`. `None` for a
    /// flush.
    #[inline]
    pub(crate) fn follow(&mut self, model: &Model, known: &Known) -> Option<Access> {
        if self.passed {
            self.after = Known { bus_free: self.after.bus_free.max(known.bus_free), ..*known };
            return None;
        }
        let Some(place) = &self.place else {
            self.begins = known.begin(model, self.kind, self.sent);
            (self.ends, self.due) = (self.begins, self.begins);
            self.after = Known { free_at: self.begins, sure: false, ..*known };
            return None;
        };
        let access = match self.served {
            Served::Media => {
                self.begins = known.begin(model, self.kind, self.sent) + self.delay;
                let head = known.wait_until(model, self.begins, self.arm);
                let access = model.access(&head, place, self.kind);
                self.tail = tail(model, self.kind, place, &access);
                access
            }
            _ => self.follow_cached(model, known),
        };
        if self.is_hit() {
            return Some(access);
        }
        self.ends = access.end.at;
        self.due = self.ends + self.tail;
        let mut bus_free = known.bus_free;
        if self.kind.is_read() {
            self.due = self.due.max(bus_free + crossing(model, self.count));
            bus_free = off_bus(model, self.due);
        }
        self.after = Known {
            head: access.end,
            free_at: self.ends,
            kind: self.kind,
            // Wherever the head was before, it is at this request's end now.
            sure: true,
            bus_free,
        };
        self.read_on(model);
        Some(access)
    }

    /// Does the same for a read of which the drive's cache has a part.
    #[cold]
    fn follow_cached(&mut self, model: &Model, known: &Known) -> Access {
        let place = self.place.as_ref().expect("a read has a place");
        let waits = known.keeps_waiting(self.sent);
        let free = if waits { known.free_at } else { self.sent };
        let ready = hit_ready(model, known.kind, self.sent, waits.then_some(known.free_at));
        self.begins = free;
        let bus = ready.max(known.bus_free) + crossing(model, self.count);
        if self.is_hit() {
            self.due = bus.max(self.there + rest_tail(model, None));
            self.ends = self.due;
            let head = known.wait_until(model, known.head.at, self.arm);
            self.after = Known { head, kind: Kind::Read, bus_free: off_bus(model, self.due), ..*known };
            let on_bus = self.due.saturating_since(self.begins);
            return Access { transfer: on_bus, end: head, ..Access::default() };
        }
        if matches!(self.served, Served::Running) {
            let there = self.there.max(self.begins);
            self.tail = rest_tail(model, None).max(bus.saturating_since(there));
            // Its last block passes then. The earlier angle of the platter is known from completion
            // times, which are later each time.
            let mut end = known.wait_until(model, there.max(known.head.at), self.arm);
            // A drive that reads on arrival would end elsewhere on a second track; its prefetch
            // goes from front to back.
            let in_order = place.tracks == 1 || !model.mechanics.on_arrival(Kind::Read);
            if self.to_end && in_order && there > known.head.at {
                end.angle = place.end_angle;
            }
            return Access { transfer: there.since(self.begins), end, ..Access::default() };
        }
        self.begins = match self.served {
            Served::GoesOn => known.free_at,
            _ => asked(model, known.kind, self.sent, waits.then_some(known.free_at)) + self.delay,
        };
        let head = known.wait_until(model, self.begins, self.arm);
        let mut access = model.access_in_order(&head, place, Kind::Read);
        if matches!(self.served, Served::GoesOn) {
            // The end of a place on two tracks assumes reading on arrival, which does not apply
            // here. Moves and waits are part of the stream.
            let end = match place.tracks > 1 && model.mechanics.on_arrival(Kind::Read) {
                true => passed_in_order(model, &head, place.lbn, place.lbn + u64::from(place.count)),
                false => access.end,
            };
            access = Access { transfer: end.at.since(self.begins), end, ..Access::default() };
        }
        self.tail = rest_tail(model, Some(place)).max(bus.saturating_since(access.end.at));
        match self.served {
            // Moves and waits are part of the stream.
            Served::GoesOn => {
                Access { transfer: access.end.at.since(self.begins), end: access.end, ..Access::default() }
            }
            _ => access,
        }
    }

    /// Adds the read-ahead of the rest of the track, which precedes any other command.
    #[inline]
    fn read_on(&mut self, model: &Model) {
        let (Some(on), Some(place)) = (self.reads_on, &self.place) else {
            return;
        };
        let rotation = &model.mechanics.rotation;
        let head = &mut self.after.head;
        let wait = rotation.wait(head.angle, place.end_angle);
        head.at = head.at + wait + rotation.sectors(on.count as u64, on.spt);
        head.angle = place.end_angle + Angle::fraction(on.count as u64, on.spt as u64);
        self.after.free_at = head.at;
    }

    /// Delays it by `more`.
    pub(crate) fn is_late_by(&mut self, more: Dur) {
        self.due += more;
        self.ends += more;
        self.after.free_at += more;
        self.after.head.at = self.after.free_at;
    }

    /// Returns when its media transfer ended, derived from its completion at `now`.
    #[inline]
    pub(crate) fn ended(&self, model: &Model, now: Time) -> Time {
        if let Some(ended) = self.landed(model, now) {
            return ended;
        }
        if self.due > self.ends + self.tail && now.0.abs_diff(self.due.0) <= CLOSE.0 {
            // It waited for the bus, so its completion says nothing about the media.
            return self.ends.min(now);
        }
        Time(now.0.saturating_sub(self.tail.0))
    }

    /// Returns when its media transfer ended if the head just missed the first sector and landed
    /// inside the request: a revolution after the landing; the front, which passed last, then had
    /// to cross the bus with all that follows it. `None` if that does not explain the completion
    /// time at the host.
    #[cold]
    fn late_landing(&self, model: &Model, place: &Place, now: Time) -> Option<Time> {
        let (rotation, count) = (&model.mechanics.rotation, u64::from(place.count));
        let first = Time(self.ends.0.saturating_sub(place.transfer.0));
        let at_edge = |k: u64| {
            let angle = place.angle + Angle::fraction(k, u64::from(place.spt));
            let ended = first + rotation.sectors(k, place.spt) + rotation.period();
            let end = Head { angle, at: ended, ..self.after.head };
            let access = Access { end, ..Access::default() };
            (ended, (ended + tail(model, self.kind, place, &access)).0.abs_diff(now.0))
        };
        let (ended, off) = (1..count).map(at_edge).min_by_key(|e| e.1)?;
        (off <= CLOSE.0).then_some(ended)
    }

    fn landed(&self, model: &Model, now: Time) -> Option<Time> {
        let media = matches!(self.served, Served::Media);
        let place = self.place.as_ref().filter(|p| media && p.tracks == 1)?;
        let in_order = self.after.head.angle == place.end_angle;
        let may_land = in_order && self.kind.is_read() && model.mechanics.on_arrival(self.kind);
        (may_land && now > self.due + CLOSE).then(|| self.late_landing(model, place, now))?
    }

    /// Returns the state of the mechanism after its media transfer has ended at `ended`.
    #[inline]
    pub(crate) fn known_after(&self, model: &Model, ended: Time) -> Known {
        let behind = self.after.head.at.saturating_since(self.ends);
        let mut known = self.after;
        if behind == Dur::ZERO {
            known.head.angle = self.end_angle(model, ended);
        }
        known.head.at = ended + behind;
        known.free_at = known.head.at;
        known
    }

    /// Returns the angle under the head at the end of the transfer, which was at `ended`.
    ///
    /// A transfer from front to back ends at the same angle however long it took. A drive that
    /// reads on arrival and just misses the first sector lands inside the request instead, and ends
    /// at the edge at which it began. So if such a drive took a different time than predicted, the
    /// edge nearest to the platter's angle at `ended` is taken.
    fn end_angle(&self, model: &Model, ended: Time) -> Angle {
        let end = self.after.head;
        // If the cache has the front, the rest is read in order.
        let media = matches!(self.served, Served::Media);
        let on_arrival = |p: &Place| media && p.tracks == 1 && model.mechanics.on_arrival(self.kind);
        let Some(place) = self.place.filter(on_arrival) else {
            return end.angle;
        };
        if end.at.0.abs_diff(ended.0) <= CLOSE.0 || place.spt < 2 {
            return end.angle;
        }
        let rotation = &model.mechanics.rotation;
        let turned = match ended >= end.at {
            true => end.angle + rotation.angle_after(ended.since(end.at)),
            false => end.angle - rotation.angle_after(end.at.since(ended)),
        };
        let step = Angle::fraction(1, place.spt as u64);
        // Half a sector is added before the division so that it rounds; before the first edge it
        // wraps to the last.
        let edge = (turned - place.angle + Angle(step.0 / 2)).0 / step.0;
        match edge <= place.count as u64 {
            true => place.angle + step * edge,
            false => end.angle,
        }
    }

    /// Returns whether its completion arrives when it would if it followed all that was sent before
    /// it. A write is reported while the data of the preceding read still crosses the bus: it
    /// overtakes that on its way to the host, not on the media. So may a short read that continues
    /// the preceding one, where completions are late by chance.
    #[cold]
    pub(crate) fn is_in_order(&self, now: Time) -> bool {
        let overtakes = self.kind == Kind::Write || matches!(self.served, Served::GoesOn);
        overtakes && now.0.abs_diff(self.due.0) <= CLOSE.0
    }

    /// Returns the state after it overtook others and completed at `now`, if that took long enough
    /// to have used the media; `known` is the state before all of them.
    #[cold]
    pub(crate) fn served_alone(&self, model: &Model, known: &Known, now: Time) -> Option<Known> {
        let mut alone = *self;
        alone.follow(model, known);
        let ended = self.ended(model, now);
        (ended + CLOSE >= alone.ends).then(|| self.known_after(model, ended))
    }

    /// Returns the same read from the media, after what ended as `known`, if it was predicted to be
    /// a cache hit, completed at `now`, and was not one.
    #[cold]
    pub(crate) fn instead_of_hit(&self, model: &Model, known: &Known, now: Time) -> Option<(Flight, Access)> {
        if now <= self.due + CLOSE {
            return None;
        }
        let mut media = Flight { served: Served::Media, reads_on: None, ..*self };
        let access = media.follow(model, known)?;
        let late = now.since(self.due);
        let nearer = now.0.abs_diff(media.due.0) < late.0;
        (nearer || late > OVERLAP).then_some((media, access))
    }

    /// Returns the comparison of prediction and observation.
    #[inline]
    pub(crate) fn compare(&self, model: &Model, ended: Time) -> Option<Prediction> {
        let (access, place) = (self.predicted?, self.place?);
        let observed = ended.saturating_since(self.begins);
        let period = model.mechanics.rotation.period();
        let media = place.media.min(access.transfer);
        Some(Prediction {
            predicted: access.head_time(),
            observed,
            seek: access.seek,
            latency: access.latency,
            transfer: access.transfer,
            cached: !matches!(self.served, Served::Media),
            // The media cannot have ended what it had not begun.
            surprise: match self.kind.is_read() && observed == Dur::ZERO && access.head_time() > CLOSE {
                true => Surprise::CacheHit,
                false => classify(&access, media, observed, period),
            },
        })
    }

    /// Returns the same for a predicted cache hit. `hit`: whether it was one.
    #[cold]
    pub(crate) fn compare_hit(&self, now: Time, hit: bool) -> Option<Prediction> {
        let access = self.predicted?;
        let observed = now.saturating_since(self.begins);
        let surprise = match observed.0.abs_diff(access.transfer.0) {
            _ if !hit => Surprise::Other,
            error if error <= CLOSE.0 => Surprise::None,
            _ => Surprise::Overlap,
        };
        let (predicted, zero) = (access.transfer, Dur::ZERO);
        let transfer = predicted;
        Some(Prediction { predicted, observed, seek: zero, latency: zero, transfer, cached: true, surprise })
    }
}
