//! What a drive's cache holds, and how far it reads ahead.

use headtime_disk::geometry::Track;
use headtime_disk::profile::Prefetch;
use headtime_disk::time::Dur;

use super::{Questions, Seen, TRIES};
use crate::device::Ask;
use crate::sampler::ProbeError;

/// What was seen of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheHabits {
    /// Reads that it holds, each with what was read ahead.
    pub segments: u32,
    /// Sectors of each; `None`: more than were looked at.
    pub segment_sectors: Option<u32>,
    /// What was delivered can be hit again.
    pub keep_delivered: Seen,
    /// How far it reads ahead; a number of sectors that is beyond all tracks means: as far as there
    /// is something.
    pub prefetch: Prefetch,
    /// Only behind a read that begins where the one before it ended.
    pub only_sequential: bool,
}

/// No cache holds more reads.
const MOST_SEGMENTS: u32 = 4_096;
/// A read this long, in 512-byte blocks, overflows the segments of most caches; where it does not,
/// it is doubled up to three times.
const LONG_READ: u32 = 2_048;
/// Where read-ahead is looked for, in sixteenths of what is left of a track: near, at its end, and
/// between and behind.
const LOOKED_FOR: [u64; 11] = [0, 16, 8, 4, 12, 2, 6, 10, 14, 20, 24];
impl Questions<'_, '_, '_> {
    /// All questions about the cache. `None`: it never answered.
    pub(super) fn cache(&mut self) -> Result<Option<CacheHabits>, ProbeError> {
        let mut keep_delivered = Seen::default();
        for _ in 0..TRIES {
            self.spindle.keep(self.sampler)?;
            let Some((t, _)) = self.track() else { break };
            let lbn = t.first_lbn + u64::from(t.lbns / 4);
            self.sampler.read(lbn, 1)?;
            if let Some(hit) = self.is_cached(lbn, Dur::ZERO)? {
                keep_delivered.tell(hit);
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
        // What shows that a read is still held: itself, or what was read ahead behind it.
        let shows = if keep_delivered.holds() { 0 } else { 1 };
        let segments = self.segments(shows, only_sequential)?;
        let segment_sectors = self.segment_sectors(segments, keep_delivered.holds())?;
        Ok(Some(CacheHabits { segments, segment_sectors, keep_delivered, prefetch, only_sequential }))
    }

    /// Reads a sector of a track (and the one before it first, for a sequence); when all is read
    /// ahead, whether the cache has the sector so far behind its end; 1 is the next.
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

    /// Whether anything is read ahead behind a single sector, a quarter into its track; how far
    /// behind it at least. A segment may hold less than is read ahead, so that it is looked for
    /// near and far.
    fn reads_ahead(&mut self, sequential: bool) -> Result<Option<u64>, ProbeError> {
        for part in LOOKED_FOR {
            let mut least = u64::MAX;
            let found = self.vote(|q| {
                let Some((t, _)) = q.track() else { return Ok(None) };
                let from = t.first_lbn + u64::from(t.lbns / 4);
                // The last sector of the track is the sixteenth part of sixteen.
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

    /// How far is read ahead behind a single sector.
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
            // A read over a track's end: does it go on for one track more than the one that it ends
            // on? Near the end of that one, for a segment may hold less than a track.
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
        // So many sectors: fewer than a track, or more. From the front, where there is room.
        let g = self.pairs.geometry();
        let most = u64::from(g.track_of(0).map_or(1, |t| t.lbns)) * 16;
        let n = self.last_yes((inside, most.max(inside + 1)), |q, n| {
            let Some((t, _)) = q.track() else { return Ok(None) };
            q.after_read(&t, t.first_lbn + 1, sequential, n)
        })?;
        let n = u32::try_from(n).unwrap_or(u32::MAX);
        // Over a track's end, where that is near enough; and over a cylinder's.
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

    /// How many reads the cache holds: one more than there may be others behind it before it is
    /// forgotten.
    fn segments(&mut self, shows: u64, sequential: bool) -> Result<u32, ProbeError> {
        let held = |q: &mut Self, others: u64| {
            let Some((t, _)) = q.track() else { return Ok(None) };
            let lbn = t.first_lbn + u64::from(t.lbns / 4);
            if sequential && shows > 0 {
                q.sampler.read(lbn - 1, 1)?;
            }
            q.sampler.read(lbn, 1)?;
            if shows > 0 {
                // For what is read ahead to be there.
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

    /// How many sectors a segment holds: a long read and what is read ahead behind it push out its
    /// front, and the distance from the first sector that is held to the last is the segment.
    /// `None`: nothing was pushed out.
    fn segment_sectors(&mut self, segments: u32, keeps: bool) -> Result<Option<u32>, ProbeError> {
        let g = self.pairs.geometry();
        let shortest = (LONG_READ / (self.sampler.sector_bytes() / 512).max(1)).max(2);
        // One place for all questions, so that what is read ahead always ends at the same sector;
        // forgotten before each.
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
        // What was delivered and is dropped for that says nothing of the room.
        let longs = if keeps { [1, 2, 4, 8].map(|k| k * shortest) } else { [2; 4] };
        for long in longs {
            let front = if keeps { first } else { first + u64::from(long) };
            if self.vote(|q| held(q, long, front))? {
                continue;
            }
            let last = first + u64::from(long) - 1;
            // The end of the read may itself have been pushed out, by a drive that reads far ahead.
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
