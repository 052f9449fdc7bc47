//! Messages from clients to the engine.

use bytes::Bytes;
use headtime_disk::{Dur, Kind};

use headtime_sched::{Rate, SessionId, TaskError, TaskId, TaskRange, TaskSpec};
use tokio::sync::mpsc::{Sender, UnboundedSender};
use tokio::sync::oneshot;

use super::layout_call::LayoutCall;
use super::session_event::SessionEvent;
use super::snapshot::Snapshot;
use super::streams::StreamCall;
use crate::device::Fault;
use crate::net::budget::Share;
use crate::net::exports::ExportSettings;

/// A message to the engine.
#[derive(Debug)]
#[non_exhaustive]
pub enum EngineMessage {
    /// A foreground request.
    Submit(Submission),
    /// A call of a session's client.
    Session(SessionCall),
    /// A call about streams.
    Stream(StreamCall),
    /// A call about reorganised exports.
    Layout(LayoutCall),
    /// Sets the settings of owners, one for each [`Submission::owner`], from 0 on.
    Settings(Vec<ExportSettings>),
    /// Asks for the current counters.
    Snapshot(oneshot::Sender<Snapshot>),
    /// Ends the engine: no more work is accepted, requests in flight complete, and the device is
    /// flushed.
    End,
}

/// The result of a request: a read's data, empty for others.
pub type Answer = Result<Bytes, Fault>;

/// A foreground request, with its data and the channel for its answer.
#[derive(Debug)]
pub struct Submission {
    /// Read, write or flush.
    pub kind: Kind,
    /// First sector of the disk.
    pub lbn: u64,
    /// Sectors.
    pub count: u32,
    /// A write completes only when it is on the media.
    pub fua: bool,
    /// The owner: the number of its export.
    pub owner: u32,
    /// A write's data, exactly its sectors.
    pub data: Bytes,
    /// The channel for the answer, and the request's token there; `None`: no answer.
    pub reply: Option<(UnboundedSender<(u64, Answer)>, u64)>,
    /// Its share of the budget, returned when the answer's data has been sent.
    pub share: Option<Share>,
    /// A read by the engine itself of blocks that are about to be overwritten and that a
    /// point-in-time task needs.
    pub preserves: bool,
    /// How long it waited for the limit of its export; set by the engine.
    pub limited: Dur,
    /// The divided request of which it is a piece; set by the engine.
    pub piece_of: Option<Piece>,
}

/// What a piece is a piece of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The number of the divided request.
    pub(super) whole: u32,
    /// Sectors of it before this piece.
    pub(super) offset: u32,
}

impl Submission {
    /// Returns a flush without an answer.
    pub fn flush() -> Submission {
        Submission {
            kind: Kind::Flush,
            lbn: 0,
            count: 0,
            fua: false,
            owner: 0,
            data: Bytes::new(),
            reply: None,
            share: None,
            preserves: false,
            limited: Dur::ZERO,
            piece_of: None,
        }
    }

    /// Returns the bytes that it reads or writes, in sectors of this size.
    pub(crate) fn bytes(&self, sector_bytes: u32) -> u64 {
        u64::from(self.count) * u64::from(sector_bytes)
    }

    /// Returns a read of blocks that `owner` is about to overwrite.
    pub fn preserve(range: &TaskRange, owner: u32) -> Submission {
        Submission {
            kind: Kind::Read,
            lbn: range.lbn,
            count: range.count as u32,
            owner,
            preserves: true,
            ..Submission::flush()
        }
    }

    /// Returns whether the client that waited for the answer has gone.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.reply.as_ref().is_some_and(|(to, _)| to.is_closed())
    }

    /// Sends the answer. The budget of requests in flight also bounds unread answers.
    pub fn answer(self, answer: Answer) {
        if let Some((to, token)) = self.reply {
            let answer = answer.map(|data| match self.share {
                Some(share) if !data.is_empty() => Bytes::from_owner(Held { data, _share: share }),
                _ => data,
            });
            // A client that has gone needs no answer.
            let _ = to.send((token, answer));
        }
    }
}

/// Data of an unread answer, which keeps its share of the budget.
struct Held {
    data: Bytes,
    _share: Share,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

/// The channel for the answer of a call.
pub type Reply<T> = oneshot::Sender<Result<T, TaskError>>;

/// A call of a session's client.
#[derive(Debug)]
#[non_exhaustive]
pub enum SessionCall {
    /// Opens a session.
    Open {
        /// Priority, 1 to 1,000,000.
        priority: u32,
        /// Sectors that may be delivered and not yet acknowledged.
        window: u64,
        /// The channel for its events.
        events: Sender<SessionEvent>,
        /// The answer.
        reply: Reply<SessionId>,
    },
    /// Closes a session and aborts its tasks.
    Close {
        /// The session.
        session: SessionId,
        /// The answer.
        reply: Reply<()>,
    },
    /// Suspends a session: nothing more is picked up for it.
    Suspend {
        /// The session.
        session: SessionId,
        /// The answer.
        reply: Reply<()>,
    },
    /// Resumes a session.
    Resume {
        /// The session.
        session: SessionId,
        /// The answer.
        reply: Reply<()>,
    },
    /// Sets a session's priority.
    SetPriority {
        /// The session.
        session: SessionId,
        /// Priority, 1 to 1,000,000.
        priority: u32,
        /// The answer.
        reply: Reply<()>,
    },
    /// Limits a session's rate.
    SetRate {
        /// The session.
        session: SessionId,
        /// Bytes a second; `None`: no limit.
        rate: Option<Rate>,
        /// The answer.
        reply: Reply<()>,
    },
    /// Acknowledges sectors that the client has taken.
    Taken {
        /// The session.
        session: SessionId,
        /// The number of sectors.
        sectors: u64,
    },
    /// Registers a task.
    Register {
        /// The session.
        session: SessionId,
        /// The task.
        spec: TaskSpec,
        /// Reads the disk as it is now: blocks that the foreground is about to overwrite are read
        /// first.
        point_in_time: bool,
        /// The answer.
        reply: Reply<TaskId>,
    },
    /// Aborts a task.
    Abort {
        /// Its session.
        session: SessionId,
        /// The task.
        task: TaskId,
        /// The answer.
        reply: Reply<()>,
    },
    /// Makes the rest of a task foreground work.
    Promote {
        /// Its session.
        session: SessionId,
        /// The task.
        task: TaskId,
        /// The answer.
        reply: Reply<()>,
    },
    /// Data of a write task.
    Data {
        /// The session.
        session: SessionId,
        /// The task.
        task: TaskId,
        /// The sectors.
        range: TaskRange,
        /// Exactly the bytes of these sectors.
        data: Bytes,
    },
}

impl SessionCall {
    /// Returns whether the call may start new work.
    pub fn begins(&self) -> bool {
        use SessionCall::{Open, Promote, Register, Resume};
        matches!(self, Open { .. } | Register { .. } | Resume { .. } | Promote { .. })
    }

    /// Answers that there is no background work.
    pub fn refuse_without_core(self) {
        match self {
            SessionCall::Open { reply, .. } => _ = reply.send(Err(TaskError::NoFill)),
            SessionCall::Register { reply, .. } => _ = reply.send(Err(TaskError::NoFill)),
            SessionCall::Close { reply, .. }
            | SessionCall::Suspend { reply, .. }
            | SessionCall::Resume { reply, .. }
            | SessionCall::SetPriority { reply, .. }
            | SessionCall::SetRate { reply, .. }
            | SessionCall::Abort { reply, .. }
            | SessionCall::Promote { reply, .. } => _ = reply.send(Err(TaskError::NoFill)),
            SessionCall::Taken { .. } | SessionCall::Data { .. } => {}
        }
    }
}
