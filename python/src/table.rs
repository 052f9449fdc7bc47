//! Tables for readers of Arrow's C streams: pyarrow, pandas, polars, DuckDB.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};

use crate::error::fail;

/// A table, as batches of rows.
#[pyclass(frozen, module = "headtime._headtime")]
pub(crate) struct Table {
    batches: Arc<Vec<RecordBatch>>,
}

impl Table {
    /// Makes a table of batches of the same columns, of which there is one at least.
    pub(crate) fn new(batches: Vec<RecordBatch>) -> Table {
        Table { batches: Arc::new(batches) }
    }
}

#[pymethods]
impl Table {
    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// A pickled table is a stream in Arrow's IPC format.
    fn __reduce__<'py>(slf: &Bound<'py, Table>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let batches = &slf.get().batches;
        let mut writer = StreamWriter::try_new(Vec::new(), &batches[0].schema()).map_err(fail)?;
        batches.iter().try_for_each(|batch| writer.write(batch)).map_err(fail)?;
        let bytes = writer.into_inner().map_err(fail)?;
        Ok((slf.get_type().getattr("_from_stream")?, (PyBytes::new(slf.py(), &bytes),)))
    }

    #[staticmethod]
    fn _from_stream(bytes: &[u8]) -> PyResult<Table> {
        let batches = StreamReader::try_new(bytes, None).and_then(Iterator::collect).map_err(fail)?;
        let batches: Vec<RecordBatch> = batches;
        if batches.is_empty() {
            return Err(fail("a table: expected at least one batch of rows, found none"));
        }
        Ok(Table::new(batches))
    }

    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.batches[0].schema().fields().iter().map(|f| f.name().clone()).collect()
    }

    /// The Arrow PyCapsule interface. The requested schema is a wish, and is ignored.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let schema = self.batches[0].schema();
        let batches: Vec<RecordBatch> = self.batches.as_ref().clone();
        let reader = RecordBatchIterator::new(batches.into_iter().map(Ok), schema);
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}
