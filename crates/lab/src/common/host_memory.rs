//! A host's memory for files: what it holds is not read from the disk.

use std::collections::BTreeMap;

/// Whole files, of which the one that was read longest ago is dropped first.
#[derive(Clone, Debug)]
pub(crate) struct HostMemory {
    sectors: u64,
    used: u64,
    reads: u64,
    /// Each file's last read and sectors, and the files by their last read.
    files: BTreeMap<usize, (u64, u64)>,
    by_read: BTreeMap<u64, usize>,
}

impl HostMemory {
    /// Creates a memory of `sectors`, in which nothing is.
    pub(crate) fn new(sectors: u64) -> HostMemory {
        HostMemory { sectors, used: 0, reads: 0, files: BTreeMap::new(), by_read: BTreeMap::new() }
    }

    /// Reads a file of `sectors`, and returns whether it was in memory. Then it is, unless it is
    /// larger.
    pub(crate) fn read(&mut self, file: usize, sectors: u64) -> bool {
        self.reads += 1;
        let before = self.files.remove(&file);
        if let Some((read, held)) = before {
            self.by_read.remove(&read);
            self.used -= held;
        }
        if sectors <= self.sectors {
            while self.used + sectors > self.sectors {
                let (_, oldest) = self.by_read.pop_first().expect("something is held");
                self.used -= self.files.remove(&oldest).expect("it is one of them").1;
            }
            self.files.insert(file, (self.reads, sectors));
            self.by_read.insert(self.reads, file);
            self.used += sectors;
        }
        before.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_that_was_read_longest_ago_is_dropped_first() {
        let mut memory = HostMemory::new(10);
        assert_eq!([1, 2, 1].map(|file| memory.read(file, 4)), [false, false, true]);
        // It takes the place of file 2.
        assert!(!memory.read(3, 6));
        assert_eq!([1, 3].map(|file| memory.read(file, if file == 1 { 4 } else { 6 })), [true, true]);
        assert!(!memory.read(2, 4));
    }

    #[test]
    fn a_file_larger_than_all_of_it_is_read_each_time_and_a_memory_of_nothing_holds_nothing() {
        let (mut small, mut none) = (HostMemory::new(10), HostMemory::new(0));
        assert_eq!([11, 4, 11, 4].map(|sectors| small.read(sectors as usize, sectors)), [false, false, false, true]);
        assert_eq!([1, 1].map(|file| none.read(file, 8)), [false, false]);
    }
}
