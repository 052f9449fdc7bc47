//! Sweeps: the points of a grid are run in chunks, by threads here or by an executor outside, and
//! their rows are stored as they come.

mod chunk;
mod ranges;
mod store;
mod threads;

use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_schema::ArrowError;

use crate::grid::Grid;
pub use chunk::Chunk;
pub use store::{Damaged, StoreError};
pub use threads::on_threads;

use ranges::Ranges;
use store::Store;

/// A chunk takes about this long.
const CHUNK_SECONDS: f64 = 1.0;
/// The most points of a chunk: their rows are in memory.
const MOST_IN_CHUNK: u64 = 1 << 14;

/// Why a sweep ended early.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// Its directory cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Rows from a worker cannot be read.
    #[error("rows of points {} to {}: {source}", points.start, points.end.saturating_sub(1))]
    Rows {
        /// The points.
        points: Range<u64>,
        /// Why.
        source: ArrowError,
    },
    /// A worker sent the row of another point.
    #[error(
        "rows of points {} to {}: expected the row of point {expected}, found that of point {found}",
        points.start, points.end.max(1) - 1
    )]
    Point {
        /// The points.
        points: Range<u64>,
        /// The point whose row comes next.
        expected: u64,
        /// The row's point.
        found: u64,
    },
    /// A worker sent more or fewer rows than points.
    #[error("rows of points {} to {}: expected one row each, found {found}", points.start, points.end.max(1) - 1)]
    Count {
        /// The points.
        points: Range<u64>,
        /// The number of rows.
        found: usize,
    },
}

/// How far a sweep is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Points whose rows are there.
    pub done: u64,
    /// All points.
    pub total: u64,
    /// Points whose rows are there with an error, since they could not be run.
    pub failed: u64,
    /// Points per second in this run.
    pub per_second: f64,
    /// Estimated time to the end; `None` at the beginning.
    pub left: Option<Duration>,
}

/// A sweep over a grid, with its rows in a directory.
#[derive(Debug)]
pub struct Sweep {
    grid: Grid,
    store: Store,
    /// Points that someone runs.
    given: Ranges,
    /// Below it, all points are done or given.
    cursor: u64,
    failed: u64,
    began: Instant,
    /// Points done before this run.
    before: u64,
    seconds_per_point: Option<f64>,
}

impl Sweep {
    /// Begins a sweep in a directory, or resumes it there. Parts that cannot be used are set aside
    /// and returned; their points are run again.
    ///
    /// # Errors
    /// The directory cannot be used, has another sweep, or a sweep runs in it.
    pub fn open(grid: Grid, folder: &Path) -> Result<(Sweep, Vec<Damaged>), SweepError> {
        let (store, damaged) = Store::open(folder, &grid)?;
        let (before, failed) = (store.done().len(), store.failed());
        let sweep = Sweep {
            grid,
            store,
            given: Ranges::default(),
            cursor: 0,
            failed,
            began: Instant::now(),
            before,
            seconds_per_point: None,
        };
        Ok((sweep, damaged))
    }

    /// Returns the grid.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// Takes the next points to run, about a second's worth of them; `None` if none are left that
    /// no worker runs.
    pub fn take(&mut self) -> Option<Range<u64>> {
        let most = match self.seconds_per_point {
            None => 1,
            Some(each) => ((CHUNK_SECONDS / each.max(1e-9)) as u64).clamp(1, MOST_IN_CHUNK),
        };
        loop {
            let free = self.store.done().gap(self.cursor, self.grid.len(), most)?;
            let free = match self.given.gap(free.start, free.end, most) {
                Some(free) => free,
                None => {
                    self.cursor = free.end;
                    continue;
                }
            };
            self.cursor = free.end;
            assert!(self.given.insert(free.clone()), "points that no worker runs");
            return Some(free);
        }
    }

    /// Takes points back from a worker that was lost; they are given to another one.
    pub fn give_back(&mut self, points: &Range<u64>) {
        let mut kept = Ranges::default();
        for range in self.given.iter() {
            // Ranges of several workers may have become one.
            for part in [range.start..points.start.min(range.end), points.end.max(range.start)..range.end] {
                if part.start < part.end {
                    kept.insert(part);
                }
            }
        }
        self.given = kept;
        self.cursor = self.cursor.min(points.start);
    }

    /// Stores the rows of points. The rest of `taken` that the chunk does not have is given to
    /// others.
    ///
    /// # Errors
    /// The rows cannot be written.
    pub fn accept(&mut self, taken: &Range<u64>, chunk: Chunk) -> Result<(), SweepError> {
        let Chunk { points, rows, failed, seconds } = chunk;
        if points.end - points.start != rows.num_rows() as u64 {
            return Err(SweepError::Count { points, found: rows.num_rows() });
        }
        let count = points.end - points.start;
        self.store.add(points, rows, &self.grid)?;
        self.give_back(taken);
        self.failed += failed;
        if count > 0 {
            let each = seconds / count as f64;
            // Half of the old estimate: the time of a point differs along a grid.
            self.seconds_per_point = Some(self.seconds_per_point.map_or(each, |before| (before + each) / 2.0));
        }
        Ok(())
    }

    /// As [`Sweep::accept`], of rows that another process sent ([`Chunk::to_ipc`]).
    ///
    /// # Errors
    /// The rows are damaged or of other points, or cannot be written.
    pub fn accept_ipc(
        &mut self,
        taken: &Range<u64>,
        bytes: &[u8],
        failed: u64,
        seconds: f64,
    ) -> Result<(), SweepError> {
        let fail = |source| SweepError::Rows { points: taken.clone(), source };
        let rows = Chunk::rows_from_ipc(&self.grid, bytes).map_err(fail)?;
        // The first column is the point's number.
        let numbers = rows.column(0).as_primitive::<UInt64Type>().values();
        if let Some((expected, found)) = (taken.start..).zip(numbers).find(|(expected, found)| expected != *found) {
            return Err(SweepError::Point { points: taken.clone(), expected, found: *found });
        }
        let points = taken.start..(taken.start + rows.num_rows() as u64).min(taken.end);
        self.accept(taken, Chunk { points, rows, failed, seconds })
    }

    /// Writes all rows that wait. To be called at the end, also of a run that was stopped.
    ///
    /// # Errors
    /// The rows cannot be written.
    pub fn flush(&mut self) -> Result<(), SweepError> {
        Ok(self.store.write(&self.grid)?)
    }

    /// Returns how far the sweep is.
    pub fn progress(&self) -> Progress {
        let (done, total) = (self.store.done().len(), self.grid.len());
        let seconds = self.began.elapsed().as_secs_f64();
        let here = done - self.before;
        let per_second = if seconds > 0.0 { here as f64 / seconds } else { 0.0 };
        let left = (here > 0 && seconds >= 1.0).then(|| Duration::from_secs_f64((total - done) as f64 / per_second));
        Progress { done, total, failed: self.failed, per_second, left }
    }
}
