//! What a drive's electronics add: before a read, behind it, and between two.
//!
//! The names are the profile's. A host sees only sums: what lies before the mechanism sets out and
//! what lies behind the media are in every answer together, and shift together against the platter.
//! What tells them apart is a drive's own clock: a sector that it reads ahead is answered by the
//! cache from the moment at which it has passed. Where nothing is read ahead all of it counts as
//! before; no prediction depends on how it is shared out.

use headtime_disk::command::Outcome;
use headtime_disk::geometry::Geometry;
use headtime_disk::time::Dur;

use crate::border::{SHOTS, Shot, find};
use crate::device::Ask;
use crate::long_reads;
use crate::pairs::{Apart, Pairs, When};
use crate::sampler::{ProbeError, Sampler};
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

/// What reads cost besides head time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOverheads {
    /// From a command for an idle drive to its mechanism's setting out.
    pub read_miss: Found,
    /// From a command to the first of its data on the bus, when the cache has them; `None`: the
    /// cache never answered.
    pub read_hit: Option<Found>,
    /// From the last sector's leaving the bus until the host hears of it.
    pub read_completion: Found,
    /// Whether `read_completion` was seen; otherwise it is zero and in `read_miss`.
    pub told_apart: bool,
    /// What answers are late on average beyond all this; it is in none of these figures.
    pub jitter: Dur,
    /// Picoseconds that 512 bytes take on the bus; `None`: the cache never answered.
    pub read_block_ps: Option<u64>,
    /// What taking the bus again adds to a read of one sector and not to a long one; zero where it
    /// does not show.
    pub reselect: Dur,
    /// The share of a read that comes in before data flows, in 1/1000; 0 where it does not show.
    pub watermark_permille: u32,
    /// Between the end of one read and the drive's setting out for another that waited in it;
    /// `None`: no border, or it holds one command at a time.
    pub queued_read_read: Option<Found>,
}

/// Hits of each size: the quickest of so many is late by a microsecond or two, which is some per
/// cent of what the longer ones take more on the bus.
const HITS: usize = 192;
/// Sizes of hits, in 512-byte blocks.
const SHORT: u32 = 4;
/// The longest that is as quick as a hit must be: more of a slow bus takes as long as the media.
/// The first fits into any segment (those of the Atlas III hold 64).
const LONG: [u32; 4] = [60, 30, 15, 8];
/// For the border between hits and misses: twice the usual.
const SHARP_SHOTS: u32 = 2 * SHOTS;
/// How far a command can lie behind the sector that it asks for and be answered by what was read
/// ahead, ns: what lies between media and ear is less.
const BEHIND: f64 = 400e3;
/// By then more has been read ahead than is aimed at. Not later: of the track that a drive waited
/// on it may know another part besides, and the further it has read on, the more often it has come
/// to that.
const AHEAD: Dur = Dur::from_us(300);
/// Distances over which queued reads are sent; their seeks are among the best known.
const NEAR: [u32; 4] = [5, 10, 50, 200];

/// Measures them, for a drive of which geometry and seeks have been found.
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
    let short = (SHORT / blocks).max(1);
    let mut hits = None;
    if let Some(small) = hit_times(sampler, geometry, turn, short)? {
        for long in LONG.map(|n| n / blocks).into_iter().filter(|&n| n > short) {
            if let Some(large) = hit_times(sampler, geometry, turn, long)? {
                hits = Some((small, large, long - short));
                break;
            }
        }
    }
    sampler.share(0.2);
    let ears = ear(sampler, spindle, &pairs)?;
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
    let behind_media = ears.map_or(sector_on_bus + jitter, |e| e.0);
    let behind = (behind_media - sector_on_bus - jitter).max(0.0);
    let long = long_reads::measure(sampler, spindle, &pairs, block_ps.unwrap_or(0))?;
    sampler.share(0.7);
    // Part of what lies behind the media, where that is told apart; else of what counts as before.
    let completion = (behind - long.reselect_ns).max(0.0);
    let error = ears.map_or(0.0, |e| e.1);
    let found =
        |time: f64, error: f64| Found { time: Dur(time.max(0.0).round() as u64), error: Dur(error.round() as u64) };
    let lead = command - completion - long.reselect_ns - sector_on_bus - jitter;
    let command_error = seeks.command_error.0 as f64;
    Ok(ReadOverheads {
        read_miss: found(lead, (command_error * command_error + error * error).sqrt()),
        read_hit: hit_base.map(|h| found(h - completion, error)),
        read_completion: found(completion, error),
        told_apart: ears.is_some(),
        jitter: Dur(jitter.round() as u64),
        read_block_ps: block_ps,
        reselect: Dur(long.reselect_ns.round() as u64),
        watermark_permille: long.watermark_permille,
        queued_read_read: queued(sampler, spindle, &pairs, seeks)?,
    })
}

/// How long hits of one size take, ns.
struct Hits {
    /// Completions are late, never early: nearly the least of them is without.
    least: f64,
    mean: f64,
}

/// Times reads of so many sectors that the cache answers: of what has just been read, or else of
/// what has been read ahead. `None`: it answers neither. `turn`: ns.
fn hit_times(sampler: &mut Sampler, geometry: &Geometry, turn: f64, count: u32) -> Result<Option<Hits>, ProbeError> {
    for read_ahead in [false, true] {
        let mut took = Vec::with_capacity(HITS);
        for _ in 0..HITS {
            let lbn = sampler.below(sampler.sectors().min(geometry.capacity()));
            // At the front of a track, so that what is read ahead stays on it.
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
            if second.outcome == Outcome::Ok && two < HIT * turn {
                took.push(two);
            }
        }
        if let Some(hits) = crowd(&mut took) {
            return Ok(Some(hits));
        }
    }
    Ok(None)
}

/// Where most of the times lie close together: media reads that were quick by chance lie anywhere.
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
/// 5.2), and some.
const JITTER: f64 = 150e3;
/// Some turns of any disk.
const READ_AHEAD: Dur = Dur::from_ms(40);
/// In turns: what has just been read passes again in one, and nothing of it comes from the media in
/// less.
const HIT: f64 = 0.45;

/// From a sector's having passed until the host hears of it, with its error, ns: sectors of the
/// track just read, asked for about when they pass, are hits from the moment at which they have.
/// `None`: nothing is read ahead.
fn ear(sampler: &mut Sampler, spindle: &mut Spindle, pairs: &Pairs) -> Result<Option<(f64, f64)>, ProbeError> {
    let (mut hits, mut sector) = (0, 0.0);
    let turn = spindle.period_ns();
    let mut seen = Scattered::default();
    let found = find(spindle.period_ns(), SHARP_SHOTS, |aim| {
        // The border lies at a few microseconds and not in the other half of the turn.
        if !(-BEHIND..=BEHIND).contains(&aim) {
            return Ok(Some(Shot { slack: aim, turns: i64::from(aim < 0.0) }));
        }
        let Some(aimed) = pairs.same_track(sampler, spindle, When::Later(AHEAD), aim)? else { return Ok(None) };
        let is_hit = !aimed.is_media && sampler.is_quick(&aimed.answer);
        if is_hit && aim > READ_BEFORE {
            sampler.forget_all()?;
            return Ok(None);
        }
        hits += u32::from(is_hit);
        // From the sector's end.
        seen.tell(aimed);
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

/// A sector that comes so much later than its command cannot have been read ahead: a cache has it
/// from before.
const READ_BEFORE: f64 = 200e3;

/// The time between two queued reads: the border of pairs of which both are at the drive, less
/// their seek.
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
    for cylinders in NEAR {
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
