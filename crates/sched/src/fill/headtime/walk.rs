//! The tracks worth looking at, best first.
//!
//! The time that the head can spend on a track is what is left of the gap when the moves there and back are taken off.
//! It falls as one leaves the track that the head comes from or the one it must go to, on either side and between them;
//! so the tracks are met in the order of that time by walking outward from both, always where most is left.

use headtime_disk::model::Model;
use headtime_disk::time::Dur;

use crate::fill::gap::Gap;

/// Where something may be wanted. Tracks are grouped in *cells*, cells in *columns*: on a head-first layout there is one
/// column, and a cell is a cylinder; on a seek-first layout a column is a surface, and a cell some neighbouring
/// tracks.
pub trait Map {
    /// Columns.
    fn columns(&self) -> u16;
    /// Cells of a column.
    fn cells(&self) -> u32;
    /// Cylinders a cell is wide.
    fn width(&self) -> u32;
    /// The first cell at `cell` or above it that may hold something wanted in one of the angular regions of `mask`.
    fn up(&self, column: u16, cell: u32, mask: u64) -> Option<u32>;
    /// The first cell at `cell` or below it.
    fn down(&self, column: u16, cell: u32, mask: u64) -> Option<u32>;
}

/// One way to go, and the cell it has come to.
#[derive(Clone, Copy, Debug)]
struct Way {
    column: u16,
    up: bool,
    cell: u32,
    /// The last cell of this way.
    last: u32,
    bound: Dur,
}

/// A walk through the cells around a gap's ends.
#[derive(Clone, Debug, Default)]
pub struct Walk {
    ways: Vec<Way>,
}

impl Walk {
    /// Sets out. `mask`: the angular regions that can pass in the gap.
    pub fn begin(&mut self, model: &Model, gap: &Gap, map: &dyn Map, mask: u64) {
        self.ways.clear();
        let width = map.width();
        let (s, d) = (gap.source().0 / width, gap.destination().0 / width);
        let (a, b, top) = (s.min(d), s.max(d), map.cells().saturating_sub(1));
        // Between the ends the two ways meet half way.
        let half = a + (b - a) / 2;
        for column in 0..map.columns() {
            let mut set_out = |up: bool, cell: u32, last: u32| {
                if up && cell <= last || !up && cell >= last {
                    self.push(model, gap, map, mask, Way { column, up, cell, last, bound: Dur::ZERO });
                }
            };
            set_out(false, a, 0);
            if a == b {
                set_out(true, a + 1, top);
            } else {
                set_out(true, b, top);
                set_out(true, a + 1, half);
                set_out(false, b - 1, half + 1);
            }
        }
    }

    /// Moves a way on, from where it stands, to the next cell that is not empty; it ends where there is none.
    fn push(&mut self, model: &Model, gap: &Gap, map: &dyn Map, mask: u64, way: Way) {
        let found = match way.up {
            true => map.up(way.column, way.cell, mask).filter(|&c| c <= way.last),
            false => map.down(way.column, way.cell, mask).filter(|&c| c >= way.last),
        };
        let Some(cell) = found else { return };
        let bound = bound(model, gap, map, way.column, cell);
        if bound > Dur::ZERO {
            self.ways.push(Way { cell, bound, ..way });
        }
    }

    /// The cell where most time is left, and how much at most.
    pub fn next(&mut self, model: &Model, gap: &Gap, map: &dyn Map, mask: u64) -> Option<(u16, u32, Dur)> {
        let best = (0..self.ways.len()).max_by_key(|&i| (self.ways[i].bound, std::cmp::Reverse(i)))?;
        let way = self.ways.swap_remove(best);
        if way.cell != way.last {
            let cell = if way.up { way.cell + 1 } else { way.cell - 1 };
            self.push(model, gap, map, mask, Way { cell, ..way });
        }
        Some((way.column, way.cell, way.bound))
    }
}

/// The most time that can be left on any track of a cell.
#[inline]
fn bound(model: &Model, gap: &Gap, map: &dyn Map, column: u16, cell: u32) -> Dur {
    let m = &model.mechanics;
    let (lo, hi) = (cell * map.width(), cell * map.width() + map.width() - 1);
    let away = |end: (u32, u16)| {
        let distance = if end.0 < lo { lo - end.0 } else { end.0.saturating_sub(hi) };
        let t = m.reposition_floor(distance);
        if map.columns() > 1 && column != end.1 { t.max(m.head_switch) } else { t }
    };
    let begin = gap.read.at.min(gap.write.at);
    gap.starts.saturating_since(begin).saturating_sub(away(gap.source()) + away(gap.destination()))
}
