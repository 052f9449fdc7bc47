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

mod shape;

use shape::Shape;

/// Bytes of a group's totals, which are in the first group.
const SUMMARY_BYTES: u64 = 16;
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
mod tests;
