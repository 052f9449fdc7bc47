//! Sectors merged with the request: its command begins earlier, on its own track or, with
//! contiguous LBNs, on the track before (Lumb 2002 section 3.3, "Request merging").
//!
//! They cost no command and trigger no read-ahead. What passes before the request's first sector
//! follows backwards from the instant at which that sector passes: a head that is on its track a
//! time t before gets the t / sector time LBNs before it. Where these reach back beyond the track's
//! first LBN, the rest is the end of the track before, which must have passed a track switch
//! earlier.

use headtime_disk::{Dur, Kind, Time};

use crate::fill::gap::Leg;
use crate::tasks::wanted::Wanted;

use super::line::Line;
use super::visit::{PlanContext, Point, ROUNDING};

/// The tracks of a merged command: the request's, and the one before it.
#[derive(Clone, Copy, Debug)]
pub struct Front {
    kind: Kind,
    dest: Line,
    /// Sectors of its track before the request's, from that of the track's first LBN.
    before: u32,
    first_sector: u32,
    prev: Option<Prev>,
}

#[derive(Clone, Copy, Debug)]
struct Prev {
    line: Line,
    /// The sector after its last LBN's.
    behind: u32,
    /// When the left edge of that sector passes.
    ends: Time,
    /// Time from then until the sector of the next track's first LBN passes.
    crossing: Dur,
}

/// Result of merging.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Merged {
    /// The leg.
    pub leg: Leg,
    /// Wanted sectors in it.
    pub sectors: u32,
    /// Their value.
    pub value: u64,
}

impl Front {
    /// Returns the front of a gap's request; `None` when nothing wanted could be merged with it.
    pub fn new(asked: &PlanContext) -> Option<Front> {
        let (model, gap) = (asked.model, asked.gap);
        if !asked.wants.any(asked.who, gap.dest_kind) {
            return None;
        }
        let (geometry, mechanics) = (&model.geometry, &model.mechanics);
        let track = geometry.track_of(gap.dest.lbn)?;
        // A remapped block is not next to its neighbours.
        if (track.cylinder, track.surface) != gap.destination() {
            return None;
        }
        let dest = Line::new(geometry, mechanics, track);
        let first_sector = dest.sector_of(geometry, track.first_lbn);
        let before = dest.sector_of(geometry, gap.dest.lbn).checked_sub(first_sector)?;
        let prev = track.first_lbn.checked_sub(1).and_then(|lbn| geometry.track_of(lbn)).and_then(|p| {
            let line = Line::new(geometry, mechanics, p);
            let behind = line.sector_behind(geometry, line.end());
            let crossing = line.over(&dest, geometry, mechanics, gap.dest_kind);
            let ends = gap.starts.0.checked_sub((dest.takes(before) + crossing).0)?;
            Some(Prev { line, behind, ends: Time(ends), crossing })
        });
        Some(Front { kind: gap.dest_kind, dest, before, first_sector, prev })
    }

    /// Returns the first LBN at which the request's command may begin when the head comes from
    /// `from`.
    #[inline]
    pub fn reaches(&self, asked: &PlanContext, from: &Point) -> Option<u64> {
        let (model, gap) = (asked.model, asked.gap);
        let head = from.head_for(asked, self.kind);
        let arrive = |line: &Line| {
            let here = (head.cylinder, head.surface);
            head.at + model.mechanics.reposition(here, line.at(), self.kind) + gap.margins.of_move(here, line.at())
        };
        if let Some(prev) = &self.prev {
            let there = prev.ends.saturating_since(arrive(&prev.line)) + ROUNDING;
            let sectors = prev.line.passes(there).min(prev.behind);
            let lbn = prev.line.lbn_from(&model.geometry, prev.behind - sectors);
            if sectors > 0 && lbn < prev.line.end() {
                return Some(lbn);
            }
        }
        let there = gap.starts.saturating_since(arrive(&self.dest)) + ROUNDING;
        let sectors = self.dest.passes(there).min(self.before);
        let lbn = self.dest.lbn_from(&model.geometry, self.first_sector + self.before - sectors);
        (sectors > 0).then_some(lbn)
    }

    /// Returns an upper bound of the value of merging when the request's command may begin at `lo`.
    #[inline]
    pub fn worth_at_most(&self, asked: &PlanContext, lo: u64) -> u64 {
        let over = self.prev.filter(|p| lo < p.line.end()).map_or(Dur::ZERO, |p| p.crossing);
        let sectors = asked.gap.dest.lbn.saturating_sub(lo) as u32 + own(asked);
        asked.prices.value(self.dest.track.cylinder, self.dest.takes(sectors), over, 1)
    }

    /// Returns the result of merging when the request's command may begin at `lo`.
    pub fn merged(&self, asked: &PlanContext, lo: u64, out: &mut Wanted, near: &mut Wanted) -> Option<Merged> {
        let end = asked.gap.dest.lbn;
        if lo >= end {
            return None;
        }
        // Units that extend into the request's own range are read whole with it.
        asked.wanted(self.kind, lo, end + u64::from(own(asked)), out);
        let mut first = out.next(lo).filter(|&f| f < end)?;
        // The command must not include excluded sectors; a write must not include unwanted ones
        // either.
        if !self.kind.is_read() {
            let (lo, hi) = out.runs(first, end).last()?;
            if hi != end {
                return None;
            }
            first = lo;
        }
        for x in asked.exclude {
            if x.lbn < end && x.end() > first {
                first = out.next(x.end()).filter(|&f| f < end)?;
            }
        }
        let sectors = out.count(first, out.end());
        let leg = Leg { kind: self.kind, lbn: first, count: (end - first) as u32, merged: true };
        let (mut over, mut low) = (Dur::ZERO, self.dest.track.first_lbn);
        if let Some(prev) = self.prev.filter(|p| first < p.line.end()) {
            low = prev.line.track.first_lbn;
            if out.is_set(prev.line.end() - 1) && out.is_set(prev.line.end()) {
                over = prev.crossing;
            }
        }
        let runs = i64::from(out.stretches(first, end).min(2));
        let left = asked.left_beside(self.kind, (first, end), (low, end), near);
        let value = asked.prices.value(self.dest.track.cylinder, self.dest.takes(sectors), over, runs - left);
        Some(Merged { leg, sectors, value })
    }
}

/// Returns the number of the request's own sectors that may complete a unit which begins before it.
#[inline]
pub(super) fn own(asked: &PlanContext) -> u32 {
    if asked.gap.dest_kind.is_read() { asked.gap.dest.count.min(asked.widest) } else { 0 }
}
