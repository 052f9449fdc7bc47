//! Optional streams: condition 3 of Reuther and Pohlack 2003, over all streams of a drive.
//!
//! [`super::reserve`] computes the reservation of one stream. This module computes V, the time for
//! which others keep the drive busy in a period of stream i, in the worst order: everything else
//! first. It is the sum, as of independent times, of
//!
//! * the requests of each mandatory stream in all of its periods that overlap this one, at their
//!   real times X, not at their worst cases (section 2: so optional streams may be admitted
//!   although mandatory ones fill the period by their worst cases), with only their own stream's
//!   requests as candidates, and the older ones that may block them, at their real times, too. Of
//!   two periods that overlap this one in part, both count in full only if one period less lies
//!   within it; else they are limited to the remaining time;
//! * the use of its reservation by each other optional stream, including the last request's
//!   overrun, in each of its periods that ends within this one. [`super::subset`] dispatches a
//!   request with a later deadline only if this stream's whole reservation fits behind it at the
//!   worst case. A period that began before this one counts only for its remaining time;
//! * the commands still in flight when the period begins, up to the maximum number in flight. If
//!   there is room for them, these are the residual time of a request of the largest size, at any
//!   instant of it, and whole ones behind it ("crossing"): then best effort may be dispatched
//!   whatever period begins while the drive is busy with it, as long as no more commands are in
//!   flight. Without that room, best effort or an optional request is dispatched only if it is
//!   likely to complete before the period begins (within x), or if the period's reservations fit
//!   behind it at their worst case. Its time beyond x, X - x, is in V.
//!
//! If the mandatory streams have less than a worst case of slack, no other command is started
//! shortly before they are released; that time is deducted from the period.
//!
//! More reservation for one stream is less room for the others, so reservations are searched from
//! below: each is the least that the others' leave room for, repeated until none grows. The result
//! is the least of all feasible sets, or a proof that there is none. When a stream is added, the
//! search begins with the present reservations, which can only rise ([`Ledger::add`]).
//!
//! Streams with equal parameters have equal reservations. If more than a few streams share a drive,
//! the V of a small one is the time of all of them, including itself, slightly more than that of
//! the others; one sum then serves all streams of one period.
//!
//! Best-effort requests are not in V otherwise, because the subset starts none that could, in the
//! worst case, keep a stream from its reservation.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use headtime_disk::Dur;

use super::demand::{Demand, Worst};
use super::disk::{Disk, NotMeasured};
use super::distribution::{CERTAIN, Distribution};
use super::reserve::Room;
use super::stream::Stream;
use super::subset::Exhausted;
use super::verdict::{Admitted, Load, Refusal, RefusalReason};

mod as_mandatory;
mod grid;
mod group;
mod leaving;
mod made;
mod nearest;
mod sums;

pub use as_mandatory::ServedStream;
pub(super) use as_mandatory::{TRIED_ALONE, TRIED_BESIDE};
pub(super) use grid::Grid;
pub(super) use group::Group;
use made::Made;

/// Maximum number of streams for which each one's V excludes itself.
const FEW: usize = 16;
/// With more streams, it does so only for those that take more than this part of the time, one in
/// `LARGE`.
const LARGE: u64 = 32;

/// The admitted streams of a drive, and their reservations.
#[derive(Clone, Debug)]
pub struct Ledger {
    pub(super) disk: Disk,
    streams: Vec<Stream>,
    /// The streams as they are served: some optional ones as mandatory ([`as_mandatory`]).
    served: Vec<Stream>,
    /// The group of each stream.
    group: Vec<usize>,
    pub(super) groups: Vec<Group>,
    /// Number of commands in flight at the start of a period for which periods have room.
    pub(super) crossing: u32,
    worst_ppm: u64,
    /// Whether all reservations are minimal: no stream has left since they were computed.
    lean: bool,
    /// Incremented when something changes that others' reservations depend on.
    pub(super) version: u64,
    /// Cached work of streams that are tried at several qualities, or in several ways. With
    /// thousands of requests in a period it takes a second to compute.
    made: Vec<Made>,
    /// Handling of used-up reservations, which affects what streams leave for best effort.
    exhausted: Exhausted,
}

/// Room left by all streams together, by period, size, kinds, and whether older requests may block.
type Rooms = BTreeMap<(Dur, u32, usize, bool), Room>;

impl Ledger {
    /// Creates the ledger of a drive without streams.
    pub fn new(disk: Disk) -> Ledger {
        Ledger {
            crossing: disk.outstanding(),
            disk,
            streams: Vec::new(),
            served: Vec::new(),
            group: Vec::new(),
            groups: Vec::new(),
            worst_ppm: 0,
            lean: true,
            version: 1,
            made: Vec::new(),
            exhausted: Exhausted::default(),
        }
    }

    /// Sets the handling of used-up reservations.
    #[must_use]
    pub fn under(self, exhausted: Exhausted) -> Ledger {
        Ledger { exhausted, ..self }
    }

    /// Returns the drive's parameters.
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    /// Returns the streams, in the order in which they were added.
    pub fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// Returns the answer for the present streams.
    pub fn admitted(&self) -> Admitted {
        let reservation = |&g: &usize| {
            let group = &self.groups[g];
            (!group.stream.is_mandatory()).then(|| Dur(group.grid.fine.0 * group.reserved as u64))
        };
        let expected = self.groups.iter().map(|g| {
            let mean = g.service.times.of(g.stream.requests).mean();
            let each = u128::from(g.stream.wanted_millionths()) * u128::from(mean.0);
            g.count * each.div_ceil(u128::from(g.stream.period.0)) as u64
        });
        Admitted {
            reservations: self.group.iter().map(reservation).collect(),
            load: Load { worst_ppm: self.worst_ppm, expected_ppm: expected.sum() },
            crossing: self.crossing,
        }
    }

    /// Adds a stream if it is feasible beside the others, each served as optional or as mandatory.
    ///
    /// # Errors
    /// The reason and the nearest feasible alternatives; nothing has changed then.
    pub fn add(&mut self, stream: Stream) -> Result<(), Refusal> {
        self.add_at_work(stream, |_| true)
    }

    /// The same if the others are in use: `free(i)` returns whether the i-th, if served as
    /// optional, may be served as a mandatory one from now on. The opposite change is always
    /// possible.
    ///
    /// # Errors
    /// As of [`Ledger::add`].
    pub fn add_at_work(&mut self, stream: Stream, free: impl Fn(usize) -> bool) -> Result<(), Refusal> {
        let asked = self.made_for(stream);
        match self.added(stream, &asked, &free) {
            Ok(ledger) => {
                let last = ledger.streams.len() - 1;
                *self = ledger.improved(|at| at == last || free(at));
            }
            Err((why, ways)) => {
                let nearest = self.nearest(stream, why, asked, &ways);
                return Err(Refusal { stream: self.streams.len(), why, nearest });
            }
        }
        Ok(())
    }

    /// Adds a stream as [`Ledger::add`] does, if only feasibility is of interest. The streams are
    /// served in the first way found, and a refusal has only its reason: the best way and the
    /// nearest alternatives take most of the time.
    ///
    /// # Errors
    /// The reason; nothing has changed then.
    pub fn try_add(&mut self, stream: Stream) -> Result<(), RefusalReason> {
        *self = self.added(stream, &self.made_for(stream), &|_| true).map_err(|(why, _)| why)?;
        Ok(())
    }

    /// Returns these streams and one more, or the reason against it and the other ways of serving
    /// them that were tried. `asked` is the work of the new one's requests.
    fn added(
        &self,
        stream: Stream,
        asked: &Option<Made>,
        free: &dyn Fn(usize) -> bool,
    ) -> Result<Ledger, (RefusalReason, Vec<Ledger>)> {
        let with_it = |ledger: &Ledger| ledger.knowing(asked).with_or_as_mandatory(stream);
        let ledger = match with_it(self) {
            Ok(ledger) => ledger,
            Err(why) => {
                let ways = self.served_otherwise(free);
                let Some(ledger) = ways.iter().find_map(|way| with_it(way).ok()) else { return Err((why, ways)) };
                ledger
            }
        };
        Ok(ledger.knowing(&None))
    }

    /// Returns these streams and one more.
    fn with(&self, new: ServedStream) -> Result<Ledger, RefusalReason> {
        let mut ledger = self.clone();
        ledger.push(new)?;
        ledger.settle().map(|()| ledger)
    }

    /// Adds streams, if all of them are feasible.
    ///
    /// # Errors
    /// The reason; the ledger must not be used then.
    pub fn extend(&mut self, streams: &[Stream]) -> Result<(), RefusalReason> {
        for &stream in streams {
            self.push(stream.into())?;
        }
        self.settle()
    }

    /// Adds these streams at once, each served as optional or as mandatory, if they are feasible as
    /// optional.
    ///
    /// # Errors
    /// The reason.
    pub(super) fn with_all(&self, streams: &[Stream]) -> Result<Ledger, RefusalReason> {
        let mut ledger = self.clone();
        ledger.extend(streams)?;
        Ok(ledger.improved(|_| true))
    }

    fn push(&mut self, new: ServedStream) -> Result<(), RefusalReason> {
        let (stream, served) = (new.stream, new.served());
        let at = self.streams.len();
        if served.is_mandatory() {
            self.has_time_for(&served)?;
        }
        let group = match self.groups.iter().position(|g| g.stream == served) {
            Some(group) => {
                self.groups[group].count += 1;
                self.version += 1;
                group
            }
            None => {
                let group = self.open(served, at)?;
                self.groups.push(group);
                self.version += 1;
                self.groups.len() - 1
            }
        };
        self.groups[group].changed_at = self.version;
        self.streams.push(stream);
        self.served.push(served);
        self.group.push(group);
        Ok(())
    }

    /// Checks, before the work of a mandatory stream is computed, whether it exceeds condition 2 by
    /// more than the rounding of each stream's part.
    fn has_time_for(&self, stream: &Stream) -> Result<(), RefusalReason> {
        let Ok(service) = self.disk.service_of(stream) else { return Ok(()) };
        let worst = service.worst + self.disk.blocking_of(stream);
        let needed = u128::from(stream.requests) * u128::from(worst.0) * 1_000_000;
        let needed = needed.div_ceil(u128::from(stream.period.0)) as u64;
        let needed_ppm = needed.saturating_add(self.worst_ppm);
        let rounded = self.streams.len() as u64 + 1;
        if needed_ppm > 1_000_000 + rounded { Err(RefusalReason::Worst { needed_ppm }) } else { Ok(()) }
    }

    fn open(&self, stream: Stream, first: usize) -> Result<Group, RefusalReason> {
        let service = self.disk.service_of(&stream).map_err(|e| match e {
            NotMeasured::Kinds => RefusalReason::Kinds { stream: first, kinds: stream.kinds },
            NotMeasured::Size { most } => RefusalReason::Size { stream: first, most, found: stream.sectors },
        })?;
        service.shows(&stream, first)?;
        let grid = Grid::of(stream.period, service.times.bin());
        let work = self.work(&stream, service, grid);
        let mut takes = if stream.is_mandatory() { work.all().clone() } else { work.stopped(0) };
        if stream.is_mandatory() && stream.blocked_by > 0 {
            let older = self.older().in_bins(grid.fine, grid.period);
            let each_period = u64::from(stream.blocked_by) * u64::from(stream.requests);
            takes = takes.plus(&older.times(each_period, grid.period), grid.period);
        }
        let service = service.clone();
        Ok(Group {
            stream,
            count: 1,
            first,
            service,
            work,
            grid,
            reserved: 0,
            takes,
            enough_at: 0,
            changed_at: 0,
            sum: None,
        })
    }

    /// Returns the service times of the older requests that may block a stream's request: reads or
    /// writes of the largest measured size with no other candidate, longer by the worst-case
    /// difference of a larger one. Seeks and revolutions do not depend on the size, so the
    /// additional time of a larger request, for its sectors and track ends, is at most that.
    fn older(&self) -> Distribution {
        let largest = self.disk.largest();
        largest.times.fewest().later(self.disk.blocker().saturating_sub(largest.worst))
    }

    /// Returns the demand of the mandatory streams.
    fn demand(&self) -> Result<Demand, RefusalReason> {
        let worst = |&g: &usize| {
            let Group { stream, service, .. } = &self.groups[g];
            let whole = service.worst + self.disk.blocking_of(stream);
            Worst { whole, longest: self.disk.longest_of(stream, service) }
        };
        let worsts: Vec<_> = self.served.iter().zip(&self.group).map(|(s, g)| (*s, worst(g))).collect();
        Demand::of(&worsts)
    }

    /// Computes reservations with which all streams reach their quality.
    fn settle(&mut self) -> Result<(), RefusalReason> {
        let demand = self.demand()?;
        self.worst_ppm = demand.needed_ppm();
        while self.crossing > 0 {
            if self.grow(&demand).is_ok() {
                return Ok(());
            }
            self.crossing -= 1;
            self.version += 1;
            for group in &mut self.groups {
                group.reserve(0);
                group.changed_at = self.version;
            }
        }
        self.grow(&demand)
    }

    /// Raises reservations until each suffices beside the others, or one cannot.
    fn grow(&mut self, demand: &Demand) -> Result<(), RefusalReason> {
        let stale = |all: &Ledger, i: usize| {
            let group = &all.groups[i];
            !group.stream.is_mandatory() && group.enough_at < all.version
        };
        while (0..self.groups.len()).any(|i| stale(self, i)) {
            // A shared sum is valid for the version at which it was computed. If reservations have
            // grown since, groups whose reservations sufficed by it are checked again.
            let (mut rooms, mut made_at) = (Rooms::new(), self.version);
            // The newest first: it has no reservation yet, and those of the older ones may suffice.
            for i in (0..self.groups.len()).rev() {
                if !stale(self, i) {
                    continue;
                }
                let least = self.least(i, demand, &mut rooms)?;
                let group = &mut self.groups[i];
                group.enough_at = made_at;
                if least > group.reserved && group.reserve(least) {
                    self.version += 1;
                    self.groups[i].changed_at = self.version;
                    if i + 1 == self.groups.len() {
                        rooms.clear();
                        made_at = self.version;
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns for how long before mandatory streams are released, at most, no other request of
    /// worst case `worst` may be started.
    pub(super) fn kept_free(&self, worst: Dur, demand: &Demand) -> Dur {
        match demand.kept_free(worst) {
            Dur::ZERO => Dur::ZERO,
            free => free + self.disk.moves_longer(),
        }
    }

    /// Returns the room that others leave in a period of group `i`. With `own` its stream is
    /// excluded from their sum.
    fn room(&mut self, i: usize, own: bool, demand: &Demand) -> Room {
        let sum = self.sum(i, own, demand);
        let Group { stream, grid, service, work, .. } = &self.groups[i];
        let likely = service.likely() + self.disk.likely_blocker_of(stream);
        let worst = self.disk.longest_of(stream, service);
        let chance = likely.max(self.kept_free(worst, demand)).0.div_ceil(grid.fine.0) as usize;
        Room::new(grid.period, grid.factor, &sum.all, work, chance)
    }

    /// Returns the least reservation of a group's streams beside the present others, at least its
    /// present one.
    fn least(&mut self, i: usize, demand: &Demand, rooms: &mut Rooms) -> Result<usize, RefusalReason> {
        let me = &self.groups[i];
        let busy = me.grid.fine.0 * me.takes.end() as u64 * LARGE > me.stream.period.0;
        let key = (me.stream.period, me.service.sectors, me.stream.kinds as usize, me.stream.blocked_by > 0);
        let own = self.streams.len() <= FEW || busy;
        let room = match own {
            true => &mut self.room(i, own, demand),
            false => match rooms.entry(key) {
                Entry::Occupied(room) => room.into_mut(),
                Entry::Vacant(none) => none.insert(self.room(i, own, demand)),
            },
        };
        let me = &self.groups[i];
        let wanted = (u128::from(me.stream.wanted_millionths()) * u128::from(CERTAIN)).div_ceil(1_000_000);
        let found = me.work.reservation(me.reserved, wanted, |n, used| room.after(n, used));
        let found = match found {
            // The shared sum includes this stream, so there may be more room than it leaves.
            Err(_) if !own => {
                let mut exact = self.room(i, true, demand);
                let me = &self.groups[i];
                me.work.reservation(me.reserved, wanted, |n, used| exact.after(n, used))
            }
            found => found,
        };
        let me = &self.groups[i];
        found.map_err(|reached| {
            let reached_ppm = (reached * 1_000_000 / u128::from(CERTAIN)) as u64 / u64::from(me.stream.requests);
            RefusalReason::Quality { stream: me.first, asked: me.stream.quality, reached_ppm }
        })
    }
}
