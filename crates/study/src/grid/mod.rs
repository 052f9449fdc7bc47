//! Grids: the points of a sweep, as a short text file.
//!
//! ```toml
//! [scenario]                 # what all points share: the keys of a scenario
//! disk = "atlas10k"
//! workload = "random-4k:8"
//! requests = 20000
//!
//! [grid]                     # every combination of these
//! order = ["fcfs", "sstf", "sptf"]
//! depth = [1, 2, 4]
//! seed = { from = 1, to = 10 }
//!
//! [list]                     # these together, row by row, in each combination
//! fill = ["none", "headtime"]
//! background = ["none", "scan"]
//!
//! [random]                   # and with each of these, a number of random draws
//! points = 100
//! seed = 1
//!
//! [random.keys]
//! "profile.mechanics.rpm" = { from = 5400, to = 15000 }
//! "task.0.think_ms" = { from = 1.0, to = 100.0, scale = "log" }
//! ```
//!
//! A key is one of a scenario, or `profile.` and the path of a figure in the profile's file; parts
//! of a path are separated by dots, and items of a list have numbers from 0. Points are made from
//! their numbers when they are run, and are never all in memory.

mod axis;
mod error;
mod point;

use std::path::{Path, PathBuf};

use headtime_sim::input;
use headtime_sim::scenario::Scenario;
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use toml::{Table, Value};
use xxhash_rust::xxh3::Xxh3;

pub(crate) use axis::Form;
use axis::{Draw, Values, form};
pub use error::GridError;
pub use point::{Point, Profiles};

/// Maximum size of a grid's file in bytes.
const LONGEST_FILE: u64 = 16 << 20;
/// Most points of a sweep: their numbers have room in every format.
const MOST_POINTS: u64 = 1 << 53;
/// The tables of a grid's file.
const TABLES: [&str; 4] = ["scenario", "grid", "list", "random"];

/// The points of a sweep.
#[derive(Clone, Debug)]
pub struct Grid {
    file: String,
    folder: PathBuf,
    text: String,
    base: Table,
    /// Every combination; the last one changes with each point.
    axes: Vec<(String, Values)>,
    /// Together.
    list: Vec<(String, Values)>,
    random: Option<Random>,
    len: u64,
}

/// A random design.
#[derive(Clone, Debug)]
struct Random {
    points: u64,
    seed: u64,
    keys: Vec<(String, Draw)>,
}

impl Grid {
    /// Loads a grid's file; traces and profiles are relative to it.
    ///
    /// # Errors
    /// As [`Grid::parse`], or the file cannot be read.
    pub fn load(path: &Path) -> Result<Grid, GridError> {
        let file = path.display().to_string();
        let text = input::text(path, LONGEST_FILE).map_err(|why| GridError::Unreadable { file: file.clone(), why })?;
        Grid::parse(&text, &file, path.parent().unwrap_or(Path::new("")))
    }

    /// Parses a grid and checks every key, and every value that is listed. Relative paths in it are
    /// relative to `folder`.
    ///
    /// # Errors
    /// The file, the key and the reason.
    pub fn parse(text: &str, file: &str, folder: &Path) -> Result<Grid, GridError> {
        let mut document: Table = toml::from_str(text).map_err(|e| {
            let line = e.span().map_or(1, |s| text[..s.start.min(text.len())].matches('\n').count() + 1);
            GridError::at(format!("{file}:{line}"), e.message().replace('\n', " "))
        })?;
        if let Some(key) = document.keys().find(|k| !TABLES.contains(&k.as_str())) {
            let why = error::unknown(key, TABLES.into_iter());
            return Err(GridError::at(file, why));
        }
        let mut table = |name: &str| match document.remove(name) {
            None => Ok(Table::new()),
            Some(Value::Table(table)) => Ok(table),
            Some(_) => Err(GridError::at(format!("{file}: {name}"), format!("expected a table [{name}]"))),
        };
        let (base, grid, list) = (table("scenario")?, table("grid")?, table("list")?);
        let random = Random::read(table("random")?, file)?;
        let axes = columns(&grid, file, "grid")?;
        let list = columns(&list, file, "list")?;
        let rows = list.first().map_or(1, |(_, values)| values.len());
        if let Some((key, values)) = list.iter().find(|(_, values)| values.len() != rows) {
            let (first, found) = (&list[0].0, values.len());
            let why = format!("expected {rows} values, as {first} has, found {found}");
            return Err(GridError::at(format!("{file}: list.{key}"), why));
        }
        let drawn = random.as_ref().map_or(1, |r| r.points);
        let len = axes.iter().map(|(_, values)| values.len()).try_fold(rows, u64::checked_mul);
        let len = len.and_then(|n| n.checked_mul(drawn)).filter(|n| *n <= MOST_POINTS);
        let len =
            len.ok_or_else(|| GridError::at(file, format!("expected at most {MOST_POINTS} points, found more")))?;
        let (file, folder, text) = (file.to_owned(), folder.to_owned(), text.to_owned());
        let grid = Grid { file, folder, text, base, axes, list, random, len };
        grid.check()?;
        Ok(grid)
    }

    /// Returns the number of points.
    #[allow(clippy::len_without_is_empty, reason = "there is always one")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns the text that it was made of.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns a checksum of the grid and of the profiles and traces that it names: of the text of
    /// profiles, and of the length of traces.
    pub fn checksum(&self) -> u64 {
        let mut all = Xxh3::new();
        all.update(self.text.as_bytes());
        let varied = |key: &str| {
            let listed = self.axes.iter().chain(&self.list).filter(move |(k, _)| k == key);
            let drawn = self.random.iter().flat_map(|r| &r.keys).filter(move |(k, _)| k == key);
            let values = listed.flat_map(|(_, v)| v.samples()).chain(drawn.flat_map(|(_, d)| d.samples()));
            values.chain(self.base.get(key).cloned()).collect::<Vec<Value>>()
        };
        let paths =
            |key: &str| varied(key).iter().filter_map(Value::as_str).map(|n| self.folder.join(n)).collect::<Vec<_>>();
        for profile in paths("disk").iter().filter(|path| path.is_file()) {
            all.update(input::text(profile, LONGEST_FILE).unwrap_or_default().as_bytes());
        }
        for trace in paths("trace") {
            let length = std::fs::metadata(trace).map_or(0, |m| m.len());
            all.update(&length.to_le_bytes());
        }
        all.digest()
    }

    /// Returns the name of its file, for messages.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns the folder that paths in it are relative to.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the keys that change, in the order of columns.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        let drawn = self.random.iter().flat_map(|r| r.keys.iter().map(|(key, _)| key.as_str()));
        self.axes.iter().chain(&self.list).map(|(key, _)| key.as_str()).chain(drawn)
    }

    /// Returns the form of each of these keys' values.
    pub(crate) fn forms(&self) -> Vec<Form> {
        let listed = self.axes.iter().chain(&self.list).map(|(_, values)| values.samples());
        let drawn = self.random.iter().flat_map(|r| r.keys.iter().map(|(_, draw)| draw.samples()));
        listed.chain(drawn).map(|samples| form(samples.iter())).collect()
    }

    /// Returns point `index`: its values of the keys that change. The last key of `[grid]` changes
    /// with each point, except where there are lists or draws, which change faster.
    ///
    /// Panics if there is no such point.
    pub fn point(&self, index: u64) -> Point {
        assert!(index < self.len, "point {index} of {}", self.len);
        let mut left = index;
        let mut digit = |n: u64| {
            let digit = left % n;
            left /= n;
            digit
        };
        let draw = self.random.as_ref().map(|r| digit(r.points));
        let row = self.list.first().map_or(0, |(_, values)| digit(values.len()));
        let mut values: Vec<Value> = self.axes.iter().rev().map(|(_, axis)| axis.get(digit(axis.len()))).collect();
        values.reverse();
        values.extend(self.list.iter().map(|(_, column)| column.get(row)));
        if let Some((random, draw)) = self.random.as_ref().zip(draw) {
            // The draws of a point depend on its number among the draws only, so that combinations
            // are compared with the same ones.
            let seed = random.seed ^ draw.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            values.extend(random.keys.iter().map(|(_, key)| key.draw(&mut rng)));
        }
        Point { index, values }
    }

    /// Checks that each key exists only once, that each listed value alone is accepted, and that
    /// disks and traces are there.
    fn check(&self) -> Result<(), GridError> {
        let keys: Vec<&str> = self.keys().collect();
        for (i, key) in keys.iter().enumerate() {
            if keys[..i].contains(key) {
                return Err(GridError::at(format!("{}: {key}", self.file), "expected each key once, found it twice"));
            }
            if axis::of_profile(key).is_none() {
                let first = key.split('.').next().unwrap_or(key);
                if !Scenario::KEYS.contains(&first) {
                    let known = Scenario::KEYS.iter().copied().chain(["profile.PATH"]);
                    return Err(GridError::at(self.file.as_str(), error::unknown(key, known)));
                }
            }
        }
        Scenario::check_each(self.base.clone(), &format!("{}: scenario", self.file))?;
        let mut profiles = Profiles::default();
        let first = self.point(0);
        for (key, value) in self.base.iter().filter(|(key, _)| !keys.contains(&key.as_str())) {
            let place = format!("{}: scenario: {key} = {value}", self.file);
            first.check_files(self, key, value, &place, &mut profiles)?;
        }
        let listed = self.axes.iter().chain(&self.list).map(|(_, values)| values.samples());
        let drawn = self.random.iter().flat_map(|r| r.keys.iter().map(|(_, draw)| draw.samples()));
        for (column, samples) in listed.chain(drawn).enumerate() {
            for value in samples {
                let mut point = first.clone();
                point.values[column] = value;
                point.check_value(self, column, &mut profiles)?;
            }
        }
        Ok(())
    }
}

/// Reads the axes of a table.
fn columns(table: &Table, file: &str, name: &str) -> Result<Vec<(String, Values)>, GridError> {
    let read = |(key, value): (&String, &Value)| match Values::read(value) {
        Ok(values) => Ok((key.clone(), values)),
        Err(why) => Err(GridError::at(format!("{file}: {name}.{key}"), why)),
    };
    table.iter().map(read).collect()
}

impl Random {
    fn read(mut table: Table, file: &str) -> Result<Option<Random>, GridError> {
        if table.is_empty() {
            return Ok(None);
        }
        let fault = |key: &str, why: String| GridError::at(format!("{file}: random.{key}"), why);
        let whole = |key: &str, value: Option<Value>, range: std::ops::RangeInclusive<i64>| match value {
            Some(Value::Integer(n)) if range.contains(&n) => Ok(n as u64),
            found => {
                let found = found.map_or_else(|| "none".to_owned(), |v| v.to_string());
                let (least, most) = (range.start(), range.end());
                Err(fault(key, format!("expected a whole number from {least} to {most}, found {found}")))
            }
        };
        let points = whole("points", table.remove("points"), 1..=MOST_POINTS as i64)?;
        let seed = table.remove("seed").unwrap_or(Value::Integer(1));
        let seed = whole("seed", Some(seed), 0..=i64::MAX)?;
        let keys = match table.remove("keys") {
            Some(Value::Table(keys)) if !keys.is_empty() => keys,
            _ => return Err(fault("keys", "expected a table [random.keys] of what is drawn".into())),
        };
        if let Some(key) = table.keys().next() {
            return Err(GridError::at(
                file,
                error::unknown(&format!("random.{key}"), ["random.points", "random.seed", "random.keys"].into_iter()),
            ));
        }
        let read = |(key, value): (&String, &Value)| match Draw::read(value) {
            Ok(draw) => Ok((key.clone(), draw)),
            Err(why) => Err(fault(&format!("keys.{key}"), why)),
        };
        let keys: Result<Vec<_>, GridError> = keys.iter().map(read).collect();
        Ok(Some(Random { points, seed, keys: keys? }))
    }
}
