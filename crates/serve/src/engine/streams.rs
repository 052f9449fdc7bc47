//! Calls about streams: the engine's part of opening and closing them.
//!
//! The admission test takes milliseconds or more, which requests must not wait for. It runs on
//! another thread ([`crate::streams`]) against the streams at that time; the engine only checks
//! that these are unchanged.

use headtime_disk::Time;
use headtime_sched::Core;
use headtime_sched::streams::{
    Admitted, BEST_EFFORT, OpenStreamError, OpenedStream, ServedStream, Stream, StreamStatus,
};
use tokio::sync::oneshot;

/// The owner of the server's own requests that must not count as a stream's.
pub const SERVER_OWNER: u32 = BEST_EFFORT - 1;

/// A call about streams.
#[derive(Debug)]
pub enum StreamCall {
    /// Asks for the streams at work.
    Standings {
        /// The answer.
        reply: oneshot::Sender<Vec<StreamStatus>>,
    },
    /// Opens a stream: requests of `owner` belong to it from now on.
    Begin {
        /// The number of its export.
        owner: u32,
        /// The stream.
        stream: Stream,
        /// The streams it was admitted beside.
        beside: Vec<ServedStream>,
        /// The result of its admission test.
        admitted: Admitted,
        /// The answer.
        reply: oneshot::Sender<Result<OpenedStream, NotBegun>>,
    },
    /// Updates the reservations of streams after others have ended.
    Renew {
        /// The streams that the update is for.
        of: Vec<ServedStream>,
        /// Their new reservations.
        admitted: Admitted,
        /// Whether these are the streams at work and the update was made.
        reply: oneshot::Sender<bool>,
    },
    /// Closes a stream: requests of `owner` are best effort from now on.
    Close {
        /// The number of its export.
        owner: u32,
        /// Whether there was a stream.
        reply: oneshot::Sender<bool>,
    },
}

/// Why an admitted stream was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotBegun {
    /// The streams have changed since the admission test.
    Changed,
    /// The stream exists already, there are no streams, or another stream cannot become mandatory
    /// yet.
    NotOpened(OpenStreamError),
}

impl StreamCall {
    /// Returns whether the call may add a guarantee.
    pub fn begins(&self) -> bool {
        matches!(self, StreamCall::Begin { .. })
    }

    /// Carries out the call. The caller may have gone, and then needs no answer.
    pub fn carry_out(self, core: Option<&mut Core>, now: Time) {
        match (self, core) {
            (StreamCall::Standings { reply }, core) => {
                _ = reply.send(core.map_or_else(Vec::new, |c| c.standings()));
            }
            (StreamCall::Begin { owner, stream, beside, admitted, reply }, Some(core)) => {
                let begun = match at_work(core) == beside {
                    true => core.begin_stream(owner, stream, &admitted, now).map_err(NotBegun::NotOpened),
                    false => Err(NotBegun::Changed),
                };
                _ = reply.send(begun);
            }
            (StreamCall::Begin { reply, .. }, None) => {
                _ = reply.send(Err(NotBegun::NotOpened(OpenStreamError::NoStreams)));
            }
            (StreamCall::Renew { of, admitted, reply }, core) => {
                let core = core.filter(|core| at_work(core) == of);
                _ = reply.send(core.is_some_and(|core| core.renew_streams(&admitted, now).is_ok()));
            }
            (StreamCall::Close { owner, reply }, core) => {
                _ = reply.send(core.is_some_and(|c| c.close_stream(owner, now)));
            }
        }
    }
}

/// Returns the streams of a core, and how each is served.
fn at_work(core: &Core) -> Vec<ServedStream> {
    core.standings().iter().map(StreamStatus::at_work).collect()
}
