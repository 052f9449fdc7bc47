//! Reading small files from a file system: the foreground of Lumb 2002's figure 7(c).
//!
//! One process reads files chosen at random, one after another, as with `open`, `read` and `close`.
//! What the file system does for each is a chain in which each step must be finished before the
//! next is known:
//!
//! 1. the root directory, block by block up to the one that names the file's directory;
//! 2. the block with that directory's inode;
//! 3. the directory, to find the file;
//! 4. the block with the file's inode;
//! 5. the file's data.
//!
//! What the host's cache holds costs no request; [`Layout`] says where the rest lies on the disk.
//! The cache begins empty, as after mounting. What a kernel does besides, and what is left out
//! here: it writes the times of last access back some half a minute later (as if mounted without
//! them), and it remembers where in a directory it found the last name.

mod cache;
mod layout;

pub use layout::{Layout, LayoutSpec, Range};

use headtime_disk::command::Kind;
use headtime_disk::time::{Dur, Time};

use super::variates::Variates;
use super::{Ask, Target, Workload, WorkloadError};
use cache::Cache;

/// Most files that can be asked for in one run.
const MOST_READS: u64 = 1_000_000_000;

/// Files, and how they are read.
#[derive(Clone, Debug, PartialEq)]
pub struct FilesSpec {
    /// The file system and what it holds.
    pub layout: LayoutSpec,
    /// Files read, each chosen at random from all.
    pub reads: u64,
    /// The host's cache in bytes.
    pub cache_bytes: u64,
    /// What the host computes between an answer and the next request.
    pub host: Dur,
}

impl Default for FilesSpec {
    /// Lumb 2002, section 5.2: 10,000 reads of 3 KB files in 2,000 directories of 50. The host has
    /// 128 MB (section 5.1), of which half is assumed to be there for the cache. All that is read
    /// in such a run takes some 60 MB, so nothing has to give way; with less, metadata are read
    /// again. The processor was busy for 5.1% of the time (section 5.4): 0.4 ms of the 7 or so that
    /// a request takes.
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
    /// Files that are still to be chosen.
    left: u64,
    /// What the file being read still needs, the next step last.
    steps: Vec<Step>,
    next: Option<(Time, Step)>,
    classes: Vec<String>,
}

/// Part of reading a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    range: Range,
    class: Class,
}

/// What a request reads; the number is its class in statistics.
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
    /// Fills the file system of `spec` on a disk and prepares to read it. Same specification and
    /// seed: same requests.
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

    /// Where everything lies.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Finds the next step that the cache cannot answer, if there is one; it is due at `at`.
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

    /// Chooses a file and sets down what reading it takes.
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
        // What comes next is known when this is finished.
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

    /// As large as the Atlas 10K.
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
        // The file's inode may be in the block of the directory's, which is there already.
        chain.dedup();
        if l.file_inode(file) == l.directory_inode(directory) {
            chain.remove(chain.len() - 2);
        }
        let read: Vec<Range> = asks.iter().map(|a| Range { lbn: a.lbn, count: a.count }).collect();
        assert_eq!(read, chain);
        for (i, a) in asks.iter().enumerate() {
            // 5 ms for each answer and 0.4 ms for the host.
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
        // 2,000 directories (each met five times on average, so 13 or so are never met) and eight
        // blocks of the root.
        assert!((1_970..=2_008).contains(&of_class(&asks, Class::Directory)));
        // Of 10,000 draws from 100,000 files some 480 are of a file that was drawn before.
        assert!((9_450..9_590).contains(&of_class(&asks, Class::Data)));
    }

    #[test]
    fn without_a_cache_every_file_takes_every_link() {
        let (asks, _) = all(&FilesSpec { cache_bytes: 0, reads: 500, ..FilesSpec::default() }, 3);
        assert_eq!(of_class(&asks, Class::Data), 500);
        assert_eq!(of_class(&asks, Class::Inode), 1_000);
        // The root's blocks up to the one that names the directory, 4.5 on average, and the
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
