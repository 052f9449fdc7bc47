//! All tracks on one surface, in LBN order: the layout before any seek measurement, and the
//! fallback if seek times fit no layout.
//!
//! It gives the angle of every sector, but the distance between tracks only along one sweep of the
//! arm.

use headtime_disk::profile::{GeometrySpec, HeadOrder, Layout, ZoneSpec};

use super::rows::Row;
use super::{spares, turn};

/// Returns the geometry of these rows. Cylinder `i` is the drive's track `i`.
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
