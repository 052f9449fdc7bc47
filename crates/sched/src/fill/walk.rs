//! The order in which a search visits cells (for the reasons see [`super::search`]): the
//! destination's, the source's, their neighbours; then outwards from both, and from the edges of
//! the disk inwards. It passes over cells where the head cannot stay long enough ([`super::stay`]):
//! for one unit, or for more than has been found.

use headtime_disk::Dur;

use super::scene::Scene;
use super::stay::{Densities, Stay};
use crate::tasks::Who;

const SOURCE: usize = 0;
const DEST: usize = 1;
const OUTER: usize = 2;
const INNER: usize = 3;

/// Groups: around source and destination, and from the edges.
const AROUND: usize = 0;
const EDGES: usize = 1;

/// Span and direction (up or not) of the six ways, by group.
const WAYS: [&[(usize, bool)]; 2] =
    [&[(SOURCE, true), (SOURCE, false), (DEST, true), (DEST, false)], &[(OUTER, true), (INNER, false)]];

/// The next cell to examine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Next {
    pub(super) cell: u32,
    /// Its regions in which the winner wants something.
    pub(super) winner: u64,
    /// Its regions in which any session does, where others count.
    pub(super) others: u64,
    /// Whether it was found around source and destination, or from the edges.
    pub(super) group: usize,
}

/// State of a walk.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    /// Cells visited first: the destination's, the source's, its neighbours.
    near: [Option<u32>; 4],
    near_done: usize,
    /// The first and the last cell.
    bounds: (i64, i64),
    stay: Stay,
    densities: Densities,
    /// Where the head can stay no longer than this, there is nothing to find.
    useless: Dur,
    /// Visited so far around the source and the destination, both ends included; at the edges, from
    /// the bounds.
    spans: [(i64, i64); 4],
    /// Which of the six directions are exhausted.
    through: [bool; 6],
    turns: [u8; 2],
    spent: [u64; 2],
}

impl Walk {
    /// Starts a walk.
    pub(super) fn begin<W>(scene: &Scene<'_, W>) -> Walk {
        let (gap, cells) = (scene.look.gap, scene.regions.cells());
        let (source, dest) = (gap.source(), gap.destination());
        let (first, last) = (0, i64::from(cells.count()) - 1);
        let model = scene.look.model;
        let densities = Densities::of(&model.geometry, &model.mechanics);
        let (source, dest) = (cells.of(source.0, source.1), cells.of(dest.0, dest.1));
        let (out, inn) = cells.neighbours(source);
        let mut near = [Some(dest), Some(source), out, inn];
        for i in 1..near.len() {
            if near[..i].contains(&near[i]) {
                near[i] = None;
            }
        }
        let at = |cell: u32| (i64::from(cell), i64::from(cell));
        Walk {
            near,
            near_done: 0,
            bounds: (first, last),
            useless: densities.too_short_for(scene.look.grain),
            stay: Stay::of(model, gap, [true; 2]),
            densities,
            spans: [at(source), at(dest), (first, first - 1), (last + 1, last)],
            through: [false; 6],
            turns: [0; 2],
            spent: [0; 2],
        }
    }

    /// Returns the same walk, exhausted.
    pub(super) fn ended(self) -> Walk {
        Walk { near_done: self.near.len(), through: [true; 6], ..self }
    }

    /// Returns whether no cell is left.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.near_done == self.near.len() && self.through.iter().all(|t| *t)
    }

    /// Returns the most that can pass in a cell: sectors, and their angle.
    pub(super) fn most<W>(&self, scene: &Scene<'_, W>, cell: u32) -> (u32, u64) {
        let (low, high) = scene.regions.cells().cylinders(cell);
        self.densities.passing(self.longest(scene, low, high), scene.look.grain)
    }

    /// Returns the longest stay on these cylinders. A command may leave from the next track.
    fn longest<W>(&self, scene: &Scene<'_, W>, low: u32, high: u32) -> Dur {
        let step = self.densities.step;
        self.stay.on(&scene.look.model.mechanics, (low.saturating_sub(step), high + step), None)
    }

    /// Passes from now on over cells in which no more can pass than is of no use. `is_useful`: of
    /// this number of sectors and this angle.
    pub(super) fn pass_over<W>(&mut self, scene: &Scene<'_, W>, is_useful: impl Fn((u32, u64)) -> bool) {
        /// Steps of a bisection: to a 256th of the longest stay.
        const STEPS: u32 = 8;
        let mut useful = self.stay.time();
        for _ in 0..STEPS {
            let middle = Dur((self.useless.0 + useful.0) / 2);
            match is_useful(self.densities.passing(middle, scene.look.grain)) {
                true => useful = middle,
                false => self.useless = middle.max(self.useless),
            }
        }
    }

    /// Adds the cost of examining a cell of this group.
    #[inline]
    pub(super) fn spend(&mut self, group: usize, cost: u64) {
        self.spent[group] += cost;
    }

    /// Returns the cost spent around source and destination, and from the edges.
    pub(super) fn spent(&self) -> (u64, u64) {
        (self.spent[AROUND], self.spent[EDGES])
    }

    /// Returns the next cell; `None` when there is none. `edges`: also from the edges of the disk.
    /// `winner` and `anyone`: whether they want something.
    pub(super) fn next<W>(&mut self, scene: &Scene<'_, W>, edges: bool, winner: bool, anyone: bool) -> Option<Next> {
        let all = scene.regions.all();
        while self.near_done < self.near.len() {
            self.near_done += 1;
            let Some(cell) = self.near[self.near_done - 1] else { continue };
            let winner = scene.regions.mask(scene.winner, cell);
            let others = if anyone { scene.regions.mask(Who::Anyone, cell) } else { 0 };
            if winner | others != 0 {
                return Some(Next { cell, winner, others, group: AROUND });
            }
        }
        if !winner {
            self.through = [true; 6];
        }
        if !edges {
            self.through[4..].fill(true);
        }
        let edges_due = self.spent[AROUND] > 2 * self.spent[EDGES];
        for group in if edges_due { [EDGES, AROUND] } else { [AROUND, EDGES] } {
            let ways = WAYS[group];
            for _ in 0..ways.len() {
                let turn = usize::from(self.turns[group]) % ways.len();
                self.turns[group] = (turn as u8 + 1) % ways.len() as u8;
                let slot = turn + if group == EDGES { 4 } else { 0 };
                if self.through[slot] {
                    continue;
                }
                match self.advance(scene, ways[turn], all) {
                    Some(cell) => {
                        let winner = scene.regions.mask(scene.winner, cell);
                        self.spent[group] += 1;
                        return Some(Next { cell, winner, others: 0, group });
                    }
                    None => self.through[slot] = true,
                }
            }
        }
        None
    }

    /// Returns the next wanted cell of a span in a direction that no span has covered yet.
    fn advance<W>(&mut self, scene: &Scene<'_, W>, (span, up): (usize, bool), mask: u64) -> Option<u32> {
        let mut end = if up { self.spans[span].1 } else { self.spans[span].0 };
        loop {
            let from = if up { end + 1 } else { end - 1 };
            if from < self.bounds.0 || from > self.bounds.1 {
                return None;
            }
            let cell = match up {
                true => scene.regions.next_up(scene.winner, from as u32, mask)?,
                false => scene.regions.next_down(scene.winner, from as u32, mask)?,
            };
            let at = i64::from(cell);
            let seen =
                self.spans.iter().enumerate().find(|(i, s)| *i != span && (s.0..=s.1).contains(&at)).map(|s| *s.1);
            let useless = if seen.is_none() { self.useless_from(scene, cell, up) } else { None };
            end = match (seen, up) {
                (Some(s), true) => s.1,
                (Some(s), false) => s.0,
                (None, _) => useless.map_or(at, i64::from),
            };
            let mine = &mut self.spans[span];
            *(if up { &mut mine.1 } else { &mut mine.0 }) = end;
            if seen.is_none() && useless.is_none() && !self.near.contains(&Some(cell)) {
                return Some(cell);
            }
        }
    }

    /// Returns the last of the cells from here on where the head can stay no longer than is
    /// useless; `None` when it can in this one.
    fn useless_from<W>(&self, scene: &Scene<'_, W>, cell: u32, up: bool) -> Option<u32> {
        let cells = scene.regions.cells();
        let most = if up { self.bounds.1 as u32 - cell } else { cell - self.bounds.0 as u32 };
        let is_useless = |more: u32| {
            let other = if up { cell + more } else { cell - more };
            let (low, high) = (cells.cylinders(cell.min(other)).0, cells.cylinders(cell.max(other)).1);
            self.longest(scene, low, high) <= self.useless
        };
        if !is_useless(0) {
            return None;
        }
        // The more cells, the longer the longest stay in one of them.
        let (mut useless, mut not) = (0, 1);
        while not <= most && is_useless(not) {
            (useless, not) = (not, 2 * not);
        }
        not = not.min(most + 1);
        while useless + 1 < not {
            let middle = useless + (not - useless) / 2;
            if is_useless(middle) { useless = middle } else { not = middle }
        }
        Some(if up { cell + useless } else { cell - useless })
    }
}
