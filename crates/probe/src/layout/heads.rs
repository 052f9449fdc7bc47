//! Drives with cylinder-wise head order: rows as cylinders.
//!
//! Within a zone all angles follow from three figures: the first track's angle, the head skew, and
//! the cylinder skew. A track belongs to the zone while its angle agrees; tracks with bad sectors
//! are included. The three figures are fitted to all rows of the zone by least squares.

use headtime_disk::profile::{GeometrySpec, HeadOrder, Layout, SectorAddress, Slip, ZoneSpec};

use super::rows::Row;
use super::slips::{Bad, Slips};
use super::{spares, turn};
use crate::fit::fit;
use crate::spindle::{apart, fraction};

/// A zone under construction.
struct Zone {
    spt: u32,
    /// Skew from one head to the next, and from a cylinder's last track to the next one's first.
    skews: (f64, f64),
    /// Number of tracks so far.
    tracks: u64,
    /// Track numbers and their angles.
    points: Vec<(u64, f64)>,
    /// Tracks without data in front of its first one.
    front: u64,
    /// Numbers of tracks that are skipped whole.
    skipped: Vec<u64>,
    /// Bad sectors, by track number.
    slips: Vec<(u64, Bad)>,
    /// Sectors without data at the end of its last track.
    open: u32,
}

/// Returns the geometry of rows on `surfaces` surfaces. `same`: tolerance of angles, in
/// revolutions.
pub(super) fn geometry(rows: &[Row], slips: &Slips, surfaces: u16, order: HeadOrder, same: f64) -> GeometrySpec {
    let heads = u64::from(surfaces);
    let mut zones: Vec<ZoneSpec> = Vec::new();
    let mut cylinder = 0;
    let mut zone: Option<Zone> = None;
    for (i, row) in rows.iter().enumerate() {
        let continues = zone.as_ref().is_some_and(|z| z.spt == row.spt && z.open == 0 && z.takes(row, heads, same));
        if !continues {
            if let Some(z) = zone.take() {
                z.finish(heads, order, &mut cylinder, &mut zones);
            }
            zone = Some(Zone { skews: skews(&rows[i..], heads), ..Zone::new(row.spt) });
        }
        zone.as_mut().expect("it was just begun").add(row, slips);
    }
    if let Some(z) = zone {
        z.finish(heads, order, &mut cylinder, &mut zones);
    }
    GeometrySpec { surfaces, cylinders: cylinder, layout: Layout::HeadFirst(order), zones, remaps: Vec::new() }
}

/// Both skews of the zone that begins with these rows, from its first whole cylinders.
fn skews(rows: &[Row], heads: u64) -> (f64, f64) {
    let here = rows.iter().take_while(|r| r.spt == rows[0].spt);
    let track = here.clone().filter(|r| r.tracks > 1).max_by_key(|r| r.tracks).map(|r| r.skew);
    let mut cylinder = None;
    let mut at = 0;
    for (row, next) in here.clone().zip(here.skip(1)) {
        at += row.tracks + row.skipped;
        if row.tracks == heads && next.tracks == heads && at.is_multiple_of(heads) {
            cylinder = Some(fraction(next.angle - row.last_begins()));
            break;
        }
    }
    let track = track.unwrap_or(0.0);
    // A row over several cylinders shows that both skews are equal.
    (track, cylinder.unwrap_or(track))
}

impl Zone {
    fn new(spt: u32) -> Zone {
        Zone {
            spt,
            skews: (0.0, 0.0),
            tracks: 0,
            front: 0,
            points: Vec::new(),
            skipped: Vec::new(),
            slips: Vec::new(),
            open: 0,
        }
    }

    /// Revolutions from the zone's first track to this one.
    fn turned(&self, track: u64, heads: u64) -> f64 {
        let cylinders = track / heads;
        let (within, across) = self.skews;
        fraction(within * (track - cylinders) as f64) + fraction(across * cylinders as f64)
    }

    /// Returns whether a row begins at the expected angle of the next track.
    fn takes(&self, row: &Row, heads: u64, same: f64) -> bool {
        let Some(&(last, angle)) = self.points.last() else { return true };
        let ahead = self.turned(self.tracks + row.skipped, heads) - self.turned(last, heads);
        // A slipped sector in front of it shifts it slightly.
        let sector = 1.0 / f64::from(self.spt);
        apart(angle + ahead, row.angle).abs() <= same + f64::from(row.missing().min(2)) * sector
    }

    fn add(&mut self, row: &Row, slips: &Slips) {
        match self.tracks {
            0 => self.front = row.skipped,
            _ => self.skipped.extend(self.tracks..self.tracks + row.skipped),
        }
        self.tracks += row.skipped;
        match slips.of(row) {
            Some(bad) => self.slips.push((self.tracks, bad.clone())),
            None => self.open = row.missing(),
        }
        // The start angle of a short track is less certain.
        if row.missing() == 0 || self.points.is_empty() {
            self.points.push((self.tracks, row.angle));
            if row.tracks > 1 {
                self.points.push((self.tracks + row.tracks - 1, row.last_begins()));
            }
        }
        self.tracks += row.tracks;
    }

    /// The first angle and both skews as the best fit to all points.
    fn fitted(&self, heads: u64) -> (f64, f64, f64) {
        let begin = fraction(self.points[0].1 - self.turned(self.points[0].0, heads));
        let alike = self.skews.0 == self.skews.1;
        // Residuals, with the revolutions of the initial skews removed.
        let mut left = 0.0;
        let mut points = Vec::with_capacity(self.points.len());
        for &(track, angle) in &self.points {
            // The residual grows slowly along the zone: the last one predicts the next.
            left += apart(fraction(begin + left + self.turned(track, heads)), angle);
            let cylinders = track / heads;
            let x = match alike {
                true => [1.0, track as f64, 0.0],
                false => [1.0, (track - cylinders) as f64, cylinders as f64],
            };
            points.push((x, left));
        }
        let [offset, within, across] = fit(&points).values;
        let across = if alike { within } else { across };
        (fraction(begin + offset), fraction(self.skews.0 + within), fraction(self.skews.1 + across))
    }

    fn finish(mut self, heads: u64, order: HeadOrder, cylinder: &mut u32, zones: &mut Vec<ZoneSpec>) {
        let (angle, within, across) = self.fitted(heads);
        self.skews = (within, across);
        let cylinders = self.tracks.div_ceil(heads);
        let empty = (cylinders * heads - self.tracks) * u64::from(self.spt);
        let first = *cylinder;
        let place = |track: u64| {
            let cylinder = first + (track / heads) as u32;
            (cylinder, surface(order, heads as u16, (first, cylinder), (track % heads) as u16))
        };
        let whole = self.skipped.iter().map(|&track| {
            let (cylinder, surface) = place(track);
            Slip::Track { cylinder, surface }
        });
        let bad = |(track, bad): &(u64, Bad)| {
            let (cylinder, surface) = place(*track);
            let sectors = bad.sectors(fraction(angle + self.turned(*track, heads)), self.spt);
            sectors.into_iter().map(move |sector| Slip::Sector(SectorAddress { cylinder, surface, sector }))
        };
        zones.push(ZoneSpec {
            first_cylinder: first,
            last_cylinder: first + cylinders as u32 - 1,
            surface: None,
            sectors_per_track: vec![self.spt],
            offset: Some(turn(angle)),
            track_skew: turn(within),
            cylinder_skew: turn(across),
            reserved_sectors: self.front * u64::from(self.spt),
            sparing: spares(empty + u64::from(self.open)),
            slips: whole.chain(self.slips.iter().flat_map(bad)).collect(),
            defects: Vec::new(),
        });
        *cylinder = first + cylinders as u32;
    }
}

/// Returns the surface that is read as number `head` of a cylinder, in a zone that begins at
/// `first`.
pub(super) fn surface(order: HeadOrder, surfaces: u16, (first, cylinder): (u32, u32), head: u16) -> u16 {
    if order.is_turned(first, cylinder) { surfaces - 1 - head } else { head }
}
