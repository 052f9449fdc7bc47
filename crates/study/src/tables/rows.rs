//! One row per point of a sweep.

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, Int64Builder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use headtime_sim::result::SimResult;
use serde_json::{Map, Value as Json};
use toml::Value;

use crate::grid::{Form, Grid, Point};

/// Rows of a sweep.
pub type Table = RecordBatch;

/// Whether a figure is counted or measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Count,
    Figure,
}

use Kind::{Count, Figure};

/// The figures of a result that each row has: their keys in `simulate --json`, joined by dots. What
/// the machine's speed decides is not among them.
pub const COLUMNS: [&str; FIGURES.len()] = {
    let mut names = [""; FIGURES.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = FIGURES[i].0;
        i += 1;
    }
    names
};

const FIGURES: [(&str, Kind); 46] = [
    ("virtual_seconds", Figure),
    ("foreground.requests", Count),
    ("foreground.errors", Count),
    ("foreground.refused", Count),
    ("foreground.per_second", Figure),
    ("foreground.mb_s", Figure),
    ("foreground.response_ms.mean", Figure),
    ("foreground.response_ms.mean_plus_minus", Figure),
    ("foreground.response_ms.p50", Figure),
    ("foreground.response_ms.p95", Figure),
    ("foreground.response_ms.p99", Figure),
    ("foreground.response_ms.max", Figure),
    ("foreground.by_class.read.requests", Count),
    ("foreground.by_class.read.response_ms.mean", Figure),
    ("foreground.by_class.read.response_ms.p50", Figure),
    ("foreground.by_class.read.response_ms.p95", Figure),
    ("foreground.by_class.read.response_ms.p99", Figure),
    ("foreground.by_class.read.response_ms.max", Figure),
    ("foreground.by_class.write.requests", Count),
    ("foreground.by_class.write.response_ms.mean", Figure),
    ("foreground.by_class.write.response_ms.p50", Figure),
    ("foreground.by_class.write.response_ms.p95", Figure),
    ("foreground.by_class.write.response_ms.p99", Figure),
    ("foreground.by_class.write.response_ms.max", Figure),
    ("freeblock.bytes", Count),
    ("freeblock.mb_s", Figure),
    ("freeblock.share_of_media_bandwidth", Figure),
    ("freeblock.by_foreground_bytes", Count),
    ("freeblock.requests", Count),
    ("freeblock.scanned_fraction", Figure),
    ("freeblock.scan_seconds", Figure),
    ("freeblock.times_stopped", Count),
    ("write_cache.accepted", Count),
    ("write_cache.free", Count),
    ("write_cache.through", Count),
    ("write_cache.hits", Count),
    ("write_cache.misses", Count),
    ("write_cache.dirty", Count),
    ("prediction.samples", Count),
    ("prediction.within_50us", Figure),
    ("prediction.within_150us", Figure),
    ("prediction.extra_turn", Figure),
    ("head_time.seek", Figure),
    ("head_time.rotate", Figure),
    ("head_time.transfer", Figure),
    ("head_time.free", Figure),
];

/// Parts of a result whose keys differ between points; together they are the column `details`.
const DETAILS: [&str; 4] = ["streams", "guarantees", "foreground.by_class", "foreground.measures"];

/// A column under construction.
enum Column {
    Whole(Int64Builder),
    Real(Float64Builder),
    Truth(BooleanBuilder),
    Text(StringBuilder),
    Count(UInt64Builder),
}

impl Column {
    fn finish(self) -> ArrayRef {
        match self {
            Column::Whole(mut b) => Arc::new(b.finish()),
            Column::Real(mut b) => Arc::new(b.finish()),
            Column::Truth(mut b) => Arc::new(b.finish()),
            Column::Text(mut b) => Arc::new(b.finish()),
            Column::Count(mut b) => Arc::new(b.finish()),
        }
    }

    /// Appends a value of a grid's key.
    fn set(&mut self, value: &Value) {
        match self {
            Column::Whole(b) => b.append_option(value.as_integer()),
            Column::Real(b) => b.append_option(value.as_float().or(value.as_integer().map(|n| n as f64))),
            Column::Truth(b) => b.append_option(value.as_bool()),
            Column::Count(b) => b.append_option(value.as_integer().and_then(|n| u64::try_from(n).ok())),
            Column::Text(b) => match value.as_str() {
                Some(text) => b.append_value(text),
                None => b.append_value(value.to_string()),
            },
        }
    }

    /// Appends a figure of a result, or null.
    fn figure(&mut self, value: Option<&Json>) {
        match self {
            Column::Real(b) => b.append_option(value.and_then(Json::as_f64)),
            Column::Count(b) => b.append_option(value.and_then(Json::as_u64)),
            Column::Text(b) => b.append_option(value.and_then(Json::as_str)),
            Column::Whole(_) | Column::Truth(_) => unreachable!("figures are counts, numbers and text"),
        }
    }
}

/// Rows under construction.
///
/// Columns: `point`, the keys of the grid, `disk`, `seed`, [`COLUMNS`], `details`, `error`.
pub struct Rows {
    schema: SchemaRef,
    columns: Vec<Column>,
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rows").field("columns", &self.columns.len()).finish()
    }
}

/// Names that a key of a grid may share with a figure: then the key is called `grid.KEY`.
const OWN: [&str; 5] = ["point", "disk", "seed", "details", "error"];

impl Rows {
    /// Returns the columns of a grid's rows.
    pub fn schema(grid: &Grid) -> SchemaRef {
        let mut fields = vec![Field::new("point", DataType::UInt64, false)];
        for (key, form) in grid.keys().zip(grid.forms()) {
            let form = match form {
                Form::Whole => DataType::Int64,
                Form::Real => DataType::Float64,
                Form::Truth => DataType::Boolean,
                Form::Text => DataType::Utf8,
            };
            let name = if OWN.contains(&key) { format!("grid.{key}") } else { key.to_owned() };
            fields.push(Field::new(name, form, true));
        }
        fields.push(Field::new("disk", DataType::Utf8, true));
        fields.push(Field::new("seed", DataType::UInt64, true));
        fields.extend(FIGURES.iter().map(|(name, kind)| {
            let form = if *kind == Count { DataType::UInt64 } else { DataType::Float64 };
            Field::new(*name, form, true)
        }));
        fields.push(Field::new("details", DataType::Utf8, true));
        fields.push(Field::new("error", DataType::Utf8, true));
        Arc::new(Schema::new(fields))
    }

    /// Begins rows of a grid.
    pub fn new(grid: &Grid) -> Rows {
        let schema = Rows::schema(grid);
        let column = |field: &Arc<Field>| match field.data_type() {
            DataType::Int64 => Column::Whole(Int64Builder::new()),
            DataType::Float64 => Column::Real(Float64Builder::new()),
            DataType::Boolean => Column::Truth(BooleanBuilder::new()),
            DataType::UInt64 => Column::Count(UInt64Builder::new()),
            _ => Column::Text(StringBuilder::new()),
        };
        let columns = schema.fields().iter().map(column).collect();
        Rows { schema, columns }
    }

    /// Appends the row of a point: its result, or why it has none.
    pub fn push(&mut self, point: &Point, result: Result<&SimResult, String>) {
        let mut columns = self.columns.iter_mut();
        let mut next = || columns.next().expect("as many columns as the schema has");
        next().figure(Some(&Json::from(point.index)));
        for value in &point.values {
            next().set(value);
        }
        let (found, error) = match result {
            Ok(result) => (serde_json::to_value(result).expect("a result is numbers, text and maps"), None),
            Err(why) => (Json::Null, Some(Json::from(why))),
        };
        next().figure(at(&found, "disk"));
        next().figure(at(&found, "seed"));
        for (name, _) in FIGURES {
            next().figure(at(&found, name));
        }
        next().figure(details(&found).as_ref());
        next().figure(error.as_ref());
    }

    /// Returns the rows.
    pub fn finish(self) -> Table {
        let columns = self.columns.into_iter().map(Column::finish).collect();
        RecordBatch::try_new(self.schema, columns).expect("columns as the schema has them, of one length")
    }
}

/// Returns the value at a path of keys; none if it is missing or null.
fn at<'a>(json: &'a Json, path: &str) -> Option<&'a Json> {
    path.split('.').try_fold(json, |value, key| value.get(key)).filter(|v| !v.is_null())
}

/// Returns the parts of a result whose keys differ between points, as text in JSON.
fn details(result: &Json) -> Option<Json> {
    let mut parts = Map::new();
    for path in DETAILS {
        let Some(part) = at(result, path) else { continue };
        let part = match part.as_object() {
            Some(map) => {
                let own = |key: &str| path == "foreground.by_class" && (key == "read" || key == "write");
                let kept: Map<String, Json> =
                    map.iter().filter(|(key, _)| !own(key)).map(|(k, v)| (k.clone(), v.clone())).collect();
                if kept.is_empty() {
                    continue;
                }
                Json::Object(kept)
            }
            None => part.clone(),
        };
        let name = path.rsplit('.').next().unwrap_or(path);
        parts.insert(name.to_owned(), part);
    }
    (!parts.is_empty()).then(|| Json::from(Json::Object(parts).to_string()))
}
