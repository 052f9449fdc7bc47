//! Placement of directories, inodes and files in a Berkeley file system (FFS).
//!
//! The design is that of McKusick, Joy, Leffler and Fabry, *A Fast File System for UNIX* (ACM TOCS
//! 2(3), 1984), with the defaults of FreeBSD 4's `newfs` for a given block size. The disk is
//! divided into cylinder groups:
//!
//! ```text
//! | boot area, or data | superblock's copy | group's header and maps | inodes ... | data ...
//! ```
//!
//! - A group has as many "cylinders" of 2 MiB as its maps, which must fit into one block, can
//!   describe, and at most 16. The real cylinders are not known.
//! - One inode of 128 bytes for every four fragments.
//! - A new directory goes to the group with the fewest directories among those with at least the
//!   average number of free inodes. Its files' inodes follow its own in the group, and so do their
//!   data and its own blocks, each as near to the group's start as possible.
//! - A part of a block takes fragments of one: the smallest free run that holds it, else a new
//!   block is split.
//!
//! Assumptions, because the paper does not say: the file system has the disk to itself and was
//! empty; all directories are in its root; each is created and filled before the next; names have 4
//! to 7 letters.

use std::collections::BTreeSet;

use super::super::{Target, WorkloadError};

/// A cylinder of newfs: 4,096 sectors of 512 bytes, whatever the drive has.
const CYLINDER_BYTES: u64 = 4096 * 512;
/// Cylinders per group, if its maps have room for them.
const CYLINDERS_WANTED: u64 = 16;
/// Fragments per inode.
const FRAGMENTS_PER_INODE: u64 = 4;
/// Bytes per inode on the disk.
const INODE_BYTES: u64 = 128;
/// Bytes before a group's superblock: boot area and first superblock in the first group, data in
/// the others.
const FRONT_BYTES: u64 = 16384;
/// Bytes per superblock.
const SUPERBLOCK_BYTES: u64 = 8192;
/// Bytes of a group's header without maps: the fixed part and the end of the table of blocks by
/// cylinder.
const HEADER_BYTES: u64 = 176;
/// Bytes of a group's header per cylinder: free blocks (4 bytes), free blocks by rotational
/// position (one, 2).
const HEADER_BYTES_PER_CYLINDER: u64 = 6;
/// Bytes of a group's totals, which are in the first group.
const SUMMARY_BYTES: u64 = 16;
/// Longest run of blocks that the file system writes at once, in bytes; the limit of its cluster
/// map.
const CLUSTER_BYTES: u64 = 65536;
/// Inodes of the first group in use from the start: two unused ones and the root's.
const FIRST_INODES: u64 = 3;
/// Increment of a directory's size.
const DIRECTORY_STEP_BYTES: u64 = 512;
/// Bytes of an entry with a name of 4 to 7 letters.
const ENTRY_BYTES: u64 = 16;
/// Direct blocks of an inode; no directory here has more.
const DIRECT_BLOCKS: u64 = 12;

/// A file system and its contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutSpec {
    /// Block size: a power of two from 4 KiB to 64 KiB.
    pub block_bytes: u64,
    /// Fragment size: a block, or its half, quarter or eighth.
    pub fragment_bytes: u64,
    /// Directories in the root.
    pub directories: u64,
    /// Files per directory.
    pub files_each: u64,
    /// Bytes per file, at most a block.
    pub file_bytes: u64,
}

impl Default for LayoutSpec {
    /// Lumb 2002, section 5.2; the fragment size is newfs's default.
    fn default() -> LayoutSpec {
        LayoutSpec { block_bytes: 4096, fragment_bytes: 1024, directories: 2_000, files_each: 50, file_bytes: 3072 }
    }
}

/// Sectors read in one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First sector.
    pub lbn: u64,
    /// Number of sectors.
    pub count: u32,
}

/// A file system with its contents.
#[derive(Clone, Debug)]
pub struct Layout {
    spec: LayoutSpec,
    shape: Shape,
    root: Vec<Range>,
    directories: Vec<Placed>,
    files: Vec<Placed>,
}

/// Location of a file or directory.
#[derive(Clone, Copy, Debug)]
struct Placed {
    inode: Range,
    data: Range,
}

/// Layout as computed by newfs. Addresses are in fragments from the disk's start, unless noted
/// otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    fragment_sectors: u64,
    /// Fragments per block.
    block: u64,
    /// Fragments per group.
    group: u64,
    groups: u64,
    /// Inodes per group.
    inodes: u64,
    /// Fragments before a group's superblock.
    front: u64,
    /// First inode fragment, from the group's start.
    inodes_at: u64,
    /// First data fragment after the inodes, from the group's start.
    data_at: u64,
}

impl Shape {
    fn new(spec: &LayoutSpec, target: &Target) -> Result<Shape, WorkloadError> {
        let (block_bytes, fragment_bytes) = (spec.block_bytes, spec.fragment_bytes);
        let sector = u64::from(target.sector_bytes);
        let power = |what: &str, found: u64, low: u64, high: u64| match found {
            n if n.is_power_of_two() && (low..=high).contains(&n) => Ok(()),
            n => Err(WorkloadError::range(format!("{what} (bytes, a power of two)"), n, low, high)),
        };
        power("block of a file system", block_bytes, 4096, 65536)?;
        power("fragment of a file system", fragment_bytes, sector.max(block_bytes / 8), block_bytes)?;
        let block = block_bytes / fragment_bytes;
        let superblock = SUPERBLOCK_BYTES.div_ceil(fragment_bytes).next_multiple_of(block);
        let front = FRONT_BYTES.div_ceil(fragment_bytes).next_multiple_of(block);
        let inodes_at = front + superblock + block;
        let inodes = |cylinders: u64| inodes_of(spec, cylinders * CYLINDER_BYTES, inodes_at * fragment_bytes);
        let fits = |cylinders: &u64| header_bytes(spec, *cylinders, inodes(*cylinders)) <= block_bytes;
        let too_small = || WorkloadError::Conflict("the file system's blocks are too small for its maps".into());
        let cylinders = (1..=CYLINDERS_WANTED).rev().find(fits).ok_or_else(too_small)?;
        let inodes = inodes(cylinders);
        let group = cylinders * CYLINDER_BYTES / fragment_bytes;
        let fragment_sectors = fragment_bytes / sector;
        // The remainder after the last whole group is not used.
        let groups = target.capacity / (group * fragment_sectors);
        if groups == 0 {
            return Err(WorkloadError::range(
                "sectors for a file system",
                target.capacity,
                group * fragment_sectors,
                "any",
            ));
        }
        let data_at = inodes_at + inodes * INODE_BYTES / fragment_bytes;
        Ok(Shape { fragment_sectors, block, group, groups, inodes, front, inodes_at, data_at })
    }

    fn range(&self, fragment: u64, fragments: u64) -> Range {
        Range { lbn: fragment * self.fragment_sectors, count: (fragments * self.fragment_sectors) as u32 }
    }

    /// Returns the block of an inode, given by its group and its number there.
    fn inode_block(&self, spec: &LayoutSpec, group: u64, inode: u64) -> Range {
        let block = inode / (spec.block_bytes / INODE_BYTES);
        self.range(group * self.group + self.inodes_at + block * self.block, self.block)
    }
}

/// Returns the number of inodes in a group of `bytes`, of which `before` bytes precede the inodes:
/// one per fixed number of data bytes, in whole blocks.
fn inodes_of(spec: &LayoutSpec, bytes: u64, before: u64) -> u64 {
    let density = FRAGMENTS_PER_INODE * spec.fragment_bytes;
    // n inodes and their data: before + n (INODE_BYTES + density) = bytes.
    let exact = bytes.saturating_sub(before) / (INODE_BYTES + density);
    exact.next_multiple_of(spec.block_bytes / INODE_BYTES)
}

/// Returns the bytes of a group's header with its maps: a bit per inode, fragment and block, and
/// the number of runs of free blocks by length.
fn header_bytes(spec: &LayoutSpec, cylinders: u64, inodes: u64) -> u64 {
    let bytes = cylinders * CYLINDER_BYTES;
    let (blocks, fragments) = (bytes / spec.block_bytes, bytes / spec.fragment_bytes);
    let runs = 4 * (CLUSTER_BYTES / spec.block_bytes).saturating_sub(1);
    let maps = inodes.div_ceil(8) + fragments.div_ceil(8) + blocks.div_ceil(8);
    HEADER_BYTES + HEADER_BYTES_PER_CYLINDER * cylinders + maps + runs
}

/// A cylinder group under construction. Fragments are counted from the group's start.
#[derive(Clone, Debug)]
struct Group {
    directories: u64,
    inodes_used: u64,
    /// Free blocks before the superblock, in order of allocation, the next one last.
    front: Vec<u64>,
    /// The first free block after the inodes; all after it are free.
    rest: u64,
    /// Free runs in partly used blocks, by length.
    runs: Vec<BTreeSet<u64>>,
}

impl Group {
    fn new(shape: &Shape, number: u64) -> Group {
        let mut front: Vec<u64> = Vec::new();
        if number > 0 {
            // The search begins at the group's second block. It examines the map byte by byte, so
            // when that block is taken and the previous one is in the same byte, that one is found
            // next.
            let before = (shape.block <= 4).then_some(0);
            let others = 2..shape.front / shape.block;
            front = std::iter::once(1).chain(before).chain(others).map(|b| b * shape.block).collect();
            front.reverse();
        }
        let runs = vec![BTreeSet::new(); shape.block as usize];
        Group { directories: 0, inodes_used: 0, front, rest: shape.data_at, runs }
    }

    /// Allocates an inode.
    fn inode(&mut self, shape: &Shape) -> Option<u64> {
        let next = self.inodes_used;
        self.inodes_used += 1;
        (next < shape.inodes).then_some(next)
    }

    /// Allocates a whole block.
    fn block(&mut self, shape: &Shape) -> Option<u64> {
        if let Some(block) = self.front.pop() {
            return Some(block);
        }
        let next = self.rest;
        self.rest += shape.block;
        (self.rest <= shape.group).then_some(next)
    }

    /// Allocates `wanted` contiguous fragments, at most a block.
    fn fragments(&mut self, shape: &Shape, wanted: u64) -> Option<u64> {
        let free = (wanted..shape.block).find(|&n| !self.runs[n as usize].is_empty());
        let (at, length) = match free.and_then(|n| self.runs[n as usize].pop_first().map(|at| (at, n))) {
            Some(found) => found,
            None => (self.block(shape)?, shape.block),
        };
        if length > wanted {
            self.runs[(length - wanted) as usize].insert(at + wanted);
        }
        Some(at)
    }
}

impl Layout {
    /// Creates a file system on a disk with its contents.
    pub fn new(spec: &LayoutSpec, target: &Target) -> Result<Layout, WorkloadError> {
        let shape = Shape::new(spec, target)?;
        let in_block = entries(spec.block_bytes);
        for (what, found, high) in [
            ("directories", spec.directories, in_block * DIRECT_BLOCKS),
            ("files in a directory", spec.files_each, in_block),
            ("bytes of a file", spec.file_bytes, spec.block_bytes),
        ] {
            if !(1..=high).contains(&found) {
                return Err(WorkloadError::range(what, found, 1, high));
            }
        }
        let mut groups: Vec<Group> = (0..shape.groups).map(|g| Group::new(&shape, g)).collect();
        let mut layout =
            Layout { spec: spec.clone(), shape, root: Vec::new(), directories: Vec::new(), files: Vec::new() };
        layout
            .fill(&mut groups)
            .ok_or_else(|| WorkloadError::Conflict("the files do not fit into the file system".into()))?;
        Ok(layout)
    }

    /// Creates root, directories and files; `None` when there is no room.
    fn fill(&mut self, groups: &mut [Group]) -> Option<()> {
        let (spec, shape) = (self.spec.clone(), self.shape);
        let fragments_of = |bytes: u64| bytes.div_ceil(spec.fragment_bytes);

        let first = &mut groups[0];
        first.directories = 1;
        first.inodes_used = FIRST_INODES;
        for _ in 0..(shape.groups * SUMMARY_BYTES).div_ceil(spec.block_bytes) {
            first.block(&shape)?;
        }
        let mut left = fragments_of(directory_bytes(spec.directories));
        while left > 0 {
            let part = left.min(shape.block);
            self.root.push(shape.range(first.fragments(&shape, part)?, part));
            left -= part;
        }

        let directory = fragments_of(directory_bytes(spec.files_each));
        let file = fragments_of(spec.file_bytes);
        for _ in 0..spec.directories {
            let number = group_for_a_directory(&shape, groups);
            let group = &mut groups[number as usize];
            group.directories += 1;
            let mut place = |fragments| {
                let inode = shape.inode_block(&spec, number, group.inode(&shape)?);
                let at = number * shape.group + group.fragments(&shape, fragments)?;
                Some(Placed { inode, data: shape.range(at, fragments) })
            };
            self.directories.push(place(directory)?);
            for _ in 0..spec.files_each {
                self.files.push(place(file)?);
            }
        }
        Some(())
    }

    /// Returns the number of files.
    pub fn files(&self) -> usize {
        self.files.len()
    }

    /// Returns the directory of a file.
    pub fn directory_of(&self, file: usize) -> usize {
        file / self.spec.files_each as usize
    }

    /// Returns the root directory's blocks.
    pub fn root(&self) -> &[Range] {
        &self.root
    }

    /// Returns the index of the root directory's block that names a directory.
    pub fn named_in(&self, directory: usize) -> usize {
        (directory as u64 / entries(self.spec.block_bytes)) as usize
    }

    /// Returns the block with a directory's inode.
    pub fn directory_inode(&self, directory: usize) -> Range {
        self.directories[directory].inode
    }

    /// Returns a directory's data.
    pub fn directory(&self, directory: usize) -> Range {
        self.directories[directory].data
    }

    /// Returns the block with a file's inode.
    pub fn file_inode(&self, file: usize) -> Range {
        self.files[file].inode
    }

    /// Returns a file's data.
    pub fn data(&self, file: usize) -> Range {
        self.files[file].data
    }
}

/// Returns the first group with the fewest directories among those with at least the average number
/// of free inodes.
fn group_for_a_directory(shape: &Shape, groups: &[Group]) -> u64 {
    let free = |g: &Group| shape.inodes.saturating_sub(g.inodes_used);
    let average = groups.iter().map(free).sum::<u64>() / shape.groups;
    let candidates = groups.iter().enumerate().filter(|(_, g)| free(g) >= average);
    let best = candidates.min_by_key(|(_, g)| g.directories);
    best.map_or(0, |(number, _)| number as u64)
}

/// Returns the maximum number of entries of a directory of `bytes`, without those of itself and its
/// parent, which take less than two.
fn entries(bytes: u64) -> u64 {
    (bytes / ENTRY_BYTES).saturating_sub(2)
}

/// Returns the bytes of a directory with `entries` entries besides itself and its parent.
fn directory_bytes(entries: u64) -> u64 {
    ((entries + 2) * ENTRY_BYTES).next_multiple_of(DIRECTORY_STEP_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(capacity: u64) -> Target {
        Target { capacity, sector_bytes: 512, geometry: None }
    }

    fn atlas() -> Layout {
        Layout::new(&LayoutSpec::default(), &target(17_938_986)).unwrap()
    }

    #[test]
    fn a_group_is_what_the_header_of_one_block_can_describe() {
        // Ten cylinders need 176 + 60 bytes, 4,960 + 20,480 + 5,120 bits and 60 bytes more: 4,116
        // in all. By hand for nine: (9 * 2 MiB - 28 KiB) / (128 + 4,096) = 4,461 inodes, which is
        // 4,480 in whole blocks of 32; they take 560 fragments after boot area (16), superblock (8)
        // and header (4).
        let s = Shape::new(&LayoutSpec::default(), &target(17_938_986)).unwrap();
        let front = Shape {
            fragment_sectors: 2,
            block: 4,
            group: 18_432,
            groups: 486,
            inodes: 4_480,
            front: 16,
            inodes_at: 28,
            data_at: 588,
        };
        assert_eq!(s, front);
        let spec = LayoutSpec::default();
        let inodes = |n| inodes_of(&spec, n * CYLINDER_BYTES, 28 * 1024);
        assert_eq!((inodes(9), inodes(10)), (4_480, 4_960));
        assert_eq!((header_bytes(&spec, 9, 4_480), header_bytes(&spec, 10, 4_960)), (3_730, 4_116));
    }

    #[test]
    fn larger_blocks_leave_sixteen_cylinders() {
        let spec = LayoutSpec { block_bytes: 8192, ..LayoutSpec::default() };
        assert_eq!(Shape::new(&spec, &target(17_938_986)).unwrap().group, 16 * 2048);
    }

    #[test]
    fn directories_are_spread_over_all_groups_and_their_files_stay_with_them() {
        let l = atlas();
        let sectors = l.shape.group * l.shape.fragment_sectors;
        let group = |r: Range| r.lbn / sectors;
        let mut in_group = vec![0; l.shape.groups as usize];
        for d in 0..2_000 {
            let home = group(l.directory_inode(d));
            assert_eq!(group(l.directory(d)), home);
            in_group[home as usize] += 1;
            for f in d * 50..(d + 1) * 50 {
                assert_eq!((l.directory_of(f), group(l.file_inode(f)), group(l.data(f))), (d, home, home));
            }
        }
        // 2,000 directories and the root in 486 groups.
        in_group[0] += 1;
        assert!(in_group.iter().all(|&n| n == 4 || n == 5), "{in_group:?}");
    }

    #[test]
    fn nothing_lies_on_anything_else() {
        let l = atlas();
        let s = l.shape;
        let data = |p: &Placed| p.data;
        let mut taken: Vec<Range> = l.root.to_vec();
        taken.extend(l.directories.iter().chain(&l.files).map(data));
        taken.sort_by_key(|r| r.lbn);
        assert_eq!(taken.len(), 8 + 2_000 + 100_000);
        assert!(taken.windows(2).all(|w| w[0].lbn + u64::from(w[0].count) <= w[1].lbn));
        for r in taken {
            let (from, to) = (r.lbn / 2 % s.group, (r.lbn + u64::from(r.count)) / 2 % s.group);
            let first = r.lbn / 2 / s.group == 0;
            assert!(from >= s.data_at || (!first && to <= s.front), "{r:?} is not in a data area");
            assert_eq!(from / s.block, (to - 1) / s.block, "{r:?} is not within a block");
        }
        for p in l.directories.iter().chain(&l.files) {
            let at = p.inode.lbn / 2 % s.group;
            assert!((s.inodes_at..s.data_at).contains(&at) && at.is_multiple_of(s.block) && p.inode.count == 8);
        }
        // No block has more inodes than it holds.
        let mut inodes = std::collections::BTreeMap::new();
        l.directories.iter().chain(&l.files).for_each(|p| *inodes.entry(p.inode.lbn).or_insert(0) += 1);
        assert!(inodes.values().all(|&n| n <= 32));
    }

    #[test]
    fn files_take_three_fragments_and_directories_what_that_leaves() {
        let l = atlas();
        assert!((0..l.files()).all(|f| l.data(f).count == 6));
        // The first directory of a group splits a block, and its first file takes the remainder;
        // the blocks that follow lose three fragments each, so the group's next directory takes the
        // fourth of the first of them.
        let first = l.directories.iter().position(|d| d.data.lbn / 36_864 == 9).unwrap();
        let next = (first + 1..2_000).find(|&d| l.directory(d).lbn / 36_864 == 9).unwrap();
        let at = |r: Range| r.lbn - 9 * 36_864;
        assert_eq!((at(l.directory(first)), at(l.data(first * 50))), (8, 10));
        assert_eq!([1, 2, 3, 4, 5].map(|f| at(l.data(first * 50 + f))), [0, 16, 24, 2 * 588, 2 * 588 + 8]);
        assert_eq!((at(l.directory(next)), l.directory(next).count), (6, 2));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let refused = |spec: LayoutSpec, sectors| Layout::new(&spec, &target(sectors)).unwrap_err().to_string();
        let d = LayoutSpec::default;
        let large = 17_938_986;
        assert!(refused(d(), 1_000).contains("expected 36864 to"));
        assert!(refused(d(), 40_000).contains("do not fit"));
        assert!(
            refused(LayoutSpec { block_bytes: 5_000, ..d() }, large).contains("expected 4096 to 65536, found 5000")
        );
        assert!(refused(LayoutSpec { fragment_bytes: 256, ..d() }, large).contains("expected 512 to 4096, found 256"));
        assert!(refused(LayoutSpec { files_each: 255, ..d() }, large).contains("expected 1 to 254, found 255"));
        assert!(refused(LayoutSpec { directories: 3_049, ..d() }, large).contains("expected 1 to 3048"));
        assert!(refused(LayoutSpec { file_bytes: 4_097, ..d() }, large).contains("expected 1 to 4096"));
    }
}
