//! The size of a drive's cache, and how far it reads ahead.

use headtime_disk::profile::Prefetch;
use headtime_disk::{Dur, Track};

use super::{Questions, Seen, TRIES};
use crate::device::Ask;
use crate::error::ProbeError;

/// Properties of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheHabits {
    /// Number of segments: reads that it holds, each with its read-ahead.
    pub segments: u32,
    /// Sectors of each segment; `None`: more than were tested.
    pub segment_sectors: Option<u32>,
    /// Whether delivered sectors can be hit again.
    pub keep_delivered: Seen,
    /// How far it reads ahead; a number of sectors beyond all tracks means without limit.
    pub prefetch: Prefetch,
    /// Whether it reads ahead only after a sequential read.
    pub only_sequential: bool,
}

/// Upper bound of segments.
const MOST_SEGMENTS: u32 = 4_096;
/// A read this long, in 512-byte blocks, overflows the segments of most caches; if it does not, it
/// is doubled up to three times.
const LONG_READ: u32 = 2_048;
/// Where read-ahead is tested, in sixteenths of the rest of a track: near, at its end, between and
/// beyond.
const LOOKED_FOR: [u64; 11] = [0, 16, 8, 4, 12, 2, 6, 10, 14, 20, 24];
impl Questions<'_, '_, '_> {
    /// Measures all properties of the cache. `None`: it never answered.
    pub(super) fn cache(&mut self) -> Result<Option<CacheHabits>, ProbeError> {
        let mut keep_delivered = Seen::default();
        for _ in 0..TRIES {
            self.spindle.keep(self.sampler)?;
            let Some((t, _)) = self.track() else { break };
            let lbn = t.first_lbn + u64::from(t.lbns / 4);
            self.sampler.read(lbn, 1)?;
            if let Some(hit) = self.is_cached(lbn, Dur::ZERO)? {
                keep_delivered.observe(hit);
            }
        }
        let always = self.reads_ahead(false)?;
        let ahead = if always.is_some() { always } else { self.reads_ahead(true)? };
        let only_sequential = always.is_none() && ahead.is_some();
        if !keep_delivered.holds() && ahead.is_none() {
            return Ok(None);
        }
        let prefetch = match ahead {
            Some(inside) => self.prefetch(only_sequential, inside)?,
            None => Prefetch::None,
        };
        // A read is still held if it, or the read-ahead after it, is hit.
        let shows = if keep_delivered.holds() { 0 } else { 1 };
        let segments = self.segments(shows, only_sequential)?;
        let segment_sectors = self.segment_sectors(segments, keep_delivered.holds())?;
        Ok(Some(CacheHabits { segments, segment_sectors, keep_delivered, prefetch, only_sequential }))
    }

    /// Reads a sector of a track (after the preceding one, for a sequence) and waits for read-ahead
    /// to finish. Returns whether the cache has the sector `n` behind its end; 1 is the next.
    fn after_read(&mut self, t: &Track, lbn: u64, sequential: bool, n: u64) -> Result<Option<bool>, ProbeError> {
        if sequential && lbn > t.first_lbn {
            self.sampler.read(lbn - 1, 1)?;
        }
        self.sampler.read(lbn, 1)?;
        let rest = self.rest();
        if lbn + n >= self.sampler.sectors() {
            return Ok(None);
        }
        self.is_cached(lbn + n, rest)
    }

    /// Tests for read-ahead after a single sector, a quarter into its track. Returns a lower bound
    /// of its length. A segment may hold less than the read-ahead, so near and far sectors are
    /// tested.
    fn reads_ahead(&mut self, sequential: bool) -> Result<Option<u64>, ProbeError> {
        for part in LOOKED_FOR {
            let mut least = u64::MAX;
            let found = self.vote(|q| {
                let Some((t, _)) = q.track() else { return Ok(None) };
                let from = t.first_lbn + u64::from(t.lbns / 4);
                // The track's last sector is 16 sixteenths of the rest.
                let n = (u64::from(t.lbns - t.lbns / 4 - 1) * part / 16).max(2);
                least = least.min(n);
                q.after_read(&t, from, sequential, n)
            })?;
            if found {
                return Ok(Some(least));
            }
        }
        Ok(None)
    }

    /// Finds how far the drive reads ahead after a single sector.
    fn prefetch(&mut self, sequential: bool, inside: u64) -> Result<Prefetch, ProbeError> {
        let quarter = |t: &Track| t.first_lbn + u64::from(t.lbns / 4);
        let end = |t: &Track| t.first_lbn + u64::from(t.lbns);
        let to_end = self.vote(|q| {
            let Some((t, _)) = q.track() else { return Ok(None) };
            q.after_read(&t, quarter(&t), sequential, end(&t) - 1 - quarter(&t))
        })?;
        let beyond = self.vote(|q| {
            let Some((t, _)) = q.track() else { return Ok(None) };
            q.after_read(&t, quarter(&t), sequential, end(&t) - quarter(&t))
        })?;
        if to_end && !beyond {
            // After a read across a track's end: does read-ahead continue for one track beyond the
            // one it ends on? Tested near the end of that track, because a segment may hold less
            // than a track.
            let more = self.vote(|q| {
                let Some((t, next)) = q.track() else { return Ok(None) };
                if sequential {
                    q.sampler.read(end(&t) - 2, 1)?;
                }
                q.sampler.read(end(&t) - 1, 2)?;
                let rest = q.rest();
                let far = end(&next) + u64::from(next.spt) - 2;
                if far >= q.sampler.sectors() {
                    return Ok(None);
                }
                q.is_cached(far, rest)
            })?;
            return Ok(if more { Prefetch::TrackAhead } else { Prefetch::ToTrackEnd(u32::MAX) });
        }
        // A fixed number of sectors, less or more than a track. Tested at the front, where there is
        // room.
        let g = self.pairs.geometry();
        let most = u64::from(g.track_of(0).map_or(1, |t| t.lbns)) * 16;
        let n = self.last_yes((inside, most.max(inside + 1)), |q, n| {
            let Some((t, _)) = q.track() else { return Ok(None) };
            q.after_read(&t, t.first_lbn + 1, sequential, n)
        })?;
        let n = u32::try_from(n).unwrap_or(u32::MAX);
        // Across a track's end, if that is close enough; and across a cylinder's.
        let over = |q: &mut Self, cylinder: bool| {
            q.vote(|q| {
                let crosses = |(t, next): &(Track, Track)| (t.cylinder != next.cylinder) == cylinder;
                let Some((t, _)) = (0..200).find_map(|_| q.track().filter(crosses)) else { return Ok(None) };
                let back = u64::from(n / 2).clamp(1, u64::from(t.lbns) - 2);
                q.after_read(&t, end(&t) - back, sequential, back)
            })
        };
        Ok(match (over(self, false)?, over(self, true)?) {
            (_, true) => Prefetch::Sectors(n),
            (true, false) => Prefetch::ToCylinderEnd(n),
            (false, false) => Prefetch::ToTrackEnd(n),
        })
    }

    /// Finds the number of reads that the cache holds: one more than the number of other reads
    /// after which a read is still held.
    fn segments(&mut self, shows: u64, sequential: bool) -> Result<u32, ProbeError> {
        let held = |q: &mut Self, others: u64| {
            let Some((t, _)) = q.track() else { return Ok(None) };
            let lbn = t.first_lbn + u64::from(t.lbns / 4);
            if sequential && shows > 0 {
                q.sampler.read(lbn - 1, 1)?;
            }
            q.sampler.read(lbn, 1)?;
            if shows > 0 {
                // Wait for read-ahead to finish.
                let rest = q.rest();
                let later = q.sampler.now();
                let Some((elsewhere, _)) = q.track() else { return Ok(None) };
                if others > 0 {
                    q.sampler.run(&[Ask { not_before: later + rest, ..Ask::read(elsewhere.first_lbn, 1) }], 1)?;
                }
            }
            for _ in u64::from(shows > 0)..others {
                let Some((t, _)) = q.track() else { return Ok(None) };
                let elsewhere = t.first_lbn + q.sampler.below(u64::from(t.lbns / 2));
                q.sampler.read(elsewhere, 1)?;
            }
            let rest = if shows > 0 && others == 0 { q.rest() } else { Dur::ZERO };
            q.is_cached(lbn + shows, rest)
        };
        let mut high = 1;
        while high < u64::from(MOST_SEGMENTS) && self.vote(|q| held(q, high))? {
            high *= 2;
        }
        Ok(self.last_yes((0, high), held)? as u32 + 1)
    }

    /// Finds the number of sectors of a segment: a long read and its read-ahead push out its front,
    /// and the segment extends from the first sector still held to the last. `None`: nothing was
    /// pushed out.
    fn segment_sectors(&mut self, segments: u32, keeps: bool) -> Result<Option<u32>, ProbeError> {
        let g = self.pairs.geometry();
        let shortest = (LONG_READ / (self.sampler.sector_bytes() / 512).max(1)).max(2);
        // One place for all tests, so that read-ahead always ends at the same sector; the cache is
        // flushed by other reads before each.
        let room = |t: &Track| t.first_lbn + 32 * u64::from(shortest) + 16 * u64::from(t.spt) < g.capacity();
        let Some((t, _)) = (0..200).find_map(|_| self.track().filter(|(t, _)| room(t))) else { return Ok(None) };
        let first = t.first_lbn;
        let held = |q: &mut Self, long: u32, lbn: u64| {
            for _ in 0..2 * segments {
                let elsewhere = q.sampler.below(q.sampler.sectors());
                q.sampler.read(elsewhere, 1)?;
            }
            q.sampler.read(first, long)?;
            let rest = q.rest();
            q.is_cached(lbn, rest)
        };
        // Sectors dropped because they were delivered say nothing about the size.
        let longs = if keeps { [1, 2, 4, 8].map(|k| k * shortest) } else { [2; 4] };
        for long in longs {
            let front = if keeps { first } else { first + u64::from(long) };
            if self.vote(|q| held(q, long, front))? {
                continue;
            }
            let last = first + u64::from(long) - 1;
            // A drive that reads far ahead may have pushed out the end of the read itself.
            let mut inside = None;
            for k in 0..=12 {
                let lbn = last + k * u64::from(t.spt / 4);
                if inside.is_none() && self.vote(|q| held(q, long, lbn))? {
                    inside = Some(lbn);
                }
            }
            let Some(inside) = inside else { return Ok(None) };
            let back = self.last_yes((0, inside - first), |q, back| held(q, long, inside - back))?;
            let most = 4 * u64::from(t.spt) + u64::from(long);
            let on = self.last_yes((0, most), |q, on| held(q, long, inside + on))?;
            return Ok(u32::try_from(back + on + 1).ok());
        }
        Ok(None)
    }
}
