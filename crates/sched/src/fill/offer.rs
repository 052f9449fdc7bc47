//! What a track offers to a drive that has nothing else to do: one command of whole units, nothing
//! set aside touched.
//!
//! A foreground request that comes meanwhile waits for the command at the drive, so commands are
//! short where that costs nothing (Dimitrijevic, Rangaswami and Chang, FAST 2003, cut requests up
//! to make them preemptible). A drive that reads on behind a read is asked for an eighth of a track
//! where its arm has to go; what follows there it reads by itself, which it drops at once when it
//! is asked for something else, and it is asked for that when it lies in its buffer, a quarter of a
//! track at a time: then the mechanism is not in use for it. A drive that does not read on would
//! lose a turn each time, and is asked for up to a track.

use headtime_disk::command::Kind;
use headtime_disk::mechanics::Head;
use headtime_disk::model::Model;
use headtime_disk::time::Dur;

use super::conservatism::Margins;
use super::gap::{Leg, Window};
use super::idle::longest_command;
use super::track::TrackMap;
use crate::tasks::wanted::Wanted;
use crate::tasks::{Range, Wants, Who};

/// What is looked at for a command in idle time.
pub struct Look<'a, W> {
    /// The drive, as believed.
    pub model: &'a Model,
    /// Who wants what.
    pub wants: &'a W,
    /// Where the head will be when a command sent now begins to move it.
    pub head: &'a Head,
    /// What may be sent.
    pub kinds: &'a [Kind],
    /// What must not be touched.
    pub aside: &'a [Range],
    /// How much longer than predicted moves may take.
    pub margins: Margins,
    /// Sectors of the largest unit.
    pub widest: u32,
    /// The drive reads on behind a read.
    pub reads_on: bool,
}

/// One command, and what makes it better or worse than another.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// The command.
    pub leg: Leg,
    /// Wanted sectors that follow each other from its beginning to the end of the track: more such
    /// commands.
    pub run: u32,
    /// Time to get there and have all of these pass.
    pub takes: Dur,
}

impl Offer {
    /// Whether it brings more in its time.
    pub fn is_better_than(&self, other: &Offer) -> bool {
        let rate = |a: &Offer, b: &Offer| u128::from(a.run) * u128::from(b.takes.0);
        rate(self, other) > rate(other, self)
    }
}

impl<W: Wants> Look<'_, W> {
    /// The first that can be read of what the drive reads ahead: it begins in `from..until` and
    /// ends before `reach`.
    pub fn following(&self, wanted: &mut Wanted, from: u64, until: u64, reach: u64, spt: u32) -> Option<Leg> {
        if !self.kinds.contains(&Kind::Read) || !self.wants.any(Who::Anyone, Kind::Read) || from >= until {
            return None;
        }
        let (low, high) = self.stretch_at(from, reach)?;
        let (first, run) = self.first_run(wanted, Kind::Read, low, high, until)?;
        // It comes from the buffer.
        Some(self.leg(wanted, Kind::Read, (first, run), high, longest_command(spt) / 4))
    }

    /// The best of a track: what is wanted there and passes soonest.
    pub fn on_track(&self, wanted: &mut Wanted, track: (u32, u16)) -> Option<Offer> {
        let map = TrackMap::at(&self.model.geometry, track)?;
        let kinds = self.kinds.iter().filter(|k| self.wants.any(Who::Anyone, **k));
        kinds
            .filter_map(|&kind| self.of_kind(wanted, kind, &map))
            .reduce(|a, b| if b.is_better_than(&a) { b } else { a })
    }

    fn of_kind(&self, wanted: &mut Wanted, kind: Kind, map: &TrackMap) -> Option<Offer> {
        let arrived = self.arrives_at(map, kind);
        let begin = map.track.first_lbn;
        let behind = self.from(wanted, kind, map, arrived.max(begin), map.end());
        let offer = behind.or_else(|| self.from(wanted, kind, map, begin, map.end()))?;
        Some(offer)
    }

    /// The first LBN of a track that passes when the head has come there; its end when none does
    /// before the turn is over.
    fn arrives_at(&self, map: &TrackMap, kind: Kind) -> u64 {
        let (mechanics, from) = (&self.model.mechanics, (self.head.cylinder, self.head.surface));
        let at = self.head.at + mechanics.reposition(from, map.place(), kind) + self.margins.of_move(from, map.place());
        let window = Window { arrive: at, angle: self.head.angle_at(at, &mechanics.rotation), leave: at };
        let sector = map.passing(&mechanics.rotation, &window).first;
        let mut lbn = map.end();
        map.stretches(&self.model.geometry, sector, map.track.spt, |low, _| lbn = lbn.min(low));
        lbn
    }

    /// The first that is wanted of a track at `low` or behind it, before `end`.
    fn from(&self, wanted: &mut Wanted, kind: Kind, map: &TrackMap, mut low: u64, end: u64) -> Option<Offer> {
        let spt = map.track.spt;
        // A unit that begins on this track may end on the next.
        let reach = (end + u64::from(self.widest)).min(self.model.geometry.capacity());
        while low < end {
            let Some((from, to)) = self.stretch_at(low, reach) else { break };
            if let Some((first, run)) = self.first_run(wanted, kind, from, to, end) {
                let most = match kind {
                    Kind::Read if self.reads_on => longest_command(spt) / 8,
                    _ => longest_command(spt),
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

    /// The first stretch of `low..high` in which nothing is set aside.
    fn stretch_at(&self, mut low: u64, high: u64) -> Option<(u64, u64)> {
        while let Some(r) = self.aside.iter().find(|r| r.lbn <= low && low < r.end()) {
            low = r.end();
        }
        let end = self.aside.iter().filter(|r| r.lbn > low).map(|r| r.lbn).min().unwrap_or(high).min(high);
        (low < end).then_some((low, end))
    }

    /// The first wanted sector of `low..high`, if it lies before `end`, and how many follow it up
    /// to there. Only whole units count: what is cut off would not be delivered, and could not be
    /// written.
    fn first_run(&self, wanted: &mut Wanted, kind: Kind, mut low: u64, high: u64, end: u64) -> Option<(u64, u64)> {
        loop {
            wanted.reset(low, (high - low) as u32);
            self.wants.wanted(Who::Anyone, kind, wanted);
            let first = wanted.next(low).filter(|&l| l < end)?;
            if first == low {
                return Some((first, wanted.next_unwanted(first).min(end) - first));
            }
            // Where a part of a unit is being written for another task, the rest of it begins here
            // and is no whole unit: what begins here is there, too, when one looks from here on.
            low = first;
        }
    }

    /// A command from `first` on, where `run` sectors are wanted before the track ends, of `most`
    /// sectors, or one unit where that is more.
    fn leg(&self, wanted: &mut Wanted, kind: Kind, (first, run): (u64, u64), high: u64, most: u32) -> Leg {
        // Of what lies behind the track's end no more than a unit that begins before it.
        let last = (first + run + u64::from(self.widest) - 1).min(high);
        let mut whole_units = |most: u64| {
            let until = (first + most).min(last);
            wanted.reset(first, (until - first) as u32);
            self.wants.wanted(Who::Anyone, kind, wanted);
            wanted.next_unwanted(first)
        };
        let (mut most, mut end) = (u64::from(most), first);
        // The widest unit of all is looked for only where no shorter one begins.
        while end == first {
            end = whole_units(most);
            assert!(end > first || first + most < last, "a unit begins at {first}, and ends nowhere");
            most *= 2;
        }
        Leg { kind, lbn: first, count: (end - first) as u32, merged: false }
    }
}
