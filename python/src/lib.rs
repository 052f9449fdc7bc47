//! The part of the Python package that is Rust. `headtime/` beside it is what users import: it
//! gives these classes and functions their types, defaults and documentation.
//!
//! Results are passed as JSON, and tables as Arrow's C streams. Whatever takes long runs on a
//! thread of its own without the interpreter's lock, so that other threads run and Ctrl-C works.

mod commands;
mod drive;
mod error;
mod fleet;
mod interrupt;
mod model;
mod profile;
mod simulate;
mod sweep;
mod table;

use pyo3::prelude::*;

/// headtime's Rust part.
#[pymodule]
mod _headtime {
    #[pymodule_export]
    use crate::commands::{characterize, reproduce, validate};
    #[pymodule_export]
    use crate::drive::Drive;
    #[pymodule_export]
    use crate::error::{HeadtimeError, WrongRowsError};
    #[pymodule_export]
    use crate::fleet::{built_in_studies, fleet};
    #[pymodule_export]
    use crate::model::Model;
    #[pymodule_export]
    use crate::profile::{Profile, builtin_names};
    #[pymodule_export]
    use crate::simulate::simulate;
    #[pymodule_export]
    use crate::sweep::{Grid, Sweep};
    #[pymodule_export]
    use crate::table::Table;

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
