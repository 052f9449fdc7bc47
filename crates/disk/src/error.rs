//! Why a profile cannot be compiled.

use crate::geometry::GeometryError;
use crate::seek::SeekError;

/// Why a profile cannot be compiled to a model.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The geometry is invalid.
    #[error("geometry: {0}")]
    Geometry(#[from] GeometryError),
    /// A seek table is invalid.
    #[error("seek table: {0}")]
    Seek(#[from] SeekError),
    /// The speed of rotation is outside 60 to 60,000 rpm.
    #[error("rotation of {num}/{den} rpm: expected 60 to 60000 rpm")]
    Rotation {
        /// Numerator.
        num: u64,
        /// Denominator.
        den: u64,
    },
}
