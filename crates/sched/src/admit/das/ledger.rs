//! Optional streams: condition 3 of Reuther and Pohlack 2003, over all streams of a drive.
//!
//! [`super::reserve`] has the maths of one stream. Here is what V is, the time for which others
//! keep the drive busy in a period of stream i, in the worst order: everything else first. It is
//! the sum, as of independent times, of
//!
//! * the requests of each mandatory stream in all of its periods that touch this one, at their real
//!   times X, not their worst ones (section 2: so optional streams may be admitted although
//!   mandatory ones fill the period by their worst cases), chosen from their own stream's alone,
//!   and the older ones that they may have to wait for, at their real times, too. Of two periods
//!   that this one touches in part, both count in full only if one less lies in it; else they have
//!   no more than what is left of the time;
//! * what each other optional stream takes with its reservation, the last request's overrun
//!   included, in each of its periods that ends within this one. [`super::subset`] lets nothing
//!   with a later deadline go before what this stream has reserved, at its worst, fits behind it. A
//!   period that began before this one counts only for the time that is left of it;
//! * what is still at the drive when the period begins, one for each command that may be
//!   outstanding. Where there is room for it, that is the rest of a request of the largest size, at
//!   any instant of it, and whole ones behind it ("crossing"): then best effort may be sent
//!   whatever begins while the drive is busy with it, as long as no more commands are at the drive.
//!   Without that room best effort, or an optional request, is sent only if it is likely to be over
//!   when the period begins (within x), or if the period's reservations fit behind it at their
//!   worst. What it takes beyond x, X - x, is in V.
//!
//! When the mandatory streams have less than a worst case to spare, nothing else is begun shortly
//! before they are released; that is taken off the period.
//!
//! More reservation for one stream is less room for the others, so reservations are looked for from
//! below: each is the least that the others' leave room for, again until none grows. That gives the
//! least of all sets that are possible, or shows that none is. When a stream comes, the search
//! begins with the present reservations, which can only rise ([`Ledger::add`]).
//!
//! Streams that ask for the same have the same reservation. Where more than a few streams share a
//! drive, a small one's V is the time of all of them, itself included, which is a little more than
//! that of the others; one sum then serves all of one period.
//!
//! Best-effort requests are not in V otherwise, because the subset begins none that could, in the
//! worst case, keep a stream from its reservation.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use headtime_disk::time::Dur;

use super::admission::{Admitted, Disk, Load, NotKnown, Refusal, Service, Why};
use super::demand::{Demand, Worst};
use super::distribution::{CERTAIN, Distribution};
use super::reserve::{Room, Work};
use super::stream::Stream;
use super::subset::Exhausted;
use super::sums::Sum;

mod as_mandatory;
mod grid;
mod leaving;
mod made;
mod nearest;

pub use as_mandatory::AtWork;
pub(super) use as_mandatory::{TRIED_ALONE, TRIED_BESIDE};
pub(super) use grid::Grid;
use made::Made;

/// Streams up to which each one's V is that of the others alone.
const FEW: usize = 16;
/// With more, it is for those that take more than this part of the time, one in `LARGE`.
const LARGE: u64 = 32;

/// The streams that a drive has been promised to, with what each has reserved.
#[derive(Clone, Debug)]
pub struct Ledger {
    pub(super) disk: Disk,
    streams: Vec<Stream>,
    /// The same as they are served: some optional ones as mandatory ([`as_mandatory`]).
    served: Vec<Stream>,
    /// The group of each stream.
    group: Vec<usize>,
    pub(super) groups: Vec<Group>,
    /// For how many commands that are at the drive when they begin periods have room.
    pub(super) crossing: u32,
    worst_ppm: u64,
    /// No reservation is larger than is needed: no stream has gone since they were found.
    lean: bool,
    /// Goes up when something changes that others' reservations depend on.
    pub(super) version: u64,
    /// The work of streams that are looked for at several qualities, or in several ways. With
    /// thousands of requests in a period it takes a second to make.
    made: Vec<Made>,
    /// What becomes of streams whose reservations are used up: what they leave best effort depends
    /// on it.
    exhausted: Exhausted,
}

/// Streams that ask for the same.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) stream: Stream,
    /// How many there are, and the first of them.
    pub(super) count: u64,
    first: usize,
    pub(super) service: Service,
    work: Arc<Work>,
    pub(super) grid: Grid,
    /// r in fine bins; of mandatory streams nothing.
    reserved: usize,
    /// What one of them takes, in fine bins.
    pub(super) takes: Distribution,
    /// The version at which what it has reserved was found to be enough.
    enough_at: u64,
    /// The version at which what its streams take changed last.
    pub(super) changed_at: u64,
    /// V, as it was added up last.
    pub(super) sum: Option<Arc<Sum>>,
}

/// What all streams together leave, by period, size, kinds, and whether older requests may go
/// before.
type Rooms = BTreeMap<(Dur, u32, usize, bool), Room>;

impl Ledger {
    /// Of a drive that was promised to nothing.
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

    /// The same where streams fare so when their reservations are used up.
    #[must_use]
    pub fn under(self, exhausted: Exhausted) -> Ledger {
        Ledger { exhausted, ..self }
    }

    /// What is known of the drive.
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    /// The streams, in the order in which they came.
    pub fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// The answer for the streams that there are.
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

    /// One more stream, if it can be had beside the others, each served as it asks or as a
    /// mandatory one.
    ///
    /// # Errors
    /// Why not, and what could be had of it; nothing has changed then.
    pub fn add(&mut self, stream: Stream) -> Result<(), Refusal> {
        self.add_at_work(stream, |_| true)
    }

    /// The same where the others are at work: `free(i)` says whether the i-th, if it is served as
    /// it asks, may be served as a mandatory one from now on. The other way round any may.
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

    /// As [`Ledger::add`] where nothing is asked but whether streams can be had. They are served in
    /// the first way that is found, and a refusal has its reason only: to find the best, or what is
    /// nearest, takes most of the time.
    ///
    /// # Errors
    /// Why not; nothing has changed then.
    pub fn try_add(&mut self, stream: Stream) -> Result<(), Why> {
        *self = self.added(stream, &self.made_for(stream), &|_| true).map_err(|(why, _)| why)?;
        Ok(())
    }

    /// These streams and one more; or why not, and the other ways in which these were tried.
    /// `asked` is the work of the new one's requests.
    fn added(
        &self,
        stream: Stream,
        asked: &Option<Made>,
        free: &dyn Fn(usize) -> bool,
    ) -> Result<Ledger, (Why, Vec<Ledger>)> {
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

    /// These streams and one more.
    fn with(&self, new: AtWork) -> Result<Ledger, Why> {
        let mut ledger = self.clone();
        ledger.push(new)?;
        ledger.settle().map(|()| ledger)
    }

    /// More streams, if all of them can be had.
    ///
    /// # Errors
    /// Why not; what is left then is of no use.
    pub fn extend(&mut self, streams: &[Stream]) -> Result<(), Why> {
        for &stream in streams {
            self.push(stream.into())?;
        }
        self.settle()
    }

    /// These streams at once, each as it asks or as a mandatory one, if they can be had as they
    /// ask.
    ///
    /// # Errors
    /// Why not.
    pub(super) fn with_all(&self, streams: &[Stream]) -> Result<Ledger, Why> {
        let mut ledger = self.clone();
        ledger.extend(streams)?;
        Ok(ledger.improved(|_| true))
    }

    fn push(&mut self, new: AtWork) -> Result<(), Why> {
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

    /// Before anything is made for a mandatory stream: whether it is too much for condition 2 by
    /// more than what each stream's part of the time is rounded up by.
    fn has_time_for(&self, stream: &Stream) -> Result<(), Why> {
        let Ok(service) = self.disk.service_of(stream) else { return Ok(()) };
        let worst = service.worst + self.disk.blocking_of(stream);
        let needed = u128::from(stream.requests) * u128::from(worst.0) * 1_000_000;
        let needed = needed.div_ceil(u128::from(stream.period.0)) as u64;
        let needed_ppm = needed.saturating_add(self.worst_ppm);
        let rounded = self.streams.len() as u64 + 1;
        if needed_ppm > 1_000_000 + rounded { Err(Why::Worst { needed_ppm }) } else { Ok(()) }
    }

    fn open(&self, stream: Stream, first: usize) -> Result<Group, Why> {
        let service = self.disk.service_of(&stream).map_err(|e| match e {
            NotKnown::Kinds => Why::Kinds { stream: first, kinds: stream.kinds },
            NotKnown::Size { most } => Why::Size { stream: first, most, found: stream.sectors },
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

    /// Times of the older requests that one of a stream may have to wait for: reads or writes of
    /// the largest size that was measured, chosen from itself alone, and longer by as much as the
    /// worst case of a larger one is. Seeks and turns do not depend on the size, so what a larger
    /// one takes more, its sectors and ends of tracks, is no more.
    fn older(&self) -> Distribution {
        let largest = self.disk.largest();
        largest.times.fewest().later(self.disk.blocker().saturating_sub(largest.worst))
    }

    /// What mandatory streams demand.
    fn demand(&self) -> Result<Demand, Why> {
        let worst = |&g: &usize| {
            let Group { stream, service, .. } = &self.groups[g];
            let whole = service.worst + self.disk.blocking_of(stream);
            Worst { whole, longest: self.disk.longest_of(stream, service) }
        };
        let worsts: Vec<_> = self.served.iter().zip(&self.group).map(|(s, g)| (*s, worst(g))).collect();
        Demand::of(&worsts)
    }

    /// Finds reservations with which all have what they ask for.
    fn settle(&mut self) -> Result<(), Why> {
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

    /// Raises reservations until each is enough beside the others, or one cannot be.
    fn grow(&mut self, demand: &Demand) -> Result<(), Why> {
        let stale = |all: &Ledger, i: usize| {
            let group = &all.groups[i];
            !group.stream.is_mandatory() && group.enough_at < all.version
        };
        while (0..self.groups.len()).any(|i| stale(self, i)) {
            // A sum that serves several groups is right for the version at which it was made. If
            // reservations have grown since, groups that had enough by it are looked at again.
            let (mut rooms, mut made_at) = (Rooms::new(), self.version);
            // The newest first: it has no reservation yet, and the older ones may have enough.
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

    /// For how long before mandatory streams are released, at most, no request of worst case
    /// `worst` may be begun that need not be done by then.
    pub(super) fn kept_free(&self, worst: Dur, demand: &Demand) -> Dur {
        match demand.kept_free(worst) {
            Dur::ZERO => Dur::ZERO,
            free => free + self.disk.moves_longer(),
        }
    }

    /// The room that others leave in a period of group `i`. With `own` its stream is left out of
    /// their sum.
    fn room(&mut self, i: usize, own: bool, demand: &Demand) -> Room {
        let sum = self.sum(i, own, demand);
        let Group { stream, grid, service, work, .. } = &self.groups[i];
        let likely = service.likely() + self.disk.likely_blocker_of(stream);
        let worst = self.disk.longest_of(stream, service);
        let chance = likely.max(self.kept_free(worst, demand)).0.div_ceil(grid.fine.0) as usize;
        Room::new(grid.period, grid.factor, &sum.all, work, chance)
    }

    /// The least reservation of a group's streams beside the others as they are now, and not less
    /// than they have.
    fn least(&mut self, i: usize, demand: &Demand, rooms: &mut Rooms) -> Result<usize, Why> {
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
            // The sum for several groups has this stream in it, so there may be more room than it
            // leaves.
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
            Why::Quality { stream: me.first, asked: me.stream.quality, reached_ppm }
        })
    }
}

impl Group {
    /// Whether what one of them takes has changed with its reservation.
    fn reserve(&mut self, bins: usize) -> bool {
        // Reckoned with in whole wide bins, so that a reservation that grows by little changes
        // nothing for others.
        let wide = |bins: usize| bins.next_multiple_of(self.grid.factor);
        let (was, is) = (wide(self.reserved), wide(bins));
        self.reserved = bins;
        if was != is {
            self.takes = self.work.stopped(is);
        }
        was != is
    }
}
