//! Reports of the core's streams: opened streams and their statistics.

use headtime_disk::{Dur, Time};

use super::super::ledger::ServedStream;
use super::super::periods::Tally;
use super::super::stream::Stream;
use super::super::subset::OpenError;
use super::super::verdict::{Load, Refusal};

/// An opened stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenedStream {
    /// Start of its first period.
    pub begins: Time,
    /// r; `None`: it is served as a mandatory one.
    pub reservation: Option<Dur>,
    /// Load of all streams.
    pub load: Load,
}

/// Which streams served as optional ones may be served as mandatory ones from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changes {
    /// All. Whether there is time for their pending requests is checked at the change.
    All,
    /// Those without unfinished requests.
    Idle,
    /// None, which is always possible.
    None,
}

impl Changes {
    /// In order from the most to the least gain, the last always possible.
    pub const TRIED: [Changes; 3] = [Changes::All, Changes::All.fewer(), Changes::All.fewer().fewer()];

    /// Returns the next alternative if this one is not possible.
    pub const fn fewer(self) -> Changes {
        match self {
            Changes::All => Changes::Idle,
            Changes::Idle | Changes::None => Changes::None,
        }
    }

    /// Returns whether a stream with this number of unfinished requests may change.
    pub fn may(self, unfinished: u32) -> bool {
        match self {
            Changes::All => true,
            Changes::Idle => unfinished == 0,
            Changes::None => false,
        }
    }
}

/// Why a stream was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenStreamError {
    /// It is infeasible beside the others.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It is open already, or no period is free for it.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The drive's service times were measured under a different order.
    #[error(
        "optional: expected an order that selects by position (sptf, sptf-ahead, sptf-joint), under which the \
         profile's service times were measured, found another"
    )]
    Order,
    /// Another stream would have to be served as a mandatory one from now on, and cannot be yet: a
    /// request could become late, or one of its own is blocked although it declared no blocking.
    #[error("expected streams that can be served as mandatory ones at once, found one that cannot be yet")]
    Busy,
    /// The core was not set up for streams.
    #[error("expected a scheduler that has streams (admit das), found one without")]
    NoStreams,
}

impl OpenStreamError {
    /// Returns the reason; `name` maps a stream's place among the open streams and the requested
    /// one to its name.
    pub fn with_names(&self, name: impl Fn(usize) -> String) -> String {
        match self {
            OpenStreamError::Refused(refusal) => {
                format!("it cannot be had beside those before it: {}", refusal.with_names(name))
            }
            other => other.to_string(),
        }
    }
}

/// An open stream and its statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamStatus {
    /// Owner of its requests.
    pub owner: u32,
    /// Its parameters.
    pub stream: Stream,
    /// r; `None`: it is served as a mandatory one.
    pub reservation: Option<Dur>,
    /// It takes no more requests, and ends with its last pending one.
    pub closing: bool,
    /// Number of unfinished requests.
    pub unfinished: u32,
    /// Statistics of its requests.
    pub tally: Tally,
}

impl StreamStatus {
    /// Returns its parameters, and how it is served.
    pub fn at_work(&self) -> ServedStream {
        ServedStream { stream: self.stream, as_mandatory: self.reservation.is_none() }
    }
}

/// Numbers of eligible requests of the last decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubsetSizes {
    /// Of mandatory streams.
    pub mandatory: u32,
    /// Of optional ones.
    pub optional: u32,
    /// Best-effort requests.
    pub best_effort: u32,
}
