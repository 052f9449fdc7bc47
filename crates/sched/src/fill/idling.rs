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
const TRIES: usize = 4;

/// The use of idle time.
#[derive(Clone, Debug)]
pub struct Idling {
    policy: IdlePolicy,
    idle: Idle,
    reach: Reach,
    wanted: Wanted,
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
    pub fn leg(
        &mut self,
        model: &Model,
        regions: &Regions,
        wants: &impl Wants,
        head: &Head,
        aside: &[Range],
        now: Time,
    ) -> Option<Leg> {
        match self.idle.may_send(now)? {
            State::Short => {
                let leg = self.on_track(model, wants, (head.cylinder, head.surface), aside);
                if leg.is_none() {
                    self.idle.nothing_on_track();
                }
                leg
            }
            _ => self.anywhere(model, regions, wants, head, aside),
        }
    }

    fn anywhere(
        &mut self,
        model: &Model,
        regions: &Regions,
        wants: &impl Wants,
        head: &Head,
        aside: &[Range],
    ) -> Option<Leg> {
        let cells = regions.cells();
        let numbered = Numbered(regions);
        let mut cell = self.policy.choose(&numbered, &self.reach, cells.of(head.cylinder, head.surface))?;
        for _ in 0..TRIES {
            let here = cells.tracks(cell).filter_map(|track| {
                let leg = self.on_track(model, wants, track, aside)?;
                Some((leg, model.mechanics.reposition((head.cylinder, head.surface), track, leg.kind)))
            });
            // The most for its way.
            let best = here.max_by_key(|(leg, seek)| (leg.count, std::cmp::Reverse(*seek)));
            if let Some((leg, _)) = best {
                return Some(leg);
            }
            cell = numbered.next_up(cell + 1).or_else(|| numbered.next_up(0))?;
        }
        None
    }

    /// What is wanted on one track as one command: from its first wanted sector to its last, units that reach over the
    /// track's ends included.
    fn on_track(&mut self, model: &Model, wants: &impl Wants, track: (u32, u16), aside: &[Range]) -> Option<Leg> {
        let map = TrackMap::at(&model.geometry, track)?;
        let most = longest_command(map.track.spt);
        let capacity = model.geometry.capacity();
        for kind in [Kind::Read, Kind::Write] {
            if !wants.any(Who::Anyone, kind) {
                continue;
            }
            // A unit that begins on this track may end on the next.
            let low = map.track.first_lbn;
            let high = (map.end() + u64::from(most)).min(capacity);
            self.wanted.reset(low, (high - low) as u32);
            wants.wanted(Who::Anyone, kind, &mut self.wanted);
            for range in aside {
                self.wanted.unset(range.lbn, range.end());
            }
            let Some(first) = self.wanted.next(low).filter(|&l| l < map.end()) else { continue };
            let run = self.wanted.next_unwanted(first);
            let last = match kind {
                Kind::Write => run,
                _ => self.wanted.last_end(map.end()).unwrap_or(run).max(run.min(map.end())),
            };
            // Whole units only: what reaches beyond the track goes on to where the run ends.
            let end = if last >= map.end() { self.wanted.next_unwanted(map.end() - 1).max(last) } else { last };
            let end = end.min(first + u64::from(most));
            let end = match kind {
                Kind::Write => end,
                _ => end.max(first + 1),
            };
            // Nothing that is set aside may lie between.
            let end = aside.iter().filter(|r| r.lbn >= first).map(|r| r.lbn).min().map_or(end, |a| end.min(a));
            if end > first {
                return Some(Leg { kind, lbn: first, count: (end - first) as u32, merged: false });
            }
        }
        None
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
