//! Tests of where a file system puts its contents.

use super::shape::{CYLINDER_BYTES, header_bytes, inodes_of};
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
    assert!(refused(LayoutSpec { block_bytes: 5_000, ..d() }, large).contains("expected 4096 to 65536, found 5000"));
    assert!(refused(LayoutSpec { fragment_bytes: 256, ..d() }, large).contains("expected 512 to 4096, found 256"));
    assert!(refused(LayoutSpec { files_each: 255, ..d() }, large).contains("expected 1 to 254, found 255"));
    assert!(refused(LayoutSpec { directories: 3_049, ..d() }, large).contains("expected 1 to 3048"));
    assert!(refused(LayoutSpec { file_bytes: 4_097, ..d() }, large).contains("expected 1 to 4096"));
}
