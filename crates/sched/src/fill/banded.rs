//! The distribution of a range's sectors over the bands of [`super::reach`], without a walk over
//! its tracks.
//!
//! A band is a sequence of cells, and groups of tracks are in the order of their LBNs. So the first
//! and last LBN of a group tell how much of a range lies before it. If a band ends inside a group
//! (only in seek-first layouts), the group's cells are not in the order of their LBNs: its sectors
//! before that end are counted once, cell by cell, and again only for a range that begins or ends
//! in that group.

use headtime_disk::Geometry;

use super::cells::Cells;
use super::reach::{BANDS, Reach};
use crate::tasks::TaskRange;

/// The beginning of a band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Start {
    cell: u32,
    /// The first cell of the group that contains it.
    group: u32,
    /// The group's LBNs: the first, and one past the last.
    lbns: (u64, u64),
    /// Sectors of the group in cells before this one.
    before: u64,
}

/// The beginnings of a drive's bands, followed by the end of the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Banded {
    starts: [Start; BANDS + 1],
}

impl Banded {
    /// Computes the bands of `reach` on a drive.
    pub(super) fn new(cells: &Cells, geometry: &Geometry, reach: &Reach) -> Banded {
        // A group without data has no LBNs; it begins where the next one does.
        let first_lbn = |group: u32| {
            let found = (group..cells.groups()).find_map(|g| cells.first_lbn(geometry, g));
            found.unwrap_or(geometry.capacity())
        };
        let start = |band: usize| {
            let cell = reach.first(band).min(cells.count());
            let group = cells.group_of_cell(cell);
            let lbns = (first_lbn(group), first_lbn(group + 1));
            let group = cells.first_of_group(group);
            Start { cell, group, lbns, before: sectors(cells, geometry, group..cell, lbns.0..lbns.1) }
        };
        Banded { starts: std::array::from_fn(start) }
    }

    /// Calls `found` with each band that contains sectors of the range, and their number.
    pub(super) fn each(&self, cells: &Cells, geometry: &Geometry, range: TaskRange, mut found: impl FnMut(usize, u64)) {
        let (from, to) = (range.lbn.min(geometry.capacity()), range.end().min(geometry.capacity()));
        let mut before = 0;
        for (band, start) in self.starts[1..].iter().enumerate() {
            let upto = start.sectors_before(cells, geometry, to) - start.sectors_before(cells, geometry, from);
            if upto > before {
                found(band, upto - before);
            }
            before = upto;
        }
    }
}

impl Start {
    /// Returns the number of sectors below LBN `end` in the cells before this one.
    fn sectors_before(&self, cells: &Cells, geometry: &Geometry, end: u64) -> u64 {
        let (low, high) = self.lbns;
        if end <= low {
            end
        } else if end >= high {
            low + self.before
        } else {
            low + sectors(cells, geometry, self.group..self.cell, low..end)
        }
    }
}

/// Returns how many of these LBNs are in these cells.
fn sectors(cells: &Cells, geometry: &Geometry, of: std::ops::Range<u32>, lbns: std::ops::Range<u64>) -> u64 {
    let here = |r: TaskRange| r.end().min(lbns.end).saturating_sub(r.lbn.max(lbns.start));
    of.filter_map(|cell| cells.lbns(geometry, cell)).map(here).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_disk::Model;
    use headtime_disk::profile::builtin;
    use headtime_testkit::profiles::{between, layouts, rng, small_geometry};

    #[test]
    fn bands_get_what_a_walk_over_the_tracks_finds() {
        let model = Model::new(&builtin("cheetah36es").unwrap()).unwrap();
        for (i, layout) in layouts().into_iter().enumerate() {
            for surfaces in [1, 2, 3, 5, 9] {
                let mut rng = rng(i as u64);
                let geometry = Geometry::new(&small_geometry(layout, surfaces, &mut rng)).unwrap();
                let cells = Cells::new(&geometry);
                let reach = Reach::new(cells.count(), &model.mechanics, geometry.cylinders());
                let banded = Banded::new(&cells, &geometry, &reach);
                let capacity = geometry.capacity();
                for n in 0..200 {
                    let (a, b) = (between(&mut rng, 0, capacity), between(&mut rng, 0, capacity));
                    let (from, to) = if n == 0 { (0, capacity) } else { (a.min(b), a.max(b)) };
                    let mut expected = [0; BANDS];
                    for lbn in from..to {
                        let track = geometry.track_of(lbn).unwrap();
                        expected[reach.band(cells.of(track.cylinder, track.surface))] += 1;
                    }
                    let mut found = [0; BANDS];
                    let range = TaskRange { lbn: from, count: to - from };
                    banded.each(&cells, &geometry, range, |band, sectors| found[band] += sectors);
                    assert_eq!(found, expected, "{layout:?}, {surfaces} surfaces, {from} to {to} of {capacity}");
                }
            }
        }
    }
}
