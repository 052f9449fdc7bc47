//! The map as a list of rows, each of equal tracks, with the true lengths of single short tracks.
//!
//! A track with fewer sectors than its neighbours has their full length: at a zone's end the rest
//! of it is spare, and at a bad sector the mapping slips. Its rate shows that: its sectors are as
//! far apart as on its neighbours. If a zone ends within a track, the next may begin at the very
//! angle of the end; both then look like a full track followed by a short one. A read across the
//! true boundary then takes another revolution.

use crate::error::ProbeError;
use crate::map::Span;
use crate::spindle::{apart, fraction};
use crate::tracks::Tracer;

/// Consecutive tracks with one skew and equal numbers of sectors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// First sector of the first track.
    pub first: u64,
    /// Number of tracks.
    pub tracks: u64,
    /// Sectors with an LBN on each.
    pub sectors: u32,
    /// Sectors per revolution: more than `sectors` if some hold no data, on single tracks only.
    pub spt: u32,
    /// Skew from one track's start to the next, in revolutions from 0 to 1; 0 for a single track.
    pub skew: f64,
    /// Angle of the first track's start, in revolutions since the reference.
    pub angle: f64,
    /// Tracks in front of it that are skipped whole (`skips`).
    pub skipped: u64,
}

impl Row {
    /// One past its last sector.
    pub fn end(&self) -> u64 {
        self.first + self.tracks * u64::from(self.sectors)
    }

    /// Returns the angle at which track number `j` begins.
    pub fn begins(&self, j: u64) -> f64 {
        fraction(self.angle + fraction(self.skew * j as f64))
    }

    /// Returns the angle at which the last track begins.
    pub fn last_begins(&self) -> f64 {
        self.begins(self.tracks - 1)
    }

    /// Returns the number of sectors of a track without data.
    pub fn missing(&self) -> u32 {
        self.spt - self.sectors
    }
}

/// A track that lacks at most this part of its sectors, among complete tracks, has bad sectors.
const BAD_SECTORS_PART: u32 = 16;
/// Number of neighbouring rows to each side.
const NEIGHBOUR_ROWS: usize = 4;
/// Fewest sectors that determine a rate.
const MIN_RATE_SECTORS: u32 = 8;
/// The boundary search takes tracks with fewer sectors for a part of the next one.
const MAX_UNSEEN_SECTORS: u32 = 64;
/// Reads across a boundary, of each kind, at least and at most: the two kinds differ by a
/// revolution if the boundary matters; a single read varies by half a revolution and its seek.
const READS: u32 = 12;
const MOST_READS: u32 = 60;
/// Number of standard errors by which the mean must differ from half a revolution.
const CLEAR_DEVIATIONS: f64 = 4.0;
/// A boundary was searched for where angles jump by more than chance; after a small jump it is
/// found late, by a few times that.
const SEAMLESS_TOLERANCES: f64 = 3.0;

/// Returns all rows of a drive, in LBN order.
///
/// # Errors
/// As [`crate::sampler::Sampler::run`].
pub fn rows(tracer: &mut Tracer, spans: &[Span]) -> Result<Vec<Row>, ProbeError> {
    let mut rows = joined(tracer, unrolled(spans))?;
    for i in 0..rows.len() {
        if rows[i].tracks == 1 {
            rows[i].spt = whole(tracer, &rows, i)?;
            // The start was derived from the end of its first sector with a full track's sector
            // width.
            rows[i].angle = fraction(rows[i].angle + 1.0 / f64::from(rows[i].sectors) - 1.0 / f64::from(rows[i].spt));
        }
    }
    let rows = parted(tracer, rows)?;
    seams(tracer, rows)
}

/// Expands every repetition of every span.
fn unrolled(spans: &[Span]) -> Vec<Row> {
    let mut rows = Vec::new();
    for span in spans {
        for time in 0..span.times {
            let (ahead, turned) = (time * span.sectors(), fraction(span.advance * time as f64));
            rows.extend(span.runs.iter().map(|r| Row {
                first: r.first + ahead,
                tracks: r.tracks,
                sectors: r.sectors,
                spt: r.sectors,
                skew: if r.tracks > 1 { r.skew } else { 0.0 },
                angle: fraction(r.angle + turned),
                skipped: 0,
            }));
        }
    }
    rows
}

/// Joins single tracks that are one: several consecutive bad sectors look like a track's end.
fn joined(tracer: &mut Tracer, rows: Vec<Row>) -> Result<Vec<Row>, ProbeError> {
    let mut joined: Vec<Row> = Vec::with_capacity(rows.len());
    for mut row in rows {
        let spt = usual(joined.iter().rev()).unwrap_or(0);
        // Bad sectors near a track's end: the sectors after them look like a part of the next
        // track, which is then too long.
        if let Some(last) = joined.last_mut()
            && (last.tracks, row.tracks) == (1, 1)
            && row.sectors > spt
            && last.sectors < spt
            && row.sectors - spt <= (spt - last.sectors).min(spt / BAD_SECTORS_PART)
        {
            let excess = row.sectors - spt;
            let end = last.angle + 1.0 / f64::from(last.sectors);
            last.sectors += excess;
            (last.spt, last.angle) = (last.sectors, fraction(end - 1.0 / f64::from(last.sectors)));
            (row.first, row.sectors, row.spt) = (row.first + u64::from(excess), spt, spt);
            row.angle = fraction(tracer.steady(row.first)? - 1.0 / f64::from(spt));
        }
        if let Some(last) = joined.last_mut()
            && (last.tracks, row.tracks) == (1, 1)
            && last.sectors + row.sectors < spt
            && spt - last.sectors - row.sectors <= spt / BAD_SECTORS_PART
        {
            // The measured starts derive from the first sectors' ends, with the sector width of a
            // track of the apparent length.
            let end = |r: &Row| r.angle + 1.0 / f64::from(r.sectors);
            let along = f64::from(last.sectors) / f64::from(spt);
            let jump = apart(end(last) + along, end(&row)) * f64::from(spt);
            if (0.5..f64::from(spt - last.sectors - row.sectors) + 1.5).contains(&jump) {
                let sectors = last.sectors + row.sectors;
                last.angle = fraction(end(last) - 1.0 / f64::from(sectors));
                (last.sectors, last.spt) = (sectors, sectors);
                continue;
            }
        }
        joined.push(row);
    }
    Ok(joined)
}

/// Splits a track with a few more sectors than those after it that does not span a revolution: the
/// previous zone has so few sectors on it that their end was not seen.
fn parted(tracer: &mut Tracer, rows: Vec<Row>) -> Result<Vec<Row>, ProbeError> {
    let mut parted: Vec<Row> = Vec::with_capacity(rows.len());
    for (i, row) in rows.iter().enumerate() {
        let behind = usual(rows[i + 1..].iter()).filter(|&n| row.sectors > n && row.sectors - n <= MAX_UNSEEN_SECTORS);
        let before = usual(parted.iter().rev());
        let (1, 0, Some(behind), Some(before)) = (row.tracks, row.missing(), behind, before) else {
            parted.push(*row);
            continue;
        };
        let few = row.sectors - behind;
        let end = row.angle + 1.0 / f64::from(row.sectors);
        // A whole track's last sector ends where its first began.
        if tracer.off(row.end() - 1, row.angle)?.abs() <= tracer.same() {
            parted.push(*row);
            continue;
        }
        let spt = before.max(few);
        parted.push(Row { sectors: few, spt, angle: fraction(end - 1.0 / f64::from(spt)), ..*row });
        let first = row.first + u64::from(few);
        let angle = fraction(tracer.steady(first)? - 1.0 / f64::from(behind));
        parted.push(Row { first, sectors: behind, spt: behind, angle, ..*row });
    }
    Ok(parted)
}

/// Sectors of the nearest tracks, nearest first: of a row of several, because the length of single
/// tracks may be in doubt; otherwise the maximum.
fn usual<'r>(near: impl Iterator<Item = &'r Row> + Clone) -> Option<u32> {
    let near = near.take(NEIGHBOUR_ROWS);
    near.clone().find(|r| r.tracks > 1).map(|r| r.sectors).or(near.map(|r| r.sectors).max())
}

/// Sectors per revolution on the single track of a row.
fn whole(tracer: &mut Tracer, rows: &[Row], i: usize) -> Result<u32, ProbeError> {
    let row = rows[i];
    let before = usual(rows[..i].iter().rev()).filter(|&n| n > row.sectors);
    let behind = usual(rows[i + 1..].iter()).filter(|&n| n > row.sectors);
    if let (Some(n), true) = (before, before == behind)
        && n - row.sectors <= n / BAD_SECTORS_PART
    {
        return Ok(n);
    }
    if row.sectors < MIN_RATE_SECTORS {
        return Ok(before.or(behind).unwrap_or(row.sectors));
    }
    let begins = fraction(row.angle + 1.0 / f64::from(row.sectors));
    let turned = fraction(tracer.steady(row.end() - 1)? - begins);
    let off = |n: u32| apart(f64::from(row.sectors - 1) / f64::from(n), turned).abs();
    // It usually is the end of the previous zone, which decides if neither length fits much better.
    let of_before = before.filter(|&n| off(n) <= tracer.same());
    let of_behind = behind.filter(|&n| off(n) <= tracer.same());
    // A zone may have only one track and a part on its last surface: then the usual length nearby
    // is that of another surface.
    let others = rows[i.saturating_sub(NEIGHBOUR_ROWS)..i].iter().rev().map(|r| r.sectors).filter(|&n| n > row.sectors);
    let fits = |n: &u32| off(*n) <= tracer.same().min(off(row.sectors));
    let of_another = others.filter(fits).min_by(|a, b| off(*a).total_cmp(&off(*b)));
    Ok(of_before.or(of_behind).or(of_another).unwrap_or(row.sectors))
}

/// Corrects tracks at a zone's start that look short because the previous zone seems to end later:
/// finds which of the two is short.
fn seams(tracer: &mut Tracer, rows: Vec<Row>) -> Result<Vec<Row>, ProbeError> {
    let mut mended: Vec<Row> = Vec::with_capacity(rows.len());
    for (i, row) in rows.iter().enumerate() {
        let is_at_begin = rows.get(i + 1).is_some_and(|next| next.spt == row.spt && next.missing() == 0);
        if let Some(last) = mended.last().copied()
            && row.tracks == 1
            && (1..last.sectors).contains(&row.missing())
            && is_at_begin
            && !(last.spt == row.spt && row.missing() <= row.spt / BAD_SECTORS_PART)
        {
            // Where this track would begin if it were complete.
            let begins = last.end() - u64::from(last.sectors);
            let sectors = last.sectors - row.missing();
            let other = begins + u64::from(sectors);
            // The length of a single track was taken from its appearance.
            let before =
                mended.iter().rev().skip(1).take(NEIGHBOUR_ROWS).map(|r| r.spt).max().filter(|_| last.tracks == 1);
            let spt = before.unwrap_or(last.spt).max(sectors);
            let along = f64::from(sectors) / f64::from(spt) + f64::from(row.missing()) / f64::from(row.spt);
            let is_seamless = apart(last.last_begins() + along, row.angle).abs() <= SEAMLESS_TOLERANCES * tracer.same();
            if is_seamless && longer(tracer, other, last.end())? {
                mended.pop();
                if last.tracks > 1 {
                    let tracks = last.tracks - 1;
                    mended.push(Row { tracks, skew: if tracks > 1 { last.skew } else { 0.0 }, ..last });
                }
                mended.push(Row {
                    first: begins,
                    tracks: 1,
                    sectors,
                    spt,
                    skew: 0.0,
                    angle: last.last_begins(),
                    skipped: 0,
                });
                let angle = fraction(tracer.steady(other)? - 1.0 / f64::from(row.spt));
                mended.push(Row { first: other, sectors: row.spt, angle, ..*row });
                continue;
            }
        }
        mended.push(*row);
    }
    Ok(mended)
}

/// Returns whether reads across `here` take half a revolution longer than reads across `there`.
fn longer(tracer: &mut Tracer, here: u64, there: u64) -> Result<bool, ProbeError> {
    let half = tracer.spindle.period_ns() / 2.0;
    let (mut sum, mut squares, mut n) = (0.0, 0.0, 0.0);
    for pair in 1..=MOST_READS {
        let mut took = [None; 2];
        for (took, lbn) in took.iter_mut().zip([here, there]) {
            // From a random place, so that neither always arrives at one angle.
            let elsewhere = tracer.sampler.below(tracer.sectors());
            tracer.sampler.read(elsewhere, 1)?;
            let answer = tracer.sampler.apart(lbn - 1, 2)?;
            *took = answer.map(|a| a.done.saturating_since(a.sent).0 as f64);
        }
        let [Some(here), Some(there)] = took else { continue };
        let more = here - there;
        (sum, squares, n) = (sum + more, squares + more * more, n + 1.0);
        let mean: f64 = sum / n;
        let error = ((squares / n - mean * mean).max(0.0) / n).sqrt();
        if pair >= READS && (mean - half).abs() > CLEAR_DEVIATIONS * error {
            break;
        }
    }
    Ok(sum > half * n)
}
