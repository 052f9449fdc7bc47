//! A map by queue. Drivers number their queues from 0, so that those are found without a search;
//! larger numbers, such as [`super::ASYNCHRONOUS`], are in an ordered map.

use std::collections::BTreeMap;
use std::ops::Index;

/// Queues below this number are found without a search. Their entries take memory up to the largest
/// number in use.
const NUMBERED: u32 = 1 << 16;

/// The map.
#[derive(Clone, Debug)]
pub(super) struct ByQueue<T> {
    numbered: Vec<Option<T>>,
    others: BTreeMap<u32, T>,
    len: usize,
}

impl<T> Default for ByQueue<T> {
    fn default() -> ByQueue<T> {
        ByQueue { numbered: Vec::new(), others: BTreeMap::new(), len: 0 }
    }
}

impl<T> ByQueue<T> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn get(&self, queue: u32) -> Option<&T> {
        match queue < NUMBERED {
            true => self.numbered.get(queue as usize)?.as_ref(),
            false => self.others.get(&queue),
        }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, queue: u32) -> Option<&mut T> {
        match queue < NUMBERED {
            true => self.numbered.get_mut(queue as usize)?.as_mut(),
            false => self.others.get_mut(&queue),
        }
    }

    /// Returns the value that this one replaces.
    pub(super) fn insert(&mut self, queue: u32, value: T) -> Option<T> {
        let before = if queue < NUMBERED {
            let at = queue as usize;
            if self.numbered.len() <= at {
                self.numbered.resize_with(at + 1, || None);
            }
            self.numbered[at].replace(value)
        } else {
            self.others.insert(queue, value)
        };
        self.len += usize::from(before.is_none());
        before
    }

    pub(super) fn remove(&mut self, queue: u32) -> Option<T> {
        let value = match queue < NUMBERED {
            true => self.numbered.get_mut(queue as usize)?.take(),
            false => self.others.remove(&queue),
        };
        self.len -= usize::from(value.is_some());
        value
    }

    /// Keeps the queues for which this is true.
    pub(super) fn retain(&mut self, mut keeps: impl FnMut(u32, &mut T) -> bool) {
        let mut len = 0;
        for (queue, entry) in (0..).zip(&mut self.numbered) {
            if entry.as_mut().is_some_and(|value| !keeps(queue, value)) {
                *entry = None;
            }
            len += usize::from(entry.is_some());
        }
        self.others.retain(|&queue, value| keeps(queue, value));
        self.len = len + self.others.len();
    }
}

impl<T> Index<u32> for ByQueue<T> {
    type Output = T;

    fn index(&self, queue: u32) -> &T {
        self.get(queue).expect("the queue is known")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_map() {
        let mut by_queue = ByQueue::default();
        let (mut map, mut most) = (BTreeMap::new(), 0);
        for i in 0..10_000_u32 {
            let queue = [i % 7, NUMBERED - 1 + i % 3, u32::MAX - i % 5][(i / 7 % 3) as usize];
            match i / 11 % 4 {
                0 => assert_eq!(by_queue.remove(queue), map.remove(&queue)),
                1 | 2 => assert_eq!(by_queue.insert(queue, i), map.insert(queue, i)),
                _ => assert_eq!(by_queue.get_mut(queue), map.get_mut(&queue)),
            }
            if i % 1_000 == 999 {
                by_queue.retain(|queue, value| (queue ^ *value).is_multiple_of(2));
                map.retain(|queue, value| (*queue ^ *value).is_multiple_of(2));
            }
            assert_eq!((by_queue.get(queue), by_queue.len()), (map.get(&queue), map.len()));
            most = most.max(by_queue.len());
        }
        assert!(most > 10);
        assert!(map.iter().all(|(&queue, value)| by_queue[queue] == *value));
    }
}
