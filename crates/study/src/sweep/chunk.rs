//! Runs some points of a grid, and passes their rows between processes.

use std::io::Cursor;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::ArrowError;

use crate::grid::{Grid, Profiles};
use crate::tables::{Rows, Table};

/// The rows of consecutive points.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// The points.
    pub points: Range<u64>,
    /// One row for each of them, in their order.
    pub rows: Table,
    /// The number of points that could not be run.
    pub failed: u64,
    /// How long they took.
    pub seconds: f64,
}

impl Chunk {
    /// Runs points one after another, and fewer of them if `stop` becomes true. A point that cannot
    /// be run has the reason in its row.
    ///
    /// Panics if the grid does not have these points.
    pub fn run(grid: &Grid, points: Range<u64>, profiles: &mut Profiles, stop: &AtomicBool) -> Chunk {
        let began = Instant::now();
        let mut rows = Rows::new(grid);
        let (mut end, mut failed) = (points.start, 0);
        for index in points.clone() {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let point = grid.point(index);
            match point.run(grid, profiles) {
                Ok(outcome) => rows.push(&point, Ok(&outcome.result)),
                Err(e) => {
                    failed += 1;
                    rows.push(&point, Err(e.to_string()));
                }
            }
            end = index + 1;
        }
        Chunk { points: points.start..end, rows: rows.finish(), failed, seconds: began.elapsed().as_secs_f64() }
    }

    /// Returns the rows as a stream in Arrow's format for other processes.
    ///
    /// # Errors
    /// Arrow's; none is known for these columns.
    pub fn to_ipc(&self) -> Result<Vec<u8>, ArrowError> {
        let mut writer = StreamWriter::try_new(Vec::new(), &self.rows.schema())?;
        writer.write(&self.rows)?;
        writer.into_inner()
    }

    /// Reads the rows of a grid from such a stream.
    ///
    /// # Errors
    /// The stream is damaged, or its columns are those of another grid.
    pub fn rows_from_ipc(grid: &Grid, bytes: &[u8]) -> Result<Table, ArrowError> {
        let mut reader = StreamReader::try_new(Cursor::new(bytes), None)?;
        let rows = reader.next().unwrap_or_else(|| Err(ArrowError::IpcError("expected rows, found none".into())))?;
        match rows.schema() == Rows::schema(grid) {
            true => Ok(rows),
            false => Err(ArrowError::SchemaError("expected the columns of the grid's rows, found others".into())),
        }
    }
}
