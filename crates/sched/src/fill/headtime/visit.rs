//! The legs that begin on one track, given the instant at which the head arrives.
//!
//! Of what passes until the head must leave, only the LBNs count, and as one command takes
//! consecutive LBNs, a track offers two legs at most: from the arrival towards the track's end,
//! and, if it lies in the window, from the track's first LBN. The first sector of a leg within its
//! stretch does not affect when the leg ends. So the best leg of a stretch goes from the first
//! wanted sector to the last, and unwanted sectors between them cost nothing (a write must not
//! include unwanted sectors: there it is the best run).
//!
//! LBNs continue: a leg that passes its track's end continues on the next track. Units across two
//! tracks can be had only in this way.

use headtime_disk::{Dur, Head, Kind, Time};

use crate::fill::gap::{Gap, Leg, Window};
use crate::overheads::between;
use crate::tasks::wanted::Wanted;
use crate::tasks::{TaskRange, Wants, Who};

use super::habit::Habit;
use super::line::Line;
use super::prices::Prices;
use headtime_disk::Model;

/// Rounding error of a few additions of whole nanoseconds.
pub(super) const ROUNDING: Dur = Dur(50);

/// Input of a search.
#[derive(Clone, Copy)]
pub struct PlanContext<'a> {
    /// The model of the drive.
    pub model: &'a Model,
    /// The gap.
    pub gap: &'a Gap,
    /// The drive's read-ahead after reads on one track.
    pub habit: Habit,
    /// The wanted sectors by session.
    pub wants: &'a dyn Wants,
    /// The sessions whose blocks count.
    pub who: Who,
    /// Excluded ranges: in flight, in conflict with the foreground, or bad.
    pub exclude: &'a [TaskRange],
    /// Sectors of the widest wanted unit.
    pub widest: u32,
    /// Values of sectors.
    pub prices: &'a Prices,
}

/// State of the head when a leg may begin.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// The head at the end of the preceding command.
    pub head: Head,
    /// The kind of that command; `None`: the leg is the first, and the gap has the head for either
    /// kind.
    pub last: Option<Kind>,
    /// The drive's habit there.
    pub habit: Habit,
}

/// A leg, its value, and where it leaves the head.
#[derive(Clone, Copy, Debug)]
pub struct Visit {
    /// The leg.
    pub leg: Leg,
    /// Wanted sectors in it.
    pub sectors: u32,
    /// Their value; an upper bound before [`PlanContext::appraise`].
    pub value: u64,
    /// When its first sector passes.
    pub begins: Time,
    /// Where it leaves the head.
    pub end: Point,
    /// Its track.
    line: Line,
    stretch: Stretch,
    /// Runs of wanted sectors in it, three at most.
    runs: u32,
    /// Time of crossings between wanted sectors.
    over: Dur,
}

impl Visit {
    /// Returns the track on which it begins.
    #[inline]
    pub fn track(&self) -> (u32, u16) {
        match &self.stretch.next {
            Some((next, _)) if self.leg.lbn >= self.line.end() => next.at(),
            _ => self.line.at(),
        }
    }
}

impl Point {
    /// Returns the beginning of a gap.
    pub fn start(asked: &PlanContext) -> Point {
        Point { head: asked.gap.read, last: None, habit: asked.habit }
    }

    /// Returns the head at the instant at which a command of this kind begins to move it from here.
    #[inline]
    pub fn head_for(&self, asked: &PlanContext, kind: Kind) -> Head {
        match self.last {
            None => *asked.gap.head(kind),
            Some(last) => {
                let at = self.head.at + between(asked.model, last, kind);
                let at = at.max(asked.gap.second_ready(asked.model, last, kind));
                Head { angle: self.head.angle_at(at, &asked.model.mechanics.rotation), at, ..self.head }
            }
        }
    }
}

/// A range of LBNs that passes without interruption, and its timing.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    lo: u64,
    hi: u64,
    /// When the left edge of `sector` of the track passes.
    at: Time,
    sector: u32,
    /// The next track, if the stretch reaches it, and when the sector of its first LBN passes.
    next: Option<(Line, Time)>,
}

impl PlanContext<'_> {
    /// Marks in `out` the sectors of `lo..hi` that are wanted and not excluded.
    #[inline]
    pub fn wanted(&self, kind: Kind, lo: u64, hi: u64, out: &mut Wanted) {
        out.reset(lo, (hi - lo) as u32);
        self.wants.wanted(self.who, kind, out);
        for x in self.exclude {
            out.unset(x.lbn, x.end());
        }
    }

    /// Returns the latest end of a leg's own command for which the drive receives the command after
    /// the request in time.
    #[inline]
    fn latest(&self, kind: Kind) -> Time {
        let answer = super::habit::answer(self.model, kind, self.gap.dest_kind);
        Time(self.gap.ends.max(self.gap.dest_ready).0.saturating_sub(answer.0))
    }

    /// Adds the legs of `kind` that begin on the track of `line`, where the head is in `window`:
    /// the one that begins at once, and the one that begins with the track's first LBN.
    pub fn visits(
        &self,
        from: &Point,
        line: &Line,
        kind: Kind,
        window: &Window,
        out: &mut Wanted,
        found: &mut Vec<Visit>,
    ) {
        let (mechanics, geometry) = (&self.model.mechanics, &self.model.geometry);
        let passing = line.from(mechanics, window.angle);
        // Sector times are rounded up; legs admitted wrongly fail the final check.
        let length = window.length() + ROUNDING;
        if length <= passing.wait {
            return;
        }
        let (at, sector) = (window.arrive + passing.wait, passing.sector);
        let sectors = line.passes(length - passing.wait);
        if sectors == 0 {
            return;
        }
        let spt = line.track.spt;
        // Towards the track's end, and on to the next track.
        let lo = line.lbn_from(geometry, sector);
        if lo < line.end() {
            let behind = line.sector_behind(geometry, line.end()).max(sector);
            let mut stretch = Stretch { lo, hi: line.end(), at, sector, next: None };
            if sectors < behind - sector {
                stretch.hi = line.lbn_from(geometry, sector + sectors);
            } else if let Some((next, begins, upto)) = self.run_on(line, at + line.takes(behind - sector), behind, kind)
            {
                stretch.hi = upto;
                stretch.next = Some((next, begins));
            }
            if stretch.hi > lo {
                found.extend(self.offer(from, line, kind, &stretch, out));
            }
        }
        // After the wrap-around, from the first sector.
        let round = sectors.saturating_sub(spt - sector).min(sector);
        if round > 0 {
            let at = at + line.takes(spt - sector);
            let (lo, hi) = (line.track.first_lbn, line.lbn_from(geometry, round));
            if hi > lo {
                found.extend(self.offer(from, line, kind, &Stretch { lo, hi, at, sector: 0, next: None }, out));
            }
        }
    }

    /// Continues on the next track after the last LBN of `line` has passed at `ended`: returns that
    /// track, when the sector of its first LBN passes, and one past the last LBN that passes in
    /// time. `None` when nothing does.
    #[inline]
    fn run_on(&self, line: &Line, ended: Time, behind: u32, kind: Kind) -> Option<(Line, Time, u64)> {
        let model = self.model;
        let mechanics = &model.mechanics;
        // The shortest move must still be possible.
        if ended + mechanics.head_switch.min(mechanics.reposition_floor(1)) >= self.gap.starts {
            return None;
        }
        let next = line.behind(&model.geometry, mechanics)?;
        let to = next.at();
        let leave = self.gap.leave(model, to, kind)?.min(self.latest(kind));
        let arrive = ended + mechanics.reposition(line.at(), to, kind);
        if arrive >= leave {
            return None;
        }
        let angle = line.angle_of(behind) + mechanics.rotation.angle_after(arrive.since(ended));
        let first = next.sector_of(&model.geometry, next.track.first_lbn);
        let begins = arrive + mechanics.rotation.wait(angle, next.angle_of(first));
        if begins >= leave {
            return None;
        }
        let sectors = next.passes(leave.since(begins) + ROUNDING);
        let upto = next.lbn_from(&model.geometry, first + sectors);
        (upto > next.track.first_lbn).then_some((next, begins, upto))
    }

    /// Returns the leg of a stretch, if any of it is wanted.
    fn offer(&self, from: &Point, line: &Line, kind: Kind, s: &Stretch, out: &mut Wanted) -> Option<Visit> {
        // The read-ahead to the track's end after the leg must fit, too.
        let wakes = from.habit.wakes(kind, line.at());
        if wakes && s.hi < line.end() {
            return None;
        }
        // A separate query: only units that lie whole within the queried range are marked.
        self.wanted(kind, s.lo, s.hi, out);
        let (first, last, sectors) = self.best_piece(kind, out, s.lo, s.hi)?;
        let end = self.end_of(from, line, kind, s, last)?;
        let leg = Leg { kind, lbn: first, count: (last - first) as u32, merged: false };
        let mut over = Dur::ZERO;
        if let Some((_, begins)) = &s.next
            && last > line.end()
            && out.is_set(line.end() - 1)
            && out.is_set(line.end())
        {
            let behind = line.sector_behind(&self.model.geometry, line.end());
            let ended = s.at + line.takes(behind.saturating_sub(s.sector));
            over = begins.saturating_since(ended);
        }
        let runs = out.stretches(first, last).min(3);
        let begins = match &s.next {
            Some((next, begins)) if first >= line.end() => {
                let [from, to] = [next.track.first_lbn, first].map(|lbn| next.sector_of(&self.model.geometry, lbn));
                *begins + next.takes(to.saturating_sub(from))
            }
            _ => s.at + line.takes(line.sector_of(&self.model.geometry, first).saturating_sub(s.sector)),
        };
        let mut visit = Visit { leg, sectors, value: 0, begins, end, line: *line, stretch: *s, runs, over };
        visit.value = self.worth(&visit, 1);
        Some(visit)
    }

    #[inline]
    fn worth(&self, v: &Visit, fragments: i64) -> u64 {
        self.prices.value(v.line.track.cylinder, v.line.takes(v.sectors), v.over, fragments)
    }

    /// Computes a leg's value, less the fragments that wanted sectors next to it would become.
    #[inline]
    pub fn appraise(&self, v: &mut Visit, near: &mut Wanted) {
        let (low, high) = match &v.stretch.next {
            Some((next, _)) if v.leg.range().end() > v.line.end() => (v.line.track.first_lbn, next.end()),
            _ => (v.line.track.first_lbn, v.line.end()),
        };
        let (low, high) = self.neighbours_to_ask(v, (low, high));
        let left = self.left_beside(v.leg.kind, (v.leg.lbn, v.leg.range().end()), (low, high), near);
        v.value = self.worth(v, i64::from(v.runs) - left);
    }

    /// Returns the range in which the neighbours of a leg have to be queried. A read goes from the
    /// first wanted sector of its stretch to the last: with room for a whole unit between its end
    /// and the stretch's, the neighbour is known to be unwanted. With exclusions, and for a write,
    /// which takes one run of several, nothing is known.
    #[inline]
    fn neighbours_to_ask(&self, v: &Visit, (low, high): (u64, u64)) -> (u64, u64) {
        let (first, last, widest) = (v.leg.lbn, v.leg.range().end(), u64::from(self.widest.max(1)));
        if !v.leg.kind.is_read() || !self.exclude.is_empty() {
            return (low, high);
        }
        let low = if v.stretch.lo + widest <= first { first } else { low };
        let high = if last + widest <= v.stretch.hi { last } else { high };
        (low, high)
    }

    /// Returns how many of the two neighbours of the sectors `first..last` are wanted within
    /// `low..high`.
    #[inline]
    pub fn left_beside(
        &self,
        kind: Kind,
        (first, last): (u64, u64),
        (low, high): (u64, u64),
        near: &mut Wanted,
    ) -> i64 {
        if self.prices.fragment == Dur::ZERO {
            return 0;
        }
        let widest = u64::from(self.widest.max(1));
        let mut left = 0;
        if first > low {
            let from = first.saturating_sub(widest);
            near.reset(from, (first - from) as u32);
            self.wants.wanted(self.who, kind, near);
            left += i64::from(near.is_set(first - 1));
        }
        if last < high {
            near.reset(last, widest as u32);
            self.wants.wanted(self.who, kind, near);
            left += i64::from(near.is_set(last));
        }
        left
    }

    /// Returns whether `second` can follow `first` unchanged: the head, which can begin to move at
    /// `head`, reaches its track before its first sector passes. When sectors pass does not depend
    /// on where the head was before.
    #[inline]
    pub fn follows(&self, first: &Visit, head: &Head, second: &Visit) -> bool {
        if second.begins <= head.at || second.leg.range().overlaps(&first.leg.range()) {
            return false;
        }
        let (kind, to) = (second.leg.kind, second.track());
        let from = (head.cylinder, head.surface);
        let arrive = head.at + self.model.mechanics.reposition(from, to, kind) + self.gap.margins.of_move(from, to);
        // Read-ahead depends on the track on which a command ends.
        let ends = (second.end.head.cylinder, second.end.head.surface);
        arrive <= second.begins && !first.end.habit.wakes(kind, ends)
    }

    /// Returns the same leg without its last unit.
    pub fn cut(&self, from: &Point, v: &Visit, out: &mut Wanted, near: &mut Wanted) -> Option<Visit> {
        let hi = v.leg.range().end() - 1;
        if hi <= v.leg.lbn {
            return None;
        }
        let stretch = Stretch { hi, ..v.stretch };
        let mut shorter = self.offer(from, &v.line, v.leg.kind, &stretch, out)?;
        self.appraise(&mut shorter, near);
        Some(shorter)
    }

    /// Returns the first and one past the last LBN of the best leg within `lo..hi`, and its wanted
    /// sectors.
    #[inline]
    pub fn best_piece(&self, kind: Kind, out: &Wanted, lo: u64, hi: u64) -> Option<(u64, u64, u32)> {
        let first = out.next(lo).filter(|&f| f < hi)?;
        let last = out.last_end(hi)?;
        let whole = TaskRange { lbn: first, count: last - first };
        if kind.is_read() && !self.exclude.iter().any(|x| x.overlaps(&whole)) {
            return Some((first, last, out.count(first, last)));
        }
        let mut best: Option<(u64, u64, u32)> = None;
        let mut take = |lo: u64, hi: u64| {
            let sectors = out.count(lo, hi);
            if sectors > 0 && best.is_none_or(|b| sectors > b.2) {
                best = Some((lo, hi, sectors));
            }
        };
        if !kind.is_read() {
            out.runs(first, last).for_each(|(lo, hi)| take(lo, hi));
            return best;
        }
        // Between excluded ranges.
        let mut at = first;
        while let Some(lo) = out.next(at).filter(|&l| l < last) {
            let stop =
                self.exclude.iter().filter(|x| x.end() > lo).map(|x| x.lbn.max(lo)).min().unwrap_or(last).min(last);
            if let Some(hi) = out.last_end(stop).filter(|&hi| hi > lo) {
                take(lo, hi);
            }
            at = stop.max(lo + 1);
        }
        best
    }

    /// Returns where a leg of the stretch that ends before the LBN `end` leaves the head.
    fn end_of(&self, from: &Point, line: &Line, kind: Kind, s: &Stretch, end: u64) -> Option<Point> {
        let geometry = &self.model.geometry;
        let (on, first, at) = match &s.next {
            Some((next, begins)) if end > line.end() => (next, next.sector_of(geometry, next.track.first_lbn), *begins),
            _ => (line, s.sector, s.at),
        };
        let habit = from.habit.after(kind, on.at());
        // Excludes legs after which the request itself would trigger read-ahead: its track would be
        // read to its end.
        if habit.wakes(self.gap.dest_kind, (self.gap.dest.end_cylinder, self.gap.dest.end_surface)) {
            return None;
        }
        let end = match from.habit.wakes(kind, on.at()) {
            true if s.hi < on.end() => return None,
            true => on.end(),
            false => end,
        };
        let behind = on.sector_behind(geometry, end);
        let at = at + on.takes(behind.checked_sub(first)?);
        let head = Head { cylinder: on.track.cylinder, surface: on.track.surface, angle: on.angle_of(behind), at };
        Some(Point { head, last: Some(kind), habit })
    }

    /// Returns the window of the head on a track within the gap, coming from `from` for a command
    /// of this kind.
    #[inline]
    pub fn window(&self, from: &Head, track: (u32, u16), kind: Kind) -> Option<Window> {
        let window = self.gap.window_from(self.model, from, from.at, track, kind)?;
        let leave = window.leave.min(self.latest(kind));
        (leave > window.arrive).then_some(Window { leave, ..window })
    }
}
