//! The division of a disk into cylinder groups, as `newfs` computes it.

use super::super::super::{Target, WorkloadError};
use super::{LayoutSpec, Range};

/// A cylinder of newfs: 4,096 sectors of 512 bytes, whatever the drive has.
pub(super) const CYLINDER_BYTES: u64 = 4096 * 512;
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
/// Longest run of blocks that the file system writes at once, in bytes; the limit of its cluster
/// map.
const CLUSTER_BYTES: u64 = 65536;

/// Layout as computed by newfs. Addresses are in fragments from the disk's start, unless noted
/// otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) fragment_sectors: u64,
    /// Fragments per block.
    pub(super) block: u64,
    /// Fragments per group.
    pub(super) group: u64,
    pub(super) groups: u64,
    /// Inodes per group.
    pub(super) inodes: u64,
    /// Fragments before a group's superblock.
    pub(super) front: u64,
    /// First inode fragment, from the group's start.
    pub(super) inodes_at: u64,
    /// First data fragment after the inodes, from the group's start.
    pub(super) data_at: u64,
}

impl Shape {
    pub(super) fn new(spec: &LayoutSpec, target: &Target) -> Result<Shape, WorkloadError> {
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

    pub(super) fn range(&self, fragment: u64, fragments: u64) -> Range {
        Range { lbn: fragment * self.fragment_sectors, count: (fragments * self.fragment_sectors) as u32 }
    }

    /// Returns the block of an inode, given by its group and its number there.
    pub(super) fn inode_block(&self, spec: &LayoutSpec, group: u64, inode: u64) -> Range {
        let block = inode / (spec.block_bytes / INODE_BYTES);
        self.range(group * self.group + self.inodes_at + block * self.block, self.block)
    }
}

/// Returns the number of inodes in a group of `bytes`, of which `before` bytes precede the inodes:
/// one per fixed number of data bytes, in whole blocks.
pub(super) fn inodes_of(spec: &LayoutSpec, bytes: u64, before: u64) -> u64 {
    let density = FRAGMENTS_PER_INODE * spec.fragment_bytes;
    // n inodes and their data: before + n (INODE_BYTES + density) = bytes.
    let exact = bytes.saturating_sub(before) / (INODE_BYTES + density);
    exact.next_multiple_of(spec.block_bytes / INODE_BYTES)
}

/// Returns the bytes of a group's header with its maps: a bit per inode, fragment and block, and
/// the number of runs of free blocks by length.
pub(super) fn header_bytes(spec: &LayoutSpec, cylinders: u64, inodes: u64) -> u64 {
    let bytes = cylinders * CYLINDER_BYTES;
    let (blocks, fragments) = (bytes / spec.block_bytes, bytes / spec.fragment_bytes);
    let runs = 4 * (CLUSTER_BYTES / spec.block_bytes).saturating_sub(1);
    let maps = inodes.div_ceil(8) + fragments.div_ceil(8) + blocks.div_ceil(8);
    HEADER_BYTES + HEADER_BYTES_PER_CYLINDER * cylinders + maps + runs
}
