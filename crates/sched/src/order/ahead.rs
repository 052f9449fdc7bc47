//! SPTF with look-ahead: prefers, among few waiting requests, the one after which the next one is
//! also reached soon.
//!
//! SPTF considers one request and takes the nearest even if that leaves the head far from all
//! others. With a short queue the following request can be considered as well: `b` is followed by
//! the request `c` nearest from the end of `b`. But by the end of `b` another request will have
//! arrived, which may be nearer than `c`. The distribution of its positioning time is known from
//! recent arrivals ([`Arrivals`]), so the cost of `b` is
//!
//! ```text
//! positioning(b) + E[min(positioning(b -> c), positioning of the next arrival)] + back(b) - age(b) / (32 n)
//! ```
//!
//! For applications selected by ADMIT the age counts twice as much.
//!
//! While the drive reads a stream, the next read of that stream costs nothing. Any other request
//! `b` leaves the stream, and `back(b)` is the positioning time from `b` to that read; the age then
//! counts one part in 64 (`STREAM`). So one of several streams is read until another request has
//! waited 64 times as long as the move to it and the move back take. The same holds for a
//! stream of writes that a drive without a queue caches, with one part in 8 (`CACHED`). Where no
//! waiting request continues a stream, `back(b)` is zero. (Streams of writes on drives without a
//! write cache have no such term: with it the writer had 1 to 3% more beside one or two random
//! readers, and 3 to 5% less beside eight.)
//!
//! The age term is that of the aged SPTF of Jacobson and Wilkes (1991, "Disk scheduling algorithms
//! based on rotational position"): a badly placed request gains on the others while it waits, so
//! the largest response times fall. Ages grow with the number `n` of waiting requests; a request
//! that has waited as long as under first come, first served has gained one part in 32 of a service
//! time, whatever `n` is.
//!
//! A cache hit costs nothing and leaves the head where it is. The drive's own queue dispatches hits
//! first, too. (With more than [`MAX_EXACT`] waiting, hits are not searched for.)
//!
//! Of waiting reads that continue each other, only the first is a candidate; the drive reads the
//! others after it without a break. If ORDER started in the middle of such a run, the run would
//! continue with reads that arrive at its end, and its first reads would be left behind. A run that
//! arrived in descending order belongs to a program that reads backwards: no later read continues
//! it at its end, so any of its reads is a candidate. Of writes that continue each other only the
//! first is a candidate, on a drive without a write cache ([`crate::merge`]).
//!
//! [`Order::SptfJoint`] considers a third request: to `positioning(b -> c)` it adds a fraction
//! (`THIRD`) of the positioning time from `c` to the nearest other request. It leaves the cost of
//! each candidate to FILL.
//!
//! [`Order::SptfJoint`]: super::Order::SptfJoint
//!
//! Drive firmware looks one request ahead; a scheduler outside the drive can afford this while the
//! drive is busy. It is exact for up to [`MAX_EXACT`] requests; with more waiting one of them is
//! always near, and the request that continues the last one, positioning time and age decide
//! ([`AGE_DIVISOR`]).

use headtime_disk::{Dur, Head, Kind, Model, Time};

use super::{Cost, View};
use crate::merge::can_merge;
use crate::overheads::between;
use crate::queues::Entry;

/// With more requests waiting than this, there is no look-ahead.
pub const MAX_EXACT: usize = 32;

/// With more than [`MAX_EXACT`] requests waiting, the cost of a request falls by its waiting time
/// divided by this. Measured with 34 to 1,024 random reads outstanding on four drives (atlas10k,
/// barracuda36es2, hitachi-7k1000c, nearline-20tb), against the drive's own queue, to which the
/// requests beyond its depth are fed in order of arrival: 1.00 to 1.53 times the requests per
/// second, and a p99 of 0.70 to 1.03 times the drive's. With 192 the rate is 1.00 to 1.42 and the
/// p99 0.65 to 0.95; with 384 1.01 to 1.67 and 0.75 to 1.10.
pub const AGE_DIVISOR: u64 = 256;

/// A request gains one part in `AGE` of the time that it has waited, divided by the number of
/// requests. Measured against the drive's own queue with 3 to 32 random reads outstanding (four
/// drives), six readers of one cylinder and three local readers beside three random ones. With 16
/// the p99 of random reads is lower (0.76 to 0.92 of the drive's instead of 0.80 to 0.97), and the
/// local readers have less (0.93 to 0.97 of the requests instead of 0.96 to 0.99). With 64 the p99
/// rises to 1.04.
const AGE: i64 = 32;

/// The same for applications selected by ADMIT. Four to ten scattered applications ordered
/// together: 99.4% of the requests of the drive's own queue, and a p99 that is no higher. With 32
/// 99.6%, and a p99 of up to 1.03 times the drive's.
const AGE_OF_APPLICATIONS: i64 = 16;

/// A stream is left for a request that has waited this many times as long as the moves to it and
/// back take. So of several streams, leaving one for the next takes less than 1% of the time.
const STREAM: i64 = 64;

/// The same for a stream of writes that the drive's cache takes.
const CACHED: i64 = 8;

/// Number of arrivals kept.
const REMEMBERED: usize = 64;

/// Positioning times of recent arrivals, served or not, from the head position when each was first
/// seen.
#[derive(Clone, Debug)]
pub struct Arrivals {
    /// In order of arrival.
    recent: [u32; REMEMBERED],
    count: usize,
    /// `recent` in ascending order, and for each place the sum of those before it.
    sorted: [u32; REMEMBERED],
    before: [u64; REMEMBERED + 1],
    /// First place in the order of arrival that has not been seen.
    unseen: u64,
}

impl Default for Arrivals {
    fn default() -> Arrivals {
        Arrivals { recent: [0; REMEMBERED], count: 0, sorted: [0; REMEMBERED], before: [0; REMEMBERED + 1], unseen: 0 }
    }
}

impl Arrivals {
    /// Records a request seen for the first time.
    fn seen(&mut self, seq: u64, positioning: Dur) {
        self.unseen = seq + 1;
        let new = u32::try_from(positioning.0).unwrap_or(u32::MAX);
        let known = self.count.min(REMEMBERED);
        let at = self.count % REMEMBERED;
        if known == REMEMBERED {
            let old = self.sorted.partition_point(|&s| s < self.recent[at]);
            self.sorted[old..].rotate_left(1);
        }
        self.recent[at] = new;
        self.count += 1;
        let filled = known.min(REMEMBERED - 1);
        let place = self.sorted[..filled].partition_point(|&s| s < new);
        self.sorted[place..=filled].rotate_right(1);
        self.sorted[place] = new;
        for i in 0..=filled {
            self.before[i + 1] = self.before[i] + u64::from(self.sorted[i]);
        }
    }

    /// Returns the mean of the smaller of `positioning` and an arrival's positioning time;
    /// `positioning` itself while there are no arrivals.
    fn or_sooner(&self, positioning: Dur) -> Dur {
        let known = self.count.min(REMEMBERED);
        if known == 0 {
            return positioning;
        }
        let sooner = self.sorted[..known].partition_point(|&s| u64::from(s) < positioning.0);
        Dur((self.before[sooner] + positioning.0 * (known - sooner) as u64) / known as u64)
    }
}

/// Depth of the look-ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Steps {
    /// The next request and the following one.
    Two,
    /// And the one after that, with all candidates ranked, if at most [`MAX_EXACT_FOR_THREE`] wait.
    Three,
}

/// Maximum number of waiting requests for a third step. With `n` waiting it takes about `n` squared
/// positioning times per candidate; with more waiting a third request is always near, and
/// `Steps::Two` applies.
pub const MAX_EXACT_FOR_THREE: usize = 16;

/// Weight of the third request's positioning time in hundredths: other requests will have arrived
/// before it is served. Measured with oltp on an Atlas 10K, without FILL: 30 to 50 serve 0.1% more
/// requests per second than two steps do, and the p99 is 6% lower; 100 serves 0.6% fewer.
const THIRD: u64 = 40;

/// Cost of a request as the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranked {
    /// Its slot.
    pub slot: u32,
    /// Its place in the order of arrival.
    pub seq: u64,
    /// Its positioning time, that of the following ones, and that of the way back to a stream, in
    /// nanoseconds.
    pub time: i64,
    /// `time` less the gain by its age.
    pub cost: i64,
    /// Its own positioning time.
    pub positioning: Dur,
    /// The seek time in `positioning`.
    pub seek: Dur,
}

/// An eligible request.
#[derive(Clone, Copy)]
struct Candidate<'a> {
    entry: &'a Entry,
    positioning: Dur,
    seek: Dur,
    /// Its positioning time less the gain by its age.
    cost: i64,
    seq: u64,
}

/// Returns the next request; ties go to the one that arrived first.
pub(crate) fn next(view: &mut View, steps: Steps) -> Option<u32> {
    view.ranked.clear();
    let mut candidates: [Option<Candidate>; MAX_EXACT] = [None; MAX_EXACT];
    let waiting: usize = view.choices().map(|queue| queue.index.len()).sum();
    if waiting > MAX_EXACT {
        return aged(view);
    }
    let gains = match view.stream {
        Some(_) if view.is_cached => CACHED,
        Some(_) => STREAM,
        None if view.queues.is_some() => AGE_OF_APPLICATIONS * waiting as i64,
        None => AGE * waiting as i64,
    };
    let mut count = 0;
    for queue in view.choices() {
        for entry in queue.index.iter().filter(|entry| !view.later_hits.contains(&entry.slot)) {
            let slot = view.pool.get(entry.slot);
            let Cost { positioning, seek } = view.cost(entry);
            view.looked_at += 1;
            let age = view.now.saturating_since(slot.submitted);
            let cost = positioning.0 as i64 - age.0 as i64 / gains;
            candidates[count] = Some(Candidate { entry, positioning, seek, cost, seq: slot.seq });
            count += 1;
        }
    }
    let three = steps == Steps::Three && count <= MAX_EXACT_FOR_THREE;
    let candidates = &mut candidates[..count];
    // In order of arrival; one at a time, because there is almost always only one.
    let unseen = |from: u64| candidates.iter().flatten().filter(|c| c.seq >= from).min_by_key(|c| c.seq);
    while let Some(new) = unseen(view.arrivals.unseen) {
        view.arrivals.seen(new.seq, new.positioning);
    }
    candidates.sort_unstable_by_key(|c| c.map(|c| (c.cost, c.seq)));
    let continued = view.stream.and_then(|slot| candidates.iter().flatten().find(|c| c.entry.slot == slot));
    let mut best: Option<(i64, u64, u32)> = None;
    for b in candidates.iter().flatten() {
        // No later candidate can be better: its cost alone is higher. With three steps all are
        // ranked, because FILL may take one of higher cost.
        if !three && best.is_some_and(|(cost, ..)| b.cost > cost) {
            break;
        }
        if candidates.iter().flatten().any(|c| goes_before(view, c.entry.slot, b.entry.slot)) {
            continue;
        }
        let after = match three {
            true => two_behind(view, candidates, b),
            false => behind(view, candidates, b.entry, None),
        };
        view.looked_at += count as u64 - 1;
        let after = after.map_or(0, |after| view.arrivals.or_sooner(after).0 as i64);
        let left = continued.filter(|c| c.entry.slot != b.entry.slot);
        let back = left.map_or(0, |c| positioning_after(view, b.entry, c.entry).0 as i64);
        let cost = b.cost + after + back;
        if three {
            let Candidate { positioning, seek, seq, entry, .. } = *b;
            let time = positioning.0 as i64 + after + back;
            view.ranked.push(Ranked { slot: entry.slot, seq, time, cost, positioning, seek });
        }
        if best.is_none_or(|known| (cost, b.seq) < (known.0, known.1)) {
            best = Some((cost, b.seq, b.entry.slot));
        }
    }
    best.map(|(.., slot)| slot)
}

/// Returns the positioning time of the nearest request from the end of `first`, without the
/// requests in the slots `first` and `not`.
fn behind(view: &View, candidates: &[Option<Candidate>], first: &Entry, not: Option<u32>) -> Option<Dur> {
    let others = candidates.iter().flatten().filter(|c| c.entry.slot != first.slot && Some(c.entry.slot) != not);
    others.map(|c| positioning_after(view, first, c.entry)).min()
}

/// Returns the shortest sum of the positioning time of the request after `first` and a fraction
/// ([`THIRD`]) of that of the one after it.
fn two_behind(view: &View, candidates: &[Option<Candidate>], first: &Candidate) -> Option<Dur> {
    let mut shortest: Option<Dur> = None;
    for second in candidates.iter().flatten().filter(|c| c.entry.slot != first.entry.slot) {
        let time = positioning_after(view, first.entry, second.entry);
        if shortest.is_some_and(|known| time >= known) {
            continue;
        }
        let third = behind(view, candidates, second.entry, Some(first.entry.slot));
        let third = third.map_or(Dur::ZERO, |third| view.arrivals.or_sooner(third));
        let time = time + Dur(third.0 * THIRD / 100);
        shortest = Some(shortest.map_or(time, |known| known.min(time)));
    }
    shortest
}

/// With many waiting requests, returns the one with the shortest positioning time less the gain by
/// its age; ties go to the one that arrived first. Of a run of requests that continue each other it
/// returns the first.
///
/// Walks outward from the head's cylinder, as [`super::sptf`] does, and stops where the seek alone
/// costs more than the best found so far, even for the oldest request.
fn aged(view: &mut View) -> Option<u32> {
    let now = view.now;
    let gain = |submitted: Time| (now.saturating_since(submitted).0 / AGE_DIVISOR) as i64;
    let oldest = view.oldest_of(|queue| queue.oldest)?;
    let most = gain(view.pool.get(oldest).submitted);
    // The walk may end before it reaches the one that costs nothing.
    let mut best = view.continuation.map(|slot| {
        let continued = view.pool.get(slot);
        (-gain(continued.submitted), continued.seq, slot)
    });
    for queue in view.choices() {
        for (distance, entry) in view.outward(&queue) {
            view.looked_at += 1;
            let cost = view.cost(entry);
            let too_much = |seek: Dur| best.is_some_and(|(least, ..)| seek.0 as i64 - most > least);
            // Only a seek that is itself too long can mean that all further ones are.
            if too_much(cost.seek) && too_much(view.floor(distance)) {
                break;
            }
            let slot = view.pool.get(entry.slot);
            let found = (cost.positioning.0 as i64 - gain(slot.submitted), slot.seq, entry.slot);
            if best.is_none_or(|known| (found.0, found.1) < (known.0, known.1)) {
                best = Some(found);
            }
        }
    }
    best.map(|(.., slot)| first_of_run(view, slot))
}

/// Returns the first of the run of requests that continues with the one in `slot`.
fn first_of_run(view: &View, mut slot: u32) -> u32 {
    let may_go = |slot: u32| view.queues.is_none_or(|queues| queues.contains(&view.pool.get(slot).queue));
    loop {
        let lbn = view.pool.get(slot).request.lbn;
        let before = view.pool.ends_at(lbn).filter(|&before| may_go(before) && goes_before(view, before, slot));
        match before.min_by_key(|&before| view.pool.get(before).seq) {
            Some(before) => slot = before,
            None => return slot,
        }
    }
}

/// Returns whether the drive continues without a break from a command of `kind` that ends before
/// `end` to one that begins at `lbn`.
fn continues(model: &Model, kind: Kind, end: u64, next: Kind, lbn: u64) -> bool {
    end == lbn && kind.is_read() && next.is_read() && model.reads_ahead()
}

/// Returns whether the request in slot `next` must follow the one in `first`, which it continues:
/// as a later read that the drive reads without a break, or as a write.
fn goes_before(view: &View, first: u32, next: u32) -> bool {
    let (one, other) = (view.pool.get(first), view.pool.get(next));
    let of_another = view.queues.is_some() && one.queue != other.queue;
    let in_order = one.seq < other.seq && follows(view, first, next);
    in_order || view.writes_in_order && !of_another && can_merge(&one.request, &other.request)
}

/// Returns whether the drive reads `next` after `first` without a break.
pub(super) fn follows(view: &View, first: u32, next: u32) -> bool {
    let request = |slot: u32| &view.pool.get(slot).request;
    let (one, other) = (request(first), request(next));
    continues(view.model, one.kind, one.lbn + u64::from(one.count), other.kind, other.lbn)
}

/// Returns the time from the end of `first` until the first sector of `next` passes under the head.
fn positioning_after(view: &View, first: &Entry, next: &Entry) -> Dur {
    let model = view.model;
    if follows(view, first.slot, next.slot) {
        return Dur::ZERO;
    }
    // One of them is a cache hit: the head does not move for it.
    if view.hits.contains(&first.slot) || view.hits.contains(&next.slot) {
        return view.cost(next).positioning;
    }
    let head = if first.kind.is_read() { &view.read } else { &view.write };
    let place = |entry: &Entry| view.pool.get(entry.slot).place.as_ref().expect("a read or a write has a position");
    let end = model.access(head, place(first), first.kind).end;
    let gap = between(model, first.kind, next.kind);
    let at = end.at + gap;
    let head = Head { angle: end.angle_at(at, &model.mechanics.rotation), at, ..end };
    let access = model.access(&head, place(next), next.kind);
    gap + access.head_time().saturating_sub(place(next).transfer).max(access.seek)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_arrival_is_forgotten() {
        let mut a = Arrivals::default();
        assert_eq!(a.or_sooner(Dur(700)), Dur(700));
        a.seen(0, Dur(100));
        assert_eq!(a.or_sooner(Dur(700)), Dur(100));
        a.seen(1, Dur(900));
        assert_eq!((a.or_sooner(Dur(700)), a.or_sooner(Dur(50))), (Dur(400), Dur(50)));
        (2..=REMEMBERED as u64 + 1).for_each(|seq| a.seen(seq, Dur(500)));
        assert_eq!((a.or_sooner(Dur(700)), a.or_sooner(Dur(300))), (Dur(500), Dur(300)));
    }

    #[test]
    fn the_mean_is_that_of_a_loop_over_all_that_are_remembered() {
        let mut a = Arrivals::default();
        let mut all = vec![];
        for seq in 0..500u64 {
            let positioning = seq.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 45;
            a.seen(seq, Dur(positioning));
            all.push(positioning);
            let last = &all[all.len().saturating_sub(REMEMBERED)..];
            for x in [0, 1_000, 100_000, 400_000, 1 << 40] {
                let mean = last.iter().map(|&y| y.min(x)).sum::<u64>() / last.len() as u64;
                assert_eq!(a.or_sooner(Dur(x)), Dur(mean));
            }
        }
    }
}
