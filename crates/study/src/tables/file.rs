//! Parquet files, complete or absent.

use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use headtime_host::whole_file::{WholeFile, WriteError};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

/// Why a table cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The library refused to write.
    #[error("cannot write {}: {source}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// Why.
        source: ParquetError,
    },
}

fn properties(notes: Vec<(String, String)>) -> WriterProperties {
    let notes = notes.into_iter().map(|(key, value)| KeyValue::new(key, value)).collect();
    WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by("headtime".into())
        .set_key_value_metadata(Some(notes))
        .build()
}

/// Returns the bytes of a Parquet file of these rows. `notes` are kept with it, as keys and values.
///
/// # Errors
/// The rows have other columns.
pub(crate) fn to_parquet<'a>(
    schema: SchemaRef,
    notes: Vec<(String, String)>,
    rows: impl Iterator<Item = &'a RecordBatch>,
) -> Result<Vec<u8>, ParquetError> {
    let mut writer = ArrowWriter::try_new(Vec::new(), schema, Some(properties(notes)))?;
    for batch in rows {
        writer.write(batch)?;
    }
    writer.into_inner()
}

/// A Parquet file under construction, without its name until [`TableFile::finish`].
pub struct TableFile {
    path: PathBuf,
    writer: ArrowWriter<WholeFile>,
}

impl std::fmt::Debug for TableFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableFile").field("path", &self.path).finish_non_exhaustive()
    }
}

impl TableFile {
    /// Begins a file of these columns.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(path: &Path, schema: SchemaRef) -> Result<TableFile, TableError> {
        let file = WholeFile::create(path)?;
        let fail = |source| TableError::Parquet { path: path.to_owned(), source };
        let writer = ArrowWriter::try_new(file, schema, Some(properties(Vec::new()))).map_err(fail)?;
        Ok(TableFile { path: path.to_owned(), writer })
    }

    /// Appends rows.
    ///
    /// # Errors
    /// The disk is full, or the rows have other columns.
    pub fn write(&mut self, rows: &RecordBatch) -> Result<(), TableError> {
        self.writer.write(rows).map_err(|source| TableError::Parquet { path: self.path.clone(), source })
    }

    /// Completes the file and gives it its name.
    ///
    /// # Errors
    /// The disk is full.
    pub fn finish(self) -> Result<(), TableError> {
        let path = self.path;
        let file = self.writer.into_inner().map_err(|source| TableError::Parquet { path, source })?;
        Ok(file.finish()?)
    }
}
