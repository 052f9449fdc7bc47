//! The directory of a sweep: Parquet files with its rows, and what is needed to resume it.
//!
//! `grid.toml` is the grid, `sweep.json` says what else the rows depend on,
//! `part-NNNNN-CHECKSUM.parquet` have the rows. Each part is complete; its notes say which points
//! it has, and its name has a checksum of its bytes (xxh3): the writer of Parquet has none.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use bytes::Bytes;
use headtime_host::whole_file::{WriteError, make_directory, write_whole};
use headtime_sim::input;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::ranges::Ranges;
use crate::grid::Grid;
use crate::tables::{Rows, Table, to_parquet};

/// A part is written when it has this many rows,
const PART_ROWS: u64 = 1 << 16;
/// or when its first row is this old: more is not lost when the program is killed.
const PART_AGE: Duration = Duration::from_secs(30);
/// The column that says why a point could not be run.
const ERROR: &str = "error";
/// The key of a part's points in its notes.
const POINTS: &str = "headtime.points";
/// More than `sweep.json` ever has.
const LONGEST_MANIFEST: u64 = 1 << 20;

/// Why a sweep's directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// It cannot be read.
    #[error("{}: {why}", path.display())]
    Unreadable {
        /// What cannot be read.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// It has the rows of another sweep.
    #[error("{}: expected the rows of this sweep or none, found those of another one: {differs}", path.display())]
    Other {
        /// The directory.
        path: PathBuf,
        /// What differs.
        differs: String,
    },
    /// Another process runs a sweep there.
    #[error("{}: another sweep runs in this directory", path.display())]
    Busy {
        /// The directory.
        path: PathBuf,
    },
}

/// What a sweep's rows depend on besides its grid.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Manifest {
    headtime: String,
    points: u64,
    /// A checksum of the grid and of the profiles that it names, in hexadecimal digits.
    inputs: String,
}

/// A part that cannot be used; its points are run again.
#[derive(Clone, Debug)]
pub struct Damaged {
    /// Its name now.
    pub path: PathBuf,
    /// What is wrong with it.
    pub why: String,
}

/// The directory of a sweep, open for writing.
#[derive(Debug)]
pub(super) struct Store {
    folder: PathBuf,
    done: Ranges,
    /// Points whose rows were there at the beginning and have an error.
    failed: u64,
    next_part: u32,
    waiting: Vec<(std::ops::Range<u64>, Table)>,
    oldest: Option<Instant>,
    /// Locked while this exists.
    _lock: File,
}

impl Store {
    /// Opens the directory of a sweep, or creates it. Parts that cannot be used are renamed and
    /// returned.
    pub(super) fn open(folder: &Path, grid: &Grid) -> Result<(Store, Vec<Damaged>), StoreError> {
        make_directory(folder)?;
        let lock = lock(folder)?;
        let found = fs::read_dir(folder).map_err(|e| unreadable(folder, e))?;
        let mut parts = Vec::new();
        for entry in found {
            let path = entry.map_err(|e| unreadable(folder, e))?.path();
            if let Some((number, checksum)) = part_name(&path) {
                parts.push((number, checksum, path));
            }
        }
        parts.sort();
        check_manifest(folder, grid, parts.is_empty())?;
        let (mut done, mut failed, mut damaged) = (Ranges::default(), 0, Vec::new());
        let next_part = parts.last().map_or(0, |(number, ..)| number + 1);
        for (_, checksum, path) in parts {
            let points = match read_part(&path, checksum, grid) {
                Ok((points, errors))
                    if points.iter().all(|range| done.gap(range.start, range.end, u64::MAX) == Some(range.clone())) =>
                {
                    failed += errors;
                    points
                }
                Ok(_) => {
                    damaged.push(set_aside(&path, "it has points that another part has, too".into())?);
                    continue;
                }
                Err(why) => {
                    damaged.push(set_aside(&path, why)?);
                    continue;
                }
            };
            points.iter().for_each(|range| assert!(done.insert(range), "checked above"));
        }
        let folder = folder.to_owned();
        Ok((Store { folder, done, failed, next_part, waiting: Vec::new(), oldest: None, _lock: lock }, damaged))
    }

    /// Returns the points whose rows are there, or waiting to be written.
    pub(super) fn done(&self) -> &Ranges {
        &self.done
    }

    /// Returns the number of points whose rows were there when it was opened, and have an error.
    pub(super) fn failed(&self) -> u64 {
        self.failed
    }

    /// Adds the rows of points, and writes a part if it is time. Rows of points that are there
    /// already are dropped: a worker that was given up may have finished.
    pub(super) fn add(&mut self, points: std::ops::Range<u64>, rows: Table, grid: &Grid) -> Result<(), StoreError> {
        if points.is_empty() || !self.done.insert(points.clone()) {
            return Ok(());
        }
        self.oldest.get_or_insert_with(Instant::now);
        self.waiting.push((points, rows));
        let rows: u64 = self.waiting.iter().map(|(points, _)| points.end - points.start).sum();
        if rows >= PART_ROWS || self.oldest.is_some_and(|since| since.elapsed() >= PART_AGE) {
            self.write(grid)?;
        }
        Ok(())
    }

    /// Writes the rows that wait as a part.
    pub(super) fn write(&mut self, grid: &Grid) -> Result<(), StoreError> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        self.waiting.sort_by_key(|(points, _)| points.start);
        let mut points = Ranges::default();
        self.waiting.iter().for_each(|(range, _)| assert!(points.insert(range.clone()), "added only once"));
        let notes = vec![(POINTS.to_owned(), points.to_string())];
        let rows = self.waiting.iter().map(|(_, rows)| rows);
        let bytes = to_parquet(Rows::schema(grid), notes, rows).expect("rows of the grid, in memory");
        let name = format!("part-{:05}-{:016x}.parquet", self.next_part, xxh3_64(&bytes));
        write_whole(&self.folder.join(name), &bytes)?;
        self.next_part += 1;
        self.waiting.clear();
        self.oldest = None;
        Ok(())
    }
}

fn unreadable(path: &Path, why: impl ToString) -> StoreError {
    StoreError::Unreadable { path: path.to_owned(), why: why.to_string() }
}

/// Locks the directory until the file is closed, also when the process ends.
fn lock(folder: &Path) -> Result<File, StoreError> {
    let path = folder.join(".lock");
    let file = File::options().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(|source| WriteError { path: path.clone(), source })?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(StoreError::Busy { path: folder.to_owned() }),
        Err(fs::TryLockError::Error(e)) => Err(unreadable(&path, e)),
    }
}

/// Compares the sweep that the directory is of with this one; writes it into an empty directory.
fn check_manifest(folder: &Path, grid: &Grid, empty: bool) -> Result<(), StoreError> {
    let ours = Manifest {
        headtime: env!("CARGO_PKG_VERSION").into(),
        points: grid.len(),
        inputs: format!("{:016x}", grid.checksum()),
    };
    let path = folder.join("sweep.json");
    if !path.exists() && empty {
        write_whole(&folder.join("grid.toml"), grid.text().as_bytes())?;
        let text = serde_json::to_string(&ours).expect("text and numbers") + "\n";
        return Ok(write_whole(&path, text.as_bytes())?);
    }
    let text = input::text(&path, LONGEST_MANIFEST).map_err(|why| unreadable(&path, why))?;
    let theirs: Manifest = serde_json::from_str(&text).map_err(|e| unreadable(&path, e))?;
    let differs = match () {
        _ if theirs.headtime != ours.headtime => {
            format!("they are of headtime {}, this is {}", theirs.headtime, ours.headtime)
        }
        _ if theirs.points != ours.points => format!("it has {} points, this one has {}", theirs.points, ours.points),
        _ if theirs.inputs != ours.inputs => "its grid, or a profile or trace in it, was another one".into(),
        _ => return Ok(()),
    };
    Err(StoreError::Other { path: folder.to_owned(), differs })
}

/// Returns the number and the checksum in a part's name.
fn part_name(path: &Path) -> Option<(u32, u64)> {
    let name = path.file_name()?.to_str()?.strip_prefix("part-")?.strip_suffix(".parquet")?;
    let (number, checksum) = name.split_once('-')?;
    Some((number.parse().ok()?, u64::from_str_radix(checksum, 16).ok()?))
}

/// Renames a part that cannot be used.
fn set_aside(path: &Path, why: String) -> Result<Damaged, StoreError> {
    let aside = path.with_extension("parquet.damaged");
    fs::rename(path, &aside).map_err(|source| WriteError { path: path.to_owned(), source })?;
    Ok(Damaged { path: aside, why })
}

/// Reads a part whole, and returns its points and how many of them have an error.
fn read_part(path: &Path, checksum: u64, grid: &Grid) -> Result<(Ranges, u64), String> {
    let bytes = Bytes::from(fs::read(path).map_err(|e| e.to_string())?);
    let found = xxh3_64(&bytes);
    if found != checksum {
        return Err(format!("expected the checksum {checksum:016x} of its name, found {found:016x}"));
    }
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes).map_err(|e| e.to_string())?;
    let notes = builder.metadata().file_metadata().key_value_metadata().cloned().unwrap_or_default();
    let noted = notes.into_iter().find(|n| n.key == POINTS).and_then(|n| n.value);
    let points: Ranges = noted.and_then(|text| text.parse().ok()).ok_or("expected a note of its points, found none")?;
    let columns = |schema: &arrow_schema::Schema| -> Vec<_> {
        schema.fields().iter().map(|f| (f.name().clone(), f.data_type().clone())).collect()
    };
    if columns(builder.schema()) != columns(&Rows::schema(grid)) {
        return Err("expected the columns of this sweep, found others".into());
    }
    let all = points.clone();
    let mut failed = 0;
    let mut expected = all.iter().flatten();
    for batch in builder.build().map_err(|e| e.to_string())? {
        let batch = batch.map_err(|e| e.to_string())?;
        failed += batch.column_by_name(ERROR).map_or(0, |column| (column.len() - column.null_count()) as u64);
        for found in batch.column(0).as_primitive::<UInt64Type>().values() {
            match expected.next() {
                Some(point) if point == *found => {}
                Some(point) => return Err(format!("expected the row of point {point}, found that of point {found}")),
                None => return Err(format!("expected no more rows, found that of point {found}")),
            }
        }
    }
    match expected.next() {
        None => Ok((points, failed)),
        Some(point) => Err(format!("expected a row of point {point}, found none")),
    }
}
