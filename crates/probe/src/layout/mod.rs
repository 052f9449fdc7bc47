//! The map as a geometry: surface and cylinder of each track.
//!
//! Angles alone do not determine them; seek times do: two adjacent tracks of one surface are a
//! short seek apart, two of different surfaces a head switch, which on most drives takes longer
//! (`surfaces`). Different head and cylinder skews reveal the number of surfaces as well. The
//! [`rows`] of the map are then placed as cylinders (`heads`) or as groups of tracks on each
//! surface in turn (`groups`). A geometry that does not place each track at its measured angle is
//! rejected; the fallback is plain track order ([`flat`]).

pub mod flat;
mod front;
mod gaps;
mod groups;
mod heads;
mod polish;
pub mod rows;
mod skips;
pub mod slips;
mod surfaces;
mod uneven;
mod units;

use headtime_disk::profile::{GeometrySpec, HeadOrder, Skew, SpareUnit, Sparing};
use headtime_disk::{Angle, Geometry};

pub use surfaces::{Groups, Order};

use crate::error::ProbeError;
use crate::map::Span;
use crate::pairs::Pairs;
use crate::sampler::Sampler;
use crate::spindle::{Spindle, apart};
use crate::tracks::Tracer;
use rows::Row;
use slips::Slips;

/// Bound of rows: more means tracks that all differ, in a pattern that fits no layout.
const MOST_ROWS: usize = 60_000;
/// Bound of tracks: ten times as many as the largest drive of 2025.
const MOST_TRACKS: u64 = 1 << 27;

/// A geometry, and its derivation.
#[derive(Clone, Debug)]
pub struct Laid {
    /// The geometry.
    pub spec: GeometrySpec,
    /// Its order of surfaces and cylinders; `None`: the measurements fit no order.
    pub order: Option<Order>,
    /// The confidence as text.
    pub sure: String,
    /// Number of tracks with bad sectors.
    pub slipped: usize,
}

/// Finds the surfaces and cylinders of a map.
///
/// # Errors
/// As [`Sampler::run`]; or the map is no disk's.
pub fn lay_out(sampler: &mut Sampler, spindle: &mut Spindle, spans: &[Span]) -> Result<Laid, ProbeError> {
    let mut tracer = Tracer { sampler, spindle };
    if let Some((mut spec, order)) = uneven::geometry(&mut tracer, spans)? {
        let end = spans.last().map_or(0, Span::end);
        if Geometry::new(&spec).is_ok_and(|g| g.capacity() == end) {
            polish::polish(&mut tracer, &mut spec)?;
            gaps::widen(tracer.sampler, tracer.spindle, &mut spec)?;
            let sure = "surfaces by how many sectors their tracks have".into();
            return Ok(Laid { spec, order: Some(order), sure, slipped: 0 });
        }
    }
    let mut rows = rows::rows(&mut tracer, spans)?;
    let tracks: u64 = rows.iter().map(|r| r.tracks).sum();
    if tracks > MOST_TRACKS {
        return Err(ProbeError::NoDisk {
            what: "the number of tracks",
            expected: format!("{MOST_TRACKS} at most"),
            found: tracks.to_string(),
        });
    }
    if rows.len() > MOST_ROWS {
        return Err(ProbeError::NoDisk {
            what: "tracks",
            expected: "rows of neighbours with as many sectors, or cylinders that are alike".into(),
            found: format!("{} rows in {tracks} tracks, in no order that is known", rows.len()),
        });
    }
    let slips = Slips::find(&mut tracer, &rows)?;
    let same = tracer.same();
    let hidden = front::complete(&mut rows, same);
    let slips = slips.moved(hidden);
    // Bad sectors do not split tracks that follow each other with one skew.
    let unit = units::repeated(&units::over_slips(&rows, None, same), same);
    skips::mark(&mut rows, unit, same);
    let mut flat = flat::geometry(&rows);
    front::reserve(&mut flat, hidden);
    let built = Geometry::new(&flat).map_err(|e| ProbeError::NoDisk {
        what: "tracks as they were found",
        expected: "a disk's".into(),
        found: e.to_string(),
    })?;
    let pairs = Pairs::new(sampler, spindle, &built)?;
    let slipped = slips.tracks();
    let (mut order, mut sure) = surfaces::find(sampler, spindle, &pairs, (&rows, unit), same)?;
    if unit.is_none() && matches!(order, Some(Order::Heads { surfaces: 1, .. })) {
        // One surface, or sweeps whose ends only distances show.
        if let Some(sweeps) = surfaces::hidden_sweeps(sampler, spindle, &pairs, &rows)? {
            let divided = units::divided(&rows, sweeps);
            let found = surfaces::find(sampler, spindle, &pairs, (&divided, Some(sweeps.tracks)), same)?;
            if found.0.is_some() {
                (rows, (order, sure)) = (divided, found);
            }
        }
    }
    let spec = match order {
        Some(Order::Heads { surfaces, order }) => Some(heads::geometry(&rows, &slips, surfaces, order, same)),
        Some(Order::Groups(groups)) => groups::geometry(&rows, &slips, groups, same),
        None => None,
    };
    let fitting = spec.filter(|s| fits(s, &rows, same)).and_then(|mut s| front::reserve(&mut s, hidden).then_some(s));
    match fitting {
        Some(mut spec) => {
            let mut tracer = Tracer { sampler, spindle };
            polish::polish(&mut tracer, &mut spec)?;
            uneven::free_on_each_track(&mut tracer, &mut spec)?;
            gaps::widen(tracer.sampler, tracer.spindle, &mut spec)?;
            Ok(Laid { spec, order, sure, slipped })
        }
        None if order.is_none() => Ok(Laid { spec: flat, order, sure, slipped }),
        None => {
            let sure = "tracks do not lie as surfaces and groups would have it".into();
            Ok(Laid { spec: flat, order: None, sure, slipped })
        }
    }
}

/// Returns whether a geometry has each row's tracks at their measured angles.
fn fits(spec: &GeometrySpec, rows: &[Row], same: f64) -> bool {
    let Ok(built) = Geometry::new(spec) else { return false };
    let ends = rows.last().is_some_and(|r| r.end() == built.capacity());
    // A host cannot see the index mark; on a track with missing sectors the first visible one may
    // lie later.
    let is_there = |lbn: u64, angle: f64, row: &Row| {
        let allowed = same + f64::from(row.missing().min(slips::MAX_MISSING_SECTORS)) / f64::from(row.spt);
        built.track_of(lbn).is_some_and(|t| {
            let near = apart(t.angle.turns(), angle).abs() <= allowed;
            t.first_lbn == lbn && t.lbns == row.sectors && t.spt == row.spt && near
        })
    };
    ends && rows.iter().all(|row| {
        let last = row.end() - u64::from(row.sectors);
        is_there(row.first, row.angle, row) && is_there(last, row.last_begins(), row)
    })
}

fn turn(turns: f64) -> Skew {
    Skew::Turn(Angle::from_turns(turns))
}

/// Spare sectors at a zone's end, in addition to bad ones.
fn spares(spares: u64) -> Sparing {
    Sparing { unit: SpareUnit::Zone, spares, ..Sparing::NONE }
}

/// A head order as text.
fn in_words(order: HeadOrder) -> &'static str {
    match order {
        HeadOrder::Forward => "all heads of a cylinder, from the same one on",
        _ => "all heads of a cylinder, there and back",
    }
}
