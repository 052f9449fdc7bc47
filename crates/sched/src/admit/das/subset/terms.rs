//! What is said to the active subset, and what it says.

use headtime_disk::time::{Dur, Time};

use super::super::admission::likely_of;

/// What becomes of an optional stream's requests when its reservation is used up before its period
/// is (section 3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Exhausted {
    /// They do not go in this period. At its end [`super::super::streams::Streams`] gives them up;
    /// the subset alone has them go with best effort then.
    Skip,
    /// They go with the best-effort requests.
    #[default]
    AsBestEffort,
    /// They go where best-effort requests might, and those only when there are none.
    BeforeBestEffort,
}

impl Exhausted {
    /// All of them.
    pub const ALL: [Exhausted; 3] = [Exhausted::Skip, Exhausted::AsBestEffort, Exhausted::BeforeBestEffort];
    /// What they are called.
    pub const NAMES: [&str; 3] = ["skip", "as-best-effort", "before-best-effort"];

    /// The one of that name.
    pub fn named(name: &str) -> Option<Exhausted> {
        Exhausted::ALL.into_iter().zip(Exhausted::NAMES).find(|e| e.1 == name).map(|e| e.0)
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        Exhausted::NAMES[self as usize]
    }
}

/// How subsets are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Commands at the drive at most.
    pub outstanding: u32,
    /// w of the largest best-effort request that there ever is.
    pub best_effort: Dur,
    /// w of the longest older request for which one of a stream may have to wait.
    pub blocker: Dur,
    /// What becomes of streams without a reservation left.
    pub exhausted: Exhausted,
    /// An optional stream that has used up its reservation by requests that took longer than X says
    /// has more, where that leaves the others theirs.
    pub compensates: bool,
    /// w of the largest command that may be at the drive when a period begins, where its streams
    /// were given room for that ([`super::super::admission::Admitted::crossing`]).
    pub crossing: Dur,
    /// x of such a command: what it is likely to take at most.
    pub crossing_likely: Dur,
    /// How long after it began with a command the drive may move its arm for itself, though the
    /// command is done.
    pub moves_on: Dur,
}

impl Rules {
    /// How long something of no stream is likely to take that takes `worst` at most.
    pub fn likely(&self, worst: Dur) -> Dur {
        likely_of(worst, (self.crossing, self.crossing_likely))
    }
}

/// Somebody who may go: the requests of a stream that belong to one period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    /// The stream's number.
    pub stream: u32,
    /// The period, counted from the beginning of the run.
    pub period: u64,
}

/// What a command was sent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// A request of a stream.
    Stream(Member),
    /// A best-effort request.
    BestEffort,
    /// What fills a gap.
    Fill,
}

/// Everybody who may go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Active {
    /// Requests of streams.
    pub members: Vec<Member>,
    /// Whether best-effort requests are among them.
    pub best_effort: bool,
}

/// Time that something of no guarantee may take, at its worst, at some instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spare {
    /// When the drive is free at the latest; what is said counts from then.
    pub from: Time,
    /// Without a mandatory request being late.
    pub mandatory: Dur,
    /// Without a stream getting less than its reservation, either.
    pub all: Dur,
}

/// What is to be told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A request was done when its period was over.
    Late {
        /// The command.
        command: u64,
        /// Whose, and when it was to be done.
        member: Member,
    },
    /// The drive took longer than the worst case: this command shows that w is too small.
    Overdue {
        /// The command.
        command: u64,
        /// How long the drive was busy with it.
        took: Dur,
        /// What was thought to be the worst case.
        worst: Dur,
    },
}

/// Why a stream does not begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// It is at work already.
    #[error("stream {number} is at work already")]
    Exists {
        /// Its number.
        number: u32,
    },
    /// Mandatory streams take all the time there is.
    #[error("stream {number}: expected a period from which on every mandatory request can be in time, found none")]
    NoRoom {
        /// Its number.
        number: u32,
    },
}
