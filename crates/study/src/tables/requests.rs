//! One row per request of a run.

use std::sync::Arc;

use arrow_array::builder::{Float64Builder, StringDictionaryBuilder, UInt32Builder, UInt64Builder};
use arrow_array::types::Int8Type;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use headtime_disk::{Kind, Outcome};
use headtime_sim::observe::Observer;
use headtime_sim::stats::Done;

/// Rows of one batch.
const BATCH: usize = 1 << 16;

/// Returns the columns: the request, its times in nanoseconds of virtual time, its predicted and
/// observed head time in milliseconds (null if not predicted or not observed), and its outcome.
pub fn requests_schema() -> SchemaRef {
    let word = || DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
    Arc::new(Schema::new(vec![
        Field::new("sequence", DataType::UInt64, false),
        Field::new("owner", DataType::UInt32, false),
        Field::new("class", DataType::UInt32, false),
        Field::new("kind", word(), false),
        Field::new("lbn", DataType::UInt64, false),
        Field::new("sectors", DataType::UInt32, false),
        Field::new("due_ns", DataType::UInt64, false),
        Field::new("submitted_ns", DataType::UInt64, false),
        Field::new("dispatched_ns", DataType::UInt64, false),
        Field::new("done_ns", DataType::UInt64, false),
        Field::new("response_ms", DataType::Float64, false),
        Field::new("predicted_ms", DataType::Float64, true),
        Field::new("observed_ms", DataType::Float64, true),
        Field::new("outcome", word(), false),
    ]))
}

/// Collects the requests of a run in batches.
pub struct Requests<F: FnMut(RecordBatch)> {
    give: F,
    columns: Columns,
    rows: usize,
}

#[derive(Default)]
struct Columns {
    sequence: UInt64Builder,
    owner: UInt32Builder,
    class: UInt32Builder,
    kind: StringDictionaryBuilder<Int8Type>,
    lbn: UInt64Builder,
    sectors: UInt32Builder,
    due: UInt64Builder,
    submitted: UInt64Builder,
    dispatched: UInt64Builder,
    done: UInt64Builder,
    response: Float64Builder,
    predicted: Float64Builder,
    observed: Float64Builder,
    outcome: StringDictionaryBuilder<Int8Type>,
}

impl<F: FnMut(RecordBatch)> std::fmt::Debug for Requests<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Requests").field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl<F: FnMut(RecordBatch)> Requests<F> {
    /// Creates a collector that passes each batch to `give`.
    pub fn new(give: F) -> Requests<F> {
        Requests { give, columns: Columns::default(), rows: 0 }
    }

    /// Passes on what is left.
    pub fn finish(mut self) {
        self.flush();
    }

    fn flush(&mut self) {
        if self.rows == 0 {
            return;
        }
        self.rows = 0;
        let c = std::mem::take(&mut self.columns);
        (self.give)(c.batch());
    }
}

impl Columns {
    fn push(&mut self, done: &Done) {
        let kind = match done.kind {
            Kind::Read => "read",
            Kind::Write => "write",
            Kind::Flush => "flush",
        };
        let outcome = match done.outcome {
            Outcome::Ok => "ok",
            Outcome::MediaError { .. } => "media-error",
            Outcome::Dead => "dead",
        };
        self.sequence.append_value(done.sequence);
        self.owner.append_value(done.owner);
        self.class.append_value(u32::from(done.class));
        self.kind.append_value(kind);
        self.lbn.append_value(done.lbn);
        self.sectors.append_value(done.count);
        self.due.append_value(done.due.0);
        self.submitted.append_value(done.submitted.0);
        self.dispatched.append_value(done.dispatched.0);
        self.done.append_value(done.done.0);
        self.response.append_value(done.response().as_ms_f64());
        self.predicted.append_option(done.prediction.map(|p| p.predicted.as_ms_f64()));
        self.observed.append_option(done.prediction.map(|p| p.observed.as_ms_f64()));
        self.outcome.append_value(outcome);
    }

    fn batch(mut self) -> RecordBatch {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.sequence.finish()),
            Arc::new(self.owner.finish()),
            Arc::new(self.class.finish()),
            Arc::new(self.kind.finish()),
            Arc::new(self.lbn.finish()),
            Arc::new(self.sectors.finish()),
            Arc::new(self.due.finish()),
            Arc::new(self.submitted.finish()),
            Arc::new(self.dispatched.finish()),
            Arc::new(self.done.finish()),
            Arc::new(self.response.finish()),
            Arc::new(self.predicted.finish()),
            Arc::new(self.observed.finish()),
            Arc::new(self.outcome.finish()),
        ];
        RecordBatch::try_new(requests_schema(), columns).expect("columns as the schema has them, of one length")
    }
}

impl<F: FnMut(RecordBatch)> Observer for Requests<F> {
    fn finished(&mut self, done: &Done) {
        self.columns.push(done);
        self.rows += 1;
        if self.rows == BATCH {
            self.flush();
        }
    }
}
