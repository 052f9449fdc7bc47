//! The map as a geometry.
//!
//! Tracks are laid out in the order of their sectors, `surfaces` of them a cylinder: on drives that go through all heads of a cylinder that is how they
//! lie, as far as their skews tell. On drives that stay on one surface for hundreds of tracks cylinders come out as many as there are
//! tracks, which says at which angle every sector lies, and how far two tracks of one group are from each other; what lies on another surface
//! at the same radius is not known from angles alone.

use headtime_disk::angle::Angle;
use headtime_disk::profile::{GeometrySpec, HeadOrder, Layout, Skew, SpareUnit, Sparing, ZoneSpec};

use crate::map::{Run, Span};
use crate::spindle::fraction;

/// Runs of more tracks than this are no cylinders.
const MOST_SURFACES: u64 = 40;

/// The geometry of a map.
pub fn geometry(spans: &[Span]) -> GeometrySpec {
    let surfaces = surfaces(spans);
    let mut zones: Vec<ZoneSpec> = Vec::new();
    let mut cylinder = 0;
    for span in spans {
        let run = &span.runs[0];
        if let [_] = span.runs[..]
            && run.tracks == surfaces
            && surfaces > 1
        {
            let skew = fraction(span.advance - (surfaces - 1) as f64 * run.skew);
            let zone = zone(cylinder, span.times, run, run.angle, skew, 0);
            cylinder = zone.last_cylinder + 1;
            zones.push(zone);
            continue;
        }
        for time in 0..span.times {
            for run in &span.runs {
                let angle = fraction(run.angle + fraction(span.advance * time as f64));
                let cylinders = run.tracks.div_ceil(surfaces);
                let spare = (cylinders * surfaces - run.tracks) * u64::from(run.sectors);
                let zone = zone(cylinder, cylinders, run, angle, run.skew, spare);
                cylinder = zone.last_cylinder + 1;
                zones.push(zone);
            }
        }
    }
    GeometrySpec {
        surfaces: surfaces as u16,
        cylinders: cylinder,
        layout: Layout::HeadFirst(HeadOrder::Forward),
        zones,
        remaps: Vec::new(),
    }
}

/// Tracks of a cylinder, if that is what most tracks of the drive are in: short runs that repeat. Else one.
fn surfaces(spans: &[Span]) -> u64 {
    let tracks = |s: &Span| s.times * s.runs.iter().map(|r| r.tracks).sum::<u64>();
    let all: u64 = spans.iter().map(tracks).sum();
    let cylinders = |n: u64| spans.iter().filter(move |s| s.runs.len() == 1 && s.runs[0].tracks == n);
    let in_cylinders = |n: u64| -> u64 { cylinders(n).map(tracks).sum() };
    (2..=MOST_SURFACES).find(|&n| 2 * in_cylinders(n) > all).unwrap_or(1)
}

fn zone(first: u32, cylinders: u64, run: &Run, angle: f64, cylinder_skew: f64, spares: u64) -> ZoneSpec {
    let turn = |turns: f64| Skew::Turn(Angle::from_turns(turns));
    ZoneSpec {
        first_cylinder: first,
        last_cylinder: first + (cylinders.max(1) - 1) as u32,
        surface: None,
        sectors_per_track: vec![run.sectors],
        offset: Some(turn(angle)),
        track_skew: turn(run.skew),
        cylinder_skew: turn(cylinder_skew),
        reserved_sectors: 0,
        sparing: Sparing { unit: SpareUnit::Zone, spares, ..Sparing::NONE },
        slips: Vec::new(),
        defects: Vec::new(),
    }
}
