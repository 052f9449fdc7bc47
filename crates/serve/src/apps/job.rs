//! What a reading application is to do, what it does with what comes, and how far it is.

use std::path::PathBuf;
use std::time::Duration;

use headtime_sched::tasks::Range;

use super::error::AppError;
use super::link::{disk, export};
use super::pace::Floor;
use super::progress::{Notes, Progress};
use crate::control::socket::Socket;
use crate::control::v1::{self, Export};

/// What is to be done, beside what [`super::progress::Progress`] says.
#[derive(Clone, Debug)]
pub struct Job {
    /// The server's socket.
    pub control: Socket,
    /// The session's name, for people.
    pub name: String,
    /// Its priority.
    pub priority: u32,
    /// The export that it is about, as it was when the job began: one that is another after a new
    /// start of the server is not gone on with.
    pub export: Option<Export>,
    /// What it must not fall behind.
    pub floor: Floor,
    /// What is read is the disk as it is when the job begins; it cannot outlive its session then.
    pub point_in_time: bool,
    /// Where progress is kept.
    pub journal: Option<PathBuf>,
    /// How often it is kept.
    pub save_every: Duration,
}

impl Job {
    /// As is usual: no floor, no journal.
    pub fn new(control: impl Into<Socket>, name: &str) -> Job {
        Job {
            control: control.into(),
            name: name.into(),
            priority: 100,
            export: None,
            floor: Floor::default(),
            point_in_time: false,
            journal: None,
            save_every: Duration::from_secs(5),
        }
    }
}

/// What an application does with what it gets.
pub trait Sink {
    /// Unit `index` with its data; each once.
    fn unit(&mut self, index: u64, range: Range, data: &[u8], notes: &mut Notes) -> Result<(), AppError>;
    /// Unit `index`, of which the sectors `bad` could not be read; they are zeros in `data`.
    fn damaged(&mut self, index: u64, range: Range, data: &[u8], bad: &[Range]) -> Result<(), AppError>;
    /// Everything so far must survive: the journal that says so is written next.
    fn save(&mut self) -> Result<(), AppError> {
        Ok(())
    }
}

/// How a run ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Every unit is done.
    Complete,
    /// It was asked to stop; the journal has what was done.
    Stopped,
}

/// What it is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Reading.
    Working,
    /// Somebody suspended the session.
    Paused,
    /// The server is away; it is tried again and again.
    Away,
}

/// How far it is.
#[derive(Clone, Copy, Debug)]
pub struct Status {
    /// What it is doing.
    pub state: State,
    /// Its session's number, while it has one.
    pub session: Option<u32>,
    /// Bytes done.
    pub done: u64,
    /// Bytes in all.
    pub total: u64,
    /// Bytes a second over the last minutes.
    pub lately: f64,
    /// How long the rest will take.
    pub left: Option<Duration>,
    /// Bytes that were promoted.
    pub promoted: u64,
    /// Sectors that could not be read.
    pub unreadable: u64,
}

impl Job {
    /// Whether the server still has the disk that the progress is of, and the export where and as
    /// it was.
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
