//! Reading small files from a file system: the foreground of Lumb 2002's figure 7(c).
//!
//! One process reads files chosen at random, one after another, as with `open`, `read` and `close`.
//! The file system's accesses for each form a chain, in which each step must be finished before the
//! next is known:
//!
//! 1. the root directory, block by block up to the one with the entry of the file's directory;
//! 2. the block with that directory's inode;
//! 3. the directory, to find the file;
//! 4. the block with the file's inode;
//! 5. the file's data.
//!
//! Blocks in the host's cache cost no request; [`Layout`] gives the location of the others on the
//! disk. The cache starts empty, as after mounting. Not modelled: a kernel writes access times back
//! about half a minute later (as if mounted without them), and it remembers where in a directory it
//! found the last name.

mod cache;
mod layout;

pub use layout::{Layout, LayoutSpec, Range};

use headtime_disk::{Dur, Kind, Time};

use super::variates::Variates;
use super::{Ask, Target, Workload, WorkloadError};
use cache::Cache;

/// Maximum number of files read in one run.
const MOST_READS: u64 = 1_000_000_000;

/// Files and how they are read.
#[derive(Clone, Debug, PartialEq)]
pub struct FilesSpec {
    /// The file system and its contents.
    pub layout: LayoutSpec,
    /// Number of reads, each of a file chosen at random.
    pub reads: u64,
    /// The host's cache in bytes.
    pub cache_bytes: u64,
    /// Host time between a completion and the next request.
    pub host: Dur,
}

impl Default for FilesSpec {
    /// Lumb 2002, section 5.2: 10,000 reads of 3 KB files in 2,000 directories of 50. The host has
    /// 128 MB (section 5.1), of which half is assumed to be available for the cache. All blocks
    /// read in such a run take some 60 MB, so nothing is evicted; with less, metadata are read
    /// again. The processor was busy for 5.1% of the time (section 5.4): 0.4 ms of about 7 per
    /// request.
    fn default() -> FilesSpec {
        FilesSpec { layout: LayoutSpec::default(), reads: 10_000, cache_bytes: 64 << 20, host: Dur::from_us(400) }
    }
}

/// A process that reads files.
#[derive(Clone, Debug)]
pub struct Files {
    layout: Layout,
    cache: Cache,
    rng: Variates,
    host: Dur,
    /// Files still to be chosen.
    left: u64,
    /// Remaining steps of the current file, the next one last.
    steps: Vec<Step>,
    next: Option<(Time, Step)>,
    classes: Vec<String>,
}

/// A step of reading a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    range: Range,
    class: Class,
}

/// Kind of data; its number is the class in statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Directory,
    Inode,
    Data,
}

impl Class {
    const NAMES: [&str; 3] = ["directory", "inode", "data"];
}

impl Files {
    /// Creates the file system of `spec` on a disk, to be read. The same specification and seed
    /// give the same requests.
    pub fn new(spec: &FilesSpec, target: &Target, seed: u64) -> Result<Files, WorkloadError> {
        if !(1..=MOST_READS).contains(&spec.reads) {
            return Err(WorkloadError::range("files to read", spec.reads, 1, MOST_READS));
        }
        let mut files = Files {
            layout: Layout::new(&spec.layout, target)?,
            cache: Cache::new(usize::try_from(spec.cache_bytes / spec.layout.block_bytes.max(1)).unwrap_or(usize::MAX)),
            rng: Variates::new(seed, 0),
            host: spec.host,
            left: spec.reads,
            steps: Vec::new(),
            next: None,
            classes: Class::NAMES.map(str::to_owned).to_vec(),
        };
        files.go_on(Time::ZERO);
        Ok(files)
    }

    /// Returns the layout.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Finds the next step that misses the cache, if any; it is due at `at`.
    fn go_on(&mut self, at: Time) {
        self.next = None;
        loop {
            while let Some(step) = self.steps.pop() {
                if !self.cache.holds(step.range.lbn) {
                    self.next = Some((at, step));
                    return;
                }
            }
            if self.left == 0 {
                return;
            }
            self.left -= 1;
            self.open();
        }
    }

    /// Chooses a file and lists the steps of reading it.
    fn open(&mut self) {
        let layout = &self.layout;
        let file = self.rng.below(layout.files() as u64) as usize;
        let directory = layout.directory_of(file);
        let named_in = layout.named_in(directory);
        let step = |range, class| Step { range, class };
        self.steps.push(step(layout.data(file), Class::Data));
        self.steps.push(step(layout.file_inode(file), Class::Inode));
        self.steps.push(step(layout.directory(directory), Class::Directory));
        self.steps.push(step(layout.directory_inode(directory), Class::Inode));
        self.steps.extend(layout.root()[..=named_in].iter().rev().map(|&block| step(block, Class::Directory)));
    }
}

impl Workload for Files {
    fn next_due(&self) -> Option<Time> {
        self.next.map(|(at, _)| at)
    }

    fn take(&mut self) -> Result<Ask, WorkloadError> {
        let (due, step) = self.next.expect("a request was taken while none was due");
        // The next request is known when this one is finished.
        self.next = None;
        let Step { range: Range { lbn, count }, class } = step;
        Ok(Ask { due, kind: Kind::Read, lbn, count, fua: false, sync: true, owner: 0, class: class as u16 })
    }

    fn finished(&mut self, _owner: u32, now: Time) {
        self.go_on(now + self.host);
    }

    fn endless(&self) -> bool {
        false
    }

    fn classes(&self) -> &[String] {
        &self.classes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size of the Atlas 10K.
    fn target() -> Target {
        Target { capacity: 17_938_986, sector_bytes: 512, geometry: None }
    }

    fn all(spec: &FilesSpec, seed: u64) -> (Vec<Ask>, Files) {
        let mut files = Files::new(spec, &target(), seed).unwrap();
        let mut asks = Vec::new();
        while files.next_due().is_some() {
            let ask = files.take().unwrap();
            assert_eq!(files.next_due(), None, "what comes next hangs on the answer");
            files.finished(ask.owner, ask.due + Dur::from_ms(5));
            asks.push(ask);
        }
        (asks, files)
    }

    fn of_class(asks: &[Ask], class: Class) -> usize {
        asks.iter().filter(|a| a.class == class as u16).count()
    }

    #[test]
    fn a_first_file_takes_the_whole_chain_and_each_link_waits_for_the_one_before() {
        let (asks, files) = all(&FilesSpec { reads: 1, ..FilesSpec::default() }, 1);
        let l = files.layout();
        let file = (0..l.files()).find(|&f| l.data(f).lbn == asks.last().unwrap().lbn).unwrap();
        let directory = l.directory_of(file);
        let mut chain: Vec<Range> = l.root()[..=l.named_in(directory)].to_vec();
        chain.extend([l.directory_inode(directory), l.directory(directory), l.file_inode(file), l.data(file)]);
        // The file's inode may be in the same block as the directory's, which is cached already.
        chain.dedup();
        if l.file_inode(file) == l.directory_inode(directory) {
            chain.remove(chain.len() - 2);
        }
        let read: Vec<Range> = asks.iter().map(|a| Range { lbn: a.lbn, count: a.count }).collect();
        assert_eq!(read, chain);
        for (i, a) in asks.iter().enumerate() {
            // 5 ms of service and 0.4 ms of host time each.
            assert_eq!(a.due, Time(5_400_000 * i as u64));
            assert!(a.kind.is_read());
        }
    }

    #[test]
    fn what_the_cache_holds_is_read_once() {
        let (asks, _) = all(&FilesSpec::default(), 1);
        let mut lbns: Vec<u64> = asks.iter().map(|a| a.lbn).collect();
        lbns.sort_unstable();
        assert!(lbns.windows(2).all(|w| w[0] < w[1]));
        // 2,000 directories (each read five times on average, so about 13 are never read) and eight
        // blocks of the root.
        assert!((1_970..=2_008).contains(&of_class(&asks, Class::Directory)));
        // Of 10,000 draws from 100,000 files about 480 repeat a file.
        assert!((9_450..9_590).contains(&of_class(&asks, Class::Data)));
    }

    #[test]
    fn without_a_cache_every_file_takes_every_link() {
        let (asks, _) = all(&FilesSpec { cache_bytes: 0, reads: 500, ..FilesSpec::default() }, 3);
        assert_eq!(of_class(&asks, Class::Data), 500);
        assert_eq!(of_class(&asks, Class::Inode), 1_000);
        // The root's blocks up to the one with the directory's entry, 4.5 on average, and the
        // directory.
        assert!((500 * 5..500 * 6).contains(&of_class(&asks, Class::Directory)));
    }

    #[test]
    fn same_seed_same_reads() {
        let spec = FilesSpec { reads: 300, ..FilesSpec::default() };
        assert_eq!(all(&spec, 7).0, all(&spec, 7).0);
        assert_ne!(all(&spec, 7).0, all(&spec, 8).0);
    }

    #[test]
    fn no_reads_are_refused() {
        let e = Files::new(&FilesSpec { reads: 0, ..FilesSpec::default() }, &target(), 1).unwrap_err().to_string();
        assert!(e.contains("files to read: expected 1 to"), "{e}");
    }
}
