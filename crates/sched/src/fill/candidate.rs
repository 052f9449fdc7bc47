//! Candidates: the best use of a gap on one track.
//!
//! The head is on a track in a [`Window`]. Which sectors pass whole in that time, and which LBNs
//! those are, is arithmetic on the track ([`TrackMap::passing`]). A command is one range of LBNs,
//! so there are two ways to use what passes: begin with the first sector that passes and read at
//! most to the track's end, or wait for the track's first sector and read from there (Lumb 2002
//! figure 11). A range that reaches the end continues on the next track as far as time allows: a
//! unit on both can be had only in this way. A range that *begins* on the track before belongs to
//! that track, and is found when that is examined. On a drive that reads on arrival the whole track
//! is one range when there is time for a revolution.
//!
//! The LBNs that fit form a [`Room`]. One query to the task layer finds the wanted sectors in it;
//! the leg goes from the first to the last of them. A write takes only a range that is entirely
//! wanted, for it must not touch other sectors.
//!
//! On the destination's own track a leg is better *merged*: the destination's command begins
//! earlier ([`merged`](super::merged)).
//!
//! The arithmetic resolves rounding errors in favour of fitting, and ignores remapped sectors.
//! [`Gap::holds`] is the final check; if it fails, the same track is examined *carefully* once
//! more.

use headtime_disk::{Angle, Dur, Kind, Model, Time};

use super::gap::{Gap, Leg, Plan, Window};
use super::placement::Rules;
use super::track::TrackMap;
use crate::overheads::between;
use crate::tasks::wanted::Wanted;
use crate::tasks::{TaskRange, Wants, Who};

/// Maximum rooms per track: two, divided by a few excluded ranges.
const MAX_ROOMS: usize = 6;

/// Slack at a window's end in a careful search, which covers rounding errors.
pub(super) const CARE: Dur = Dur(50);

/// Input of a candidate; equal inputs give equal candidates.
#[derive(Debug)]
pub struct Look<'a, W> {
    /// The model of the drive.
    pub model: &'a Model,
    /// The wanted sectors by session.
    pub wants: &'a W,
    /// The gap.
    pub gap: &'a Gap,
    /// Excluded ranges: in flight, in conflict with a foreground request, or bad.
    pub exclude: &'a [TaskRange],
    /// Rules for legs.
    pub rules: Rules,
    /// Ranges on one track are compared by the angle they take, not by their sectors.
    pub by_angle: bool,
    /// Wanted ranges are multiples of this number of sectors ([`Regions::grain`]).
    ///
    /// [`Regions::grain`]: super::regions::Regions::grain
    pub grain: u32,
}

/// Consecutive LBNs of which a leg may take any part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// First LBN.
    pub low: u64,
    /// One past the last LBN.
    pub high: u64,
    /// One past the last LBN of the examined track; the rest is on the next one.
    pub turn_over: u64,
    /// A sector's angle on the examined track and on the next, in 2^-32 revolutions.
    pub step: (u64, u64),
}

/// The rooms of one track.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rooms {
    list: [Option<Room>; MAX_ROOMS],
    len: usize,
    /// Number of rooms that begin with the first sector that passes; the others begin with the
    /// track's first LBN.
    at_once: usize,
}

/// A plan for one gap from one track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The legs, and their wanted sectors.
    pub plan: Plan,
    /// The examined track.
    pub track: (u32, u16),
    /// Read or write.
    pub kind: Kind,
    /// The angle of the wanted sectors, in 2^-32 revolutions.
    pub turn: u64,
    /// Of the wanted sectors, those on the examined track.
    pub here: u32,
}

/// Buffers and cost of a search.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    /// Wanted sectors of the range queried last.
    pub wanted: Wanted,
    /// Queries of the task layer so far.
    pub queries: u64,
}

impl Room {
    /// Returns the angle of `here` sectors on the examined track and `next` on the next one.
    #[inline]
    fn turn(&self, here: u64, next: u64) -> u64 {
        here * self.step.0 + next * self.step.1
    }

    /// Returns an upper bound of the wanted sectors, and their angle.
    #[inline]
    pub fn most(&self) -> (u32, u64) {
        let here = self.high.min(self.turn_over) - self.low.min(self.turn_over);
        let all = self.high - self.low;
        (all as u32, self.turn(here, all - here))
    }

    /// Returns the same where only whole multiples of `grain` sectors are wanted.
    #[inline]
    pub fn most_whole(&self, grain: u32) -> (u32, u64) {
        let (all, turn) = self.most();
        let whole = all / grain * grain;
        (whole, turn.min(u64::from(whole) * self.step.0.max(self.step.1)))
    }
}

impl Rooms {
    /// Iterates over the rooms.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Room> + '_ {
        self.list[..self.len].iter().flatten().copied()
    }

    /// Adds what `exclude` leaves of a room.
    #[inline]
    fn push(&mut self, room: Room, exclude: &[TaskRange]) {
        let mut low = room.low;
        while low < room.high {
            // The nearest excluded range, and its end. There are few.
            let mut stop = room.high;
            let mut again = room.high;
            for e in exclude {
                if e.end() > low && e.lbn < stop {
                    (stop, again) = (e.lbn.max(low), e.end());
                }
            }
            if stop > low && self.len < MAX_ROOMS {
                self.list[self.len] = Some(Room { low, high: stop, ..room });
                self.len += 1;
            }
            low = again.max(low + 1);
        }
    }
}

/// A leg found in a room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) low: u64,
    pub(super) high: u64,
    pub(super) sectors: u32,
    pub(super) here: u32,
    pub(super) turn: u64,
}

impl<W> Clone for Look<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Look<'_, W> {}

impl<W: Wants> Look<'_, W> {
    /// Returns whether a background command may touch a track.
    #[inline]
    pub fn allowed(&self, track: (u32, u16)) -> bool {
        (self.rules.source_track || track != self.gap.source())
            && (self.rules.dest_track || track != self.gap.destination())
    }

    /// Returns the window on a track for background commands, coming from the source and going to
    /// the destination.
    #[inline]
    pub fn window(&self, track: (u32, u16), kind: Kind) -> Option<Window> {
        self.gap.window(self.model, track, kind)
    }

    /// Returns the rooms that a window leaves for a command of `kind` on a track.
    #[inline]
    pub fn rooms(&self, map: &TrackMap, window: &Window, kind: Kind) -> Rooms {
        let rotation = &self.model.mechanics.rotation;
        let spt = map.track.spt;
        let passing = map.passing(rotation, window);
        let mut rooms = Rooms::default();
        if passing.count == 0 {
            return rooms;
        }
        if passing.count >= u64::from(spt) && self.model.mechanics.on_arrival(kind) {
            // One revolution from the first sector that passes, wherever the command begins.
            let end = passing.at + rotation.period();
            self.room(map, (0, spt), |_| (end, map.edge(passing.first)), kind, &mut rooms);
            rooms.at_once = rooms.len;
            return rooms;
        }
        let to_end = u64::from(spt - passing.first);
        let until = passing.first + passing.count.min(to_end) as u32;
        let at_once = |end: u32| (passing.edge(u64::from(end - passing.first)), map.edge(end));
        self.room(map, (passing.first, until), at_once, kind, &mut rooms);
        rooms.at_once = rooms.len;
        if passing.first > 0 && passing.count > to_end {
            let until = (passing.count - to_end).min(u64::from(spt)) as u32;
            let after_wrap = |end: u32| (passing.edge(to_end + u64::from(end)), map.edge(end));
            self.room(map, (0, until), after_wrap, kind, &mut rooms);
        }
        rooms
    }

    /// Adds the rooms in the sectors `from..to`. `end_of` returns when and at which angle a command
    /// ends whose last sector is the one before the given one.
    #[inline]
    fn room(
        &self,
        map: &TrackMap,
        (from, to): (u32, u32),
        end_of: impl Fn(u32) -> (Time, Angle),
        kind: Kind,
        rooms: &mut Rooms,
    ) {
        let geometry = &self.model.geometry;
        map.stretches(geometry, from, to, |low, high| {
            let here = map.step.0 >> 32;
            let mut room = Room { low, high, turn_over: map.end(), step: (here, here) };
            if high == map.end()
                && let Some(last) = map.sector_of(geometry, high - 1)
            {
                let (end, angle) = end_of(last + 1);
                if let Some((high, next)) = self.beyond(map, end, angle, kind) {
                    (room.high, room.step.1) = (high, next.step.0 >> 32);
                }
            }
            rooms.push(room, self.exclude);
        });
    }

    /// Returns how far a command that ends its own track at an instant and angle continues on the
    /// next: one past the last LBN there, and that track.
    #[inline]
    fn beyond(&self, map: &TrackMap, end: Time, angle: Angle, kind: Kind) -> Option<(u64, TrackMap)> {
        let (geometry, mechanics) = (&self.model.geometry, &self.model.mechanics);
        // The shortest move must still be possible.
        if end + mechanics.head_switch.min(mechanics.reposition_floor(1)) >= self.gap.starts {
            return None;
        }
        let next = TrackMap::of(geometry, map.end())?;
        let place = next.place();
        if !self.allowed(place) {
            return None;
        }
        let next = if map.is_careful() { next.careful() } else { next };
        let rotation = &mechanics.rotation;
        let reposition = mechanics.reposition(map.place(), place, kind);
        let arrive = end + reposition;
        let leave = self.gap.leave(self.model, place, kind).filter(|l| *l > arrive)?;
        let arrived = angle + rotation.angle_after(reposition);
        let first = next.sector_of(geometry, next.track.first_lbn)?;
        let begin = arrive + rotation.wait(arrived, next.edge(first));
        let mut count = next.fitting(rotation, leave.saturating_since(begin));
        if mechanics.on_arrival(kind) && leave.since(arrive) >= rotation.period() + rotation.sectors(1, next.track.spt)
        {
            count = u64::from(next.track.spt);
        }
        let until = (u64::from(first) + count).min(u64::from(next.track.spt)) as u32;
        let mut high = None;
        next.stretches(geometry, first, until, |l, h| {
            // LBNs contiguous with the first.
            if high.unwrap_or(next.track.first_lbn) == l {
                high = Some(h);
            }
        });
        high.map(|high| (high, next))
    }

    /// Queries the wanted sectors in a room, and returns the leg if there is one.
    #[inline]
    pub(super) fn ask(&self, room: &Room, who: Who, kind: Kind, scratch: &mut Scratch) -> Option<Found> {
        let wanted = &mut scratch.wanted;
        wanted.reset(room.low, (room.high - room.low) as u32);
        scratch.queries += 1;
        self.wants.wanted(who, kind, wanted);
        // What begins on the next track only is found when that is examined.
        let low = wanted.next(room.low).filter(|l| *l < room.turn_over)?;
        if kind != Kind::Write {
            return Some(self.found(room, low, wanted.last_end(room.high)?, wanted));
        }
        let runs = wanted.runs(low, room.high).take_while(|(low, _)| *low < room.turn_over);
        runs.map(|(low, high)| self.found(room, low, high, wanted)).fold(None, |a, b| self.larger(a, Some(b)))
    }

    /// Returns the better one; the first of equals.
    #[inline]
    pub(super) fn larger(&self, a: Option<Found>, b: Option<Found>) -> Option<Found> {
        let (Some(x), Some(y)) = (&a, &b) else {
            return a.or(b);
        };
        let more = if self.by_angle { y.turn > x.turn } else { y.sectors > x.sectors };
        if more { b } else { a }
    }

    #[inline]
    pub(super) fn found(&self, room: &Room, low: u64, high: u64, wanted: &Wanted) -> Found {
        let sectors = wanted.count(low, high);
        let here = if high <= room.turn_over { sectors } else { wanted.count(low, room.turn_over) };
        Found { low, high, sectors, here, turn: room.turn(u64::from(here), u64::from(sectors - here)) }
    }

    /// Returns the best that background commands on a track can bring in a window. `worth` returns
    /// whether a candidate with at most this number of wanted sectors and this angle need be
    /// sought.
    #[inline]
    pub fn on_track(
        &self,
        map: &TrackMap,
        window: &Window,
        (who, kind): (Who, Kind),
        scratch: &mut Scratch,
        worth: impl Fn(u32, u64) -> bool,
    ) -> Option<Candidate> {
        let rooms = self.rooms(map, window, kind);
        if self.rules.both_ranges {
            return self.both(map, window, &rooms, (who, kind), scratch, worth);
        }
        let mut best: Option<Found> = None;
        for room in rooms.iter() {
            let (sectors, turn) = room.most_whole(self.grain);
            if sectors == 0 {
                continue;
            }
            if best.is_some_and(|b| b.turn >= turn && b.sectors >= sectors) || !worth(sectors, turn) {
                continue;
            }
            let found = self.ask(&room, who, kind, scratch);
            best = self.larger(best, found);
        }
        best.map(|f| self.candidate(map, kind, &[f]))
    }

    /// Firmware: what passes before the track's end and what passes after it, as two commands.
    fn both(
        &self,
        map: &TrackMap,
        window: &Window,
        rooms: &Rooms,
        (who, kind): (Who, Kind),
        scratch: &mut Scratch,
        worth: impl Fn(u32, u64) -> bool,
    ) -> Option<Candidate> {
        let most = rooms.iter().map(|r| r.most_whole(self.grain)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        if most.0 == 0 || !worth(most.0, most.1) {
            return None;
        }
        let (mut front, mut behind): (Option<Found>, Option<Found>) = (None, None);
        for (i, room) in rooms.iter().enumerate() {
            let found = self.ask(&room, who, kind, scratch);
            let side = if i < rooms.at_once { &mut front } else { &mut behind };
            *side = self.larger(*side, found);
        }
        let alone = self.larger(front, behind)?;
        if let (Some(front), Some(_)) = (front, behind)
            && let Some(after) = self.window_after(map, window, &front, kind)
        {
            // The second command begins when the first has ended and the drive has switched to it.
            let mut second = None;
            let rooms = self.rooms(map, &after, kind);
            for room in rooms.iter().filter(|r| r.high <= front.low) {
                let found = self.ask(&room, who, kind, scratch);
                second = self.larger(second, found);
            }
            if let Some(second) = second.filter(|s| s.sectors + front.sectors > alone.sectors) {
                let two = self.candidate(map, kind, &[front, second]);
                if self.holds(&two) {
                    return Some(two);
                }
            }
        }
        Some(self.candidate(map, kind, &[alone]))
    }

    /// Returns what a window leaves on the same track after a command that begins with the first
    /// sector that passes.
    fn window_after(&self, map: &TrackMap, window: &Window, front: &Found, kind: Kind) -> Option<Window> {
        if front.high > map.end() {
            return None;
        }
        let rotation = &self.model.mechanics.rotation;
        let geometry = &self.model.geometry;
        let passing = map.passing(rotation, window);
        let end = map.sector_of(geometry, front.high - 1)? + 1;
        if end <= passing.first {
            return None;
        }
        let pause = between(self.model, kind, kind);
        let arrive = passing.edge(u64::from(end - passing.first)) + pause;
        (arrive < window.leave).then(|| Window {
            arrive,
            angle: map.edge(end) + rotation.angle_after(pause),
            leave: window.leave,
        })
    }

    fn candidate(&self, map: &TrackMap, kind: Kind, found: &[Found]) -> Candidate {
        let leg = |f: &Found| Leg { kind, lbn: f.low, count: (f.high - f.low) as u32, merged: false };
        let mut plan = Plan::of(leg(&found[0]), found[0].sectors);
        for f in &found[1..] {
            plan = plan.and(leg(f), f.sectors).expect("two legs of their own fit a plan");
        }
        Candidate {
            plan,
            track: map.place(),
            kind,
            turn: found.iter().map(|f| f.turn).sum(),
            here: found.iter().map(|f| f.here).sum(),
        }
    }

    /// Returns whether the foreground request stays in time with it: [`Gap::holds`].
    #[inline]
    pub fn holds(&self, candidate: &Candidate) -> bool {
        self.gap.holds(self.model, candidate.plan.legs())
    }

    /// Examines a track again whose candidate failed the final check, with remapped sectors and
    /// rounding errors taken into account.
    #[cold]
    pub fn carefully(
        &self,
        map: &TrackMap,
        window: &Window,
        ask: (Who, Kind),
        scratch: &mut Scratch,
        worth: impl Fn(u32, u64) -> bool,
    ) -> Option<Candidate> {
        self.on_track(&map.careful(), &shorter(*window), ask, scratch, worth).filter(|c| self.holds(c))
    }
}

/// Shortens a window by [`CARE`].
pub(super) fn shorter(window: Window) -> Window {
    Window { leave: Time(window.leave.0.saturating_sub(CARE.0).max(window.arrive.0)), ..window }
}
