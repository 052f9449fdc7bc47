//! Requests and actions: the interface between drivers and the core.

use headtime_disk::{Command, Dur, Kind, Outcome, Time};

use crate::tasks::TaskEvent;

/// A foreground request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The driver's identifier, unique among unfinished requests.
    pub id: u64,
    /// Read, write or flush.
    pub kind: Kind,
    /// First LBN.
    pub lbn: u64,
    /// Number of sectors.
    pub count: u32,
    /// FUA: a write completes only when it is on the media.
    pub fua: bool,
    /// Whether its client issues further requests only after its completion (*synchronous*, Valente
    /// 2014 section 2). Write-back from a cache is asynchronous.
    pub sync: bool,
    /// The application it belongs to.
    pub owner: u32,
}

/// What the core requests of the driver, or reports to it.
///
/// Exhaustive on purpose: a driver that ignored an action would leave a request without an answer,
/// so that a new action must not compile unnoticed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// Send this command to the drive now.
    Issue(Command),
    /// This request is finished; notify its client.
    Finish(Finished),
    /// A freeblock task has an event, or its data is needed; notify its application.
    Background(TaskEvent),
    /// The period of this stream request ended before the request was dispatched: it expired and is
    /// not served. Notify its client.
    Expired(u64),
    /// A command exceeded the drive's worst-case service time; guarantees may be violated.
    Overdue(Overdue),
}

/// The drive exceeded the worst case: guarantees rest on a wrong figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the drive took {took} for {} of {} sectors at {}, expected {worst} at its worst",
    word(.command.kind), .command.count, .command.lbn
)]
pub struct Overdue {
    /// The command that exceeded it.
    pub command: Command,
    /// Its service time.
    pub took: Dur,
    /// The assumed worst case.
    pub worst: Dur,
}

/// A finished request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finished {
    /// The request's identifier.
    pub request: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// When the request was submitted to the core.
    pub submitted: Time,
    /// When its command was dispatched to the drive.
    pub dispatched: Time,
    /// When its completion arrived.
    pub done: Time,
    /// Deadline of a stream's request: the end of its period.
    pub due: Option<Time>,
    /// Predicted and observed head time; `None` where there is no prediction (flushes, the first
    /// command after the head position was lost).
    pub prediction: Option<Prediction>,
}

/// A prediction and its observation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Head time predicted by the model.
    pub predicted: Dur,
    /// Observed head time: from the end of the previous media transfer to the end of this one if
    /// the drive was busy, else from the start. The ends are completion times less the drive's
    /// known time from media to host.
    pub observed: Dur,
    /// Predicted seek, rotational latency and transfer (sum: `predicted`).
    pub seek: Dur,
    /// See `seek`.
    pub latency: Dur,
    /// See `seek`.
    pub transfer: Dur,
    /// Whether the read, or its front, was predicted as a cache hit. For a complete hit,
    /// `predicted` is the remaining bus time, and `observed` ends when the completion reached the
    /// host.
    pub cached: bool,
    /// Classification of the difference.
    pub surprise: Surprise,
}

impl Prediction {
    /// Returns observed less predicted time in ns: positive if the drive was late.
    #[inline]
    pub fn error_ns(&self) -> i64 {
        self.observed.0 as i64 - self.predicted.0 as i64
    }
}

/// Classification of the difference between prediction and observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surprise {
    /// Within 150 us.
    None,
    /// Much too early: a cache hit.
    CacheHit,
    /// About one or more revolutions late.
    ExtraTurn,
    /// About one revolution early.
    EarlyTurn,
    /// Off by part of a revolution, explained by bus and media overlap (150 us to 1 ms).
    Overlap,
    /// Anything else.
    Other,
}

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Read => "a read",
        Kind::Write => "a write",
        Kind::Flush => "a flush",
    }
}
