//! Calls about streams: what the engine does of opening and closing them.
//!
//! Whether a stream can be had takes milliseconds and more to work out, for which no request must
//! wait. So that is done elsewhere ([`crate::streams`]), of the streams that there were when it was
//! begun; here it is only looked whether they are the same still.

use headtime_disk::time::Time;
use headtime_sched::admit::das::admission::Admitted;
use headtime_sched::admit::das::ledger::AtWork;
use headtime_sched::admit::das::stream::Stream;
use headtime_sched::admit::das::streams::{BEST_EFFORT, NotOpened, Opened, Standing};
use headtime_sched::core::Core;
use tokio::sync::oneshot;

/// Whose requests are that the server makes for itself where they must be nobody's stream's.
pub const NOBODY: u32 = BEST_EFFORT - 1;

/// A call about streams.
#[derive(Debug)]
pub enum StreamCall {
    /// The streams at work are wanted.
    Standings {
        /// The answer.
        reply: oneshot::Sender<Vec<Standing>>,
    },
    /// What `owner` asks for from now on is a stream's.
    Begin {
        /// The number of its export.
        owner: u32,
        /// What it asks for.
        stream: Stream,
        /// The streams beside which it was admitted.
        beside: Vec<AtWork>,
        /// With these numbers.
        admitted: Admitted,
        /// The answer.
        reply: oneshot::Sender<Result<Opened, NotBegun>>,
    },
    /// What streams have is found anew, after others have ended.
    Renew {
        /// The streams for which it was found.
        of: Vec<AtWork>,
        /// What they have.
        admitted: Admitted,
        /// Whether they are those at work, and may be served so from now on.
        reply: oneshot::Sender<bool>,
    },
    /// What `owner` asks for from now on is best effort.
    Close {
        /// The number of its export.
        owner: u32,
        /// Whether there was one.
        reply: oneshot::Sender<bool>,
    },
}

/// Why a stream that was admitted does not begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotBegun {
    /// There are others now than those beside which it was admitted.
    Changed,
    /// It is there already, there are no streams, or another was to be served as a mandatory one
    /// and cannot be yet.
    NotOpened(NotOpened),
}

impl StreamCall {
    /// Whether something may be promised that would not be without it.
    pub fn begins(&self) -> bool {
        matches!(self, StreamCall::Begin { .. })
    }

    /// Does it. Whoever asked may have gone, and needs no answer then.
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
                _ = reply.send(Err(NotBegun::NotOpened(NotOpened::NoStreams)));
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

/// The streams of a core, and how each is served.
fn at_work(core: &Core) -> Vec<AtWork> {
    core.standings().iter().map(Standing::at_work).collect()
}
