//! What is fetched while the drive has nothing else to do (seed 002 section 4.6).
//!
//! Short idle time is spent on the track where the head is: that moves nothing, and what the drive has read ahead there
//! comes from its cache. Long idle time is spent on what gaps would not bring ([`super::reach`]). Commands are at most a
//! track long, one at a time: a request that arrives meanwhile waits for the one that runs.

use headtime_disk::command::Kind;
use headtime_disk::mechanics::Head;
use headtime_disk::model::Model;
use headtime_disk::time::Time;

use super::gap::Leg;
use super::idle::{Idle, State, Thresholds, longest_command};
use super::reach::{Cells, Gone, IdlePolicy, Reach};
use super::regions::Regions;
use super::track::TrackMap;
use crate::tasks::wanted::Wanted;
use crate::tasks::{Range, Wants, Who};

/// How idle time is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdleConfig {
    /// When the disk counts as idle.
    pub thresholds: Thresholds,
    /// What long idle time is spent on.
    pub policy: IdlePolicy,
}

/// Of a range larger than this part of the disk, cells are looked at instead of tracks.
const LARGE: u64 = 64;
/// Cells looked at for one that still has something to offer, when what one has cannot be had now.
const TRIES: usize = 16;

/// The use of idle time.
#[derive(Clone, Debug)]
pub struct Idling {
    policy: IdlePolicy,
    idle: Idle,
    reach: Reach,
    wanted: Wanted,
    /// Where to go on looking when all the cells that were tried had nothing to offer.
    go_on: Option<u32>,
}

/// The regions as [`Reach`] sees them.
struct Numbered<'a>(&'a Regions);

impl Cells for Numbered<'_> {
    fn count(&self) -> u32 {
        self.0.cells().count()
    }
    fn next_up(&self, from: u32) -> Option<u32> {
        self.0.next_up(Who::Anyone, from, self.0.all())
    }
    fn next_down(&self, from: u32) -> Option<u32> {
        self.0.next_down(Who::Anyone, from, self.0.all())
    }
    fn overdue(&self, _head: u32) -> Option<u32> {
        None
    }
}

impl Idling {
    /// Idle from time zero on.
    pub fn new(config: &IdleConfig, model: &Model, regions: &Regions) -> Idling {
        let prefetches = model.cache.segments > 0 && model.cache.prefetch != headtime_disk::profile::Prefetch::None;
        let turn = model.mechanics.rotation.period();
        let thresholds = if prefetches { config.thresholds.behind_prefetch(turn) } else { config.thresholds };
        Idling {
            policy: config.policy,
            idle: Idle::new(thresholds, Time::ZERO),
            reach: Reach::new(regions.cells().count(), &model.mechanics, model.geometry.cylinders()),
            wanted: Wanted::new(),
            go_on: None,
        }
    }

    /// The detector, to be told of what comes and goes.
    pub fn detector(&mut self) -> &mut Idle {
        &mut self.idle
    }

    /// When it wants to be told the time.
    pub fn next_wakeup(&self, now: Time) -> Option<Time> {
        self.idle.next_wakeup(now)
    }

    /// A range is wanted.
    pub fn registered(&mut self, model: &Model, regions: &Regions, range: Range) {
        let reach = &mut self.reach;
        by_cell(model, regions, range, |cell, sectors| reach.wanted(cell, sectors));
    }

    /// A range is wanted no more.
    pub fn gone(&mut self, model: &Model, regions: &Regions, range: Range, how: Gone) {
        let reach = &mut self.reach;
        by_cell(model, regions, range, |cell, sectors| reach.gone(cell, sectors, how));
    }

    /// What to send now, the head being where `head` says; nothing that touches `aside`.
    #[allow(clippy::too_many_arguments)]
    pub fn leg(
        &mut self,
        model: &Model,
        regions: &Regions,
        wants: &impl Wants,
        head: &Head,
        kinds: &[Kind],
        aside: &[Range],
        now: Time,
    ) -> Option<Leg> {
        let state = self.idle.may_send(now)?;
        let look = Look { model, wants, kinds, aside, widest: regions.widest_unit() };
        if state == State::Short {
            let leg = look.on_track(&mut self.wanted, (head.cylinder, head.surface));
            if leg.is_none() {
                self.idle.nothing_on_track();
            }
            return leg;
        }
        self.anywhere(&look, regions, head)
    }

    fn anywhere<W: Wants>(&mut self, look: &Look<W>, regions: &Regions, head: &Head) -> Option<Leg> {
        let cells = regions.cells();
        let numbered = Numbered(regions);
        let chosen = || self.policy.choose(&numbered, &self.reach, cells.of(head.cylinder, head.surface));
        let mut cell = self.go_on.take().and_then(|c| numbered.next_up(c)).or_else(chosen)?;
        for _ in 0..TRIES {
            let here = cells.tracks(cell).filter_map(|track| {
                let leg = look.on_track(&mut self.wanted, track)?;
                Some((leg, look.model.mechanics.reposition((head.cylinder, head.surface), track, leg.kind)))
            });
            // The most for its way.
            let best = here.max_by_key(|(leg, seek)| (leg.count, std::cmp::Reverse(*seek)));
            if let Some((leg, _)) = best {
                return Some(leg);
            }
            cell = numbered.next_up(cell + 1).or_else(|| numbered.next_up(0))?;
        }
        self.go_on = Some(cell);
        None
    }
}

/// What is looked at for a command in idle time.
struct Look<'a, W> {
    model: &'a Model,
    wants: &'a W,
    kinds: &'a [Kind],
    aside: &'a [Range],
    widest: u32,
}

impl<W: Wants> Look<'_, W> {
    /// What is wanted on one track as one command: from its first wanted sector to its last, units that reach over the
    /// track's end included; as many whole units as a command may cover. Nothing that is set aside lies between.
    fn on_track(&self, wanted: &mut Wanted, track: (u32, u16)) -> Option<Leg> {
        let map = TrackMap::at(&self.model.geometry, track)?;
        let most = u64::from(longest_command(map.track.spt).max(self.widest));
        let (begin, end) = (map.track.first_lbn, map.end());
        // A unit that begins on this track may end on the next.
        let reach = (end + most).min(self.model.geometry.capacity());
        for &kind in self.kinds.iter().filter(|k| self.wants.any(Who::Anyone, **k)) {
            let mut low = begin;
            while low < end {
                // A stretch without anything set aside; units that do not lie in it as a whole cannot be had.
                let next = self.aside.iter().filter(|r| r.end() > low && r.lbn < reach).min_by_key(|r| r.lbn);
                let high = next.map_or(reach, |r| r.lbn.max(low));
                if let Some(leg) = self.in_stretch(wanted, kind, low, high, end, most) {
                    return Some(leg);
                }
                low = next.map_or(reach, Range::end);
            }
        }
        None
    }

    /// The same within the sectors `low..high` without looking at what is set aside, beginning before `end`.
    fn in_stretch(&self, wanted: &mut Wanted, kind: Kind, low: u64, high: u64, end: u64, most: u64) -> Option<Leg> {
        if low >= high {
            return None;
        }
        wanted.reset(low, (high - low) as u32);
        self.wants.wanted(Who::Anyone, kind, wanted);
        let first = wanted.next(low).filter(|&l| l < end)?;
        // What is cut off would not be delivered, and could not be written: only units that end in time. Of the next track
        // no more than one that lies across the end.
        let most = high.min(first + most).min(end + u64::from(self.widest) - 1);
        wanted.reset(first, (most - first) as u32);
        self.wants.wanted(Who::Anyone, kind, wanted);
        let last = match kind {
            Kind::Write => wanted.next_unwanted(first),
            _ if wanted.is_set(end - 1) => wanted.next_unwanted(end - 1),
            _ => wanted.last_end(end)?,
        };
        (last > first).then(|| Leg { kind, lbn: first, count: (last - first) as u32, merged: false })
    }
}

/// The cells that a range lies in, with how many of its sectors each has.
fn by_cell(model: &Model, regions: &Regions, range: Range, mut f: impl FnMut(u32, u64)) {
    let (geometry, cells) = (&model.geometry, regions.cells());
    if range.count < geometry.capacity() / LARGE {
        let mut lbn = range.lbn;
        while let Some(track) = geometry.track_of(lbn).filter(|_| lbn < range.end()) {
            let end = (track.first_lbn + u64::from(track.lbns)).min(range.end()).max(lbn + 1);
            f(cells.of(track.cylinder, track.surface), end - lbn);
            lbn = end;
        }
        return;
    }
    for cell in 0..cells.count() {
        if let Some(all) = cells.lbns(geometry, cell) {
            let sectors = all.end().min(range.end()).saturating_sub(all.lbn.max(range.lbn));
            if sectors > 0 {
                f(cell, sectors);
            }
        }
    }
}
