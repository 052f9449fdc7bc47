//! ORDER: selects the next request among the eligible ones.
//!
//! One module per order. Each gets a [`View`]: the eligible requests, and where the head will be
//! when the next command can start. The requests may be in several queues, each with its own index.
//! Results are exact, and ties are resolved first come, first served: an optimised search chooses
//! what a loop over all requests would choose.

pub(crate) mod ahead;
pub(crate) mod clook;
pub(crate) mod fcfs;
pub(crate) mod satfuf;
pub(crate) mod sptf;
pub(crate) mod sptf_sw;
pub(crate) mod sstf;

use std::fmt;
use std::str::FromStr;

use headtime_disk::{Dur, Head, Kind, Model, Time};

use crate::names::NameError;
use crate::pool::{Key, Pool};
use crate::queues::{Eligible, Entry};
use ahead::{Ranked, Steps};

/// Widest window of `sptf-sw:N`, in percent.
const WIDEST_WINDOW: u32 = 1_000;
/// Longest threshold of `satfuf:MS`, in ms.
const LONGEST_WAIT_MS: f64 = 1e6;

/// A scheduling order.
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
    /// SPTF-SWn%: smallest seek of those within n percent of the shortest positioning time.
    SptfSw(u32),
    /// SPTF with look-ahead over the waiting requests, the next arrival, and aging.
    SptfAhead,
    /// The same over three requests, deciding together with FILL (`core`): among requests
    /// of about equal cost to the foreground, the one whose gap is worth most.
    SptfJoint,
    /// SPTF, but a request that waited longer than this is dispatched first.
    SatfUf(Dur),
}

impl Order {
    /// Names, with their figures as capitals.
    pub const NAMES: [&'static str; 8] =
        ["fcfs", "clook", "sstf", "sptf", "sptf-ahead", "sptf-joint", "sptf-sw:N", "satfuf:MS"];

    /// Returns the sort key of the pool's index for this order.
    pub fn key(self) -> Key {
        match self {
            Order::Fcfs => Key::Arrival,
            Order::Clook => Key::Lbn,
            Order::Sstf | Order::Sptf | Order::SptfSw(_) | Order::SatfUf(_) => Key::Cylinder,
            Order::SptfAhead | Order::SptfJoint => Key::Cylinder,
        }
    }

    /// Returns whether service times equal those under SPTF, so that the service-time distribution
    /// of a profile (X), which was measured under SPTF, holds. SPTF-SW trades positioning time for
    /// the nearest cylinder: a stream with a quality of 95% that fills the Ultrastar gets 98.5%
    /// with a window of 100 and 85.8% with 1,000 (99.98% under SPTF), and one of 30% with 512-byte
    /// requests on the Atlas 10K gets 27.8% with 50.
    pub fn is_by_position(self) -> bool {
        matches!(self, Order::Sptf | Order::SptfAhead | Order::SptfJoint)
    }

    /// Returns whether it looks beyond the next request.
    #[inline]
    pub fn looks_ahead(self) -> bool {
        matches!(self, Order::SptfAhead | Order::SptfJoint)
    }

    /// Returns the slot of the next request, or `None` if none is eligible.
    #[inline]
    pub fn next(self, view: &mut View) -> Option<u32> {
        if self != Order::Fcfs
            && let Some(flush) = view.oldest_of(|queue| queue.oldest_flush)
        {
            // A flush has no position; it takes no head time from the scheduler's point of view,
            // and its client is waiting for all of its writes at once.
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

impl FromStr for Order {
    type Err = NameError;

    /// Parses a name; `satf` is another one of `sptf`, and N may have a `%`.
    fn from_str(name: &str) -> Result<Order, NameError> {
        let (word, figure) = name.split_once(':').map_or((name, None), |(w, f)| (w, Some(f)));
        Ok(match (word, figure) {
            ("fcfs", None) => Order::Fcfs,
            ("clook", None) => Order::Clook,
            ("sstf", None) => Order::Sstf,
            ("sptf" | "satf", None) => Order::Sptf,
            ("sptf-ahead", None) => Order::SptfAhead,
            ("sptf-joint", None) => Order::SptfJoint,
            ("sptf-sw", Some(f)) => match f.trim_end_matches('%').parse() {
                Ok(n) if n <= WIDEST_WINDOW => Order::SptfSw(n),
                _ => {
                    let range = format_args!("0 to {WIDEST_WINDOW}");
                    return Err(NameError::out_of_range("N of order sptf-sw:N (percent)", f, range));
                }
            },
            ("satfuf", Some(f)) => match f.parse::<f64>() {
                Ok(ms) if (0.0..=LONGEST_WAIT_MS).contains(&ms) => Order::SatfUf(Dur::from_ms_f64(ms)),
                _ => {
                    let range = format_args!("0 to {LONGEST_WAIT_MS}");
                    return Err(NameError::out_of_range("MS of order satfuf:MS", f, range));
                }
            },
            _ => return Err(NameError::unknown("order", name, &Order::NAMES)),
        })
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Order::Fcfs => f.write_str("fcfs"),
            Order::Clook => f.write_str("clook"),
            Order::Sstf => f.write_str("sstf"),
            Order::Sptf => f.write_str("sptf"),
            Order::SptfSw(percent) => write!(f, "sptf-sw:{percent}"),
            Order::SptfAhead => f.write_str("sptf-ahead"),
            Order::SptfJoint => f.write_str("sptf-joint"),
            Order::SatfUf(after) => write!(f, "satfuf:{}", after.as_ms_f64()),
        }
    }
}

/// The input of a decision.
#[derive(Debug)]
pub struct View<'a> {
    /// Every unfinished request.
    pub pool: &'a Pool,
    /// The queues to choose from, if ADMIT separates applications; `None`: all eligible requests.
    pub queues: Option<&'a [u32]>,
    /// Model of the drive.
    pub model: &'a Model,
    /// Current time.
    pub now: Time,
    /// The head at the instant at which a read, if chosen, would start to move it.
    pub read: Head,
    /// The same for a write. It differs from `read` where overheads depend on the kind of command
    /// (Reuther 2003 eq. 6).
    pub write: Head,
    /// One past the last LBN of the foreground read or write sent last.
    pub lbn: u64,
    /// The read that continues the drive's current read: the drive serves it without a break.
    pub continuation: Option<u32>,
    /// The same, or the write that continues a foreground stream of writes cached by a drive
    /// without a queue: another request leaves that stream ([`Order::SptfAhead`]).
    pub stream: Option<u32>,
    /// Whether it is a stream of writes that the drive's cache takes, so that its client waits for
    /// none of them.
    pub is_cached: bool,
    /// Reads that are cache hits: the head does not move for them ([`Order::SptfAhead`]).
    pub hits: &'a [u32],
    /// Reads that are cache hits, too, but wait until the head has moved for another request.
    pub later_hits: &'a [u32],
    /// Whether only the first of writes that continue each other is a candidate
    /// ([`Order::SptfAhead`]).
    pub writes_in_order: bool,
    /// Positioning times of recent arrivals; [`Order::SptfAhead`] updates them.
    pub arrivals: &'a mut ahead::Arrivals,
    /// Cost of each candidate, which [`Order::SptfJoint`] leaves for FILL; empty if there is no
    /// choice.
    pub ranked: &'a mut Vec<Ranked>,
    /// Number of requests examined; orders increment it.
    pub looked_at: u64,
}

/// Time until a request's first sector passes under the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Seek to its track.
    pub seek: Dur,
    /// Seek and rotational latency, plus the later start of this kind of command relative to the
    /// other kind.
    pub positioning: Dur,
}

impl<'a> View<'a> {
    /// Returns the candidates, queue by queue.
    #[inline]
    pub fn choices(&self) -> impl Iterator<Item = Eligible<'a>> + use<'a> {
        self.pool.choices(self.queues)
    }

    /// Of one request of each queue, returns the one that arrived first.
    #[inline]
    pub fn oldest_of(&self, of: impl Fn(&Eligible) -> Option<u32>) -> Option<u32> {
        self.choices().filter_map(|queue| of(&queue)).min_by_key(|&slot| self.pool.get(slot).seq)
    }

    /// Returns the cylinder of the head.
    #[inline]
    pub fn cylinder(&self) -> u32 {
        self.read.cylinder
    }

    /// Returns the cost of `entry` as the next request. Exact: equal to [`Model::access`].
    ///
    /// On a drive with read-on-arrival, positioning is head time less the transfer time from front
    /// to back: starting inside a request is as good as the rest of the revolution is short.
    #[inline]
    pub fn cost(&self, entry: &Entry) -> Cost {
        if self.continuation == Some(entry.slot) || self.hits.contains(&entry.slot) {
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
            // Starting in the middle can also save head switches; the seek remains.
            positioning: later + positioning.max(access.seek),
        }
    }

    /// Returns whether the read in `slot` continues an older eligible one, so that the drive would
    /// read it behind that one without a break.
    ///
    /// Only the first read of such a run is a candidate. The first sector of another one may pass
    /// sooner, but the earlier reads would be left behind and the head would return for them, up to
    /// `log n` times for a run of `n` reads.
    #[inline]
    pub fn continues_another(&self, slot: u32) -> bool {
        let read = self.pool.get(slot);
        let may_go = |before: u32| self.queues.is_none_or(|queues| queues.contains(&self.pool.get(before).queue));
        let is_older = |before: u32| self.pool.get(before).seq < read.seq && ahead::follows(self, before, slot);
        self.pool.ends_at(read.request.lbn).any(|before| may_go(before) && is_older(before))
    }

    /// Returns a lower bound on seek and positioning time at this distance in cylinders or further.
    #[inline]
    pub fn floor(&self, distance: u32) -> Dur {
        self.model.mechanics.reposition_floor(distance)
    }

    /// Returns an entry's place in the order of arrival.
    #[inline]
    pub fn seq(&self, entry: &Entry) -> u64 {
        self.pool.get(entry.slot).seq
    }

    /// Iterates over the reads and writes of a queue, nearest to the head's cylinder first. The
    /// index must be sorted by cylinder.
    #[inline]
    pub fn outward(&self, queue: &Eligible<'a>) -> Outward<'a> {
        let entries = queue.index;
        let center = self.cylinder();
        let above = entries.partition_point(|e| e.key < center as u64);
        Outward { entries, center, below: above, above }
    }
}

/// Iterator over an index sorted by cylinder, outward from one cylinder in both directions at once.
#[derive(Clone, Debug)]
pub struct Outward<'a> {
    entries: &'a [Entry],
    center: u32,
    /// Entries before this one are not visited yet.
    below: usize,
    /// This entry and those behind it are not visited yet.
    above: usize,
}

impl<'a> Iterator for Outward<'a> {
    /// Distance in cylinders, and the entry.
    type Item = (u32, &'a Entry);

    #[inline]
    fn next(&mut self) -> Option<(u32, &'a Entry)> {
        // Which side is nearer is unpredictable, so both are read and no branch depends on it.
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
