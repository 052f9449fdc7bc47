//! Simulations.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::RecordBatch;
use headtime_disk::profile::Bounds;
use headtime_disk::{Kind, Time};
use headtime_sched::{Candidate, Choose};
use headtime_sim::scenario::{DEFAULT_DISK, Outcome, PrepareError, Prepared, Scenario, load_disk};
use headtime_study::tables::{Requests, requests_schema};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::error::fail;
use crate::interrupt::{Stopper, watched};
use crate::profile::Profile;
use crate::table::Table;

/// Runs a scenario: the text of its settings, or a file of them with others over it. Returns the
/// result as JSON, the table of requests if wanted, and a note for each measured service time.
#[pyfunction]
#[pyo3(signature = (settings, file, profile, seed, assume, requests, order))]
#[expect(clippy::too_many_arguments, reason = "the keywords of a Python function")]
pub(crate) fn simulate(
    py: Python<'_>,
    settings: &str,
    file: Option<&str>,
    profile: Option<&Profile>,
    seed: Option<u64>,
    assume: Option<&str>,
    requests: bool,
    order: Option<Py<PyAny>>,
) -> PyResult<(String, Option<Table>)> {
    let table: toml::Table = settings.parse().map_err(fail)?;
    let place = "simulate";
    let mut given = match file {
        Some(file) => {
            // What a keyword lacks may be in the file, so the whole is checked.
            let flags = Scenario::part_of_table(table, Path::new(""), place).map_err(fail)?;
            flags.over(Scenario::load(Path::new(file)).map_err(fail)?)
        }
        None => Scenario::part_of_table(table, Path::new(""), place).map_err(fail)?,
    };
    // TOML's integers end at 2^63.
    given.seed = seed.or(given.seed);
    given.check().map_err(fail)?;
    let profile = match profile {
        Some(profile) => profile.inner.clone(),
        None => load_disk(given.disk.as_deref().unwrap_or(DEFAULT_DISK)).map_err(fail)?.profile,
    };
    let assume = assume.map(Bounds::parse).transpose().map_err(fail)?;
    let stop = AtomicBool::new(false);
    let done = watched(py, &stop, || run(&given, profile, assume.as_ref(), requests, order, &stop))?;
    let (outcome, batches) = done?;
    let batches = batches.map(|mut batches| {
        if batches.is_empty() {
            batches.push(RecordBatch::new_empty(requests_schema()));
        }
        Table::new(batches)
    });
    Ok((outcome.result.to_json(), batches))
}

fn run(
    scenario: &Scenario,
    profile: headtime_disk::profile::Profile,
    assume: Option<&Bounds>,
    requests: bool,
    order: Option<Py<PyAny>>,
    stop: &AtomicBool,
) -> PyResult<(Outcome, Option<Vec<RecordBatch>>)> {
    let prepared = Prepared::new(scenario, profile, assume).map_err(fail)?;
    let mut batches = Vec::new();
    let rows = if requests { Some(Requests::new(|rows| batches.push(rows))) } else { None };
    let mut observer = (rows, Stopper(stop));
    let outcome = match order {
        None => prepared.run(None, &mut observer).map_err(|e| fail(PrepareError::Run(e)))?,
        Some(order) => {
            let mut raised = None;
            let choose = Function { order, stop, raised: &mut raised };
            let outcome = prepared.run_choosing(choose, &mut observer);
            match raised {
                Some(e) => return Err(e),
                None => outcome.map_err(fail)?,
            }
        }
    };
    if let (Some(rows), _) = observer {
        rows.finish();
    }
    Ok((outcome, requests.then_some(batches)))
}

/// An order that is a function of Python's.
struct Function<'a> {
    order: Py<PyAny>,
    stop: &'a AtomicBool,
    raised: &'a mut Option<PyErr>,
}

impl Choose for Function<'_> {
    fn choose(&mut self, waiting: &[Candidate], now: Time) -> usize {
        if self.raised.is_some() || self.stop.load(Ordering::Relaxed) {
            return 0;
        }
        let chosen = Python::attach(|py| {
            let each = waiting.iter().map(|c| {
                let kind = match c.request.kind {
                    Kind::Read => "read",
                    Kind::Write => "write",
                    Kind::Flush => "flush",
                };
                let positioning = c.positioning.map(|p| p.as_ms_f64());
                let (waited, owner) = (c.waited.as_ms_f64(), c.request.owner);
                (kind, c.request.lbn, c.request.count, owner, waited, positioning)
            });
            let list = PyList::new(py, each.collect::<Vec<_>>())?;
            let chosen = self.order.call1(py, (list, now.0))?;
            let at = chosen.extract::<usize>(py).ok().filter(|at| *at < waiting.len());
            match at {
                Some(at) => Ok(at),
                None => {
                    let found = chosen.bind(py).repr()?;
                    Err(fail(format!("order: expected an index below {}, found {found}", waiting.len())))
                }
            }
        });
        chosen.unwrap_or_else(|e| {
            // The run ends at once; what it did is dropped.
            *self.raised = Some(e);
            self.stop.store(true, Ordering::Relaxed);
            0
        })
    }
}
