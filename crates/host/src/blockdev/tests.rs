use super::*;
use crate::scratch::Scratch;

/// A sysfs tree with `sda`, a disk with two partitions.
struct Tree {
    scratch: Scratch,
    sys: Sys,
}

impl Tree {
    fn new(name: &str) -> Tree {
        let scratch = Scratch::new(&format!("blockdev-{name}"));
        let sys = Sys::below(scratch.path());
        let tree = Tree { scratch, sys };
        tree.device("sda", "sda", "8:0", 7_814_037_168);
        for (name, value) in [
            ("diskseq", "3\n"),
            ("queue/logical_block_size", "512\n"),
            ("queue/rotational", "1\n"),
            ("queue/write_cache", "write back\n"),
            ("queue/zoned", "none\n"),
        ] {
            tree.attribute("sda", name, value);
        }
        for (name, number, partition) in [("sda1", "8:1", "1\n"), ("sda2", "8:2", "2\n")] {
            tree.device(&format!("sda/{name}"), name, number, 2048);
            tree.attribute(&format!("sda/{name}"), "partition", partition);
            tree.attribute(&format!("sda/{name}"), "start", "2048\n");
        }
        tree.mounts("22 1 254:0 / / rw - ext4 /dev/vda rw\n");
        tree
    }

    fn device(&self, directory: &str, name: &str, number: &str, size: u64) {
        self.attribute(directory, "dev", &format!("{number}\n"));
        self.attribute(directory, "size", &format!("{size}\n"));
        self.attribute(directory, "ro", "0\n");
        fs::create_dir_all(self.real(directory).join("holders")).unwrap();
        for (class, link) in [("dev/block", number), ("class/block", name)] {
            let class = self.sys.sys.join(class);
            fs::create_dir_all(&class).unwrap();
            std::os::unix::fs::symlink(self.real(directory), class.join(link)).unwrap();
        }
    }

    fn real(&self, directory: &str) -> PathBuf {
        self.sys.sys.join("devices/pci/block").join(directory)
    }

    fn attribute(&self, directory: &str, name: &str, value: &str) {
        self.scratch.file(&format!("sys/devices/pci/block/{directory}/{name}"), value);
    }

    fn mounts(&self, lines: &str) {
        self.scratch.file("proc/self/mountinfo", lines);
    }

    fn inspect(&self, minor: u32) -> Result<BlockDevice, InspectError> {
        let path = PathBuf::from(format!("/dev/sda{minor}"));
        BlockDevice::with_number(&self.sys, &path, DeviceNumber { major: 8, minor })
    }

    fn refusal(&self, minor: u32) -> String {
        self.inspect(minor).unwrap().refuse_if_used().map_or_else(|e| e.to_string(), |()| "free".into())
    }
}

#[test]
fn a_disk_is_described_as_sysfs_does() {
    let tree = Tree::new("disk");
    let disk = tree.inspect(0).unwrap();
    assert_eq!((disk.name.as_str(), disk.disk()), ("sda", "sda"));
    assert_eq!(disk.size, 4_000_787_030_016);
    assert_eq!(disk.logical_sector, 512);
    assert!(disk.rotational && !disk.read_only);
    assert_eq!(disk.write_cache, WriteCache::Back);
    assert_eq!((disk.zoned, disk.diskseq), (Zoned::No, Some(3)));
    assert_eq!(disk.part, Part::Whole { partitions: vec!["sda1".into(), "sda2".into()] });
}

#[test]
fn a_partition_has_its_own_size_and_its_disks_queue() {
    let tree = Tree::new("partition");
    let part = tree.inspect(2).unwrap();
    assert_eq!((part.name.as_str(), part.disk(), part.size), ("sda2", "sda", 1 << 20));
    assert_eq!(part.part, Part::Partition { number: 2, disk: "sda".into(), start: 1 << 20 });
    assert_eq!(part.disk_directory(), tree.sys.block("sda"));
}

#[test]
fn a_partition_of_a_disk_that_refuses_writes_refuses_them() {
    let tree = Tree::new("ro");
    tree.attribute("sda", "ro", "1\n");
    let part = tree.inspect(1).unwrap();
    assert!(part.read_only);
    assert!(matches!(part.open(false), Err(UseError::ReadOnly { .. })));
}

#[test]
fn zones_are_reported() {
    let tree = Tree::new("zoned");
    for (text, zoned) in [("host-aware\n", Zoned::HostAware), ("host-managed\n", Zoned::HostManaged)] {
        tree.attribute("sda", "queue/zoned", text);
        assert_eq!(tree.inspect(0).unwrap().zoned, zoned);
    }
}

#[test]
fn an_old_kernel_is_no_fault() {
    let tree = Tree::new("old");
    for name in ["diskseq", "queue/zoned"] {
        fs::remove_file(tree.real("sda").join(name)).unwrap();
    }
    let disk = tree.inspect(0).unwrap();
    assert_eq!((disk.diskseq, disk.zoned), (None, Zoned::No));
}

#[test]
fn what_sysfs_should_not_say_is_named_with_its_file() {
    let tree = Tree::new("odd");
    tree.attribute("sda", "queue/write_cache", "write around\n");
    let e = tree.inspect(0).unwrap_err().to_string();
    assert!(
        e.contains("queue/write_cache: expected \"write back\" or \"write through\", found \"write around\""),
        "{e}"
    );
    tree.attribute("sda", "queue/write_cache", "write back\n");
    tree.attribute("sda", "size", "36028797018963968\n");
    let e = tree.inspect(0).unwrap_err().to_string();
    assert!(e.contains("fits in 64 bits"), "{e}");
}

#[test]
fn a_device_that_sysfs_does_not_know_is_no_device() {
    let tree = Tree::new("unknown");
    let e = tree.inspect(9).unwrap_err();
    assert!(matches!(e, InspectError::NoDevice { number: DeviceNumber { major: 8, minor: 9 }, .. }), "{e}");
}

#[test]
fn an_unused_disk_is_free() {
    let tree = Tree::new("free");
    assert_eq!([0, 1, 2].map(|minor| tree.refusal(minor)), ["free", "free", "free"]);
}

#[test]
fn a_mounted_partition_makes_its_disk_used_but_not_its_neighbour() {
    let tree = Tree::new("mounted");
    tree.mounts("22 1 8:1 / /srv/my\\040data rw - ext4 /dev/sda1 rw\n");
    assert_eq!(tree.refusal(0), "/dev/sda0: sda1 is mounted at /srv/my data");
    assert_eq!(tree.refusal(1), "/dev/sda1 is mounted at /srv/my data");
    assert_eq!(tree.refusal(2), "free");
}

#[test]
fn a_mounted_disk_makes_its_partitions_used() {
    let tree = Tree::new("whole-mounted");
    tree.mounts("22 1 8:0 / /srv rw - ext4 /dev/sda rw\n");
    assert_eq!(tree.refusal(2), "/dev/sda2: sda is mounted at /srv");
}

#[test]
fn a_file_system_with_numbers_of_its_own_is_found_by_its_source() {
    let tree = Tree::new("btrfs");
    tree.mounts("22 1 0:41 /@home /home rw - btrfs /dev/sda2 rw,subvol=/@home\n");
    assert_eq!(tree.refusal(2), "/dev/sda2 is mounted at /home");
}

#[test]
fn swap_and_holders_are_met() {
    let tree = Tree::new("swap");
    tree.scratch.file("proc/swaps", "Filename\t\tType\t\tSize\n/dev/sda2  partition 1047548 0 -2\n");
    fs::create_dir_all(tree.real("sda/sda1/holders/dm-3")).unwrap();
    assert_eq!(tree.refusal(2), "/dev/sda2: sda2 is used as swap");
    assert_eq!(tree.refusal(1), "/dev/sda1: sda1 is held by dm-3");
    assert_eq!(tree.refusal(0), "/dev/sda0: sda1 is held by dm-3");
}

#[test]
fn a_path_is_a_device_or_a_file_or_refused() {
    let scratch = Scratch::new("blockdev-paths");
    let sys = Sys::default();
    let file = scratch.file("disk.img", "0123456789");
    let link = scratch.path().join("link");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    match Target::inspect(&sys, &link).unwrap() {
        Target::File(found) => assert_eq!((found.path, found.size), (file.clone(), 10)),
        Target::Device(device) => panic!("{device:?}"),
    }
    assert!(matches!(BlockDevice::inspect(&sys, &file), Err(InspectError::NotADevice { .. })));
    let e = Target::inspect(&sys, scratch.path()).unwrap_err().to_string();
    assert!(e.ends_with("expected a block device or a regular file, found a directory"), "{e}");
    let e = Target::inspect(&sys, Path::new("/dev/null")).unwrap_err().to_string();
    assert_eq!(e, "/dev/null: expected a block device or a regular file, found a character device");
    assert!(matches!(Target::inspect(&sys, Path::new("/no/such")), Err(InspectError::Look { .. })));
}

#[test]
fn a_file_is_ours_alone_once_it_is_open() {
    let scratch = Scratch::new("blockdev-file");
    let sys = Sys::default();
    let path = scratch.file("disk.img", &"x".repeat(4096));
    let Target::File(file) = Target::inspect(&sys, &path).unwrap() else { panic!("a file") };
    let open = match file.open(false) {
        // Not every file system offers direct I/O; that is a separate error.
        Err(UseError::NoDirect { .. }) => return,
        open => open.unwrap(),
    };
    assert!(matches!(file.open(true), Err(UseError::Busy { .. })));
    // An ending program releases the lock, possibly a moment later.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(200));
            drop(open);
        });
        file.open(true).unwrap();
    });
    fs::write(&path, "shorter").unwrap();
    assert!(matches!(file.open(true), Err(UseError::Exchanged { .. })));
    let empty = scratch.file("empty.img", "");
    assert!(matches!(Target::inspect(&sys, &empty).unwrap().open(true), Err(UseError::Empty { .. })));
}
