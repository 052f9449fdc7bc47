//! Results as Arrow tables: one row per point of a sweep, or one row per request of a run.

mod file;
mod requests;
mod rows;

pub(crate) use file::to_parquet;
pub use file::{TableError, TableFile};
pub use requests::{Requests, requests_schema};
pub use rows::{COLUMNS, Rows, Table};
