//! Records by number, in pages that are freed when they are empty.
//!
//! A growing vector would hold up to twice what it needs, and three times while it is copied; and
//! it would never shrink while its last record exists. Pages of 64 records grow by one page at a
//! time, and a new record goes to an existing page as long as one has room. So the cost of `n` more
//! records is known before the first of them is inserted.
//! will cost is known before the first of them is put in.

/// Records per page.
const PAGE: usize = 64;

#[derive(Clone, Debug)]
struct Page<T> {
    /// One bit per used slot.
    used: u64,
    slots: [T; PAGE],
}

/// Records by number. A number is reused after its record was removed.
#[derive(Clone, Debug)]
pub(crate) struct Slab<T> {
    pages: Vec<Option<Box<Page<T>>>>,
    /// One bit per page that exists and has room.
    room: Vec<u64>,
    /// Absent pages below the last existing one.
    absent: Vec<u32>,
    /// No page before this word of `room` has room.
    hint: usize,
    len: usize,
    live: usize,
}

impl<T: Default> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab { pages: vec![], room: vec![], absent: vec![], hint: 0, len: 0, live: 0 }
    }
}

impl<T: Default> Slab<T> {
    /// Returns the number of records.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Inserts a record; returns its number.
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        while self.hint < self.room.len() && self.room[self.hint] == 0 {
            self.hint += 1;
        }
        let page = match self.room.get(self.hint) {
            Some(word) => self.hint * 64 + word.trailing_zeros() as usize,
            None => self.new_page(),
        };
        let p = self.pages[page].as_mut().expect("a page with room exists");
        let slot = (!p.used).trailing_zeros() as usize;
        p.used |= 1 << slot;
        p.slots[slot] = value;
        if p.used == u64::MAX {
            self.room[page / 64] &= !(1 << (page % 64));
        }
        self.len += 1;
        (page * PAGE + slot) as u32
    }

    fn new_page(&mut self) -> usize {
        let fresh = Box::new(Page { used: 0, slots: std::array::from_fn(|_| T::default()) });
        let page = match self.absent.pop() {
            Some(page) => page as usize,
            None => {
                self.pages.push(None);
                self.pages.len() - 1
            }
        };
        assert!(self.pages[page].is_none(), "page {page} exists already");
        self.pages[page] = Some(fresh);
        self.live += 1;
        if page / 64 == self.room.len() {
            self.room.push(0);
        }
        self.room[page / 64] |= 1 << (page % 64);
        self.hint = page / 64;
        page
    }

    /// Removes a record.
    pub(crate) fn remove(&mut self, at: u32) -> T {
        let (page, slot) = (at as usize / PAGE, at as usize % PAGE);
        let p = self.pages[page].as_mut().expect("its page exists");
        assert!(p.used >> slot & 1 == 1, "record {at} is not there");
        let value = std::mem::take(&mut p.slots[slot]);
        p.used &= !(1 << slot);
        self.room[page / 64] |= 1 << (page % 64);
        self.hint = self.hint.min(page / 64);
        self.len -= 1;
        if p.used == 0 {
            self.pages[page] = None;
            self.room[page / 64] &= !(1 << (page % 64));
            self.absent.push(page as u32);
            self.live -= 1;
        }
        if self.len == 0 {
            *self = Slab::default();
        }
        value
    }

    /// Returns the record, if that number is used.
    #[inline]
    pub(crate) fn get(&self, at: u32) -> Option<&T> {
        let page = self.pages.get(at as usize / PAGE)?.as_deref()?;
        (page.used >> (at as usize % PAGE) & 1 == 1).then(|| &page.slots[at as usize % PAGE])
    }

    /// Returns all records with their numbers, by number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> + '_ {
        let pages = self.pages.iter().enumerate().filter_map(|(n, page)| Some((n, page.as_deref()?)));
        pages.flat_map(|(n, page)| {
            let taken = (0..PAGE).filter(|slot| page.used >> slot & 1 == 1);
            taken.map(move |slot| ((n * PAGE + slot) as u32, &page.slots[slot]))
        })
    }

    /// Returns the bytes allocated.
    pub(crate) fn bytes(&self) -> usize {
        self.live * size_of::<Page<T>>()
            + self.pages.capacity() * 8
            + self.room.capacity() * 8
            + self.absent.capacity() * 4
    }

    /// Returns an upper bound of the bytes that `more` records would add.
    pub(crate) fn bytes_for(&self, more: usize) -> usize {
        let free = self.live * PAGE - self.len;
        let pages = more.saturating_sub(free).div_ceil(PAGE);
        // The lists of pages double when they are full.
        let lists = if pages == 0 { 0 } else { 10 * (self.pages.len() + pages) + 128 };
        pages * size_of::<Page<T>>() + lists
    }
}

impl<T: Default> std::ops::Index<u32> for Slab<T> {
    type Output = T;
    #[inline]
    fn index(&self, at: u32) -> &T {
        let page = self.pages[at as usize / PAGE].as_deref().expect("its page exists");
        &page.slots[at as usize % PAGE]
    }
}

impl<T: Default> std::ops::IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, at: u32) -> &mut T {
        let page = self.pages[at as usize / PAGE].as_deref_mut().expect("its page exists");
        &mut page.slots[at as usize % PAGE]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_given_again_and_pages_are_given_back() {
        let mut slab: Slab<u64> = Slab::default();
        let all: Vec<u32> = (0..1_000).map(|n| slab.insert(n)).collect();
        assert_eq!(all, (0..1_000).collect::<Vec<u32>>());
        let full = slab.bytes();
        assert_eq!(slab.bytes_for(24), 0);
        assert!(slab.bytes_for(25) >= size_of::<Page<u64>>());
        assert_eq!(slab.remove(500), 500);
        assert_eq!(slab.get(500), None);
        assert_eq!(slab.insert(7), 500);
        (64..128).for_each(|n| _ = slab.remove(n));
        assert!(slab.bytes() < full);
        assert_eq!(slab.iter().count(), 1_000 - 64);
        let before = slab.bytes();
        let predicted = slab.bytes_for(200);
        (0..200).for_each(|n| _ = slab.insert(n));
        assert!(slab.bytes() <= before + predicted);
        let left: Vec<u32> = slab.iter().map(|(at, _)| at).collect();
        left.into_iter().for_each(|at| _ = slab.remove(at));
        assert!(slab.is_empty());
        assert_eq!(slab.bytes(), 0);
    }

    #[test]
    #[should_panic(expected = "is not there")]
    fn a_record_leaves_once() {
        let mut slab: Slab<u64> = Slab::default();
        slab.insert(1);
        slab.insert(2);
        slab.remove(0);
        slab.remove(0);
    }
}
