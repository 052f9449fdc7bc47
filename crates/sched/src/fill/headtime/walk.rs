//! The order in which tracks are examined: those with the highest bound first.
//!
//! The time that the head can spend on a track is what remains of the gap after the moves there and
//! back. It decreases with the distance from the source and the destination, on either side and
//! between them. So walking outward from both, always where the remainder is worth most, visits
//! cells about in the order of that time. In a seek-first layout a track on the same surface is
//! nearer than its neighbour on another, which takes a head switch: there the surfaces of the two
//! ends have walks of their own, and all others share one.
//!
//! What every plan loses is subtracted beforehand: the margins of the two moves, and the time that
//! the drive takes between the last command of a plan and the request's ([`Stay`]).
//!
//! Measured seek tables are not strictly monotone. Bounds use the minimum seek at a distance or
//! beyond, so a bound is never too low for its own cell; only between the ends may a cell further
//! on be worth slightly more.

use headtime_disk::{Dur, Mechanics, Model};

use crate::fill::gap::Gap;
use crate::fill::regions::Regions;
use crate::fill::stay::Stay;
use crate::tasks::Who;

use super::bands::Level;
use super::grain::Times;
use super::prices::Prices;

/// Input of a walk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Land<'a> {
    /// The model of the drive.
    pub model: &'a Model,
    /// The gap.
    pub gap: &'a Gap,
    /// Regions with wanted sectors.
    pub regions: &'a Regions,
    /// The sessions whose sectors count.
    pub who: Who,
    /// Values of sectors.
    pub prices: &'a Prices,
    /// Sectors of the request itself that may complete a unit.
    pub own: u32,
}

/// A cell of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stop {
    /// The cell.
    pub cell: u32,
    /// Upper bound of the value of a plan that begins there.
    pub worth: u64,
    /// Upper bound of the value of a plan that begins there or in any cell not yet visited.
    pub ahead: u64,
    /// Which end of the cell is nearer: the lowest cylinder when the walk goes up.
    pub up: bool,
    /// Whether it is one cylinder: its tracks share one bound.
    pub one: bool,
    /// A track at the far end.
    pub furthest: (u32, u16),
    /// Whether the time that remains on a track decreases from end to end: the cell is of one
    /// surface, and lies beyond both ends of the gap.
    pub falls: bool,
}

/// The cells through which a way leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    /// All cells.
    All,
    /// Those of one surface.
    Surface(u16),
    /// Those of all surfaces but these.
    Others(u16, u16),
}

/// One direction of a walk, and its current cell.
#[derive(Clone, Copy, Debug)]
struct Way {
    lane: Lane,
    up: bool,
    cell: u32,
    /// The last cell of this way.
    last: u32,
    bound: Dur,
    /// Upper bound of the value of that time.
    worth: u64,
    /// Its value regardless of whole units: the more time, the likelier they fit.
    chance: u64,
    /// Upper bound of the value of a plan that begins there or further on, in ns of head time.
    ahead: u64,
    /// The cylinders from its start to its end.
    span: (u32, u32),
    /// The highest level there.
    level: Level,
    /// The times of a grain there.
    times: Times,
}

/// A walk through the cells around a gap's ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Walk {
    ways: Vec<Way>,
    mask: u64,
    stay: Stay,
}

impl Walk {
    /// Starts a walk, to find what can be read, written.
    pub(crate) fn begin(&mut self, land: &Land, kinds: [bool; 2]) {
        self.ways.clear();
        self.stay = Stay::of(land.model, land.gap, kinds);
        let Land { model, gap, regions, .. } = *land;
        let rotation = &model.mechanics.rotation;
        let begin = gap.read.at.min(gap.write.at);
        let all = gap.starts.saturating_since(begin);
        let head = if gap.read.at <= gap.write.at { &gap.read } else { &gap.write };
        self.mask = match all < rotation.period() {
            true => regions.arc(head.angle, rotation.angle_after(all).0.max(1)),
            false => regions.all(),
        };
        let (s, d) = (gap.source(), gap.destination());
        let (a, b) = (s.0.min(d.0), s.0.max(d.0));
        let far = reach(&model.mechanics, self.stay.time(), b - a);
        let (low, high) = (a.saturating_sub(far), (b + far).min(model.geometry.cylinders().saturating_sub(1)));
        // Between the ends the two ways meet half way.
        let half = a + (b - a) / 2;
        match model.geometry.group_tracks() {
            None => self.lane(land, Lane::All, [low, a, half, b, high]),
            Some(_) => {
                self.lane(land, Lane::Surface(s.1), [low, a, half, b, high]);
                if d.1 != s.1 {
                    self.lane(land, Lane::Surface(d.1), [low, a, half, b, high]);
                }
                self.lane(land, Lane::Others(s.1, d.1), [low, a, half, b, high]);
            }
        }
    }

    /// Adds the ways of one lane: from the lower end down and up, and from the upper one.
    fn lane(&mut self, land: &Land, lane: Lane, [low, a, half, b, high]: [u32; 5]) {
        let cells = land.regions.cells();
        let of = |cylinder| match lane {
            Lane::Surface(s) => (cells.of(cylinder, s), cells.of(cylinder, s)),
            _ => cells.of_cylinders(cylinder, cylinder),
        };
        let step = if let Lane::Surface(_) = lane { u32::from(land.model.geometry.surfaces()) } else { 1 };
        let (low, a, half, b, high) = (of(low), of(a), of(half), of(b), of(high));
        let bands = &land.prices.bands;
        let mut set_out = |up: bool, cell: u32, last: u32| {
            let span = (cells.cylinders(cell.min(last)).0, cells.cylinders(cell.max(last)).1);
            // Lanes have the same ways on other surfaces.
            let (level, times) = match self.ways.iter().find(|w| w.span == span) {
                Some(way) => (way.level, way.times),
                None => (bands.highest(span.0, span.1), land.prices.grain.among(span.0, span.1)),
            };
            let (bound, worth, chance, ahead) = (Dur::ZERO, 0, 0, 0);
            self.push(land, Way { lane, up, cell, last, bound, worth, chance, ahead, span, level, times });
        };
        set_out(false, a.1, low.0);
        if a == b {
            set_out(true, a.1 + step, high.1);
        } else {
            set_out(true, b.0, high.1);
            set_out(true, a.1 + step, half.1.min(b.0.saturating_sub(step)));
            if half.1 < b.0 {
                set_out(false, b.0 - step, (half.1 + step).max(a.1 + step));
            }
        }
    }

    /// Advances a way to the next cell that is not empty; drops it where there is none.
    fn push(&mut self, land: &Land, mut way: Way) {
        let Land { regions, who, .. } = *land;
        let cells = regions.cells();
        loop {
            if way.up && way.cell > way.last || !way.up && way.cell < way.last {
                return;
            }
            let found = match (way.lane, way.up) {
                (Lane::Surface(_), up) => {
                    let surfaces = u32::from(land.model.geometry.surfaces());
                    next_on_surface((regions, who, self.mask), surfaces, up, way.cell, way.last)
                }
                (_, true) => regions.next_up(who, way.cell, self.mask).filter(|&c| c <= way.last),
                (_, false) => regions.next_down(who, way.cell, self.mask).filter(|&c| c >= way.last),
            };
            let Some(cell) = found else { return };
            way.cell = cell;
            let surface = match way.lane {
                Lane::All => None,
                _ => Some((cell % u32::from(land.model.geometry.surfaces())) as u16),
            };
            let skip = matches!((way.lane, surface), (Lane::Others(s, d), Some(x)) if x == s || x == d);
            if !skip {
                way.bound = self.stay.on(&land.model.mechanics, cells.cylinders(cell), surface);
                if way.bound > Dur::ZERO {
                    let cylinder = cells.cylinders(cell).0;
                    way.worth = land.prices.most_at(way.bound, cylinder, land.own);
                    way.chance = land.prices.chance(way.bound, cylinder);
                    way.ahead = land.prices.most(way.bound, &way.times, land.own, way.level);
                    self.ways.push(way);
                }
                return;
            }
            if !advance(&mut way, 1) {
                return;
            }
        }
    }

    /// Returns an upper bound of the time that remains on a track.
    #[inline]
    pub(crate) fn left(&self, land: &Land, track: (u32, u16)) -> Dur {
        self.stay.on(&land.model.mechanics, (track.0, track.0), Some(track.1))
    }

    /// Returns the cell with the highest value.
    pub(crate) fn next(&mut self, land: &Land) -> Option<Stop> {
        let best = (0..self.ways.len()).max_by_key(|&i| (self.ways[i].chance, std::cmp::Reverse(i)))?;
        let cells = land.regions.cells();
        let ahead = self.ways.iter().map(|w| w.ahead).max()?;
        let way = self.ways.swap_remove(best);
        let step = match way.lane {
            Lane::Surface(_) => u32::from(land.model.geometry.surfaces()),
            _ => 1,
        };
        let mut on = way;
        if advance(&mut on, step) {
            self.push(land, on);
        }
        let (lo, hi) = cells.cylinders(way.cell);
        let (s, d) = (land.gap.source().0, land.gap.destination().0);
        let falls = way.lane != Lane::All && (hi < s.min(d) || lo > s.max(d));
        let surface = match way.lane {
            // Any surface: their distances are about the same.
            Lane::All => 0,
            _ => (way.cell % u32::from(land.model.geometry.surfaces())) as u16,
        };
        let furthest = (if way.up { hi } else { lo }, surface);
        let one = way.lane == Lane::All;
        Some(Stop { cell: way.cell, worth: way.worth, ahead, up: way.up, one, furthest, falls })
    }
}

/// Returns the next cell of one surface that is not empty, from a cell of that surface to `last`.
///
/// Cells of other surfaces lie between those of this one, so the search goes from one cell that is
/// not empty, whatever its surface, to the next: late in a scan hardly any cell has something.
fn next_on_surface(
    (regions, who, mask): (&Regions, Who, u64),
    surfaces: u32,
    up: bool,
    from: u32,
    last: u32,
) -> Option<u32> {
    let surface = from % surfaces;
    let mut cell = from;
    loop {
        let found = match up {
            true => regions.next_up(who, cell, mask).filter(|&c| c <= last)?,
            false => regions.next_down(who, cell, mask).filter(|&c| c >= last)?,
        };
        let past = (found % surfaces + surfaces - surface) % surfaces;
        cell = match (past, up) {
            (0, _) => return Some(found),
            (_, true) => found + (surfaces - past),
            (_, false) => found.checked_sub(past)?,
        };
        if if up { cell > last } else { cell < last } {
            return None;
        }
    }
}

/// Advances one cell; false at the way's end.
#[inline]
fn advance(way: &mut Way, step: u32) -> bool {
    if way.cell == way.last {
        return false;
    }
    let next = if way.up { way.cell.checked_add(step) } else { way.cell.checked_sub(step) };
    match next {
        Some(cell) => {
            way.cell = cell;
            true
        }
        None => false,
    }
}

/// Returns how far outside of the two ends, which are `apart`, a gap can reach.
fn reach(m: &Mechanics, gap: Dur, apart: u32) -> u32 {
    let fits = |d: u32| m.reposition_floor(d) + m.reposition_floor(d.saturating_add(apart)) < gap;
    let (mut near, mut far) = (0u32, 1u32 << 24);
    while far - near > 1 {
        let mid = near + (far - near) / 2;
        if fits(mid) { near = mid } else { far = mid }
    }
    near
}

#[cfg(test)]
mod tests {
    use headtime_disk::profile;
    use headtime_testkit::profiles::{between, rng};

    use super::*;
    use crate::tasks::{SessionId, TaskRange};

    #[test]
    fn the_next_cell_of_a_surface_is_that_of_looking_at_each() {
        let model = Model::new(&profile::builtin("nearline-20tb").unwrap()).unwrap();
        let (geometry, surfaces) = (&model.geometry, u32::from(model.geometry.surfaces()));
        let session = SessionId(1);
        for wanted in [1, 10, 1_000] {
            let mut regions = Regions::new(geometry, 8);
            let mut rng = rng(wanted);
            for _ in 0..wanted {
                let lbn = between(&mut rng, 0, geometry.capacity() - 100_000);
                let range = TaskRange { lbn, count: between(&mut rng, 1, 100_000) };
                regions.has_units(1, &[range]);
                regions.add(session, geometry, range);
            }
            let cells = regions.cells().count() / surfaces * surfaces;
            let mut found = 0;
            for _ in 0..200 {
                let (from, last) = (between(&mut rng, 0, u64::from(cells) - 1) as u32, cells - 1);
                let mask = between(&mut rng, 1, regions.all());
                let has = |c: &u32| c % surfaces == from % surfaces && regions.mask(Who::Anyone, *c) & mask != 0;
                let of = |up, last| next_on_surface((&regions, Who::Anyone, mask), surfaces, up, from, last);
                assert_eq!(of(true, last), (from..=last).find(has), "up from {from}");
                assert_eq!(of(false, 0), (0..=from).rev().find(has), "down from {from}");
                let (low, high) = (from.saturating_sub(30 * surfaces), (from + 30 * surfaces).min(last));
                assert_eq!(of(true, high), (from..=high).find(has), "up from {from} to {high}");
                assert_eq!(of(false, low), (low..=from).rev().find(has), "down from {from} to {low}");
                found += usize::from(of(true, last).is_some());
            }
            assert!(found > 0, "{wanted}");
        }
    }
}
