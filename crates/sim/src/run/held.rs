//! Due requests for which the scheduler has no room.
//!
//! Without streams there is at most one: the workload is not asked for more until that is
//! submitted. Applications with streams do not wait for others, so with streams all due requests
//! are taken, and each stream's requests wait in a separate queue: a backlog of others does not
//! keep a stream from its places.

use std::collections::VecDeque;

use headtime_sched::Scheduler;

use super::{Loop, RunError};
use crate::device::Device;
use crate::observe::Observer;
use crate::workload::{Ask, Workload};

/// Maximum number of held requests. A workload that exceeds it is permanently faster than the
/// drive.
const MAX_HELD_REQUESTS: usize = 1 << 20;

/// Requests, each with its number in the order of arrival of all held ones.
type Queue = VecDeque<(u64, Ask)>;

/// Held requests in order of arrival: a queue per stream, by owner, and one for all others.
#[derive(Debug, Default)]
pub(super) struct Held {
    queues: Vec<(Option<u32>, Queue)>,
    all: usize,
    came: u64,
}

impl Held {
    pub(super) fn is_empty(&self) -> bool {
        self.all == 0
    }

    fn has(&self, stream: Option<u32>) -> bool {
        self.queues.iter().any(|q| q.0 == stream && !q.1.is_empty())
    }

    fn push(&mut self, stream: Option<u32>, ask: Ask) {
        let ask = (self.came, ask);
        (self.all, self.came) = (self.all + 1, self.came + 1);
        match self.queues.iter_mut().find(|q| q.0 == stream) {
            Some((_, queue)) => queue.push_back(ask),
            None => self.queues.push((stream, VecDeque::from([ask]))),
        }
    }

    /// Returns the oldest request outside the queues `but`, and its queue.
    fn oldest(&self, but: &[usize]) -> Option<(usize, Ask)> {
        let fronts = self.queues.iter().enumerate().filter(|(at, _)| !but.contains(at));
        let fronts = fronts.filter_map(|(at, (_, queue))| queue.front().map(|&(came, ask)| (came, at, ask)));
        fronts.min_by_key(|f| f.0).map(|(_, at, ask)| (at, ask))
    }

    fn pop(&mut self, at: usize) {
        self.all -= usize::from(self.queues[at].1.pop_front().is_some());
    }
}

impl<D: Device, S: Scheduler, W: Workload + ?Sized, O: Observer> Loop<'_, D, S, W, O> {
    /// Whether to take more requests from the workload.
    pub(super) fn accepts_requests(&self) -> bool {
        self.held.is_empty() || !self.stats.streams.is_empty()
    }

    /// Submits a request, after held ones of its queue.
    pub(super) fn enqueue(&mut self, ask: Ask) -> Result<(), RunError> {
        let stream = self.stats.stream(ask.owner).is_some().then_some(ask.owner);
        if !self.held.has(stream) && self.try_to_enqueue(ask)? {
            return Ok(());
        }
        if self.held.all >= MAX_HELD_REQUESTS {
            return Err(RunError::Overrun { held: MAX_HELD_REQUESTS, now: self.now });
        }
        self.held.push(stream, ask);
        Ok(())
    }

    /// Submits held requests, oldest first, as far as there is room.
    pub(super) fn enqueue_held(&mut self) -> Result<(), RunError> {
        let mut no_room = Vec::new();
        while let Some((at, ask)) = self.held.oldest(&no_room) {
            match self.try_to_enqueue(ask)? {
                true => {
                    self.held.pop(at);
                    self.decide()?;
                }
                false => no_room.push(at),
            }
        }
        Ok(())
    }
}
