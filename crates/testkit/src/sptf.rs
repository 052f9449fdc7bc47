//! Slow, simple versions of every ORDER: a loop over all requests, no index, no pruning.

use headtime_disk::profile::Prefetch;
use headtime_disk::{Dur, Head, Kind, Model, Place, Time};
use headtime_sched::Order;
use headtime_sched::internals::{ahead, overheads};

/// An eligible request.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// Its identifier.
    pub id: u64,
    /// Its sequence number by arrival.
    pub seq: u64,
    /// Read, write or flush.
    pub kind: Kind,
    /// Whether it must be on the media before it is acknowledged.
    pub fua: bool,
    /// Its queue, if there are queues.
    pub queue: u32,
    /// Its location; ignored for a flush.
    pub place: Place,
    /// Time of submission.
    pub submitted: Time,
}

/// The inputs of an order.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// The model of the drive.
    pub model: &'a Model,
    /// The current time.
    pub now: Time,
    /// The head when a read would begin.
    pub read: Head,
    /// The head when a write would begin.
    pub write: Head,
    /// One past the last LBN sent.
    pub lbn: u64,
    /// The id of the read that the drive continues without a break.
    pub continuation: Option<u64>,
    /// The same, or that of the write that continues a stream accepted by the drive's cache
    /// ([`Order::SptfAhead`]).
    pub stream: Option<u64>,
    /// The ids of cache hits ([`Order::SptfAhead`]).
    pub hits: &'a [u64],
    /// The ids of further cache hits, which are eligible only after another request
    /// ([`Order::SptfAhead`]).
    pub later_hits: &'a [u64],
    /// Whether sequential writes are dispatched in LBN order.
    pub writes_in_order: bool,
    /// Whether ADMIT selects applications: ages count twice as much ([`Order::SptfAhead`]).
    pub of_applications: bool,
    /// Positioning times of recently arrived requests, including this decision's
    /// ([`Order::SptfAhead`]).
    pub arrivals: &'a [Dur],
}

impl Situation<'_> {
    fn head(&self, w: &Waiting) -> &Head {
        match w.kind {
            Kind::Write => &self.write,
            _ => &self.read,
        }
    }

    /// Returns whether a request needs no head movement.
    fn stays(&self, w: &Waiting) -> bool {
        self.continuation == Some(w.id) || self.hits.contains(&w.id)
    }

    /// Returns whether a request is not eligible yet.
    fn is_later(&self, w: &Waiting) -> bool {
        self.later_hits.contains(&w.id)
    }

    /// Seek time of one request.
    pub fn seek(&self, w: &Waiting) -> Dur {
        if self.stays(w) {
            return Dur::ZERO;
        }
        self.model.access(self.head(w), &w.place, w.kind).seek
    }

    /// Positioning time of one request: from the earliest start of a read or a write until its
    /// transfer would begin if it were done from front to back.
    pub fn positioning(&self, w: &Waiting) -> Dur {
        if self.stays(w) {
            return Dur::ZERO;
        }
        let head = self.head(w);
        let access = self.model.access(head, &w.place, w.kind);
        let later = head.at.since(self.read.at.min(self.write.at));
        let on_media = access.head_time().saturating_sub(w.place.transfer);
        later + on_media.max(access.seek)
    }

    /// Returns whether the drive reads `next` after `first` without a break.
    fn follows(&self, first: &Waiting, next: &Waiting) -> bool {
        let reads = first.kind == Kind::Read && next.kind == Kind::Read;
        let adjacent = first.place.lbn + u64::from(first.place.count) == next.place.lbn;
        reads && adjacent && self.model.cache.segments > 0 && self.model.cache.prefetch != Prefetch::None
    }

    /// Returns whether `next` must follow `first`: it arrived later and the drive reads it without
    /// a break, or both are writes.
    fn goes_behind(&self, first: &Waiting, next: &Waiting) -> bool {
        let writes = first.kind == Kind::Write && next.kind == Kind::Write && !first.fua && !next.fua;
        let adjacent = first.place.lbn + u64::from(first.place.count) == next.place.lbn;
        first.seq < next.seq && self.follows(first, next)
            || self.writes_in_order && writes && adjacent && first.queue == next.queue
    }

    /// Returns whether SPTF may choose a request: the first of sequential reads, or the one that
    /// the drive continues.
    fn is_candidate(&self, w: &Waiting, waiting: &[Waiting]) -> bool {
        self.continuation == Some(w.id) || !waiting.iter().any(|o| o.seq < w.seq && self.follows(o, w))
    }

    /// Positioning time of `next` from the end of `first`.
    fn positioning_after(&self, first: &Waiting, next: &Waiting) -> Dur {
        if self.follows(first, next) {
            return Dur::ZERO;
        }
        if self.hits.contains(&first.id) || self.hits.contains(&next.id) {
            return self.positioning(next);
        }
        let mut head = self.model.access(self.head(first), &first.place, first.kind).end;
        let gap = overheads::between(self.model, first.kind, next.kind);
        head.angle = head.angle_at(head.at + gap, &self.model.mechanics.rotation);
        head.at += gap;
        let access = self.model.access(&head, &next.place, next.kind);
        gap + access.head_time().saturating_sub(next.place.transfer).max(access.seek)
    }

    /// The mean over recent arrivals of the smaller of a time in nanoseconds and the arrival's
    /// positioning time.
    fn or_sooner(&self, time: u64) -> u64 {
        self.arrivals.iter().map(|a| a.0.min(time)).sum::<u64>() / self.arrivals.len() as u64
    }

    /// The look-ahead cost of a request; the smallest is dispatched first. `three`: over three
    /// requests.
    fn ahead(&self, w: &Waiting, waiting: &[Waiting], three: bool) -> i64 {
        let others = |of: &[u64]| -> Vec<&Waiting> {
            waiting.iter().filter(|o| !of.contains(&o.id) && !self.is_later(o)).collect()
        };
        let three = three && others(&[]).len() <= ahead::MAX_EXACT_FOR_THREE;
        let third = |o: &Waiting| {
            let time = others(&[w.id, o.id]).iter().map(|p| self.positioning_after(o, p).0).min();
            time.filter(|_| three).map_or(0, |time| self.or_sooner(time) * 2 / 5)
        };
        let after = others(&[w.id]).iter().map(|o| self.positioning_after(w, o).0 + third(o)).min();
        let after = after.map_or(0, |after| self.or_sooner(after));
        let left = waiting.iter().find(|o| self.stream == Some(o.id) && o.id != w.id);
        let back = left.map_or(0, |o| self.positioning_after(w, o).0);
        let age = self.now.since(w.submitted).0 as i64;
        let gains = match self.stream {
            // A write: the drive's cache accepts the stream.
            Some(_) if self.continuation.is_none() => 8,
            Some(_) => 64,
            None => (if self.of_applications { 16 } else { 32 }) * waiting.len() as i64,
        };
        self.positioning(w).0 as i64 + (after + back) as i64 - age / gains
    }
}

/// Returns the id of the request that is dispatched next.
pub fn choose(order: Order, waiting: &[Waiting], s: &Situation) -> Option<u64> {
    if order == Order::Fcfs {
        return waiting.iter().min_by_key(|w| w.seq).map(|w| w.id);
    }
    let flush = waiting.iter().filter(|w| w.kind == Kind::Flush).min_by_key(|w| w.seq);
    if let Some(flush) = flush {
        return Some(flush.id);
    }
    let all = waiting.iter();
    let first = |w: &&Waiting| s.is_candidate(w, waiting);
    let chosen = match order {
        Order::Fcfs => None,
        Order::Clook => all.min_by_key(|w| (w.place.lbn < s.lbn, w.place.lbn, w.seq)),
        Order::Sstf => all.min_by_key(|w| (w.place.cylinder.abs_diff(s.read.cylinder), w.seq)),
        Order::Sptf => all.filter(first).min_by_key(|w| (s.positioning(w), w.seq)),
        Order::SptfAhead | Order::SptfJoint if waiting.len() > ahead::MAX_EXACT => {
            let cost =
                |w: &Waiting| s.positioning(w).0 as i64 - (s.now.since(w.submitted).0 / ahead::AGE_DIVISOR) as i64;
            let mut first = all.min_by_key(|w| (cost(w), w.seq))?;
            while let Some(before) = waiting.iter().filter(|o| s.goes_behind(o, first)).min_by_key(|o| o.seq) {
                first = before;
            }
            Some(first)
        }
        Order::SptfAhead | Order::SptfJoint => {
            let three = order == Order::SptfJoint;
            let now = |w: &&Waiting| !s.is_later(w);
            let first = |w: &&Waiting| !waiting.iter().filter(now).any(|o| s.goes_behind(o, w));
            all.filter(now).filter(first).min_by_key(|w| (s.ahead(w, waiting, three), w.seq))
        }
        Order::SptfSw(percent) => {
            let shortest = waiting.iter().filter(first).map(|w| s.positioning(w)).min()?;
            all.filter(first)
                .filter(|w| s.positioning(w).0 as u128 * 100 <= shortest.0 as u128 * (100 + percent as u128))
                .min_by_key(|w| (s.seek(w), s.positioning(w), w.seq))
        }
        Order::SatfUf(threshold) => {
            let urgent = waiting.iter().filter(|w| s.now.since(w.submitted) > threshold).min_by_key(|w| w.seq);
            urgent.or_else(|| all.filter(first).min_by_key(|w| (s.positioning(w), w.seq)))
        }
    };
    chosen.map(|w| w.id)
}
