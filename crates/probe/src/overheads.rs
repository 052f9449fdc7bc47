//! Overheads of the drive's electronics: before a read, after it, and between two.
//!
//! The names are the profile's. A host sees only sums: the overheads before the mechanism starts
//! and those after the media are in every answer together, and shift together against the platter.
//! They are separated by the drive's own clock: a sector that is being read ahead becomes a cache
//! hit at the moment it has passed. Without read-ahead the whole sum counts as before; no
//! prediction depends on the division.

use headtime_disk::{Dur, Geometry, Outcome};

use crate::border::{SHOTS, Shot, find};
use crate::device::Ask;
use crate::error::ProbeError;
use crate::long_reads;
use crate::pairs::{Apart, Pairs, When};
use crate::sampler::Sampler;
use crate::scattered::{Scattered, Side};
use crate::seeks::Seeks;
use crate::spindle::Spindle;

/// A time with its standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The time.
    pub time: Dur,
    /// Its standard error.
    pub error: Dur,
}

/// Costs of reads other than head time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOverheads {
    /// From a command to an idle drive until its mechanism starts.
    pub read_miss: Found,
    /// From a command to the first of its data on the bus on a cache hit; `None`: no hit occurred.
    pub read_hit: Option<Found>,
    /// From the last sector on the bus until the host notices the completion.
    pub read_completion: Found,
    /// Whether `read_completion` was measured; otherwise it is zero and included in `read_miss`.
    pub told_apart: bool,
    /// Mean delay of answers beyond all this; included in none of these figures.
    pub jitter: Dur,
    /// Picoseconds of 512 bytes on the bus; `None`: no cache hit occurred.
    pub read_block_ps: Option<u64>,
    /// Reselection time of a read of one sector, which a long one hides; zero if it does not show.
    pub reselect: Dur,
    /// Watermark: the share of a read that is buffered before data flows, in 1/1000; 0 if it does
    /// not show.
    pub watermark_permille: u32,
    /// Between the end of one read and the start of the mechanism for another that was pending;
    /// `None`: no border, or queue depth 1.
    pub queued_read_read: Option<Found>,
}

/// Hits of each size: the fastest of them is late by a microsecond or two, which is some per cent
/// of the bus time of the longer ones.
const HITS: usize = 192;
/// Sizes of hits, in 512-byte blocks.
const SHORT_BLOCKS: u32 = 4;
/// The longest size that is as fast as a hit must be: more on a slow bus takes as long as the
/// media. The first fits into any segment (those of the Atlas III hold 64).
const LONG_BLOCKS: [u32; 4] = [60, 30, 15, 8];
/// For the border between hits and misses: twice the usual.
const SHARP_SHOTS: u32 = 2 * SHOTS;
/// Upper bound of a command's delay after its sector at which read-ahead can still answer it, ns:
/// the overhead after the media is less.
const MAX_DELAY_NS: f64 = 400e3;
/// Wait until read-ahead has passed the target. Not longer: the drive may hold another part of the
/// waiting track as well, and the further it has read, the more often.
const READ_AHEAD_WAIT: Dur = Dur::from_us(300);
/// Distances of queued reads; their seeks are among the best known.
const NEAR_CYLINDERS: [u32; 4] = [5, 10, 50, 200];

/// Measures the overheads of a drive with known geometry and seeks.
///
/// # Errors
/// As [`Sampler::run`]; or the geometry is not this drive's.
pub fn measure(
    sampler: &mut Sampler,
    spindle: &mut Spindle,
    geometry: &Geometry,
    seeks: &Seeks,
) -> Result<ReadOverheads, ProbeError> {
    sampler.stage("overheads");
    let pairs = Pairs::new(sampler, spindle, geometry)?;
    let blocks = (sampler.sector_bytes() / 512).max(1);
    let turn = spindle.period_ns();
    let short = (SHORT_BLOCKS / blocks).max(1);
    let mut hits = None;
    if let Some(small) = hit_times(sampler, geometry, turn, short)? {
        for long in LONG_BLOCKS.map(|n| n / blocks).into_iter().filter(|&n| n > short) {
            if let Some(large) = hit_times(sampler, geometry, turn, long)? {
                hits = Some((small, large, long - short));
                break;
            }
        }
    }
    sampler.share(0.2);
    let delay = completion_delay(sampler, spindle, &pairs)?;
    sampler.share(0.6);
    let (mut block_ps, mut hit_base, mut jitter) = (None, None, 0.0);
    if let Some((small, large, more)) = &hits {
        let per_sector = ((large.least - small.least) / f64::from(*more)).max(0.0);
        block_ps = Some((per_sector * 1e3 / f64::from(blocks)).round() as u64);
        hit_base = Some(small.least - per_sector * f64::from(short));
        jitter = (small.mean - small.least).max(0.0);
    }
    let sector_on_bus = block_ps.map_or(0.0, |ps| ps as f64 / 1e3 * f64::from(blocks));
    let command = seeks.command.0 as f64;
    let behind_media = delay.map_or(sector_on_bus + jitter, |e| e.0);
    let behind = (behind_media - sector_on_bus - jitter).max(0.0);
    let long = long_reads::measure(sampler, spindle, &pairs, block_ps.unwrap_or(0))?;
    sampler.share(0.7);
    // Reselection is part of the overhead after the media if that is known separately, otherwise of
    // the overhead before.
    let completion = (behind - long.reselect_ns).max(0.0);
    let error = delay.map_or(0.0, |e| e.1);
    let found =
        |time: f64, error: f64| Found { time: Dur(time.max(0.0).round() as u64), error: Dur(error.round() as u64) };
    let lead = command - completion - long.reselect_ns - sector_on_bus - jitter;
    let command_error = seeks.command_error.0 as f64;
    Ok(ReadOverheads {
        read_miss: found(lead, (command_error * command_error + error * error).sqrt()),
        read_hit: hit_base.map(|h| found(h - completion, error)),
        read_completion: found(completion, error),
        told_apart: delay.is_some(),
        jitter: Dur(jitter.round() as u64),
        read_block_ps: block_ps,
        reselect: Dur(long.reselect_ns.round() as u64),
        watermark_permille: long.watermark_permille,
        queued_read_read: queued(sampler, spindle, &pairs, seeks)?,
    })
}

/// Times of hits of one size, ns.
struct Hits {
    /// Completions are late, never early: nearly the minimum is free of delay.
    least: f64,
    mean: f64,
}

/// Times reads of `count` sectors that hit the cache: what was just read, otherwise what was read
/// ahead. `None`: neither hits. `turn`: ns.
fn hit_times(sampler: &mut Sampler, geometry: &Geometry, turn: f64, count: u32) -> Result<Option<Hits>, ProbeError> {
    for read_ahead in [false, true] {
        let mut took = Vec::with_capacity(HITS);
        for _ in 0..HITS {
            let lbn = sampler.below(sampler.sectors().min(geometry.capacity()));
            // At the front of a track, so that read-ahead stays on it.
            let lbn = geometry.track_of(lbn).map_or(lbn, |t| t.first_lbn);
            if lbn + 2 * u64::from(count) > sampler.sectors() {
                continue;
            }
            let Some(first) = sampler.read(lbn, count)? else { continue };
            let ask = match read_ahead {
                false => Ask::read(lbn, count),
                true => Ask { not_before: first.done + READ_AHEAD, ..Ask::read(lbn + u64::from(count), count) },
            };
            let second = sampler.run(&[ask], 1)?[0];
            let two = second.done.saturating_since(second.sent).0 as f64;
            if second.outcome == Outcome::Ok && two < MAX_HIT_TURNS * turn {
                took.push(two);
            }
        }
        if let Some(hits) = crowd(&mut took) {
            return Ok(Some(hits));
        }
    }
    Ok(None)
}

/// The largest cluster of times: media reads that were fast by chance are scattered.
fn crowd(took: &mut [f64]) -> Option<Hits> {
    took.sort_unstable_by(f64::total_cmp);
    let end = |from: usize| took.partition_point(|t| *t <= took[from] + JITTER);
    let from = (0..took.len()).max_by_key(|&from| (end(from) - from, std::cmp::Reverse(from)))?;
    let hits = &took[from..end(from)];
    if hits.len() < HITS / 2 {
        return None;
    }
    Some(Hits { least: hits[1], mean: hits.iter().sum::<f64>() / hits.len() as f64 })
}

/// Hits of one size differ by less, ns: 100 us of overlap for 40 KiB (Lumb et al. 2002, section
/// 5.2), and a margin.
const JITTER: f64 = 150e3;
/// Several revolutions of any disk.
const READ_AHEAD: Dur = Dur::from_ms(40);
/// In revolutions: a sector just read passes again after one, so no media read of it takes less
/// than this.
const MAX_HIT_TURNS: f64 = 0.45;

/// Time from the end of a sector's passing until the host notices, with its error, ns: sectors of
/// the track just read, requested at about the time they pass, are hits from that moment on.
/// `None`: nothing is read ahead.
fn completion_delay(
    sampler: &mut Sampler,
    spindle: &mut Spindle,
    pairs: &Pairs,
) -> Result<Option<(f64, f64)>, ProbeError> {
    let (mut hits, mut sector) = (0, 0.0);
    let turn = spindle.period_ns();
    let mut seen = Scattered::default();
    let found = find(spindle.period_ns(), SHARP_SHOTS, |aim| {
        // The border lies within a few microseconds and not in the other half of the revolution.
        if !(-MAX_DELAY_NS..=MAX_DELAY_NS).contains(&aim) {
            return Ok(Some(Shot { slack: aim, turns: i64::from(aim < 0.0) }));
        }
        let Some(aimed) = pairs.same_track(sampler, spindle, When::Later(READ_AHEAD_WAIT), aim)? else {
            return Ok(None);
        };
        let is_hit = !aimed.is_media && sampler.is_quick(&aimed.answer);
        if is_hit && aim > READ_BEFORE {
            sampler.forget_all()?;
            return Ok(None);
        }
        hits += u32::from(is_hit);
        // From the sector's end.
        seen.observe(aimed);
        sector = aimed.sector;
        Ok(Some(Shot { slack: aimed.shot.slack + aimed.sector, turns: i64::from(is_hit) }))
    })?;
    let (passed, comes) = (Side { cached: true, turns: &[] }, Side { cached: false, turns: &[0.0, 1.0] });
    let found = found.map(|b| match seen.border(pairs, turn, passed, comes) {
        Some((at, error)) => (at + sector, error),
        None => (b.at, b.error),
    });
    Ok(found.filter(|(at, _)| hits > SHARP_SHOTS / 8 && *at > 0.0))
}

/// A sector due this much later than its command cannot have been read ahead: a hit has it from
/// earlier.
const READ_BEFORE: f64 = 200e3;

/// The time between two queued reads: the border of pairs with both at the drive, less their seek.
fn queued(
    sampler: &mut Sampler,
    spindle: &mut Spindle,
    pairs: &Pairs,
    seeks: &Seeks,
) -> Result<Option<Found>, ProbeError> {
    if sampler.depth() < 2 {
        return Ok(None);
    }
    let mut all: Vec<(f64, f64)> = Vec::new();
    for cylinders in NEAR_CYLINDERS {
        let Some(seek) = seeks.points.iter().find(|p| p.distance == cylinders) else { continue };
        let how = Apart { cylinders, other_surface: false };
        let border = find(spindle.period_ns(), SHOTS, |aim| pairs.queued(sampler, spindle, how, aim))?;
        if let Some(b) = border {
            let error = seek.error.0 as f64;
            all.push((b.at - seek.time.0 as f64, b.error * b.error + error * error));
        }
    }
    if all.is_empty() {
        return Ok(None);
    }
    let n = all.len() as f64;
    let mean = all.iter().map(|a| a.0).sum::<f64>() / n;
    let error = all.iter().map(|a| a.1).sum::<f64>().sqrt() / n;
    Ok(Some(Found { time: Dur(mean.max(0.0).round() as u64), error: Dur(error.round() as u64) }))
}
