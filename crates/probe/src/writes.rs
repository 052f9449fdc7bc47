//! The cost of writes, if the drive may be written to.
//!
//! Uses the same borders as for reads ([`crate::seeks`], [`crate::overheads`]): a write that comes
//! a revolution later was not ready in time. A drive that acknowledges writes from its cache does
//! not reveal when they reach the media, so nothing is measured on it.

use headtime_disk::{Dur, Geometry, Kind, Outcome, Track};

use crate::border::{Border, SHOTS, Shot, find};
use crate::device::Ask;
use crate::error::ProbeError;
use crate::habits::{Seen, write_cache};
use crate::overheads::Found;
use crate::pairs::{Pairs, When, holds_enough};
use crate::sampler::Sampler;
use crate::seeks::Seeks;
use crate::spindle::Spindle;

/// The results for writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writes {
    /// Acknowledgements before the media can have been written.
    pub cached: Seen,
    /// The figures with the write cache off.
    pub through: Option<WriteThrough>,
}

/// The costs of write-through writes. Each `None`: no border was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteThrough {
    /// From a command to an idle drive, after a read, until its mechanism starts, including the
    /// overhead after the media.
    pub command: Option<Found>,
    /// Additional time of a move before a write compared with a read, ns; may be negative.
    pub settle_ns: Option<i64>,
    /// Between a read's end and the start of the mechanism for a pending write.
    pub read_write: Option<Found>,
    /// Between a write's end and the start of the mechanism for a pending read.
    pub write_read: Option<Found>,
    /// Between two writes.
    pub write_write: Option<Found>,
    /// Whether the drive misses a revolution between two sequential writes. `None`: queue depth 1,
    /// or none of these writes succeeded.
    pub loses_turn: Option<bool>,
}

/// Number of sequential write pairs.
const IN_ORDER: usize = 16;
/// Sectors of each.
const WRITE_SECTORS: u32 = 8;

/// Shots for each figure: it is the difference of two or three borders.
const FIGURE_SHOTS: u32 = 4 * SHOTS;
/// Seek distance of most shots: the nearest in the table.
const DISTANCE: u32 = 50;

/// Measures writes to `region` (first and end LBN), which is overwritten. It needs a few thousand
/// sectors at all angles: some tracks at least.
///
/// # Errors
/// As [`Sampler::run`]; or the geometry is not this drive's.
pub fn measure(
    sampler: &mut Sampler,
    spindle: &mut Spindle,
    geometry: &Geometry,
    seeks: &Seeks,
    region: (u64, u64),
) -> Result<Writes, ProbeError> {
    let cached = write_cache(sampler, region)?;
    if cached.holds() {
        return Ok(Writes { cached, through: None });
    }
    sampler.stage("writes");
    let pairs = Pairs::new(sampler, spindle, geometry)?;
    let region = Region { pairs: &pairs, from: region.0, to: region.1.min(geometry.capacity()) };
    let Some(seek) = seeks.points.iter().min_by_key(|p| p.distance.abs_diff(DISTANCE)) else {
        return Ok(Writes { cached, through: None });
    };
    let distance = seek.distance;
    let time = seek.time.0 as f64;
    let mut idle = |distance| {
        find(spindle.period_ns(), FIGURE_SHOTS, |aim| {
            let Some((a, b)) = region.tracks(sampler, distance) else { return Ok(None) };
            let aimed = pairs.sent_behind(sampler, spindle, (&a, &b), (Kind::Write, When::AtOnce), aim)?;
            Ok(aimed.filter(|aimed| aimed.is_media).map(|aimed| aimed.shot))
        })
    };
    let here = idle(0)?;
    let there = idle(distance)?;
    let settle = here.zip(there).map(|(h, t)| t.at - h.at - seeks.stop.0 as f64 - time);
    let settle_error = here.zip(there).map_or(0.0, |(h, t)| h.error.hypot(t.error));
    let mut pair = |one, two| -> Result<Option<Found>, ProbeError> {
        let border =
            find(spindle.period_ns(), FIGURE_SHOTS, |aim| region.shot(sampler, spindle, (one, two), distance, aim))?;
        let error = seek.error.0 as f64;
        let (moves, error) = match settle {
            Some(settle) if two == Kind::Write => (time + settle, error.hypot(settle_error)),
            _ => (time, error),
        };
        Ok(border.map(|b| found(&b, moves, error)))
    };
    let (read_write, write_read, write_write) =
        (pair(Kind::Read, Kind::Write)?, pair(Kind::Write, Kind::Read)?, pair(Kind::Write, Kind::Write)?);
    Ok(Writes {
        cached,
        through: Some(WriteThrough {
            command: here.map(|b| found(&b, 0.0, 0.0)),
            settle_ns: settle.map(|s| s.round() as i64),
            read_write,
            write_read,
            write_write,
            loses_turn: region.loses_turn(sampler, spindle.period())?,
        }),
    })
}

/// A border less its known parts.
fn found(border: &Border, less: f64, error: f64) -> Found {
    Found {
        time: Dur((border.at - less).max(0.0).round() as u64),
        error: Dur(border.error.hypot(error).round() as u64),
    }
}

/// The writable region.
struct Region<'p, 'g> {
    pairs: &'p Pairs<'g>,
    from: u64,
    to: u64,
}

impl Region<'_, '_> {
    /// Chooses a track entirely within the region, and one at this distance, which need not be.
    fn tracks(&self, sampler: &mut Sampler, distance: u32) -> Option<(Track, Track)> {
        let g = self.pairs.geometry();
        let room = self.to.checked_sub(self.from).filter(|r| *r > 0)?;
        (0..200).find_map(|_| {
            let b = g.track_of(self.from + sampler.below(room))?;
            let other = match sampler.below(2) {
                0 => b.cylinder.checked_add(distance)?,
                _ => b.cylinder.checked_sub(distance)?,
            };
            let a = g.track(other, b.surface)?;
            (self.holds(&b) && holds_enough(&a) && holds_enough(&b)).then_some((a, b))
        })
    }

    /// Returns whether a whole track lies in the region, without sectors remapped to it.
    fn holds(&self, t: &Track) -> bool {
        t.plain && t.first_lbn >= self.from && t.first_lbn + u64::from(t.lbns) <= self.to
    }

    /// Returns whether most writes that continue another, both at the drive, end half of `turn` or
    /// more after it.
    fn loses_turn(&self, sampler: &mut Sampler, turn: Dur) -> Result<Option<bool>, ProbeError> {
        let room = self.to.saturating_sub(self.from).checked_sub(u64::from(3 * WRITE_SECTORS)).filter(|&room| room > 0);
        let Some(room) = room.filter(|_| sampler.depth() > 1) else { return Ok(None) };
        let (mut lost, mut known) = (0, 0);
        for _ in 0..IN_ORDER {
            // After a read elsewhere: while the head moves to the first, the drive receives the
            // second's data.
            let elsewhere = sampler.below(sampler.sectors());
            sampler.read(elsewhere, 1)?;
            // Aligned to physical sectors: a partial one would be read before it is written.
            let lbn = (self.from + sampler.below(room)).next_multiple_of(u64::from(WRITE_SECTORS));
            let write = |lbn| Ask { kind: Kind::Write, ..Ask::read(lbn, WRITE_SECTORS) };
            let answers = sampler.run(&[write(lbn), write(lbn + u64::from(WRITE_SECTORS))], 2)?;
            let [first, second] = answers[..] else { continue };
            if first.outcome == Outcome::Ok && second.outcome == Outcome::Ok {
                known += 1;
                lost += usize::from(second.done.saturating_since(first.done).0 >= turn.0 / 2);
            }
        }
        Ok((known > 0).then_some(2 * lost > known))
    }

    /// A shot with two commands at the drive, at least one of them a write.
    fn shot(
        &self,
        sampler: &mut Sampler,
        spindle: &mut Spindle,
        (one, two): (Kind, Kind),
        distance: u32,
        aim: f64,
    ) -> Result<Option<Shot>, ProbeError> {
        let Some((a, b)) = self.tracks(sampler, distance) else { return Ok(None) };
        // Written tracks lie in the region; with two writes both do.
        let (a, b) = if two == Kind::Write { (a, b) } else { (b, a) };
        if (one == Kind::Write && !self.holds(&a)) || (two == Kind::Write && !self.holds(&b)) {
            return Ok(None);
        }
        // After a read elsewhere, so that the first takes long enough for the second to be decoded,
        // and both follow a read.
        let elsewhere = sampler.below(sampler.sectors());
        sampler.read(elsewhere, 1)?;
        let Some(first) = self.pairs.anywhere_on(sampler, &a) else { return Ok(None) };
        self.pairs.both(sampler, spindle, (one, first), (two, &b), aim)
    }
}
