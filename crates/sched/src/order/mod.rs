//! ORDER: of the eligible requests, who goes next?
//!
//! One order a file. Each looks at a [`View`]: the eligible requests, and where the head will be
//! when the next command can begin. They may be in several queues, of which each has an index of
//! its own. Results are exact, and equals go first-come-first-served, so an order that searches
//! cleverly chooses what a loop over all requests would choose.

pub mod ahead;
pub mod clook;
pub mod fcfs;
pub mod satfuf;
pub mod sptf;
pub mod sptf_sw;
pub mod sstf;

use headtime_disk::command::Kind;
use headtime_disk::mechanics::Head;
use headtime_disk::model::Model;
use headtime_disk::time::{Dur, Time};

use crate::pool::{Entry, Key, Pool};
use crate::queues::Eligible;
use ahead::{Ranked, Steps};

/// Who goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// First come, first served.
    Fcfs,
    /// Circular LOOK by LBN.
    Clook,
    /// Shortest seek time first (by distance in cylinders).
    Sstf,
    /// Shortest positioning time first (SATF).
    Sptf,
    /// Smallest seek among those within so many percent of the shortest positioning time.
    SptfSw(u32),
    /// SPTF with look-ahead over the requests that wait, the next arrival, and ages.
    SptfAhead,
    /// The same over three requests, deciding together with FILL ([`crate::core`]): among requests
    /// that cost the foreground about the same, the one whose gap is worth most.
    SptfJoint,
    /// SPTF, but a request that waited longer than this goes first.
    SatfUf(Dur),
}

impl Order {
    /// What the pool's index must be sorted by for this order.
    pub fn key(self) -> Key {
        match self {
            Order::Fcfs => Key::Arrival,
            Order::Clook => Key::Lbn,
            Order::Sstf | Order::Sptf | Order::SptfSw(_) | Order::SatfUf(_) => Key::Cylinder,
            Order::SptfAhead | Order::SptfJoint => Key::Cylinder,
        }
    }

    /// Whether requests take as long as under SPTF, so that the times of a profile (X), which were
    /// measured under that, hold. SPTF-SW gives up position for the nearest cylinder: a stream of
    /// 95% that fills the Ultrastar has 98.5% with a window of 100 and 85.8% with 1,000 (99.98%
    /// under SPTF), and one of 30% of 512 bytes on the Atlas 10K has 27.8% with 50.
    pub fn is_by_position(self) -> bool {
        matches!(self, Order::Sptf | Order::SptfAhead | Order::SptfJoint)
    }

    /// Whether it looks ahead of the next request.
    #[inline]
    pub fn looks_ahead(self) -> bool {
        matches!(self, Order::SptfAhead | Order::SptfJoint)
    }

    /// The slot of the request that goes next; `None` when none is eligible.
    #[inline]
    pub fn next(self, view: &mut View) -> Option<u32> {
        if self != Order::Fcfs
            && let Some(flush) = view.oldest_of(|queue| queue.oldest_flush)
        {
            // A flush has no position to be judged by; it takes no head time from the scheduler's
            // point of view, and whoever sent it is waiting for all of its writes at once.
            return Some(flush);
        }
        match self {
            Order::Fcfs => fcfs::next(view),
            Order::Clook => clook::next(view),
            Order::Sstf => sstf::next(view),
            Order::Sptf => sptf::next(view),
            Order::SptfSw(percent) => sptf_sw::next(view, percent),
            Order::SptfAhead => ahead::next(view, Steps::Two),
            Order::SptfJoint => ahead::next(view, Steps::Three),
            Order::SatfUf(threshold) => satfuf::next(view, threshold),
        }
    }
}

/// What an order looks at when it decides.
#[derive(Debug)]
pub struct View<'a> {
    /// Every unfinished request.
    pub pool: &'a Pool,
    /// The queues that may be chosen from, where ADMIT has applications apart; `None`: everything
    /// eligible.
    pub queues: Option<&'a [u32]>,
    /// What is believed of the drive.
    pub model: &'a Model,
    /// Now.
    pub now: Time,
    /// The head at the instant a read, if chosen, would begin to move it.
    pub read: Head,
    /// The same for a write. It differs from `read` where overheads depend on the kind of command
    /// (Reuther 2003 eq. 6).
    pub write: Head,
    /// One past the last LBN of the foreground read or write sent last.
    pub lbn: u64,
    /// The read that continues what the drive reads: it goes on for it without a break.
    pub goes_on: Option<u32>,
    /// The same, or the write that continues those which a drive without a queue has cached, if it
    /// is the foreground's: another request leaves that stream ([`Order::SptfAhead`]).
    pub stream: Option<u32>,
    /// It is a stream of writes that the drive's cache takes: their client waits for none of them.
    pub is_cached: bool,
    /// Reads that the drive's cache answers: the head moves for none of them
    /// ([`Order::SptfAhead`]).
    pub hits: &'a [u32],
    /// Reads that it answers, too, but that wait until the head has moved for another request.
    pub later_hits: &'a [u32],
    /// Of writes that continue each other the first goes first ([`Order::SptfAhead`]).
    pub writes_in_order: bool,
    /// How near those were that arrived before; [`Order::SptfAhead`] learns it.
    pub arrivals: &'a mut ahead::Arrivals,
    /// What each request that may go next costs, as [`Order::SptfJoint`] leaves it for FILL; empty
    /// where it has no choice.
    pub ranked: &'a mut Vec<Ranked>,
    /// How many requests were looked at; orders count it up.
    pub looked_at: u64,
}

/// How long the head needs until a request's first sector passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Moving to its track.
    pub seek: Dur,
    /// Seek and rotational latency, and by how much this kind of command begins later than the
    /// other kind would.
    pub positioning: Dur,
}

impl<'a> View<'a> {
    /// What may be chosen, queue by queue.
    #[inline]
    pub fn choices(&self) -> impl Iterator<Item = Eligible<'a>> + use<'a> {
        self.pool.choices(self.queues)
    }

    /// Of one request of each queue the one that arrived first.
    #[inline]
    pub fn oldest_of(&self, of: impl Fn(&Eligible) -> Option<u32>) -> Option<u32> {
        self.choices().filter_map(|queue| of(&queue)).min_by_key(|&slot| self.pool.get(slot).seq)
    }

    /// The cylinder the head is on.
    #[inline]
    pub fn cylinder(&self) -> u32 {
        self.read.cylinder
    }

    /// What it costs to go to `entry` next. Exact: what [`Model::access`] would say.
    ///
    /// On a drive that reads on arrival, positioning is head time less the time the request takes
    /// when it is read from front to back: landing inside a request is as good as the rest of the
    /// turn is short.
    #[inline]
    pub fn cost(&self, entry: &Entry) -> Cost {
        if self.goes_on == Some(entry.slot) || self.hits.contains(&entry.slot) {
            return Cost { seek: Dur::ZERO, positioning: Dur::ZERO };
        }
        let (head, other) = match entry.kind {
            Kind::Write => (&self.write, &self.read),
            _ => (&self.read, &self.write),
        };
        let later = head.at.saturating_since(other.at);
        let mechanics = &self.model.mechanics;
        if mechanics.on_arrival(entry.kind) {
            return self.cost_on_arrival(entry, head, later);
        }
        let to = (entry.key as u32, entry.surface);
        let seek = mechanics.reposition((head.cylinder, head.surface), to, entry.kind);
        let rotation = &mechanics.rotation;
        let latency = rotation.wait(head.angle + rotation.angle_after(seek), entry.angle);
        Cost { seek, positioning: later + seek + latency }
    }

    fn cost_on_arrival(&self, entry: &Entry, head: &Head, later: Dur) -> Cost {
        let slot = self.pool.get(entry.slot);
        let place = slot.place.as_ref().expect("a flush has no position");
        let access = self.model.access(head, place, entry.kind);
        let positioning = access.head_time().saturating_sub(place.transfer);
        Cost {
            seek: access.seek,
            // Reading from the middle can save waiting at track ends too; the seek remains.
            positioning: later + positioning.max(access.seek),
        }
    }

    /// Whether the read in `slot` continues an older one that may go, and the drive would read it
    /// behind that one without a break.
    ///
    /// Of such a run only the first read is a candidate. The first sector of another one may pass
    /// sooner, but the reads before that would be left behind: the head would come back for them,
    /// and for a run of `n` reads up to `log n` times.
    #[inline]
    pub fn continues_another(&self, slot: u32) -> bool {
        let read = self.pool.get(slot);
        let may_go = |before: u32| self.queues.is_none_or(|queues| queues.contains(&self.pool.get(before).queue));
        let is_older = |before: u32| self.pool.get(before).seq < read.seq && ahead::follows(self, before, slot);
        self.pool.ends_at(read.request.lbn).any(|before| may_go(before) && is_older(before))
    }

    /// No request at this distance in cylinders or further has a shorter seek or positioning time.
    #[inline]
    pub fn floor(&self, distance: u32) -> Dur {
        self.model.mechanics.reposition_floor(distance)
    }

    /// The order of arrival of an entry.
    #[inline]
    pub fn seq(&self, entry: &Entry) -> u64 {
        self.pool.get(entry.slot).seq
    }

    /// The reads and writes of a queue, those nearest to the head's cylinder first. The index must
    /// be sorted by cylinder.
    #[inline]
    pub fn outward(&self, queue: &Eligible<'a>) -> Outward<'a> {
        let entries = queue.index;
        let center = self.cylinder();
        let above = entries.partition_point(|e| e.key < center as u64);
        Outward { entries, center, below: above, above }
    }
}

/// Walks an index sorted by cylinder outward from one cylinder, in both directions at once.
#[derive(Clone, Debug)]
pub struct Outward<'a> {
    entries: &'a [Entry],
    center: u32,
    /// Entries before this one were not visited yet.
    below: usize,
    /// This entry and those behind it were not visited yet.
    above: usize,
}

impl<'a> Iterator for Outward<'a> {
    /// Distance in cylinders, and the entry.
    type Item = (u32, &'a Entry);

    #[inline]
    fn next(&mut self) -> Option<(u32, &'a Entry)> {
        // Which side is nearer is anybody's guess, so both are looked at and nothing branches on
        // it.
        let distance = |at: usize| self.entries.get(at).map_or(u64::MAX, |e| (self.center as u64).abs_diff(e.key));
        let (down, up) = (distance(self.below.wrapping_sub(1)), distance(self.above));
        let go_down = down < up;
        let at = if go_down { self.below.wrapping_sub(1) } else { self.above };
        let entry = self.entries.get(at)?;
        self.below -= usize::from(go_down);
        self.above += usize::from(!go_down);
        Some((down.min(up) as u32, entry))
    }
}
