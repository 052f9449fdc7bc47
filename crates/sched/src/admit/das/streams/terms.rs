//! What the core's streams say: what has begun, how it fares, and what shows that a promise rests
//! on a wrong figure.

use headtime_disk::command::{Command, Kind};
use headtime_disk::time::{Dur, Time};

use super::super::admission::{Load, Refusal};
use super::super::ledger::AtWork;
use super::super::periods::Tally;
use super::super::stream::Stream;
use super::super::subset::OpenError;

/// A stream that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// When its first period begins.
    pub begins: Time,
    /// r; `None`: it is served as a mandatory one.
    pub reservation: Option<Dur>,
    /// How much of the drive all streams take now.
    pub load: Load,
}

/// Which streams that are served as they ask may be served as mandatory ones from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changes {
    /// All. It shows when they are to be whether there is time for what they have asked for.
    All,
    /// Those that have asked for nothing that is not finished.
    Idle,
    /// None, which is possible always.
    None,
}

impl Changes {
    /// From what leaves most to what is possible always.
    pub const TRIED: [Changes; 3] = [Changes::All, Changes::All.fewer(), Changes::All.fewer().fewer()];

    /// What is tried where this is not possible.
    pub const fn fewer(self) -> Changes {
        match self {
            Changes::All => Changes::Idle,
            Changes::Idle | Changes::None => Changes::None,
        }
    }

    /// Whether a stream with that number of unfinished requests may be.
    pub fn may(self, unfinished: u32) -> bool {
        match self {
            Changes::All => true,
            Changes::Idle => unfinished == 0,
            Changes::None => false,
        }
    }
}

/// Why a stream does not begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotOpened {
    /// It cannot be had beside the others.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It is there already, or no period is free for it.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The drive's times are those of another order.
    #[error(
        "optional: expected an order that selects by position (sptf, sptf-ahead, sptf-joint), under which the \
         profile's service times were measured, found another"
    )]
    Order,
    /// Another stream was to be served as a mandatory one from now on, and cannot be yet: a request
    /// could be late by it, or one of its own waits for an older one though it said that none does.
    #[error("expected streams that can be served as mandatory ones at once, found one that cannot be yet")]
    Busy,
    /// The core was not set up for streams.
    #[error("expected a scheduler that has streams (admit das), found one without")]
    NoStreams,
}

impl NotOpened {
    /// Why; `name` gives what a stream is called, by its place among those at work and the one that
    /// was asked for.
    pub fn with_names(&self, name: impl Fn(usize) -> String) -> String {
        match self {
            NotOpened::Refused(refusal) => {
                format!("it cannot be had beside those before it: {}", refusal.with_names(name))
            }
            other => other.to_string(),
        }
    }
}

/// A stream at work, and how it fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Whose requests are its.
    pub owner: u32,
    /// What it asked for.
    pub stream: Stream,
    /// r; `None`: it is served as a mandatory one.
    pub reservation: Option<Dur>,
    /// It takes no more requests, and ends with the last that it has.
    pub closing: bool,
    /// Requests that are not finished.
    pub unfinished: u32,
    /// What it has asked for and had.
    pub tally: Tally,
}

impl Standing {
    /// What it asked for, and how it is served.
    pub fn at_work(&self) -> AtWork {
        AtWork { stream: self.stream, as_mandatory: self.reservation.is_none() }
    }
}

/// How many requests may go by the last decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Of mandatory streams.
    pub mandatory: u32,
    /// Of optional ones.
    pub optional: u32,
    /// Of nobody's stream.
    pub best_effort: u32,
}

/// The drive took longer than the worst case: what is promised rests on a figure that is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the drive took {took} for {} of {} sectors at {}, expected {worst} at its worst",
    word(.command.kind), .command.count, .command.lbn
)]
pub struct Overdue {
    /// The command that showed it.
    pub command: Command,
    /// How long the drive was busy with it.
    pub took: Dur,
    /// What was thought to be the worst case.
    pub worst: Dur,
}

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Read => "a read",
        Kind::Write => "a write",
        Kind::Flush => "a flush",
    }
}
