//! Cells: the neighbouring tracks that share one entry in the region bitmaps.
//!
//! Thereska 2003 section 4.2 divides each cylinder into angular regions, all its surfaces together:
//! what is out of reach on one surface is most likely out of reach on another at the same angle,
//! because all have about the same skew. That holds where LBNs run through a cylinder. In a
//! seek-first layout they run along one surface, and the tracks of a cylinder are unrelated; a cell
//! is then a group of neighbouring tracks of one surface, as many as the drive has surfaces, so
//! that there are about as many cells as cylinders, each of about as many tracks.
//!
//! # Definitions
//!
//! * Head-first: cell = cylinder.
//! * Seek-first, groups of g tracks, s surfaces, w = min(g, s): a group's cylinders are cut into
//!   ceil(g / w) blocks of w, the last one smaller; cell = block * s + surface. No cell crosses a
//!   group's end, so that the LBNs of a cell are contiguous.
//!
//! Cells ascend with their cylinders: adjacent numbers are neighbours on the platters.

use headtime_disk::Geometry;

use crate::tasks::TaskRange;

/// Mapping of tracks to cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cells {
    surfaces: u32,
    cylinders: u32,
    /// Tracks of a group and blocks in it; `None` for head-first layouts.
    groups: Option<Groups>,
    count: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Groups {
    tracks: u32,
    width: u32,
    blocks: u32,
}

impl Cells {
    /// Creates the mapping of a drive.
    pub fn new(geometry: &Geometry) -> Cells {
        let (surfaces, cylinders) = (u32::from(geometry.surfaces()), geometry.cylinders());
        let groups = geometry.group_tracks().map(|tracks| {
            // A profile may state a group wider than the drive.
            let tracks = tracks.min(cylinders).max(1);
            let width = tracks.min(surfaces).max(1);
            Groups { tracks, width, blocks: tracks.div_ceil(width) }
        });
        let mut cells = Cells { surfaces, cylinders, groups, count: cylinders };
        if groups.is_some() {
            cells.count = cylinders.checked_sub(1).map_or(0, |last| (cells.block(last) + 1) * surfaces);
        }
        cells
    }

    /// Returns the number of cells.
    #[inline]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns the block of a cylinder (head-first: the cylinder itself).
    #[inline]
    fn block(&self, cylinder: u32) -> u32 {
        match &self.groups {
            None => cylinder,
            Some(g) => cylinder / g.tracks * g.blocks + cylinder % g.tracks / g.width,
        }
    }

    /// Returns the cell of a track.
    #[inline]
    pub fn of(&self, cylinder: u32, surface: u16) -> u32 {
        match self.groups {
            None => cylinder,
            Some(_) => self.block(cylinder) * self.surfaces + u32::from(surface),
        }
    }

    /// Returns the range of cells, first and last, that covers all tracks of the cylinders
    /// `low..=high`.
    #[inline]
    pub fn of_cylinders(&self, low: u32, high: u32) -> (u32, u32) {
        match self.groups {
            None => (low, high),
            Some(_) => (self.block(low) * self.surfaces, self.block(high) * self.surfaces + self.surfaces - 1),
        }
    }

    /// Returns the group of a cylinder; the LBNs of a group come before all of the next one's
    /// (head-first: a cylinder).
    #[inline]
    pub fn group_of(&self, cylinder: u32) -> u32 {
        self.groups.map_or(cylinder, |g| cylinder / g.tracks)
    }

    /// Returns the group of a cell.
    #[inline]
    pub fn group_of_cell(&self, cell: u32) -> u32 {
        self.groups.map_or(cell, |g| cell / (g.blocks * self.surfaces))
    }

    /// Returns the number of groups.
    pub fn groups(&self) -> u32 {
        self.cylinders.checked_sub(1).map_or(0, |last| self.group_of(last) + 1)
    }

    /// Returns the first cell of a group.
    #[inline]
    pub fn first_of_group(&self, group: u32) -> u32 {
        self.groups.map_or(group, |g| group * g.blocks * self.surfaces)
    }

    /// Returns the lowest LBN of a group (remaps not counted), which is on the outermost track of
    /// its first or last surface, if those have data.
    pub fn first_lbn(&self, geometry: &Geometry, group: u32) -> Option<u64> {
        let cylinder = self.groups.map_or(group, |g| group * g.tracks);
        let ends = [0, self.surfaces - 1].map(|s| geometry.track(cylinder, s as u16));
        if let [Some(a), Some(b)] = ends {
            return Some(a.first_lbn.min(b.first_lbn));
        }
        let end = self.first_of_group(group + 1).min(self.count);
        (self.first_of_group(group)..end).filter_map(|c| self.lbns(geometry, c)).map(|r| r.lbn).min()
    }

    /// Returns the neighbours of a cell, outwards and inwards on its own surfaces.
    #[inline]
    pub fn neighbours(&self, cell: u32) -> (Option<u32>, Option<u32>) {
        let step = if self.groups.is_some() { self.surfaces } else { 1 };
        (cell.checked_sub(step), Some(cell + step).filter(|c| *c < self.count))
    }

    /// Returns the lowest and highest cylinder of a cell.
    #[inline]
    pub fn cylinders(&self, cell: u32) -> (u32, u32) {
        let Some(g) = &self.groups else {
            return (cell, cell);
        };
        let block = cell / self.surfaces;
        let inside = block % g.blocks * g.width;
        let first = block / g.blocks * g.tracks + inside;
        let end = (first + g.width.min(g.tracks - inside)).min(self.cylinders);
        (first, end - 1)
    }

    /// Returns the tracks of a cell: cylinder and surface, ascending. Some may hold no data.
    #[inline]
    pub fn tracks(&self, cell: u32) -> Tracks {
        let (first, last) = self.cylinders(cell);
        match self.groups {
            None => {
                Tracks { cylinder: first, end_cylinder: first + 1, first_surface: 0, surface: 0, end: self.surfaces }
            }
            Some(_) => {
                let surface = cell % self.surfaces;
                Tracks { cylinder: first, end_cylinder: last + 1, first_surface: surface, surface, end: surface + 1 }
            }
        }
    }

    /// Returns the same tracks from one end: cylinders ascending when `up`, else descending.
    #[inline]
    pub fn tracks_from(&self, cell: u32, up: bool) -> impl Iterator<Item = (u32, u16)> + use<> {
        let (first, last) = self.cylinders(cell);
        let surfaces = match self.groups {
            None => 0..self.surfaces as u16,
            Some(_) => (cell % self.surfaces) as u16..(cell % self.surfaces) as u16 + 1,
        };
        let cylinders = (0..last + 1 - first).map(move |i| if up { first + i } else { last - i });
        cylinders.flat_map(move |c| surfaces.clone().map(move |s| (c, s)))
    }

    /// Returns the contiguous LBNs of a cell (remaps not counted); `None` when it has none.
    pub fn lbns(&self, geometry: &Geometry, cell: u32) -> Option<TaskRange> {
        let mut found: Option<(u64, u64)> = None;
        let mut note = |(cylinder, surface)| {
            if let Some(t) = geometry.track(cylinder, surface) {
                let (low, high) = found.unwrap_or((t.first_lbn, t.first_lbn));
                found = Some((low.min(t.first_lbn), high.max(t.first_lbn + u64::from(t.lbns))));
                return true;
            }
            false
        };
        // The lowest LBN is on one of the outer tracks of the cell, the highest on the other,
        // unless one has no data.
        let all = self.tracks(cell);
        let (first, last) = (all.lowest(), all.highest());
        let ends = note(first);
        if !(note(last) && ends) {
            all.for_each(|t| _ = note(t));
        }
        found.map(|(low, high)| TaskRange { lbn: low, count: high - low })
    }
}

/// The tracks of one cell.
#[derive(Clone, Copy, Debug)]
pub struct Tracks {
    cylinder: u32,
    end_cylinder: u32,
    first_surface: u32,
    surface: u32,
    end: u32,
}

impl Tracks {
    fn lowest(&self) -> (u32, u16) {
        (self.cylinder, self.first_surface as u16)
    }

    fn highest(&self) -> (u32, u16) {
        (self.end_cylinder - 1, (self.end - 1) as u16)
    }
}

impl Tracks {
    /// Skips the remaining tracks of a cylinder.
    #[inline]
    pub fn leave_cylinder(&mut self, cylinder: u32) {
        if self.cylinder == cylinder && self.surface != self.first_surface {
            self.surface = self.first_surface;
            self.cylinder += 1;
        }
    }
}

impl Iterator for Tracks {
    type Item = (u32, u16);

    #[inline]
    fn next(&mut self) -> Option<(u32, u16)> {
        if self.cylinder >= self.end_cylinder {
            return None;
        }
        let track = (self.cylinder, self.surface as u16);
        self.surface += 1;
        if self.surface == self.end {
            self.surface = self.first_surface;
            self.cylinder += 1;
        }
        Some(track)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_disk::profile::Layout;
    use headtime_testkit::profiles::{layouts, rng, small_geometry};

    #[test]
    fn every_track_is_in_one_cell_whose_lbns_follow_each_other() {
        for (i, layout) in layouts().into_iter().enumerate() {
            for surfaces in [1, 2, 3, 5, 9] {
                let geometry = Geometry::new(&small_geometry(layout, surfaces, &mut rng(i as u64))).unwrap();
                let cells = Cells::new(&geometry);
                let mut seen = Vec::new();
                let mut lbns = 0;
                let mut groups = std::collections::BTreeMap::new();
                let mut last_low = 0;
                for cell in 0..cells.count() {
                    let tracks: Vec<_> = cells.tracks(cell).collect();
                    assert!(cells.tracks_from(cell, true).eq(tracks.iter().copied()));
                    let mut down: Vec<_> = cells.tracks_from(cell, false).collect();
                    assert!(down.is_sorted_by_key(|t| std::cmp::Reverse(t.0)));
                    down.sort();
                    assert_eq!(down, tracks);
                    assert!(tracks.iter().all(|t| cells.of(t.0, t.1) == cell), "{layout:?} {surfaces}");
                    let (low, high) = cells.cylinders(cell);
                    assert!(tracks.iter().all(|t| (low..=high).contains(&t.0)) && low >= last_low);
                    last_low = low;
                    let here = tracks.iter().filter_map(|t| geometry.track(t.0, t.1));
                    let (sum, first) =
                        here.fold((0, u64::MAX), |(n, f), t| (n + u64::from(t.lbns), f.min(t.first_lbn)));
                    let range = cells.lbns(&geometry, cell).unwrap();
                    assert_eq!((range.lbn, range.count), (first, sum), "{layout:?} {surfaces} cell {cell}");
                    lbns += sum;
                    let group = groups.entry(cells.group_of(low)).or_insert(u64::MAX);
                    *group = first.min(*group);
                    seen.extend(tracks);
                }
                assert!(groups.values().is_sorted());
                assert!(groups.iter().all(|(g, first)| cells.first_lbn(&geometry, *g) == Some(*first)), "{layout:?}");
                seen.sort();
                let every: Vec<_> = (0..40).flat_map(|c| (0..surfaces).map(move |s| (c, s))).collect();
                assert_eq!(seen, every, "{layout:?} {surfaces}");
                assert_eq!(lbns, geometry.capacity());
            }
        }
    }

    #[test]
    fn a_stretch_of_cylinders_has_a_stretch_of_cells_around_it() {
        let layout = Layout::SeekFirst { group_tracks: 7, tracks_alternate: true, surfaces_alternate: false };
        let geometry = Geometry::new(&small_geometry(layout, 3, &mut rng(5))).unwrap();
        let cells = Cells::new(&geometry);
        // Blocks of 3, 3 and 1 cylinders in each group of 7; the sixth group has 5.
        assert_eq!(cells.count(), (5 * 3 + 2) * 3);
        let (first, last) = cells.of_cylinders(9, 12);
        assert_eq!((cells.cylinders(first), cells.cylinders(last)), ((7, 9), (10, 12)));
        assert_eq!(cells.neighbours(cells.of(8, 1)), (Some(cells.of(6, 1)), Some(cells.of(10, 1))));
        assert_eq!(cells.neighbours(0).0, None);
    }
}
