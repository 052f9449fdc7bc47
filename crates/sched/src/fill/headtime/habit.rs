//! The drive's read-ahead after two successive reads on one track, and its consequences for a plan.
//!
//! Some drives treat two successive reads that end on one track as a sequential pattern: after the
//! second they read the track to its end before they begin another command (Lumb 2002 sections 3.2
//! and 4.3; `same_track_prefetch_delays` of a profile, which the predictor sets when it finds the
//! habit in a drive whose profile lacks it). The papers therefore send no background commands to
//! the tracks of foreground requests, which is stricter than necessary: the read-ahead is head time
//! like any other, and its length is known. So a plan is simulated command by command with the
//! read-ahead in it, and is accepted when the request
//!
//! 1. ends no later than without the plan, on the media and for the host, and
//! 2. leaves the drive free for the next command no later than without the plan, and
//! 3. lets that command be sent in time for this.
//!
//! The command after the request is sent when the command before the request completes at the host
//! (two outstanding). A leg that ends right before the request completes at the host when the
//! request is nearly over, and the drive would run dry: a tenth of a millisecond or two each time,
//! for the drive cannot prepare a command that it does not have.
//!
//! The three conditions permit: anything after a write or for a request that writes; a read on the
//! track that the head comes from if it ends with the track's last LBN, on another track, or early
//! enough. On drives without this habit, and inside the drive, no read-ahead delays anything, and
//! the second and third conditions are left.

use headtime_disk::{Dur, Head, Kind, Model, Place, Time};

use crate::fill::gap::{Gap, Leg};
use crate::fill::placement::Placement;
use crate::overheads::{between, crossing, lead_in, off_bus, tail};
use crate::passage::Track;

/// Difference between two ways of computing one instant in integer nanoseconds.
const ROUNDING: Dur = Dur(1_000);

/// Whether a drive has this habit, and the track of its last read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Habit {
    has: bool,
    last_read: Option<Track>,
    /// Forbids background commands on the tracks of requests, regardless of the drive:
    /// [`Placement::FirmwareNoTrack`].
    bars: bool,
}

impl Habit {
    /// A drive, or a scheduler inside it, without the habit.
    pub const NONE: Habit = Habit { has: false, last_read: None, bars: false };

    /// Returns the habit that a scheduler in this place has to consider. `last_read`: the track on
    /// which the command before the gap ends, if that is a read.
    pub fn before(model: &Model, placement: Placement, last_read: Option<Track>) -> Habit {
        let has = placement == Placement::Host && model.cache.same_track_prefetch_delays && model.cache.segments > 0;
        Habit { has, last_read: last_read.filter(|_| has), bars: placement == Placement::FirmwareNoTrack }
    }

    /// Returns whether background commands to this track of the gap are forbidden.
    #[inline]
    pub fn bars(&self, gap: &Gap, track: Track) -> bool {
        self.bars && (track == gap.source() || track == gap.destination())
    }

    /// Returns whether the drive reads ahead after a command of this kind that ends on `track`.
    #[inline]
    pub fn wakes(&self, kind: Kind, track: Track) -> bool {
        self.has && kind.is_read() && self.last_read == Some(track)
    }

    /// Returns the habit after a command of this kind that ended on `track`.
    #[inline]
    pub fn after(self, kind: Kind, track: Track) -> Habit {
        Habit { last_read: (self.has && kind.is_read()).then_some(track), ..self }
    }

    /// Returns how long the drive reads ahead after a command: until the track's last LBN has
    /// passed, with the head at the end of `place`.
    pub fn reads_on(&self, model: &Model, kind: Kind, place: &Place, head: &Head) -> Dur {
        if !self.wakes(kind, (place.end_cylinder, place.end_surface)) {
            return Dur::ZERO;
        }
        let end = place.lbn + u64::from(place.count);
        let upto = model.geometry.track_of(end - 1).map_or(end, |t| t.first_lbn + u64::from(t.lbns));
        let rotation = &model.mechanics.rotation;
        match model.geometry.run_at(end, (upto - end) as u32) {
            None => Dur::ZERO,
            // After a wrap-around the head is not at the last sector, and has to wait until it
            // passes again.
            Some(run) => {
                let wait = rotation.wait(head.angle, place.end_angle);
                wait + rotation.sectors(u64::from(run.span), run.start.spt)
            }
        }
    }
}

/// End of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct End {
    /// End of its media transfer.
    media: Time,
    /// Completion at the host, if no command sent before the gap occupies the bus.
    heard: Time,
    /// When the drive is free for the next command.
    free: Time,
    /// When the next command, sent as early as possible, is ready to begin.
    ready: Time,
}

/// Returns the minimum time from the media end of a command until the command sent upon its
/// completion is ready to begin. That command follows the request before which the leg is inserted.
#[inline]
pub(crate) fn answer(model: &Model, kind: Kind, dest_kind: Kind) -> Dur {
    let heard = match kind.is_read() {
        true => crossing(model, 1),
        false => model.overheads.reselect + model.overheads.write_completion,
    };
    heard + next_ready(model, dest_kind)
}

/// Returns the time from sending a command of either kind after one of `dest_kind` until it is
/// ready to begin.
#[inline]
fn next_ready(model: &Model, dest_kind: Kind) -> Dur {
    lead_in(model, dest_kind, Kind::Read).max(lead_in(model, dest_kind, Kind::Write))
}

/// Returns whether the request meets the three conditions above with these legs before it.
/// Simulated exactly, as predicted and with every move longer by its margin; and again with the
/// first leg alone, since the others will be planned anew. Final check of every plan of this
/// planner.
pub fn holds(model: &Model, gap: &Gap, habit: Habit, legs: &[Leg]) -> bool {
    let Some(without) = follow(model, gap, habit, &[], false) else {
        return false;
    };
    let no_worse = |legs: &[Leg]| {
        [false, true].into_iter().all(|late| {
            follow(model, gap, habit, legs, late).is_some_and(|with| {
                let later = |with: Time, without: Time| with > without + ROUNDING;
                // A move that exceeds its prediction is rare; the next command may then come
                // slightly later.
                let begins = |end: &End| if late { end.free } else { end.free.max(end.ready) };
                !later(with.media, gap.ends)
                    && !later(with.heard, without.heard)
                    && !later(begins(&with), begins(&without))
            })
        })
    };
    no_worse(legs) && (legs.len() < 2 || no_worse(&legs[..1]))
}

/// Simulates the legs and the request after them; `None` when a leg is not on the disk or a merged
/// one does not end at the request.
fn follow(model: &Model, gap: &Gap, habit: Habit, legs: &[Leg], late: bool) -> Option<End> {
    let (own, front) = match legs.split_last() {
        Some((last, before)) if last.merged => (before, Some(last)),
        _ => (legs, None),
    };
    let mut f =
        Follow { model, gap, habit, late, head: None, last: Kind::Read, bus_free: Time::ZERO, heard: [None; 2] };
    for leg in own {
        if leg.merged {
            return None;
        }
        let place = model.place(leg.lbn, leg.count, leg.kind)?;
        if [(place.cylinder, place.surface), (place.end_cylinder, place.end_surface)]
            .iter()
            .any(|t| habit.bars(gap, *t))
        {
            return None;
        }
        f.go(leg.kind, &place);
    }
    Some(match front {
        None => f.go(gap.dest_kind, &gap.dest),
        Some(front) if front.range().end() == gap.dest.lbn && front.kind == gap.dest_kind => {
            f.go(gap.dest_kind, &model.place(front.lbn, front.count.checked_add(gap.dest.count)?, gap.dest_kind)?)
        }
        Some(_) => return None,
    })
}

/// Simulation of the drive through a gap.
struct Follow<'a> {
    model: &'a Model,
    gap: &'a Gap,
    habit: Habit,
    late: bool,
    /// The head after the last command; `None` before the first.
    head: Option<Head>,
    last: Kind,
    bus_free: Time,
    /// When the last command but one and the last complete at the host.
    heard: [Option<Time>; 2],
}

impl Follow<'_> {
    fn go(&mut self, kind: Kind, place: &Place) -> End {
        let rotation = &self.model.mechanics.rotation;
        let mut head = match self.head {
            None => *self.gap.head(kind),
            Some(head) => {
                // A command is sent when the last but one completes at the host; the second, when
                // the command before the gap does.
                let sent = self.heard[0].map(|heard| heard + lead_in(self.model, self.last, kind));
                let ready = sent.unwrap_or_else(|| self.gap.second_ready(self.model, self.last, kind));
                let at = (head.at + between(self.model, self.last, kind)).max(ready);
                Head { angle: head.angle_at(at, rotation), at, ..head }
            }
        };
        if self.late {
            let to = (place.cylinder, place.surface);
            let at = head.at + self.gap.margins.of_move((head.cylinder, head.surface), to);
            head = Head { angle: head.angle_at(at, rotation), at, ..head };
        }
        let access = self.model.access(&head, place, kind);
        let end = access.end;
        let mut heard = end.at + tail(self.model, kind, place, &access);
        if kind.is_read() {
            heard = heard.max(self.bus_free + crossing(self.model, place.count));
            self.bus_free = off_bus(self.model, heard);
        }
        let on = self.habit.reads_on(self.model, kind, place, &end);
        let at = end.at + on;
        self.habit = self.habit.after(kind, (end.cylinder, end.surface));
        let before = self.heard[1].map(|heard| heard + next_ready(self.model, kind));
        // No command is sent during the read-ahead.
        self.heard = [self.heard[1], Some(if on > Dur::ZERO { heard.max(at) } else { heard })];
        self.head = Some(Head { angle: end.angle_at(at, rotation), at, ..end });
        self.last = kind;
        End { media: end.at, heard, free: at, ready: before.unwrap_or(self.gap.dest_ready) }
    }
}
