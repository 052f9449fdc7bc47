//! Requests and actions: what drivers tell the core and what it tells them.

use headtime_disk::command::{Command, Kind, Outcome};
use headtime_disk::time::{Dur, Time};

use crate::admit::das::streams::Overdue;
use crate::tasks::Event;

/// A foreground request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The driver's name for it, unique among unfinished requests.
    pub id: u64,
    /// Read, write or flush.
    pub kind: Kind,
    /// First LBN.
    pub lbn: u64,
    /// Sectors.
    pub count: u32,
    /// A write completes only when it is on the media.
    pub fua: bool,
    /// Whoever asked can ask for more only when it is finished (*synchronous*, Valente 2014 section
    /// 2). What is written behind everybody's back by a cache is not.
    pub sync: bool,
    /// The application it belongs to.
    pub owner: u32,
}

/// What the core wants done, or reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// Send this command to the drive now.
    Issue(Command),
    /// This request is finished; tell whoever asked.
    Finish(Finished),
    /// Something happened to a freeblock task, or its data is needed; tell its application.
    Background(Event),
    /// The period of this request of a stream is over, and it was not begun in it: nothing is done
    /// for it. Tell whoever asked.
    GivenUp(u64),
    /// The drive showed that its worst case is none; what was promised may be broken.
    Overdue(Overdue),
}

/// A finished request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finished {
    /// The request's name.
    pub request: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// When it was submitted to the core.
    pub submitted: Time,
    /// When its command was sent to the drive.
    pub dispatched: Time,
    /// When the drive answered.
    pub done: Time,
    /// When it was to be done, if a stream asked for it: the end of its period.
    pub due: Option<Time>,
    /// Head time as predicted when it was dispatched, and as observed; `None` where one cannot say
    /// (flushes, the first command after the head was lost).
    pub prediction: Option<Prediction>,
}

/// One prediction against what happened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Head time as predicted, from the model.
    pub predicted: Dur,
    /// As observed: from the end of the media transfer before to the end of this one when the drive
    /// was busy, else from the start. The ends are completions less what the drive is known to take
    /// from media to host.
    pub observed: Dur,
    /// Predicted seek, rotational latency and transfer (sum: `predicted`).
    pub seek: Dur,
    /// See `seek`.
    pub latency: Dur,
    /// See `seek`.
    pub transfer: Dur,
    /// The drive's cache was believed to hold it, or its front. For a read that it was to answer
    /// alone, `predicted` is what is left for the bus, and `observed` ends when the host heard of
    /// it.
    pub cached: bool,
    /// What the difference looks like.
    pub surprise: Surprise,
}

impl Prediction {
    /// Observed less predicted, in ns: positive when the drive was late.
    #[inline]
    pub fn error_ns(&self) -> i64 {
        self.observed.0 as i64 - self.predicted.0 as i64
    }
}

/// What the difference between prediction and observation looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surprise {
    /// Within 150 us.
    None,
    /// Much too early: the data came from the drive's cache.
    CacheHit,
    /// About one or more turns late.
    ExtraTurn,
    /// About one turn early.
    EarlyTurn,
    /// Off by part of a turn in a way that bus and media overlap explains (150 us to 1 ms).
    Overlap,
    /// Anything else.
    Other,
}
