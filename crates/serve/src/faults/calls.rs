//! Calls to a drive while it is used: bounded, and answered by the engine's thread.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::plan::Listed;
use super::table::FaultTable;

/// Most calls that wait.
const MAX_WAITING: usize = 64;

/// A call.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Call {
    /// Add a fault.
    Add(Box<FaultTable>),
    /// List all faults, and the drive's state.
    List,
    /// Remove the fault of this number, or all.
    Clear(Option<u32>),
}

/// The answer to a call.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The number of the added fault.
    Added(u32),
    /// The faults and the drive's state.
    Status(Status),
    /// The number of removed faults.
    Cleared(usize),
    /// Why nothing was done.
    Refused(String),
}

/// The state of a drive and its faults.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Status {
    /// Time since its start, seconds.
    pub seconds: f64,
    /// Commands so far.
    pub commands: u64,
    /// How many times as fast as the real drive it is.
    pub speed: u64,
    /// Whether it has power.
    pub power: bool,
    /// Whether the volatile write cache is on.
    pub write_cache: bool,
    /// Sectors that a power failure could lose.
    pub volatile_sectors: usize,
    /// What went wrong in the program itself.
    pub problem: Option<String>,
    /// The faults, in the order in which they were added.
    pub faults: Vec<Listed>,
}

/// A call that waits, and where its answer goes.
pub(crate) type Waiting = (Call, oneshot::Sender<Answer>);

/// The queue of calls, shared by the drive and those who control it.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    queue: Arc<Mutex<VecDeque<Waiting>>>,
}

impl Calls {
    fn queue(&self) -> MutexGuard<'_, VecDeque<Waiting>> {
        // No code between lock and release panics.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a call; returns the channel of its answer, or `None` if too many wait. The engine has
    /// to be woken up afterwards.
    pub fn send(&self, call: Call) -> Option<oneshot::Receiver<Answer>> {
        let mut queue = self.queue();
        if queue.len() >= MAX_WAITING {
            return None;
        }
        let (reply, answer) = oneshot::channel();
        queue.push_back((call, reply));
        Some(answer)
    }

    pub(crate) fn take(&self) -> Option<Waiting> {
        self.queue().pop_front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_waiting_calls_is_limited() {
        let calls = Calls::default();
        let waiting: Vec<_> = (0..MAX_WAITING).map(|_| calls.send(Call::List).unwrap()).collect();
        assert!(calls.send(Call::List).is_none());
        assert_eq!(calls.take().unwrap().0, Call::List);
        assert!(calls.send(Call::Clear(None)).is_some() && waiting.len() == MAX_WAITING && !calls.is_empty());
    }
}
