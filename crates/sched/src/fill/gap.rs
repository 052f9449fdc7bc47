//! The gap before a foreground request: rotational latency that background work can use (Lumb 2002
//! section 2, Thereska 2003 section 2.2).
//!
//! The head comes from the *source* (where the preceding command ends), may visit other tracks, and
//! must be at the *destination* when its first sector passes. The inserted work consists of *legs*:
//! background commands, and possibly a last leg that is merged with the destination by beginning
//! earlier on its track.

use headtime_disk::{Angle, Dur, Head, Kind, Model, Place, Time};

use super::conservatism::Margins;
use crate::overheads::{between, lead_in, tail};
use crate::tasks::TaskRange;

/// Difference between two ways of computing one instant in integer nanoseconds.
const ROUNDING: Dur = Dur(1_000);

/// Maximum legs per gap. A leg takes at least a seek or a wait of half a millisecond, and a gap is
/// at most a revolution; more than three are hardly ever found.
pub(crate) const MAX_LEGS: usize = 4;

/// Work in a gap: one command, or the front of the destination's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leg {
    /// Read or write.
    pub kind: Kind,
    /// First LBN.
    pub lbn: u64,
    /// Sectors.
    pub count: u32,
    /// Not a separate command: the destination's command begins here. The leg ends at the
    /// destination's first LBN.
    pub merged: bool,
}

impl Leg {
    /// Returns the sectors that it covers.
    #[inline]
    pub fn range(&self) -> TaskRange {
        TaskRange { lbn: self.lbn, count: u64::from(self.count) }
    }
}

/// The legs for one gap, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    legs: [Leg; MAX_LEGS],
    len: u8,
    /// Wanted sectors in the legs.
    pub sectors: u32,
}

impl Plan {
    /// Creates a plan of one leg with this number of wanted sectors.
    pub fn of(leg: Leg, sectors: u32) -> Plan {
        Plan { legs: [leg; MAX_LEGS], len: 1, sectors }
    }

    /// Returns the same plan with another leg appended; `None` when it is full, or ends in a merged
    /// leg.
    pub fn and(mut self, leg: Leg, sectors: u32) -> Option<Plan> {
        let len = self.len as usize;
        if len == MAX_LEGS || self.legs[len - 1].merged {
            return None;
        }
        self.legs[len] = leg;
        self.len += 1;
        self.sectors += sectors;
        Some(self)
    }

    /// Returns its legs.
    #[inline]
    pub fn legs(&self) -> &[Leg] {
        &self.legs[..self.len as usize]
    }
}

/// A rotational gap before a foreground request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The head at the instant at which a read inserted now would begin to move it.
    pub read: Head,
    /// The same for a write.
    pub write: Head,
    /// The next foreground request.
    pub dest: Place,
    /// Read or write.
    pub dest_kind: Kind,
    /// Earliest start of its command, which is sent when the command before the gap completes at
    /// the host.
    pub dest_ready: Time,
    /// When its first sector passes if nothing is inserted.
    pub starts: Time,
    /// When its transfer ends if nothing is inserted: the deadline.
    pub ends: Time,
    /// Margins of moves.
    pub margins: Margins,
}

/// The time that the head can spend on one track within a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its beginning, margin included.
    pub arrive: Time,
    /// The platter's angle at that instant.
    pub angle: Angle,
    /// Its end.
    pub leave: Time,
}

impl Window {
    /// Returns its length.
    #[inline]
    pub fn length(&self) -> Dur {
        self.leave.since(self.arrive)
    }
}

impl Gap {
    /// Returns the gap before the request at `dest`, given the head when a read or a write sent now
    /// would begin. `None` when there is no latency to use: the head lands in the request or at its
    /// front.
    pub fn before(
        model: &Model,
        (read, write): (Head, Head),
        dest: &Place,
        dest_kind: Kind,
        dest_ready: Time,
        margins: &Margins,
    ) -> Option<Gap> {
        let head = if dest_kind == Kind::Write { &write } else { &read };
        let access = model.access(head, dest, dest_kind);
        // Having landed inside, the drive reads at once: nothing fits before it.
        if access.latency == Dur::ZERO || access.transfer != dest.transfer || access.end.angle != dest.end_angle {
            return None;
        }
        let starts = head.at + access.seek + access.latency;
        Some(Gap { read, write, dest: *dest, dest_kind, dest_ready, starts, ends: access.end.at, margins: *margins })
    }

    /// Returns whether the head misses the request's first sector by less than the margin of the
    /// move, so that it may be in time after all. It would not be if a command were inserted.
    pub fn is_dubious(&self, model: &Model) -> bool {
        let (head, mechanics) = (self.head(self.dest_kind), &model.mechanics);
        let arrives = head.at + mechanics.reposition(self.source(), self.destination(), self.dest_kind);
        let margin = self.margins.of_move(self.source(), self.destination());
        self.starts.saturating_since(arrives) + margin > mechanics.rotation.period()
    }

    /// Returns the head at the instant at which a command of this kind, inserted now, would begin
    /// to move it.
    #[inline]
    pub fn head(&self, kind: Kind) -> &Head {
        if kind == Kind::Write { &self.write } else { &self.read }
    }

    /// Returns the earliest start of a second inserted command of this kind after one of kind
    /// `last`: it is sent when the destination's would be, but the drive's preparation time depends
    /// on the kinds.
    #[inline]
    pub fn second_ready(&self, model: &Model, last: Kind, kind: Kind) -> Time {
        let dest = lead_in(model, Kind::Read, self.dest_kind).max(lead_in(model, Kind::Write, self.dest_kind));
        Time(self.dest_ready.0.saturating_sub(dest.0)) + lead_in(model, last, kind)
    }

    /// Returns the track the head comes from.
    #[inline]
    pub fn source(&self) -> (u32, u16) {
        (self.read.cylinder, self.read.surface)
    }

    /// Returns the track of the request's first sector.
    #[inline]
    pub fn destination(&self) -> (u32, u16) {
        (self.dest.cylinder, self.dest.surface)
    }

    /// Returns the window for commands of `kind` on `track`, coming straight from the source and
    /// going straight to the destination. `None` when there is none.
    #[inline]
    pub fn window(&self, model: &Model, track: (u32, u16), kind: Kind) -> Option<Window> {
        let head = self.head(kind);
        self.window_from(model, head, head.at, track, kind)
    }

    /// Returns the same window, coming from `head` at `at` (an instant at which a command of `kind`
    /// can begin).
    #[inline]
    pub fn window_from(&self, model: &Model, head: &Head, at: Time, track: (u32, u16), kind: Kind) -> Option<Window> {
        let mechanics = &model.mechanics;
        let from = (head.cylinder, head.surface);
        let arrive = at + mechanics.reposition(from, track, kind) + self.margins.of_move(from, track);
        let leave = self.leave(model, track, kind)?;
        if leave <= arrive {
            return None;
        }
        Some(Window { arrive, angle: head.angle_at(arrive, &mechanics.rotation), leave })
    }

    /// Returns when commands of `kind` on `track` must have ended for the destination's command to
    /// be in time. `None` when it cannot be.
    #[inline]
    pub fn leave(&self, model: &Model, track: (u32, u16), kind: Kind) -> Option<Time> {
        let dest = self.destination();
        let back = model.mechanics.reposition(track, dest, self.dest_kind) + self.margins.of_move(track, dest);
        if self.dest_ready + back > self.starts {
            return None;
        }
        let back = back + between(model, kind, self.dest_kind);
        (back.0 <= self.starts.0).then(|| Time(self.starts.0 - back.0))
    }

    /// Returns the window for sectors merged with the destination, on its own track: until its
    /// first sector passes.
    #[inline]
    pub fn merge_window(&self, model: &Model, head: &Head, at: Time) -> Option<Window> {
        let (from, to) = ((head.cylinder, head.surface), self.destination());
        let mechanics = &model.mechanics;
        let arrive = at + mechanics.reposition(from, to, self.dest_kind) + self.margins.of_move(from, to);
        if arrive >= self.starts {
            return None;
        }
        Some(Window { arrive, angle: head.angle_at(arrive, &mechanics.rotation), leave: self.starts })
    }

    /// Returns whether the request ends in time with these legs before it, simulated exactly,
    /// command by command, both as predicted and with every move longer by its margin. The final
    /// check of the papers' plans; that of headtime's is [`super::headtime::habit::holds`], which
    /// simulates the drive's read-ahead as well.
    pub fn holds(&self, model: &Model, legs: &[Leg]) -> bool {
        self.end_of(model, legs, false).is_some_and(|end| end <= self.ends + ROUNDING)
            && self.end_of(model, legs, true).is_some_and(|end| end <= self.ends + ROUNDING)
    }

    /// Returns when the request ends with these legs before it; `None` when a leg is not on the
    /// disk or a merged one does not end at the request.
    pub fn end_of(&self, model: &Model, legs: &[Leg], late: bool) -> Option<Time> {
        let rotation = &model.mechanics.rotation;
        let first = legs.first().map_or(self.dest_kind, |l| if l.merged { self.dest_kind } else { l.kind });
        let mut head = *self.head(first);
        let mut last: Option<Kind> = None;
        // When the last command but one and the last complete at the host.
        let mut heard: [Option<Time>; 2] = [None; 2];
        let mut go = |kind: Kind, place: &Place| {
            if let Some(last) = last {
                // Two are outstanding: a command is sent when the last but one completes.
                let ready = match heard[0] {
                    Some(heard) => heard + lead_in(model, last, kind),
                    None => self.second_ready(model, last, kind),
                };
                let begin = (head.at + between(model, last, kind)).max(ready);
                head = Head { angle: head.angle_at(begin, rotation), at: begin, ..head };
            }
            if late {
                let margin = self.margins.of_move((head.cylinder, head.surface), (place.cylinder, place.surface));
                let begin = head.at + margin;
                head = Head { angle: head.angle_at(begin, rotation), at: begin, ..head };
            }
            let access = model.access(&head, place, kind);
            head = access.end;
            heard = [heard[1], Some(head.at + tail(model, kind, place, &access))];
            last = Some(kind);
            head.at
        };
        let own = legs.iter().filter(|l| !l.merged);
        for leg in own {
            go(leg.kind, &model.place(leg.lbn, leg.count, leg.kind)?);
        }
        match legs.last().filter(|l| l.merged) {
            None => Some(go(self.dest_kind, &self.dest)),
            Some(front) if front.range().end() == self.dest.lbn && front.kind == self.dest_kind => {
                let place = model.place(front.lbn, front.count.checked_add(self.dest.count)?, self.dest_kind)?;
                Some(go(self.dest_kind, &place))
            }
            Some(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_disk::profile;

    fn model() -> Model {
        Model::new(&profile::builtin("atlas10k").unwrap()).unwrap()
    }

    fn head(cylinder: u32, turn: u64) -> Head {
        Head { cylinder, surface: 0, angle: Angle::fraction(turn, 100), at: Time(1_000_000_000) }
    }

    /// A gap of some milliseconds before eight sectors in the middle of a track.
    fn gap(model: &Model, margin: Dur) -> Gap {
        let track = model.geometry.track(2_000, 1).unwrap();
        let dest = model.place(track.first_lbn + 200, 8, Kind::Read).unwrap();
        let margins = Margins::fixed(margin);
        (0..100)
            .filter_map(|turn| {
                let h = head(1_900, turn);
                Gap::before(model, (h, h), &dest, Kind::Read, Time::ZERO, &margins)
            })
            .find(|g| g.starts.since(g.read.at) > Dur::from_ms(6))
            .unwrap()
    }

    #[test]
    fn what_fits_a_window_holds_and_what_does_not_fit_does_not() {
        let m = model();
        let g = gap(&m, Dur::from_us(200));
        let w = g.merge_window(&m, &g.read, g.read.at).unwrap();
        let fx = m.mechanics.rotation.sector_fx(g.dest.spt);
        let fits = ((u128::from(w.length().0) << 32) / u128::from(fx)) as u32;
        let leg = |count: u32| Leg { kind: Kind::Read, lbn: g.dest.lbn - u64::from(count), count, merged: true };
        let on_track = fits.min(200);
        assert!(g.holds(&m, &[leg(on_track)]));
        if fits < 200 {
            assert!(!g.holds(&m, &[leg(fits + 2)]));
        }
        assert!(g.holds(&m, &[]));
    }

    #[test]
    fn a_command_of_its_own_must_leave_in_time() {
        let m = model();
        let g = gap(&m, Dur::from_us(200));
        let track = m.geometry.track(2_000, 2).unwrap();
        let w = g.window(&m, (2_000, 2), Kind::Read).unwrap();
        let fx = u128::from(m.mechanics.rotation.sector_fx(track.spt));
        let step = Angle::fraction(1, u64::from(track.spt));
        let first = (w.angle - track.angle).0.div_ceil(step.0) as u32;
        let wait = m.mechanics.rotation.wait(w.angle, track.angle + step * u64::from(first));
        let fits = ((u128::from(w.length().saturating_sub(wait).0) << 32) / fx) as u32;
        let room = track.spt - first;
        assert!(fits > 3 && room > 3, "fits {fits}, room {room}");
        let leg = |count: u32| Leg { kind: Kind::Read, lbn: track.first_lbn + u64::from(first), count, merged: false };
        assert!(g.holds(&m, &[leg(fits.min(room) - 1)]));
        if fits + 2 <= room {
            assert!(!g.holds(&m, &[leg(fits + 2)]));
        }
    }
}
