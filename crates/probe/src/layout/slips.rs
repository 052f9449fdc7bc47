//! Bad sectors that the mapping slips over: their positions on a track.
//!
//! Each sector after a slipped one lies one sector's angle further than expected. That is 18 us on
//! a track of 334 sectors at 10,000 rpm, little more than the error of one answer: each place is
//! measured several times, and bisection finds where the shift begins.

use std::collections::BTreeMap;

use super::rows::Row;
use crate::error::ProbeError;
use crate::spindle::{apart, fraction};
use crate::tracks::Tracer;

/// More missing sectors on one track mean the end of a zone.
pub const MAX_MISSING_SECTORS: u32 = 16;
/// Most and fewest measurements of one place.
const MAX_SAMPLES: u32 = 12;
const MIN_SAMPLES: u32 = 3;
/// Distance of a mean from the decision threshold, in sectors, at which it is accepted at once.
const CLEAR_SECTORS: f64 = 0.4;
/// Most tracks examined; on a drive with more of them only the first are.
const TRACKS: usize = 600;
/// Narrowest sector, ns, for bisection with answers that are off by 10 us each.
const MIN_SECTOR_NS: f64 = 6e3;

/// The bad sectors of one track.
#[derive(Clone, Debug, PartialEq)]
pub struct Bad {
    /// Those between its first and its last visible sector, ascending, as if none preceded the
    /// first.
    inside: Vec<u32>,
    /// Those in front of the first or after the last: the neighbours' angles decide which.
    outside: u32,
    /// Angle at which its first visible sector begins.
    pub begins: f64,
}

impl Bad {
    /// Their indices on a track of `spt` sectors whose true start is `angle`.
    pub fn sectors(&self, angle: f64, spt: u32) -> Vec<u32> {
        let shift = (apart(angle, self.begins) * f64::from(spt)).round();
        let front = shift.clamp(0.0, f64::from(self.outside)) as u32;
        let behind = (0..self.outside - front).map(|k| spt - 1 - k);
        let mut all: Vec<u32> = (0..front).chain(self.inside.iter().map(|s| s + front)).chain(behind).collect();
        all.sort_unstable();
        all
    }
}

/// Bad sectors by the first LBN of their track.
#[derive(Clone, Debug, Default)]
pub struct Slips(BTreeMap<u64, Bad>);

impl Slips {
    /// Those of a row's single track; `None`: it has none, or is short for another reason.
    pub fn of(&self, row: &Row) -> Option<&Bad> {
        self.0.get(&row.first)
    }

    /// The same where all tracks begin this many sectors later.
    pub(super) fn moved(self, by: u32) -> Slips {
        Slips(self.0.into_iter().map(|(first, bad)| (first + u64::from(by), bad)).collect())
    }

    /// Number of tracks with bad sectors.
    pub fn tracks(&self) -> usize {
        self.0.len()
    }

    /// Examines all short tracks whose successors continue as if nothing were missing. Measures
    /// each in turn, so that the drive has dropped a track's read-ahead by the next measurement.
    ///
    /// # Errors
    /// As [`crate::sampler::Sampler::run`].
    pub fn find(tracer: &mut Tracer, rows: &[Row]) -> Result<Slips, ProbeError> {
        tracer.sampler.stage("bad sectors");
        let short = (1..rows.len().saturating_sub(1)).filter(|&i| may_slip(rows, i));
        let wide = MIN_SECTOR_NS / tracer.spindle.period_ns();
        // Beyond the limit, the last sectors are assumed to be bad.
        let mut hunts: Vec<Hunt> =
            short.enumerate().map(|(n, i)| Hunt::new(rows[i], if n < TRACKS { wide } else { f64::MAX })).collect();
        let mut open: Vec<usize> = (0..hunts.len()).collect();
        while !open.is_empty() {
            tracer.sampler.share(1.0 - open.len() as f64 / hunts.len() as f64);
            for &i in &open {
                if let Some(lbn) = hunts[i].asks() {
                    let angle = tracer.angle(lbn)?;
                    hunts[i].observe(angle);
                }
            }
            open.retain(|&i| hunts[i].asks().is_some());
        }
        Ok(Slips(hunts.into_iter().map(|h| (h.row.first, h.found())).collect()))
    }
}

/// Returns whether a row is one track that lacks a few sectors among complete ones.
fn may_slip(rows: &[Row], i: usize) -> bool {
    let row = &rows[i];
    let whole = |r: Option<&Row>| r.is_some_and(|r| r.spt == row.spt);
    row.tracks == 1
        && (1..=MAX_MISSING_SECTORS.min(row.spt / 8)).contains(&row.missing())
        && whole(rows.get(i + 1))
        && whole(rows.get(i - 1))
}

/// The search for the bad sectors of one track.
#[derive(Clone, Debug)]
struct Hunt {
    row: Row,
    /// One sector in revolutions.
    sector: f64,
    /// The sector being measured, relative to the row's first; `None`: finished.
    at: Option<u32>,
    /// The first angle measured there, the sum of differences to it, and the count.
    seen: (f64, f64, u32),
    /// End of the first sector, once known.
    first: Option<f64>,
    /// Number of sectors missing between the first and the last, once known.
    behind: Option<u32>,
    /// Found so far.
    bad: Vec<u32>,
    /// The next bad sector shows somewhere after the first of these and not after the second.
    between: (u32, u32),
}

impl Hunt {
    fn new(row: Row, wide: f64) -> Hunt {
        let sector = 1.0 / f64::from(row.spt);
        Hunt {
            row,
            sector,
            at: (sector >= wide && row.sectors > 2).then_some(0),
            seen: (0.0, 0.0, 0),
            first: None,
            behind: None,
            bad: Vec::new(),
            between: (0, row.sectors - 1),
        }
    }

    /// The LBN to measure.
    fn asks(&self) -> Option<u64> {
        self.at.map(|i| self.row.first + u64::from(i))
    }

    /// The mean of the measurements.
    fn mean(&self) -> f64 {
        let (first, sum, n) = self.seen;
        fraction(first + sum / f64::from(n.max(1)))
    }

    /// Adds a measurement.
    fn observe(&mut self, angle: f64) {
        let Some(at) = self.at else { return };
        let (first, sum, n) = self.seen;
        self.seen = if n == 0 { (angle, 0.0, 1) } else { (first, sum + apart(first, angle), n + 1) };
        let n = self.seen.2;
        let Some(begin) = self.first else {
            if n == MAX_SAMPLES {
                (self.first, self.seen, self.at) = (Some(self.mean()), (0.0, 0.0, 0), Some(self.row.sectors - 1));
            }
            return;
        };
        let expected = fraction(begin + f64::from(at) * self.sector);
        let shift = apart(expected, self.mean()) / self.sector;
        if self.behind.is_none() {
            if n == MAX_SAMPLES {
                let behind = shift.round().clamp(0.0, f64::from(self.row.missing())) as u32;
                self.behind = Some(behind);
                self.next();
            }
            return;
        }
        let border = self.bad.len() as f64 + 0.5;
        if n < MIN_SAMPLES || n < MAX_SAMPLES && (shift - border).abs() < CLEAR_SECTORS {
            return;
        }
        match shift < border {
            true => self.between.0 = at,
            false => self.between.1 = at,
        }
        self.next();
    }

    /// Chooses the next place.
    fn next(&mut self) {
        self.seen = (0.0, 0.0, 0);
        while self.bad.len() < self.behind.unwrap_or(0) as usize {
            let (low, high) = self.between;
            if high - low > 1 {
                self.at = Some(low + (high - low) / 2);
                return;
            }
            self.bad.push(high + self.bad.len() as u32);
            self.between = (low, self.row.sectors - 1);
        }
        self.at = None;
    }

    fn found(self) -> Bad {
        let behind = self.bad.len() as u32;
        let begins = self.first.map_or(self.row.angle, |end| fraction(end - self.sector));
        Bad { inside: self.bad, outside: self.row.missing() - behind, begins }
    }
}
