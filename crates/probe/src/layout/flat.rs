//! Tracks in the order of their sectors, all on one surface: what is known before anything has been
//! asked of the arm, and what is left where its answers fit no layout.
//!
//! It says at which angle every sector lies. How far two tracks are from each other it knows only
//! along one leg of the arm's way.

use headtime_disk::profile::{GeometrySpec, HeadOrder, Layout, ZoneSpec};

use super::rows::Row;
use super::{spares, turn};

/// The geometry of these rows. Cylinder `i` is the drive's track `i`.
pub fn geometry(rows: &[Row]) -> GeometrySpec {
    let mut zones = Vec::with_capacity(rows.len());
    let mut cylinder = 0;
    for row in rows {
        zones.push(ZoneSpec {
            first_cylinder: cylinder,
            last_cylinder: cylinder + row.tracks as u32 - 1,
            surface: None,
            sectors_per_track: vec![row.spt],
            offset: Some(turn(row.angle)),
            track_skew: turn(row.skew),
            cylinder_skew: turn(row.skew),
            reserved_sectors: 0,
            sparing: spares(row.tracks * u64::from(row.missing())),
            slips: Vec::new(),
            defects: Vec::new(),
        });
        cylinder += row.tracks as u32;
    }
    GeometrySpec {
        surfaces: 1,
        cylinders: cylinder,
        layout: Layout::HeadFirst(HeadOrder::Forward),
        zones,
        remaps: Vec::new(),
    }
}
