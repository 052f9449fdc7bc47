//! Unexpected hits in the drive's cache, and the correction of the model.
//!
//! A read that was predicted to miss but hit shows that a segment holds data that the model does
//! not know of. How far that segment extends before and after the read is unknown. A request near
//! it may hit as well, and then there is no gap before it: a command inserted there would make a
//! cache hit wait for the media. So a request within one segment length of such a read is treated
//! as a possible hit, until as many reads have missed as the cache has segments. By then the
//! segment has been reused, unless it was read again.

use headtime_disk::profile::CacheSpec;
use headtime_disk::{Access, Head, Model, Place};

use super::ahead::Ahead;
use super::passed::{passed, prefetch_limit};
use super::{Behind, CacheModel, Passed};

/// Places remembered.
const REMEMBERED: usize = 8;
/// Upper bound of [`Near::hits`]: this number of misses there outweighs any number of unexpected
/// hits. Chosen, not measured: it bounds for how long no gap is filled at a place that was read
/// often.
const MAX_HITS: u8 = 4;

/// A place where the cache held more than predicted.
#[derive(Clone, Copy, Debug)]
struct Near {
    /// First LBN of the last read there that hit unexpectedly.
    lbn: u64,
    /// Reads that had missed by then, anywhere.
    at: u64,
    /// Unexpected hits there less expected misses, at most [`MAX_HITS`].
    hits: u8,
}

/// The last reads that hit unexpectedly.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Surprises {
    /// A ring of places.
    places: [Option<Near>; REMEMBERED],
    next: usize,
    misses: u64,
    /// A read was served differently from the prediction, and nothing since: the drive may be
    /// reading ahead after it.
    pub reads_ahead_unknown: bool,
}

impl Surprises {
    /// Records an unexpected hit of a read of `lbn`.
    #[cold]
    pub(crate) fn note(&mut self, cache: &CacheSpec, lbn: u64) {
        // One per place: several hits of one segment do not displace the others.
        let known = self.places.iter().position(|p| p.is_some_and(|p| is_near(cache, p.lbn, lbn)));
        let hits = known.and_then(|i| self.places[i]).map_or(0, |p| p.hits);
        let near = Near { lbn, at: self.misses, hits: (hits + 1).min(MAX_HITS) };
        self.places[known.unwrap_or(self.next)] = Some(near);
        if known.is_none() {
            self.next = (self.next + 1) % REMEMBERED;
        }
    }

    /// Records a foreground read of `lbn`, with no background sectors in its command, that missed
    /// as predicted: the unknown segment near it ends before that, or begins after it. After
    /// several unexpected hits the sectors in between are not all held, and one miss proves little:
    /// it outweighs one of those hits.
    pub(crate) fn refute(&mut self, cache: &CacheSpec, lbn: u64) {
        for place in &mut self.places {
            if let Some(near) = place.as_mut().filter(|p| is_near(cache, p.lbn, lbn)) {
                near.hits -= 1;
                place.take_if(|p| p.hits == 0);
            }
        }
    }

    /// Records a read that missed, as far as is known.
    #[inline]
    pub(crate) fn missed(&mut self) {
        self.misses += 1;
    }

    /// Returns whether the cache may answer a read of `lbn`.
    pub(crate) fn near(&self, cache: &CacheSpec, lbn: u64) -> bool {
        let recent = |at: u64| self.misses - at < u64::from(cache.segments);
        self.places.iter().flatten().any(|p| recent(p.at) && is_near(cache, p.lbn, lbn))
    }
}

/// Returns whether one segment may hold both.
fn is_near(cache: &CacheSpec, read: u64, lbn: u64) -> bool {
    read.abs_diff(lbn) < u64::from(cache.segment_sectors)
}

impl CacheModel {
    /// Corrects a read of `place` that was predicted to hit `segment`, but was served by `access`.
    pub(crate) fn correct_false_hit(&mut self, model: &Model, segment: usize, place: &Place, access: &Access) {
        let by_foreground = self.segments.is_foregrounds(segment);
        self.segments.forget(segment);
        self.surprises.missed();
        self.surprises.reads_ahead_unknown = true;
        if self.ahead.is_some_and(|a| a.segment == segment) {
            (self.ahead, self.prefetch) = (None, None);
        }
        let passed = passed(model, place, access, true);
        self.segments.read(passed.first(), passed.asked, passed.upto());
        if !by_foreground {
            self.segments.used_in_background();
        }
    }

    /// Handles a read that was not served as predicted. Of the blocks that it was predicted to
    /// bring into `segment`, only the requested ones are certain. If it `kept_reading`, the drive
    /// reads ahead after it; otherwise what the drive did next is unknown.
    pub(crate) fn surprised(&mut self, command: u64, segment: usize, lbn: u64, count: u32, kept_reading: bool) {
        let end = lbn + u64::from(count);
        // Reads sent after it that continued in its segment are there, too.
        let later = self.behind.filter(|b| b.command != command && b.segment == segment && b.on.is_some());
        let held = self.segments.only(segment, lbn, later.map_or(end, |b| b.passed.end.max(end)));
        if self.ahead.is_some_and(|a| a.segment == segment) {
            (self.ahead, self.prefetch) = (None, None);
            self.segments.filled(segment);
        }
        self.behind.take_if(|b| b.command == command);
        self.surprises.reads_ahead_unknown = !kept_reading && self.behind.is_none();
        if kept_reading && later.is_none() {
            if !held {
                self.segments.set(segment, lbn, lbn, end);
            }
            let passed = Passed { asked: lbn, end, before: 0, whole: None };
            self.behind = Some(Behind { command, segment, passed, from: end, sequential: true, on: None });
        }
    }

    /// Handles a read that was predicted to miss and fill `segment`, or (`more`) to read its last
    /// sectors into it from the media, but hit: the cache holds more than predicted. `head` is the
    /// head position from which the drive then reads ahead; `None` if another command has been sent
    /// since.
    #[cold]
    pub(crate) fn was_hit(
        &mut self,
        model: &Model,
        (command, segment): (u64, usize),
        (lbn, count, sequential): (u64, u32, bool),
        more: bool,
        head: Option<Head>,
    ) {
        let end = lbn + u64::from(count);
        let (first, _) = self.segments.range(&model.geometry, segment);
        // It may have been reused since.
        let kept = more && self.segments.continues_at(&model.geometry, segment, lbn);
        // A prefetch that was predicted to run there does run, but begins after the end of this
        // read.
        let under_way = self.ahead.filter(|a| kept && a.segment == segment).map(|a| a.head);
        self.surprised(command, segment, lbn, count, false);
        let reach = |first: u64, held: u64| {
            let from = match model.keep_passing {
                true => model.geometry.track_of(first).map_or(first, |t| t.first_lbn),
                false => first,
            };
            (from, prefetch_limit(model, first, held, true))
        };
        let found = match more {
            true if kept => {
                self.segments.set(segment, first.min(lbn), first.min(lbn), end);
                Some(segment)
            }
            false if self.segments.only(segment, lbn, end) => {
                self.segments.regain(&model.geometry, segment, lbn, end, reach)
            }
            _ => None,
        };
        if let (Some(segment), Some(head)) = (found, under_way.or(head)) {
            let (first, held) = self.segments.range(&model.geometry, segment);
            let limit = prefetch_limit(model, first, end, sequential);
            if limit > held && (under_way.is_some() || model.cache.prefetch_on_idle_hit) {
                self.segments.filling(segment);
                self.ahead = Some(Ahead { segment, from: held, limit, known_to: 0, head });
                self.prefetch = None;
                self.surprises.reads_ahead_unknown = false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_disk::profile;

    fn cache() -> CacheSpec {
        profile::builtin("hitachi-7k1000c").expect("a built-in drive").electronics.cache
    }

    #[test]
    fn near_is_within_a_segments_length() {
        let (cache, mut s) = (cache(), Surprises::default());
        assert!(!s.near(&cache, 100_000));
        s.note(&cache, 100_000);
        let length = u64::from(cache.segment_sectors);
        assert!(s.near(&cache, 100_000 - length + 1) && s.near(&cache, 100_000 + length - 1));
        assert!(!s.near(&cache, 100_000 - length) && !s.near(&cache, 100_000 + length));
    }

    #[test]
    fn hits_of_one_place_do_not_push_out_those_of_others() {
        let (cache, mut s) = (cache(), Surprises::default());
        s.note(&cache, 1 << 30);
        (0..2 * REMEMBERED as u64).for_each(|n| s.note(&cache, n * 8));
        assert!(s.near(&cache, 1 << 30) && s.near(&cache, 0));
        (2..REMEMBERED as u64 + 1).for_each(|n| s.note(&cache, n << 30));
        assert!(!s.near(&cache, 1 << 30), "the oldest is replaced");
    }

    #[test]
    fn one_miss_makes_up_for_one_hit_and_four_for_any_number() {
        let (cache, mut s) = (cache(), Surprises::default());
        (0..2).for_each(|n| s.note(&cache, n * 8));
        s.refute(&cache, 16);
        assert!(s.near(&cache, 0));
        s.refute(&cache, 16);
        assert!(!s.near(&cache, 0));
        (0..100).for_each(|n| s.note(&cache, n * 8));
        (1..MAX_HITS).for_each(|_| s.refute(&cache, 0));
        assert!(s.near(&cache, 0));
        s.refute(&cache, 0);
        assert!(!s.near(&cache, 0));
    }

    #[test]
    fn a_surprise_is_forgotten_when_every_segment_may_have_been_used_since() {
        let (cache, mut s) = (cache(), Surprises::default());
        s.note(&cache, 8);
        (1..cache.segments).for_each(|_| s.missed());
        assert!(s.near(&cache, 0));
        s.missed();
        assert!(!s.near(&cache, 0));
    }

    #[test]
    fn a_read_nearby_that_came_from_the_media_refutes_it() {
        let (cache, mut s) = (cache(), Surprises::default());
        s.note(&cache, 8);
        s.note(&cache, 1 << 30);
        s.refute(&cache, 16);
        assert!(!s.near(&cache, 0) && s.near(&cache, 1 << 30));
    }
}
