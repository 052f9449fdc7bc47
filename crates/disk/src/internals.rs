//! Internals of the model for the scheduler's predictions, tests, benchmarks and the tables of the
//! documentation.
//!
//! No part of the interface: anything here may change in any version.

pub use crate::drive::RETRY_TURNS;
pub use crate::geometry::warnings;
pub use crate::profile::decimal::Decimal;
pub use crate::rotation::{JUST_PASSED, gcd, sectors_time};
pub use crate::size::bytes;

/// How far a drive reads ahead.
pub mod read_ahead {
    pub use crate::read_ahead::{limit, track_end};
}

/// The keys of profile files, as docs/profile-format.md lists them.
#[cfg(feature = "toml")]
pub mod schema {
    pub use crate::profile::schema::{TableDoc, documentation};
}
