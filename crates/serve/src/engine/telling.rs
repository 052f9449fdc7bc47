//! What clients tell the engine.

use bytes::Bytes;
use headtime_disk::command::Kind;
use headtime_sched::admit;
use headtime_sched::tasks::{Range, SessionId, TaskError, TaskId, TaskSpec};
use tokio::sync::mpsc::{Sender, UnboundedSender};
use tokio::sync::oneshot;

use super::gauges::Snapshot;
use super::streams::StreamCall;
use super::told::Told;
use crate::device::Fault;
use crate::net::budget::Share;

/// One telling.
#[derive(Debug)]
pub enum Telling {
    /// A foreground request.
    Submit(Ask),
    /// A freeblock call.
    Call(Call),
    /// A call about streams.
    Stream(StreamCall),
    /// What applications are to have from now on: one share for each [`Ask::owner`], from 0 on.
    Shares(Vec<admit::Share>),
    /// What has been counted so far is wanted.
    Snapshot(oneshot::Sender<Snapshot>),
    /// Take nothing more, finish what is under way, flush, and end.
    End,
}

/// What became of a request: a read's data, nothing for others.
pub type Answer = Result<Bytes, Fault>;

/// A foreground request.
#[derive(Debug)]
pub struct Ask {
    /// Read, write or flush.
    pub kind: Kind,
    /// First sector of the disk.
    pub lbn: u64,
    /// Sectors.
    pub count: u32,
    /// A write completes only when it is on the media.
    pub fua: bool,
    /// The application it belongs to: the number of its export.
    pub owner: u32,
    /// A write's data, exactly its sectors.
    pub data: Bytes,
    /// Who waits for the answer, and under what name; `None`: nobody.
    pub reply: Option<(UnboundedSender<(u64, Answer)>, u64)>,
    /// Its part of what clients may have under way: given back when the answer's data has been
    /// sent.
    pub share: Option<Share>,
    /// Nobody asked for it: what it reads is about to be overwritten, and a point-in-time task
    /// wants it.
    pub preserves: bool,
}

impl Ask {
    /// A flush that nobody waits for.
    pub fn flush() -> Ask {
        Ask {
            kind: Kind::Flush,
            lbn: 0,
            count: 0,
            fua: false,
            owner: 0,
            data: Bytes::new(),
            reply: None,
            share: None,
            preserves: false,
        }
    }

    /// A read of what is about to be overwritten, for `owner`, who waits for it.
    pub fn preserve(range: &Range, owner: u32) -> Ask {
        Ask { kind: Kind::Read, lbn: range.lbn, count: range.count as u32, owner, preserves: true, ..Ask::flush() }
    }

    /// Answers it. Requests under way are bounded where they come in, so answers that wait are,
    /// too.
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

/// Data that waits for its client, and takes its part of what all may have as long as it does.
struct Held {
    data: Bytes,
    _share: Share,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

/// Where the answer of a call goes.
pub type Reply<T> = oneshot::Sender<Result<T, TaskError>>;

/// A freeblock call.
#[derive(Debug)]
pub enum Call {
    /// Opens a session.
    Open {
        /// 1 to 1,000,000.
        priority: u32,
        /// Sectors that may be on their way to the client.
        window: u64,
        /// Where its events go.
        events: Sender<Told>,
        /// The answer.
        reply: Reply<SessionId>,
    },
    /// Registers a task.
    Register {
        /// In this session.
        session: SessionId,
        /// What is wanted.
        spec: TaskSpec,
        /// What is read is the disk as it is now: what the foreground is about to overwrite is read
        /// first.
        point_in_time: bool,
        /// The answer.
        reply: Reply<TaskId>,
    },
    /// Closes a session, aborts or promotes a task, suspends, resumes, changes a priority.
    Change {
        /// What is changed.
        what: Change,
        /// The answer.
        reply: Reply<()>,
    },
    /// The client has taken so many sectors.
    Taken {
        /// Of this session.
        session: SessionId,
        /// How many.
        sectors: u64,
    },
    /// Data of a write task.
    Data {
        /// The session.
        session: SessionId,
        /// The task.
        task: TaskId,
        /// Which sectors.
        range: Range,
        /// Exactly these sectors' bytes.
        data: Bytes,
    },
}

/// What may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Closes a session and aborts its tasks.
    Close(SessionId),
    /// Ends a task.
    Abort(SessionId, TaskId),
    /// Makes what is left of a task foreground work.
    Promote(SessionId, TaskId),
    /// Nothing is picked up any more.
    Suspend(SessionId),
    /// Ends a suspension.
    Resume(SessionId),
    /// Another priority.
    Priority(SessionId, u32),
}

impl Call {
    /// Whether work may be begun that would not be without it.
    pub fn begins(&self) -> bool {
        match self {
            Call::Open { .. } | Call::Register { .. } => true,
            Call::Change { what, .. } => matches!(what, Change::Resume(_) | Change::Promote(..)),
            Call::Taken { .. } | Call::Data { .. } => false,
        }
    }

    /// Answers that there is no background work.
    pub fn refuse_without_core(self) {
        match self {
            Call::Open { reply, .. } => _ = reply.send(Err(TaskError::NoFill)),
            Call::Register { reply, .. } => _ = reply.send(Err(TaskError::NoFill)),
            Call::Change { reply, .. } => _ = reply.send(Err(TaskError::NoFill)),
            Call::Taken { .. } | Call::Data { .. } => {}
        }
    }
}
