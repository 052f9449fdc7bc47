//! The exception of the package.

use std::fmt::Display;

use pyo3::PyErr;
use pyo3::exceptions::PyException;

pyo3::create_exception!(headtime, HeadtimeError, PyException, "Wrong input, with file and line where there is one.");

pyo3::create_exception!(headtime, WrongRowsError, HeadtimeError, "Rows of a worker that are not those of its points.");

/// Makes an exception of an error.
pub(crate) fn fail(why: impl Display) -> PyErr {
    HeadtimeError::new_err(why.to_string())
}
