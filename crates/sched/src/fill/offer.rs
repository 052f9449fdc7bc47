//! The command that a track offers to an idle drive: whole units, and no excluded sector.
//!
//! A foreground request that arrives during the command waits for it, so commands are short where
//! that costs nothing (Dimitrijevic, Rangaswami and Chang, FAST 2003, split requests to make them
//! preemptible). On a drive that reads ahead, a command that moves the arm covers an eighth of a
//! track. The drive then reads ahead what follows, which it drops at once when another command
//! arrives; it is requested when it lies in the buffer, a quarter of a track at a time, without
//! using the mechanism. A drive without read-ahead would lose a revolution per command, so a
//! command there covers up to a track: a request that arrives during it waits half a revolution on
//! average, less than it would wait for a busy disk.

use headtime_disk::{Dur, Head, Kind, Model};

use super::cells::Cells;
use super::conservatism::Margins;
use super::gap::{Leg, Window};
use super::regions::remaining;
use super::track::TrackMap;
use crate::tasks::wanted::Wanted;
use crate::tasks::{TaskRange, Wants, Who};

/// Input of a search for a command in idle time.
pub(crate) struct IdleLook<'a, W> {
    /// The model of the drive.
    pub model: &'a Model,
    /// The wanted sectors by session.
    pub wants: &'a W,
    /// Position of the head when a command sent now begins to move it.
    pub head: &'a Head,
    /// The kinds that may be sent.
    pub kinds: &'a [Kind],
    /// Excluded ranges.
    pub aside: &'a [TaskRange],
    /// Margins of moves.
    pub margins: Margins,
    /// Sectors of the largest unit.
    pub widest: u32,
    /// Whether the drive reads ahead after a read.
    pub reads_on: bool,
}

/// A command, and what it is compared by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offer {
    /// The command.
    pub leg: Leg,
    /// Contiguous wanted sectors from its beginning to the end of the track: more such commands.
    pub run: u32,
    /// Time to position and to transfer all of these.
    pub takes: Dur,
}

impl Offer {
    /// Returns whether it brings more sectors per time.
    pub(crate) fn is_better_than(&self, other: &Offer) -> bool {
        let rate = |a: &Offer, b: &Offer| u128::from(a.run) * u128::from(b.takes.0);
        rate(self, other) > rate(other, self)
    }
}

impl<W: Wants> IdleLook<'_, W> {
    /// Returns the first wanted read among the sectors read ahead: it begins in `from..until` and
    /// ends before `reach`.
    pub(crate) fn following(&self, wanted: &mut Wanted, from: u64, until: u64, reach: u64, spt: u32) -> Option<Leg> {
        if !self.kinds.contains(&Kind::Read) || !self.wants.any(Who::Anyone, Kind::Read) || from >= until {
            return None;
        }
        let (low, high) = self.stretch_at(from, reach)?;
        let (first, run) = self.first_run(wanted, Kind::Read, low, high, until)?;
        // It comes from the buffer.
        Some(self.leg(wanted, Kind::Read, (first, run), high, spt / 4))
    }

    /// Returns the best command of a track: wanted sectors that pass soonest.
    pub(crate) fn on_track(&self, wanted: &mut Wanted, track: (u32, u16)) -> Option<Offer> {
        let map = TrackMap::at(&self.model.geometry, track)?;
        let kinds = self.kinds.iter().filter(|k| self.wants.any(Who::Anyone, **k));
        kinds
            .filter_map(|&kind| self.of_kind(wanted, kind, &map))
            .reduce(|a, b| if b.is_better_than(&a) { b } else { a })
    }

    /// Returns the wanted sectors of a cell.
    pub(crate) fn left_in(&self, wanted: &mut Wanted, cells: &Cells, cell: u32) -> u64 {
        let geometry = &self.model.geometry;
        let tracks = cells.tracks(cell).filter_map(|track| TrackMap::at(geometry, track));
        let each = tracks.flat_map(|map| self.kinds.iter().map(move |&kind| (map, kind)));
        let left = |(map, kind)| remaining(&map, geometry, self.wants, (Who::Anyone, kind), self.widest, wanted);
        each.map(left).map(u64::from).sum()
    }

    fn of_kind(&self, wanted: &mut Wanted, kind: Kind, map: &TrackMap) -> Option<Offer> {
        let arrived = self.arrives_at(map, kind);
        let begin = map.track.first_lbn;
        let behind = self.from(wanted, kind, map, arrived.max(begin), map.end());
        let offer = behind.or_else(|| self.from(wanted, kind, map, begin, map.end()))?;
        Some(offer)
    }

    /// Returns the first LBN of a track that passes after the head has arrived; the track's end
    /// when none does within the revolution.
    fn arrives_at(&self, map: &TrackMap, kind: Kind) -> u64 {
        let (mechanics, from) = (&self.model.mechanics, (self.head.cylinder, self.head.surface));
        let at = self.head.at + mechanics.reposition(from, map.place(), kind) + self.margins.of_move(from, map.place());
        let window = Window { arrive: at, angle: self.head.angle_at(at, &mechanics.rotation), leave: at };
        let sector = map.passing(&mechanics.rotation, &window).first;
        let mut lbn = map.end();
        map.stretches(&self.model.geometry, sector, map.track.spt, |low, _| lbn = lbn.min(low));
        lbn
    }

    /// Returns the first wanted sectors of a track at `low` or behind it, before `end`.
    fn from(&self, wanted: &mut Wanted, kind: Kind, map: &TrackMap, mut low: u64, end: u64) -> Option<Offer> {
        let spt = map.track.spt;
        // A unit that begins on this track may end on the next.
        let reach = (end + u64::from(self.widest)).min(self.model.geometry.capacity());
        while low < end {
            let Some((from, to)) = self.stretch_at(low, reach) else { break };
            if let Some((first, run)) = self.first_run(wanted, kind, from, to, end) {
                let most = match kind {
                    Kind::Read if self.reads_on => spt / 8,
                    _ => spt,
                };
                let leg = self.leg(wanted, kind, (first, run), to, most);
                let place = self.model.place(leg.lbn, leg.count, kind)?;
                let access = self.model.access(self.head, &place, kind);
                let sectors = run.max(u64::from(leg.count));
                let takes = access.positioning() + self.model.mechanics.rotation.sectors(sectors, spt);
                return Some(Offer { leg, run: sectors as u32, takes });
            }
            low = to + 1;
        }
        None
    }

    /// Returns the first part of `low..high` without excluded sectors.
    fn stretch_at(&self, mut low: u64, high: u64) -> Option<(u64, u64)> {
        while let Some(r) = self.aside.iter().find(|r| r.lbn <= low && low < r.end()) {
            low = r.end();
        }
        let end = self.aside.iter().filter(|r| r.lbn > low).map(|r| r.lbn).min().unwrap_or(high).min(high);
        (low < end).then_some((low, end))
    }

    /// Returns the first wanted sector of `low..high`, if it lies before `end`, and the length of
    /// its run up to there. Only whole units count: a cut-off unit would not be delivered, and
    /// could not be written.
    fn first_run(&self, wanted: &mut Wanted, kind: Kind, mut low: u64, high: u64, end: u64) -> Option<(u64, u64)> {
        loop {
            wanted.reset(low, (high - low) as u32);
            self.wants.wanted(Who::Anyone, kind, wanted);
            let first = wanted.next(low).filter(|&l| l < end)?;
            if first == low {
                return Some((first, wanted.next_unwanted(first).min(end) - first));
            }
            // If a part of a unit is being written for another task, the remainder begins here and
            // is no whole unit. A query from here on finds only what begins here.
            low = first;
        }
    }

    /// Returns a command from `first`, where `run` sectors are wanted before the track ends, of
    /// `most` sectors, or of one unit if that is more.
    fn leg(&self, wanted: &mut Wanted, kind: Kind, (first, run): (u64, u64), high: u64, most: u32) -> Leg {
        // Behind the track's end, at most a unit that begins before it.
        let last = (first + run + u64::from(self.widest) - 1).min(high);
        let mut whole_units = |most: u64| {
            let until = (first + most).min(last);
            wanted.reset(first, (until - first) as u32);
            self.wants.wanted(Who::Anyone, kind, wanted);
            wanted.next_unwanted(first)
        };
        let (mut most, mut end) = (u64::from(most), first);
        // The widest unit is tried only where no shorter one begins.
        while end == first {
            end = whole_units(most);
            assert!(end > first || first + most < last, "a unit begins at {first}, and ends nowhere");
            most *= 2;
        }
        Leg { kind, lbn: first, count: (end - first) as u32, merged: false }
    }
}
