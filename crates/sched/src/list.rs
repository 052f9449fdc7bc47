//! A doubly linked list of slots, by index: appending and removing cost a few nanoseconds and do
//! not allocate.

/// No slot.
pub(crate) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Link {
    before: u32,
    after: u32,
}

/// A list of slots; each slot is in it at most once.
#[derive(Clone, Debug)]
pub(crate) struct List {
    head: u32,
    tail: u32,
    len: usize,
    links: Vec<Link>,
}

impl List {
    /// Creates an empty list of slots below `slots`.
    pub(crate) fn new(slots: usize) -> List {
        let empty = Link { before: NONE, after: NONE };
        List { head: NONE, tail: NONE, len: 0, links: vec![empty; slots] }
    }

    /// Returns the number of slots in it.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns whether no slot is in it.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the first slot.
    #[inline]
    pub(crate) fn first(&self) -> Option<u32> {
        (self.head != NONE).then_some(self.head)
    }

    /// Returns the slots from first to last.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(self.first(), |&slot| {
            let after = self.links[slot as usize].after;
            (after != NONE).then_some(after)
        })
    }

    /// Appends `slot`.
    #[inline]
    pub(crate) fn push_back(&mut self, slot: u32) {
        self.insert_after(self.tail, slot);
    }

    /// Inserts `slot` before the first slot for which `is_later` holds, searched from the front.
    /// For the rare slot that joins late: it is old, so its place is near the front.
    pub(crate) fn insert_before_later(&mut self, slot: u32, is_later: impl Fn(u32) -> bool) {
        let before = match self.iter().find(|&other| is_later(other)) {
            Some(later) => self.links[later as usize].before,
            None => self.tail,
        };
        self.insert_after(before, slot);
    }

    #[inline]
    fn insert_after(&mut self, before: u32, slot: u32) {
        let after = match before {
            NONE => self.head,
            _ => self.links[before as usize].after,
        };
        self.links[slot as usize] = Link { before, after };
        match before {
            NONE => self.head = slot,
            _ => self.links[before as usize].after = slot,
        }
        match after {
            NONE => self.tail = slot,
            _ => self.links[after as usize].before = slot,
        }
        self.len += 1;
    }

    /// Removes `slot`, which is in the list.
    #[inline]
    pub(crate) fn remove(&mut self, slot: u32) {
        let Link { before, after } = self.links[slot as usize];
        match before {
            NONE => {
                assert!(self.head == slot, "slot {slot} is not in the list");
                self.head = after;
            }
            _ => self.links[before as usize].after = after,
        }
        match after {
            NONE => {
                assert!(self.tail == slot, "slot {slot} is not in the list");
                self.tail = before;
            }
            _ => self.links[after as usize].before = before,
        }
        self.links[slot as usize] = Link { before: NONE, after: NONE };
        self.len -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_leave_from_anywhere_and_the_rest_keeps_its_order() {
        let mut list = List::new(5);
        (0..5).for_each(|s| list.push_back(s));
        list.remove(2);
        list.remove(0);
        list.remove(4);
        assert_eq!(list.iter().collect::<Vec<_>>(), [1, 3]);
        list.push_back(0);
        assert_eq!(list.iter().collect::<Vec<_>>(), [1, 3, 0]);
        assert_eq!((list.first(), list.len()), (Some(1), 3));
    }

    #[test]
    fn a_late_slot_takes_the_place_its_age_gives_it() {
        let mut list = List::new(10);
        [2, 5, 7].into_iter().for_each(|s| list.push_back(s));
        list.insert_before_later(1, |other| other > 1);
        list.insert_before_later(6, |other| other > 6);
        list.insert_before_later(9, |other| other > 9);
        assert_eq!(list.iter().collect::<Vec<_>>(), [1, 2, 5, 6, 7, 9]);
    }

    #[test]
    #[should_panic(expected = "not in the list")]
    fn a_slot_that_is_not_there_cannot_leave() {
        let mut list = List::new(3);
        list.push_back(0);
        list.remove(1);
    }
}
