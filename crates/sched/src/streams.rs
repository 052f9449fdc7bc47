//! Streams with guarantees: their parameters, admission control, and what a core reports of them.
//!
//! A [`Stream`] asks for a number of requests in each period, of which a share ([`Quality`]) is
//! guaranteed. [`Disk`] has the service times of the drive, from its profile; [`admit`] decides
//! whether a set of streams is feasible, and [`Ledger`] adds streams one by one. A core with a
//! [`GuaranteeConfig`] opens and serves them ([`crate::Core::open_stream`]).

// Parameters.
pub use crate::admit::das::stream::{Kinds, MAX_BLOCKERS, MAX_REQUESTS, PERIODS, Quality, Stream, StreamError};
pub use crate::admit::das::written::{QUALITY_FORMAT, parse_period, parse_quality, period_format};

// Service times of a drive.
pub use crate::admit::das::disk::{Disk, DiskError, NotMeasured, Service};
pub use crate::admit::das::distribution::{Distribution, DistributionError};
pub use crate::admit::das::family::{Family, FamilyError};
pub use crate::admit::das::known::KnownError;
pub use crate::admit::das::rests::{
    Traffic, UnknownFigures, check_figures, list_figures, needed_figures, unknown_figures,
};
pub use crate::admit::das::worst::{WorstCase, WorstError};
pub use crate::admit::das::worsts::WorstCaseTable;

// Admission control.
pub use crate::admit::das::admission::{admit, admit_under};
pub use crate::admit::das::forecast::{BestEffort, Forecast, USUAL_WAITING, forecast};
pub use crate::admit::das::ledger::{Ledger, ServedStream};
pub use crate::admit::das::verdict::{Admitted, Load, Nearest, Refusal, RefusalReason};

// Streams in a core.
pub use crate::admit::das::periods::Tally;
pub use crate::admit::das::streams::{
    BEST_EFFORT, Changes, GuaranteeConfig, LARGEST_BYTES, OpenStreamError, OpenedStream, StreamStatus, SubsetSizes,
};
pub use crate::admit::das::subset::{Exhausted, OpenError};
