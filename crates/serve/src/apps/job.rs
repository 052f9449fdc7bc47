//! The parameters of a reading application, its data sink and its status.

use std::path::PathBuf;
use std::time::Duration;

use headtime_sched::TaskRange;
use tokio::sync::mpsc::UnboundedReceiver;

use super::error::AppError;
use super::link::{disk, export};
use super::pace::Floor;
use super::progress::{Notes, Progress};
use super::units::LARGEST_BYTES;
use crate::control::socket::Socket;
use crate::control::v1::{self, Export};

/// The parameters of a job, besides [`super::progress::Progress`].
#[derive(Clone, Debug)]
pub struct Job {
    /// The server's socket.
    pub control: Socket,
    /// The session's name, for users.
    pub name: String,
    /// Its priority.
    pub priority: u32,
    /// The highest rate, MB/s; `None`: none.
    pub max_mb_s: Option<f64>,
    /// The export as it was when the job started. If the server restarts with a different one, the
    /// job ends.
    pub export: Option<Export>,
    /// The least rate and the deadline.
    pub floor: Floor,
    /// Whether the disk is read as it is at the start. Such a job cannot outlive its session.
    pub point_in_time: bool,
    /// The journal's path.
    pub journal: Option<PathBuf>,
    /// The interval at which the journal is written.
    pub save_every: Duration,
}

impl Job {
    /// Creates a job with the defaults: no floor, no journal.
    pub fn new(control: impl Into<Socket>, name: &str) -> Job {
        Job {
            control: control.into(),
            name: name.into(),
            priority: 100,
            max_mb_s: None,
            export: None,
            floor: Floor::default(),
            point_in_time: false,
            journal: None,
            save_every: Duration::from_secs(5),
        }
    }
}

/// How far a unit is that a sink finishes later than it takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Its data is no longer kept, so more may come.
    Written,
    /// It is durable: it is done, and is recorded in the journal.
    Durable,
    /// So much is to be added to a counter of the journal ([`Notes::counts`]), before the unit is
    /// done.
    Counts(&'static str, u64),
}

/// The usual amount of data on its way to a sink, bytes.
pub const USUAL_WINDOW: u64 = 4 * LARGEST_BYTES;

/// The destination of the data that is read.
pub trait Sink {
    /// Takes unit `index` with its data; each unit once.
    fn unit(&mut self, index: u64, range: TaskRange, data: &[u8], notes: &mut Notes) -> Result<(), AppError>;
    /// Takes unit `index`, of which the sectors `bad` are unreadable and zeros in `data`.
    fn damaged(&mut self, index: u64, range: TaskRange, data: &[u8], bad: &[TaskRange]) -> Result<(), AppError>;
    /// Makes all data so far durable, before the journal that records it is written.
    fn save(&mut self) -> Result<(), AppError> {
        Ok(())
    }
    /// Where a sink that finishes units later reports them, first as written and then as durable.
    /// `None`: a unit is finished when it is taken.
    fn stages(&mut self) -> Option<&mut UnboundedReceiver<(u64, Stage)>> {
        None
    }
    /// The largest amount of data on its way to the sink, or taken and not yet written, bytes: over
    /// all sessions, if the server restarts.
    fn window(&self) -> u64 {
        USUAL_WINDOW
    }
}

/// How a run ended without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Every unit is done.
    Complete,
    /// It was asked to stop; the journal records what was done.
    Stopped,
}

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Reading.
    Working,
    /// Not reading, or hardly: a sink that finishes units later ([`Sink::stages`]) has no room for
    /// more data, or has all of it and has not finished.
    AwaitsDestination,
    /// A client has suspended the session.
    Paused,
    /// The server cannot be reached and is retried.
    Away,
}

impl State {
    /// Returns whether the job makes progress, if only as fast as its destination.
    pub fn is_working(self) -> bool {
        matches!(self, State::Working | State::AwaitsDestination)
    }
}

/// The status of a job.
#[derive(Clone, Copy, Debug)]
pub struct Status {
    /// The state.
    pub state: State,
    /// The session's number, if there is one.
    pub session: Option<u32>,
    /// Bytes done.
    pub done: u64,
    /// Bytes in total.
    pub total: u64,
    /// The rate over the last minutes, bytes a second.
    pub lately: f64,
    /// The estimated time for the rest.
    pub left: Option<Duration>,
    /// Bytes that were promoted.
    pub promoted: u64,
    /// Sectors that could not be read.
    pub unreadable: u64,
}

impl Job {
    /// Checks that the server still has the disk of the progress, and the export unchanged.
    pub(super) fn check(&self, progress: &Progress, info: &v1::InfoReply) -> Result<(), AppError> {
        if !info.fills {
            return Err(AppError::NoFill);
        }
        let i = progress.identity();
        let name = |disk: &str, sectors: u64, bytes: u32| format!("{disk} ({sectors} sectors of {bytes} bytes)");
        let there = disk(info);
        if (&i.disk, i.sectors, i.sector_bytes) != (&there, info.sectors, info.sector_bytes) {
            return Err(AppError::OtherDisk {
                expected: name(&i.disk, i.sectors, i.sector_bytes),
                found: name(&there, info.sectors, info.sector_bytes),
            });
        }
        if let Some(before) = &self.export {
            let now = export(info, &before.name)?;
            let as_it_is = |e: &v1::Export| (e.first, e.sectors, e.read_only);
            if as_it_is(before) != as_it_is(now) {
                return Err(AppError::OtherExport { name: before.name.clone() });
            }
        }
        Ok(())
    }
}
