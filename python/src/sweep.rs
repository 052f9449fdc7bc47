//! Sweeps: chunks of a grid's points for executors.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use headtime_study::grid::{Grid as Inner, Profiles};
use headtime_study::sweep::{Chunk, Sweep as InnerSweep, SweepError, on_threads};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::{WrongRowsError, fail};
use crate::interrupt::watched;

/// The points of a sweep.
#[pyclass(frozen, module = "headtime._headtime")]
pub(crate) struct Grid {
    inner: Inner,
}

#[pymethods]
impl Grid {
    /// Reads a grid's text.
    #[new]
    fn new(text: &str, file: &str, folder: &str) -> PyResult<Grid> {
        Ok(Grid { inner: Inner::parse(text, file, Path::new(folder)).map_err(fail)? })
    }

    /// Loads a grid's file.
    #[staticmethod]
    fn load(path: PathBuf) -> PyResult<Grid> {
        Ok(Grid { inner: Inner::load(&path).map_err(fail)? })
    }

    fn __len__(&self) -> usize {
        self.inner.len() as usize
    }

    #[getter]
    fn text(&self) -> &str {
        self.inner.text()
    }

    #[getter]
    fn file(&self) -> &str {
        self.inner.file()
    }

    #[getter]
    fn folder(&self) -> String {
        self.inner.folder().display().to_string()
    }

    #[getter]
    fn keys(&self) -> Vec<&str> {
        self.inner.keys().collect()
    }

    /// The values of a point, as JSON.
    fn point(&self, index: u64) -> PyResult<String> {
        if index >= self.inner.len() {
            return Err(fail(format!("point: expected a number below {}, found {index}", self.inner.len())));
        }
        let point = self.inner.point(index);
        let values: serde_json::Map<String, serde_json::Value> = self
            .inner
            .keys()
            .zip(&point.values)
            .map(|(key, value)| (key.to_owned(), serde_json::to_value(value).unwrap_or_default()))
            .collect();
        Ok(serde_json::Value::Object(values).to_string())
    }

    /// Runs some points; returns their rows as a stream of Arrow, the number of points that could
    /// not be run, and the seconds that it took.
    fn run<'py>(&self, py: Python<'py>, first: u64, end: u64) -> PyResult<(Bound<'py, PyBytes>, u64, f64)> {
        if first > end || end > self.inner.len() {
            return Err(fail(format!("points: expected a range up to {}, found {first} to {end}", self.inner.len())));
        }
        let stop = AtomicBool::new(false);
        let chunk = watched(py, &stop, || Chunk::run(&self.inner, first..end, &mut Profiles::default(), &stop))?;
        let rows = chunk.to_ipc().map_err(fail)?;
        Ok((PyBytes::new(py, &rows), chunk.failed, chunk.seconds))
    }
}

/// A sweep with its rows in a directory.
#[pyclass(module = "headtime._headtime")]
pub(crate) struct Sweep {
    /// `None` when it was closed.
    inner: Option<InnerSweep>,
    /// Parts that were set aside.
    #[pyo3(get)]
    damaged: Vec<String>,
}

#[pymethods]
impl Sweep {
    #[new]
    fn new(grid: &Grid, folder: PathBuf) -> PyResult<Sweep> {
        let (inner, damaged) = InnerSweep::open(grid.inner.clone(), &folder).map_err(fail)?;
        let damaged = damaged.iter().map(|d| format!("{}: {}", d.path.display(), d.why)).collect();
        Ok(Sweep { inner: Some(inner), damaged })
    }

    /// Takes the next points to run.
    fn take(&mut self) -> PyResult<Option<(u64, u64)>> {
        Ok(self.open()?.take().map(|points| (points.start, points.end)))
    }

    /// Takes points back from a worker that was lost.
    fn give_back(&mut self, first: u64, end: u64) -> PyResult<()> {
        self.open()?.give_back(&(first..end));
        Ok(())
    }

    /// Closes the directory: another sweep can run there. Rows that wait are written before, with
    /// `flush`.
    fn close(&mut self) {
        self.inner = None;
    }

    /// Stores the rows of points that were taken.
    fn accept(&mut self, first: u64, end: u64, rows: &[u8], failed: u64, seconds: f64) -> PyResult<()> {
        self.open()?.accept_ipc(&(first..end), rows, failed, seconds).map_err(|e| match e {
            SweepError::Store(_) => fail(e),
            SweepError::Rows { .. } | SweepError::Count { .. } | SweepError::Point { .. } => {
                WrongRowsError::new_err(e.to_string())
            }
        })
    }

    /// Runs the rest on threads.
    fn on_threads(&mut self, py: Python<'_>, threads: usize, see: Py<PyAny>) -> PyResult<()> {
        let stop = AtomicBool::new(false);
        let inner = self.open()?;
        let mut raised = None;
        let ended = watched(py, &stop, || {
            on_threads(inner, threads, &stop, &mut |p| {
                // An exception of the caller's function ends the sweep.
                if raised.is_none()
                    && let Err(e) = Python::attach(|py| see.call1(py, (p.done, p.total, p.failed, p.per_second)))
                {
                    raised = Some(e);
                    stop.store(true, Ordering::Relaxed);
                }
            })
        })?;
        match raised {
            Some(e) => Err(e),
            None => ended.map_err(fail),
        }
    }

    /// Writes all rows that wait.
    fn flush(&mut self) -> PyResult<()> {
        self.open()?.flush().map_err(fail)
    }

    /// Points done, all points, points that could not be run, points per second.
    fn progress(&mut self) -> PyResult<(u64, u64, u64, f64)> {
        let p = self.open()?.progress();
        Ok((p.done, p.total, p.failed, p.per_second))
    }
}

impl Sweep {
    fn open(&mut self) -> PyResult<&mut InnerSweep> {
        self.inner.as_mut().ok_or_else(|| fail("sweep: expected an open one, found one that was closed"))
    }
}
