//! Input and output types of the active subset.

use headtime_disk::{Dur, Time};

use super::super::disk::likely_of;

/// Handling of an optional stream's requests after its reservation is used up before the end of its
/// period (section 3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Exhausted {
    /// They are not eligible in this period. At its end `streams::Streams` lets
    /// them expire; the subset alone treats them as best effort then.
    Skip,
    /// They are eligible together with best-effort requests.
    #[default]
    AsBestEffort,
    /// They are eligible when best effort would be, and best effort only if there are none.
    BeforeBestEffort,
}

impl Exhausted {
    /// All variants.
    pub const ALL: [Exhausted; 3] = [Exhausted::Skip, Exhausted::AsBestEffort, Exhausted::BeforeBestEffort];
    /// Their names.
    pub const NAMES: [&str; 3] = ["skip", "as-best-effort", "before-best-effort"];

    /// Returns the variant of that name.
    pub fn named(name: &str) -> Option<Exhausted> {
        Exhausted::ALL.into_iter().zip(Exhausted::NAMES).find(|e| e.1 == name).map(|e| e.0)
    }

    /// Returns its name.
    pub fn name(self) -> &'static str {
        Exhausted::NAMES[self as usize]
    }
}

/// Parameters of the subset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Maximum number of commands in flight.
    pub outstanding: u32,
    /// w of the largest allowed best-effort request.
    pub best_effort: Dur,
    /// w of the longest older request that may block a stream's request.
    pub blocker: Dur,
    /// Handling of streams whose reservation is used up.
    pub exhausted: Exhausted,
    /// An optional stream that has used up its reservation by requests slower than X gets more, if
    /// that leaves the others theirs.
    pub compensates: bool,
    /// w of the largest command that may be in flight when a period begins, if its streams have
    /// room for that ([`super::super::verdict::Admitted::crossing`]).
    pub crossing: Dur,
    /// x of such a command: its likely service time.
    pub crossing_likely: Dur,
    /// How long after the start of a command the drive may move its arm on its own, though the
    /// command has completed.
    pub moves_on: Dur,
}

impl Rules {
    /// Returns the likely service time of a command without a stream whose worst case is `worst`.
    pub fn likely(&self, worst: Dur) -> Dur {
        likely_of(worst, (self.crossing, self.crossing_likely))
    }
}

/// A member of the active subset: the requests of one stream and one period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    /// The stream's number.
    pub stream: u32,
    /// The period, counted from the start of the run.
    pub period: u64,
}

/// Purpose of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// A request of a stream.
    Stream(Member),
    /// A best-effort request.
    BestEffort,
    /// Background work in a gap or idle time.
    Fill,
}

/// The active subset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Active {
    /// Requests of streams.
    pub members: Vec<Member>,
    /// Whether best-effort requests are eligible.
    pub best_effort: bool,
}

/// Time for commands without a guarantee, at their worst case, at some instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spare {
    /// When the drive is free at the latest; the times count from then.
    pub from: Time,
    /// Time without a mandatory request being late.
    pub mandatory: Dur,
    /// Time without a stream having less than its reservation, either.
    pub all: Dur,
}

/// A violation to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A request completed after the end of its period.
    Late {
        /// The command.
        command: u64,
        /// The stream and the period of its deadline.
        member: Member,
    },
    /// The drive exceeded the worst case: this command shows that w is too small.
    Overdue {
        /// The command.
        command: u64,
        /// Its service time.
        took: Dur,
        /// The assumed worst case.
        worst: Dur,
    },
}

/// Why a stream is not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// It is open already.
    #[error("stream {number} is at work already")]
    Exists {
        /// Its number.
        number: u32,
    },
    /// Mandatory streams take all of the time.
    #[error("stream {number}: expected a period from which on every mandatory request can be in time, found none")]
    NoRoom {
        /// Its number.
        number: u32,
    },
}
