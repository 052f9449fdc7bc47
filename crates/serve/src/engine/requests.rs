//! Foreground requests under way, by the number that the core knows them by.

use super::telling::Ask;

/// All of them. Numbers are used again.
#[derive(Debug, Default)]
pub struct Requests {
    slots: Vec<Option<Ask>>,
    free: Vec<u32>,
}

impl Requests {
    /// Takes a request, its data with it, and gives it a number.
    pub fn insert(&mut self, ask: Ask) -> u64 {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(ask);
                u64::from(slot)
            }
            None => {
                self.slots.push(Some(ask));
                (self.slots.len() - 1) as u64
            }
        }
    }

    /// The request with this number. Panics when there is none.
    pub fn get(&self, id: u64) -> &Ask {
        self.slots[id as usize].as_ref().expect("the core knows only requests that are under way")
    }

    /// Ends the request with this number. Panics when there is none.
    pub fn remove(&mut self, id: u64) -> Ask {
        let gone = self.slots[id as usize].take().expect("a request finishes once");
        self.free.push(id as u32);
        gone
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ends all of them.
    pub fn drain(&mut self) -> Vec<Ask> {
        self.free.clear();
        self.slots.drain(..).flatten().collect()
    }
}
