//! The map as a list of rows, each of tracks that are alike, with what single short tracks truly
//! are.
//!
//! A track that holds fewer sectors than its neighbours is as long as they are: where a zone ends
//! the rest of it is spare, and where a sector is bad the mapping slips over it. Its rate tells:
//! along it each sector ends as much behind the one before as on its neighbours. And where a zone
//! ends within a track, the next may begin at the very angle that it ends at; both then look like a
//! full track with a short one behind it. There a read across the true boundary takes a turn more.

use crate::map::Span;
use crate::sampler::ProbeError;
use crate::spindle::{apart, fraction};
use crate::tracks::Tracer;

/// Tracks that follow each other with one skew and as many sectors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// The first sector of the first.
    pub first: u64,
    /// How many.
    pub tracks: u64,
    /// Sectors with numbers on each.
    pub sectors: u32,
    /// Sectors that pass in a turn: more where some hold no data, which is on single tracks only.
    pub spt: u32,
    /// From where one begins to where the next does, in turns from 0 to 1; of a single track 0.
    pub skew: f64,
    /// Where the first begins, in turns since the reference.
    pub angle: f64,
    /// Tracks in front of it that are passed over whole ([`super::skips`]).
    pub skipped: u64,
}

impl Row {
    /// One past its last sector.
    pub fn end(&self) -> u64 {
        self.first + self.tracks * u64::from(self.sectors)
    }

    /// The angle at which its track number `j` begins.
    pub fn begins(&self, j: u64) -> f64 {
        fraction(self.angle + fraction(self.skew * j as f64))
    }

    /// The angle at which its last track begins.
    pub fn last_begins(&self) -> f64 {
        self.begins(self.tracks - 1)
    }

    /// Sectors of a track that hold no data.
    pub fn missing(&self) -> u32 {
        self.spt - self.sectors
    }
}

/// A track that lacks no more than this part of its sectors, among others that lack none, has bad
/// ones.
const FEW: u32 = 16;
/// Rows to each side that are neighbours.
const NEAR: usize = 4;
/// Sectors along which a rate can be told.
const ENOUGH: u32 = 8;
/// Tracks of fewer sectors than this are taken for a part of the next one by whoever looks for
/// boundaries.
const UNSEEN: u32 = 64;
/// Reads across a boundary, of each kind, at least and at most: where it matters they differ by a
/// turn, and each is half a turn off and what its seek takes more or less.
const READS: u32 = 12;
const MOST_READS: u32 = 60;
/// The mean must be off the half by so many of its errors.
const CLEAR: f64 = 4.0;
/// A boundary was looked for where angles jump by more than may be chance; behind a small jump it
/// is found late, by a few times that.
const SEAMLESS: f64 = 3.0;

/// All rows of a drive, in the order of their sectors.
///
/// # Errors
/// As [`crate::sampler::Sampler::run`].
pub fn rows(tracer: &mut Tracer, spans: &[Span]) -> Result<Vec<Row>, ProbeError> {
    let mut rows = joined(tracer, unrolled(spans))?;
    for i in 0..rows.len() {
        if rows[i].tracks == 1 {
            rows[i].spt = whole(tracer, &rows, i)?;
            // It was found from the end of its first sector, as wide as those of a full track.
            rows[i].angle = fraction(rows[i].angle + 1.0 / f64::from(rows[i].sectors) - 1.0 / f64::from(rows[i].spt));
        }
    }
    let rows = parted(tracer, rows)?;
    seams(tracer, rows)
}

/// Every time of every span.
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

/// Single tracks that are one: where several sectors in a row are bad, the jump looks like a
/// track's end.
fn joined(tracer: &mut Tracer, rows: Vec<Row>) -> Result<Vec<Row>, ProbeError> {
    let mut joined: Vec<Row> = Vec::with_capacity(rows.len());
    for mut row in rows {
        let spt = usual(joined.iter().rev()).unwrap_or(0);
        // Bad sectors near a track's end: what lies behind them looks like a part of the next
        // track, which then is too long.
        if let Some(last) = joined.last_mut()
            && (last.tracks, row.tracks) == (1, 1)
            && row.sectors > spt
            && last.sectors < spt
            && row.sectors - spt <= (spt - last.sectors).min(spt / FEW)
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
            && spt - last.sectors - row.sectors <= spt / FEW
        {
            // Begins as found are those of the first sectors' ends, less a sector of tracks as
            // short as these were taken for.
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

/// A track with a few sectors more than those behind it that does not take a turn is two: of the
/// zone before there was so little on its last one that nobody saw it end.
fn parted(tracer: &mut Tracer, rows: Vec<Row>) -> Result<Vec<Row>, ProbeError> {
    let mut parted: Vec<Row> = Vec::with_capacity(rows.len());
    for (i, row) in rows.iter().enumerate() {
        let behind = usual(rows[i + 1..].iter()).filter(|&n| row.sectors > n && row.sectors - n <= UNSEEN);
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

/// Sectors of the nearest tracks, nearest first: of a row of several, for the length of single ones
/// may be in doubt itself; else the most of some.
fn usual<'r>(near: impl Iterator<Item = &'r Row> + Clone) -> Option<u32> {
    let near = near.take(NEAR);
    near.clone().find(|r| r.tracks > 1).map(|r| r.sectors).or(near.map(|r| r.sectors).max())
}

/// Sectors that pass in a turn on the single track of a row.
fn whole(tracer: &mut Tracer, rows: &[Row], i: usize) -> Result<u32, ProbeError> {
    let row = rows[i];
    let before = usual(rows[..i].iter().rev()).filter(|&n| n > row.sectors);
    let behind = usual(rows[i + 1..].iter()).filter(|&n| n > row.sectors);
    if let (Some(n), true) = (before, before == behind)
        && n - row.sectors <= n / FEW
    {
        return Ok(n);
    }
    if row.sectors < ENOUGH {
        return Ok(before.or(behind).unwrap_or(row.sectors));
    }
    let begins = fraction(row.angle + 1.0 / f64::from(row.sectors));
    let turned = fraction(tracer.steady(row.end() - 1)? - begins);
    let off = |n: u32| apart(f64::from(row.sectors - 1) / f64::from(n), turned).abs();
    // As a rule it is the end of the zone before it. Where neither length fits by far better, that
    // decides.
    let of_before = before.filter(|&n| off(n) <= tracer.same());
    let of_behind = behind.filter(|&n| off(n) <= tracer.same());
    // A zone may have no more than a track and a part of one on its last surface: then the usual
    // length near by is that of another surface.
    let others = rows[i.saturating_sub(NEAR)..i].iter().rev().map(|r| r.sectors).filter(|&n| n > row.sectors);
    let fits = |n: &u32| off(*n) <= tracer.same().min(off(row.sectors));
    let of_another = others.filter(fits).min_by(|a, b| off(*a).total_cmp(&off(*b)));
    Ok(of_before.or(of_behind).or(of_another).unwrap_or(row.sectors))
}

/// Tracks at a zone's begin that look short, for the zone before it seems to end later: whichever
/// of the two is short.
fn seams(tracer: &mut Tracer, rows: Vec<Row>) -> Result<Vec<Row>, ProbeError> {
    let mut mended: Vec<Row> = Vec::with_capacity(rows.len());
    for (i, row) in rows.iter().enumerate() {
        let is_at_begin = rows.get(i + 1).is_some_and(|next| next.spt == row.spt && next.missing() == 0);
        if let Some(last) = mended.last().copied()
            && row.tracks == 1
            && (1..last.sectors).contains(&row.missing())
            && is_at_begin
            && !(last.spt == row.spt && row.missing() <= row.spt / FEW)
        {
            // Where this track would begin if it were whole.
            let begins = last.end() - u64::from(last.sectors);
            let sectors = last.sectors - row.missing();
            let other = begins + u64::from(sectors);
            // A single one was taken for as long as it seemed to be.
            let before = mended.iter().rev().skip(1).take(NEAR).map(|r| r.spt).max().filter(|_| last.tracks == 1);
            let spt = before.unwrap_or(last.spt).max(sectors);
            let along = f64::from(sectors) / f64::from(spt) + f64::from(row.missing()) / f64::from(row.spt);
            let is_seamless = apart(last.last_begins() + along, row.angle).abs() <= SEAMLESS * tracer.same();
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

/// Whether reads across `here` take half a turn longer than reads across `there`.
fn longer(tracer: &mut Tracer, here: u64, there: u64) -> Result<bool, ProbeError> {
    let half = tracer.spindle.period_ns() / 2.0;
    let (mut sum, mut squares, mut n) = (0.0, 0.0, 0.0);
    for pair in 1..=MOST_READS {
        let mut took = [None; 2];
        for (took, lbn) in took.iter_mut().zip([here, there]) {
            // From anywhere, so that neither always comes at one angle.
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
        if pair >= READS && (mean - half).abs() > CLEAR * error {
            break;
        }
    }
    Ok(sum > half * n)
}
