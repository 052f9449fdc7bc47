//! What writes cost, where the drive may be written to.
//!
//! By the same borders as for reads ([`crate::seeks`], [`crate::overheads`]): a write that comes a
//! turn later was not ready in time. A drive that answers writes from its cache tells nothing of
//! when they reach the media; of such a drive nothing is found.

use headtime_disk::command::{Kind, Outcome};
use headtime_disk::geometry::{Geometry, Track};
use headtime_disk::time::Dur;

use crate::border::{Border, SHOTS, Shot, find};
use crate::device::Ask;
use crate::habits::{Seen, write_cache};
use crate::overheads::Found;
use crate::pairs::{Pairs, When, holds_enough};
use crate::sampler::{ProbeError, Sampler};
use crate::seeks::Seeks;
use crate::spindle::Spindle;

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writes {
    /// Answers that came before the media can have been written.
    pub cached: Seen,
    /// With the write cache off: the figures.
    pub through: Option<WriteThrough>,
}

/// What writes cost that are answered when they are on the media. Each `None`: no border was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteThrough {
    /// From a command for an idle drive, behind a read, to its mechanism's setting out, with what
    /// lies between media and ear.
    pub command: Option<Found>,
    /// What a move before a write takes longer than before a read, ns; may be negative.
    pub settle_ns: Option<i64>,
    /// Between a read's end and the drive's setting out for a write that waited.
    pub read_write: Option<Found>,
    /// Between a write's end and the drive's setting out for a read that waited.
    pub write_read: Option<Found>,
    /// Between two writes.
    pub write_write: Option<Found>,
    /// Whether it loses a turn between two writes of which one continues the other. `None`: it
    /// takes one command at a time, or none of these writes succeeded.
    pub loses_turn: Option<bool>,
}

/// Writes that continue each other of which the gaps are looked at.
const IN_ORDER: usize = 16;
/// Sectors of each.
const SHORT: u32 = 8;

/// Shots for each figure: it is the difference of two or three borders.
const MANY: u32 = 4 * SHOTS;
/// The seek that most are measured over: the nearest in the table to this.
const DISTANCE: u32 = 50;

/// Measures writes to `region`, LBNs from and to, of which nothing is left. It needs a few thousand
/// sectors in every part of the platter's turn: some tracks at least.
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
        find(spindle.period_ns(), MANY, |aim| {
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
        let border = find(spindle.period_ns(), MANY, |aim| region.shot(sampler, spindle, (one, two), distance, aim))?;
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

/// A border less what is known to be in it.
fn found(border: &Border, less: f64, error: f64) -> Found {
    Found {
        time: Dur((border.at - less).max(0.0).round() as u64),
        error: Dur(border.error.hypot(error).round() as u64),
    }
}

/// Where writes may go.
struct Region<'p, 'g> {
    pairs: &'p Pairs<'g>,
    from: u64,
    to: u64,
}

impl Region<'_, '_> {
    /// A track that lies in the region whole, with one so far from it, which need not.
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

    /// Whether all of a track, and nothing that was moved to it from elsewhere, lies in the region.
    fn holds(&self, t: &Track) -> bool {
        t.plain && t.first_lbn >= self.from && t.first_lbn + u64::from(t.lbns) <= self.to
    }

    /// Whether most writes that continue another, which is at the drive with them, end half of
    /// `turn` or more behind it.
    fn loses_turn(&self, sampler: &mut Sampler, turn: Dur) -> Result<Option<bool>, ProbeError> {
        let room = self.to.saturating_sub(self.from).checked_sub(u64::from(3 * SHORT)).filter(|&room| room > 0);
        let Some(room) = room.filter(|_| sampler.depth() > 1) else { return Ok(None) };
        let (mut lost, mut known) = (0, 0);
        for _ in 0..IN_ORDER {
            // From elsewhere: while the head moves to the first, the drive takes the data of the
            // second.
            let elsewhere = sampler.below(sampler.sectors());
            sampler.read(elsewhere, 1)?;
            // At multiples of a physical sector: a part of one is read before it is written.
            let lbn = (self.from + sampler.below(room)).next_multiple_of(u64::from(SHORT));
            let write = |lbn| Ask { kind: Kind::Write, ..Ask::read(lbn, SHORT) };
            let answers = sampler.run(&[write(lbn), write(lbn + u64::from(SHORT))], 2)?;
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
        // What is written lies in the region; of two writes both do.
        let (a, b) = if two == Kind::Write { (a, b) } else { (b, a) };
        if (one == Kind::Write && !self.holds(&a)) || (two == Kind::Write && !self.holds(&b)) {
            return Ok(None);
        }
        // From elsewhere, so that the first takes long enough for the second to be understood
        // meanwhile, and both follow a read.
        let elsewhere = sampler.below(sampler.sectors());
        sampler.read(elsewhere, 1)?;
        let Some(first) = self.pairs.anywhere_on(sampler, &a) else { return Ok(None) };
        self.pairs.both(sampler, spindle, (one, first), (two, &b), aim)
    }
}
