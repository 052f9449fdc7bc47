//! Merged legs: the destination's own command begins earlier on its track (Lumb 2002 sections 3.3
//! and 4.3).
//!
//! The drive sees one command, so its read-ahead is not triggered, and there is no extra command.
//! The leg must be of the destination's kind, and contiguous up to its first LBN. If LBNs continue
//! from the track before, and the arm reaches the destination's track from there in time, the
//! command may begin there.
//!
//! Inside the drive, what passes before the end of the destination's track may be had too, by a
//! separate command.

use headtime_disk::{Kind, Time};

use super::candidate::{CARE, Candidate, Found, Look, Room, Scratch, shorter};
use super::gap::{Leg, Plan, Window};
use super::track::TrackMap;
use crate::overheads::between;
use crate::tasks::register::MAX_PICKUP;
use crate::tasks::{Wants, Who};

/// The destination on its track.
#[derive(Clone, Copy)]
struct Dest {
    map: TrackMap,
    sector: u32,
    kind: Kind,
    careful: bool,
}

impl<W: Wants> Look<'_, W> {
    /// Returns the best result of beginning the destination's own command earlier. `careful` as in
    /// [`Look::carefully`]; `worth` as in [`Look::on_track`].
    pub fn merged(
        &self,
        who: Who,
        scratch: &mut Scratch,
        careful: bool,
        worth: impl Fn(u32, u64) -> bool,
    ) -> Option<Candidate> {
        let (model, gap) = (self.model, self.gap);
        let map = TrackMap::of(&model.geometry, gap.dest.lbn).filter(|m| m.place() == gap.destination())?;
        let map = if careful { map.careful() } else { map };
        let sector = map.sector_of(&model.geometry, gap.dest.lbn)?;
        let dest = Dest { map, sector, kind: gap.dest_kind, careful };
        let head = gap.head(dest.kind);
        let window = gap.merge_window(model, head, head.at);
        let window = window.map(|w| if careful { shorter(w) } else { w });
        let front = self.front(&dest, window.as_ref(), true);
        let alone = front.and_then(|room| {
            let (sectors, turn) = room.most();
            if worth(sectors, turn) { self.ask_front(&dest, &room, who, scratch) } else { None }
        });
        if self.rules.both_ranges
            && self.rules.dest_track
            && let Some(window) = window
            && let Some(two) = self.around_end(&dest, &window, who, scratch)
            && alone.is_none_or(|a| two.plan.sectors > a.plan.sectors)
            && self.holds(&two)
        {
            return Some(two);
        }
        alone
    }

    /// Returns where a merged command may begin, with the head on the destination's track in
    /// `window`; or on the track before, if `before` allows.
    fn front(&self, dest: &Dest, window: Option<&Window>, before: bool) -> Option<Room> {
        let (map, lbn) = (&dest.map, self.gap.dest.lbn);
        let mut low = lbn;
        let mut step = (map.step.0 >> 32, map.step.0 >> 32);
        if let Some(window) = window {
            let fitting = map.fitting(&self.model.mechanics.rotation, window.length());
            let count = fitting.min(u64::from(dest.sector)) as u32;
            low = self.run_up_to(map, dest.sector - count, dest.sector, lbn);
        }
        if before
            && low == map.track.first_lbn
            && low > 0
            && let Some((from, before)) = self.on_track_before(dest)
        {
            (low, step.0) = (from, before.step.0 >> 32);
        }
        // The room begins after the last excluded range.
        for e in self.exclude.iter().filter(|e| e.lbn < lbn) {
            low = low.max(e.end());
        }
        // Sectors before the destination's track count as "here" in a room, those on it as "next".
        (low < lbn).then(|| Room { low, high: lbn, turn_over: map.track.first_lbn.max(low), step })
    }

    /// Queries the wanted sectors before the destination.
    fn ask_front(&self, dest: &Dest, room: &Room, who: Who, scratch: &mut Scratch) -> Option<Candidate> {
        let f = self.wanted_front(dest, room, who, scratch)?;
        Some(Candidate {
            plan: Plan::of(self.merged_leg(dest, &f), f.sectors),
            track: dest.map.place(),
            kind: dest.kind,
            turn: f.turn,
            here: on_own_track(dest, &f),
        })
    }

    fn wanted_front(&self, dest: &Dest, room: &Room, who: Who, scratch: &mut Scratch) -> Option<Found> {
        // Units that extend into the destination's own range are read whole by the merged command.
        let own = if dest.kind == Kind::Write { 0 } else { self.gap.dest.count.min(MAX_PICKUP) };
        scratch.queries += 1;
        scratch.wanted.reset(room.low, (room.high - room.low) as u32 + own);
        self.wants.wanted(who, dest.kind, &mut scratch.wanted);
        let first = match dest.kind {
            Kind::Write => scratch.wanted.runs(room.low, room.high).last().filter(|r| r.1 == room.high)?.0,
            _ => scratch.wanted.next(room.low).filter(|f| *f < room.high)?,
        };
        Some(self.found(room, first, room.high, &scratch.wanted))
    }

    fn merged_leg(&self, dest: &Dest, f: &Found) -> Leg {
        Leg { kind: dest.kind, lbn: f.low, count: (f.high - f.low) as u32, merged: true }
    }

    /// Firmware: what passes before the track's end by a separate command, then the destination's,
    /// merged with what passes after the end.
    fn around_end(&self, dest: &Dest, window: &Window, who: Who, scratch: &mut Scratch) -> Option<Candidate> {
        let (map, kind) = (&dest.map, dest.kind);
        let (geometry, rotation) = (&self.model.geometry, &self.model.mechanics.rotation);
        let passing = map.passing(rotation, window);
        let spt = map.track.spt;
        if passing.first <= dest.sector || passing.count == 0 {
            return None;
        }
        let until = passing.first + passing.count.min(u64::from(spt - passing.first)) as u32;
        let step = (map.step.0 >> 32, map.step.0 >> 32);
        let mut own = None;
        map.stretches(geometry, passing.first, until, |low, high| {
            let room = Room { low, high, turn_over: map.end(), step };
            // Rooms cut by an excluded range are left to the other methods.
            if self.exclude.iter().all(|e| e.end() <= low || e.lbn >= high) {
                own = self.larger(own, self.ask(&room, who, kind, scratch));
            }
        });
        let own = own?;
        let end = map.sector_of(geometry, own.high - 1)? + 1;
        let ends = passing.edge(u64::from(end - passing.first));
        let arrive = (ends + between(self.model, kind, kind)).max(self.gap.dest_ready);
        if arrive >= window.leave {
            return None;
        }
        let angle = map.edge(end) + rotation.angle_after(arrive.since(ends));
        let room = self.front(dest, Some(&Window { arrive, angle, leave: window.leave }), false)?;
        let f = self.wanted_front(dest, &room, who, scratch)?;
        let leg = Leg { kind, lbn: own.low, count: (own.high - own.low) as u32, merged: false };
        let plan = Plan::of(leg, own.sectors).and(self.merged_leg(dest, &f), f.sectors)?;
        let here = own.here + on_own_track(dest, &f);
        Some(Candidate { plan, track: map.place(), kind, turn: own.turn + f.turn, here })
    }

    /// Returns the lowest LBN in the sectors `from..to` from which LBNs are contiguous up to `end`.
    fn run_up_to(&self, map: &TrackMap, from: u32, to: u32, end: u64) -> u64 {
        let mut low = end;
        map.stretches(&self.model.geometry, from, to, |l, h| {
            if h == end {
                low = l;
            }
        });
        low
    }

    /// Returns where on the track before the destination's a merged command may begin to pass from
    /// one to the other in time: its LBN, and that track.
    fn on_track_before(&self, dest: &Dest) -> Option<(u64, TrackMap)> {
        let (model, gap, map, kind) = (self.model, self.gap, &dest.map, dest.kind);
        let (geometry, mechanics) = (&model.geometry, &model.mechanics);
        let rotation = &mechanics.rotation;
        let before = TrackMap::of(geometry, map.track.first_lbn - 1)?;
        let before = if dest.careful { before.careful() } else { before };
        let place = before.place();
        if !self.rules.source_track && place == gap.source() {
            return None;
        }
        let first = map.sector_of(geometry, map.track.first_lbn)?;
        let last = before.sector_of(geometry, before.end() - 1)?;
        // When the first LBN of the destination's track passes, in the destination's revolution.
        let on_track = rotation.sectors(u64::from(dest.sector - first), map.track.spt);
        let move_over = mechanics.reposition(place, map.place(), kind);
        let leave = Time(gap.starts.0.checked_sub((on_track + move_over).0)?);
        let head = gap.head(kind);
        let from = (head.cylinder, head.surface);
        let arrive = head.at + mechanics.reposition(from, place, kind) + gap.margins.of_move(from, place);
        // From the end of the track before until the latest start of the arm's move from it.
        let angle = map.edge(first) - rotation.angle_after(move_over);
        let pause = rotation.wait(before.edge(last + 1), angle);
        let time = leave.saturating_since(arrive).saturating_sub(pause);
        let time = if dest.careful { time.saturating_sub(CARE) } else { time };
        let count = before.fitting(rotation, time).min(u64::from(last + 1)) as u32;
        let low = self.run_up_to(&before, last + 1 - count, last + 1, before.end());
        (low < before.end()).then_some((low, before))
    }
}

/// Returns the wanted sectors before the destination that lie on its own track.
fn on_own_track(dest: &Dest, f: &Found) -> u32 {
    if f.low < dest.map.track.first_lbn { f.sectors - f.here } else { f.sectors }
}
