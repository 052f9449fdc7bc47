//! Foreground requests under way, by the number that the core knows them by.

use headtime_disk::time::Time;

use super::telling::Ask;

/// A request under way.
#[derive(Debug)]
pub struct UnderWay {
    /// What was asked for, its data with it.
    pub ask: Ask,
    /// When the engine took it.
    pub arrived: Time,
}

/// All of them. Numbers are used again.
#[derive(Debug, Default)]
pub struct Requests {
    slots: Vec<Option<UnderWay>>,
    free: Vec<u32>,
}

impl Requests {
    /// Takes a request, and gives it a number.
    pub fn insert(&mut self, ask: Ask, arrived: Time) -> u64 {
        let new = Some(UnderWay { ask, arrived });
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = new;
                u64::from(slot)
            }
            None => {
                self.slots.push(new);
                (self.slots.len() - 1) as u64
            }
        }
    }

    /// The request with this number. Panics when there is none.
    pub fn get(&self, id: u64) -> &UnderWay {
        self.slots[id as usize].as_ref().expect("the core knows only requests that are under way")
    }

    /// Ends the request with this number. Panics when there is none.
    pub fn remove(&mut self, id: u64) -> UnderWay {
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
    pub fn drain(&mut self) -> Vec<UnderWay> {
        self.free.clear();
        self.slots.drain(..).flatten().collect()
    }
}
