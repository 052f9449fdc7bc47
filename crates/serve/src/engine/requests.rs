//! Foreground requests in flight, by the core's request number.

use headtime_disk::{Dur, Kind};
use headtime_sched::TaskRange;

use super::messages::Submission;

/// A request, and for how long the disk had idled before it was submitted
/// ([`headtime_sched::Scheduler::idled`]).
type Slot = Option<(Submission, Dur)>;

/// All foreground requests in flight. Numbers are reused.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

impl Requests {
    /// Adds a request with its data and returns its number. `idled`: for how long the disk has
    /// idled so far.
    pub(crate) fn insert(&mut self, submission: Submission, idled: Dur) -> u64 {
        let request = Some((submission, idled));
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = request;
                u64::from(slot)
            }
            None => {
                self.slots.push(request);
                (self.slots.len() - 1) as u64
            }
        }
    }

    /// Returns the request with this number. Panics if there is none.
    pub(crate) fn get(&self, id: u64) -> &Submission {
        &self.slot(id).0
    }

    /// Returns for how long the disk had idled before this request was submitted. Panics if there
    /// is none.
    pub(crate) fn idled_before(&self, id: u64) -> Dur {
        self.slot(id).1
    }

    fn slot(&self, id: u64) -> &(Submission, Dur) {
        self.slots[id as usize].as_ref().expect("the core knows only requests that are under way")
    }

    /// Removes the request with this number. Panics if there is none.
    pub(crate) fn remove(&mut self, id: u64) -> Submission {
        let gone = self.slots[id as usize].take().expect("a request finishes once");
        self.free.push(id as u32);
        gone.0
    }

    /// Returns the kinds and places of all requests.
    pub(crate) fn places(&self) -> impl Iterator<Item = (Kind, TaskRange)> {
        let requests = self.slots.iter().flatten();
        requests.map(|(s, _)| (s.kind, TaskRange { lbn: s.lbn, count: u64::from(s.count) }))
    }

    /// Returns the number of requests.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns whether there are no requests.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all requests.
    pub(crate) fn drain(&mut self) -> Vec<Submission> {
        self.free.clear();
        self.slots.drain(..).flatten().map(|slot| slot.0).collect()
    }
}
