//! Foreground requests in flight, by the core's request number.

use super::messages::Submission;

/// All foreground requests in flight. Numbers are reused.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    slots: Vec<Option<Submission>>,
    free: Vec<u32>,
}

impl Requests {
    /// Adds a request with its data and returns its number.
    pub(crate) fn insert(&mut self, submission: Submission) -> u64 {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(submission);
                u64::from(slot)
            }
            None => {
                self.slots.push(Some(submission));
                (self.slots.len() - 1) as u64
            }
        }
    }

    /// Returns the request with this number. Panics if there is none.
    pub(crate) fn get(&self, id: u64) -> &Submission {
        self.slots[id as usize].as_ref().expect("the core knows only requests that are under way")
    }

    /// Removes the request with this number. Panics if there is none.
    pub(crate) fn remove(&mut self, id: u64) -> Submission {
        let gone = self.slots[id as usize].take().expect("a request finishes once");
        self.free.push(id as u32);
        gone
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
        self.slots.drain(..).flatten().collect()
    }
}
