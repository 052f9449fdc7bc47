//! Tests with real block devices, their users and their queues.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support;
use crate::support::{Loop, Mount, Process, run};
use headtime_host::blockdev::{BlockDevice, Part, Target, UseError};
use headtime_host::sys::Sys;
use headtime_host::tuning::{Leftover, Tuning, TuningError, restore_leftovers};

fn inspect(device: &Loop) -> BlockDevice {
    BlockDevice::inspect(&Sys::default(), &device.device).unwrap()
}

fn value(device: &Loop, name: &str) -> String {
    let text = fs::read_to_string(device.queue(name)).unwrap();
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(chosen, _)| chosen);
    chosen.unwrap_or(text.trim()).to_string()
}

#[test]
fn a_loop_device_is_described_and_opened() {
    let _turn = support::turn();
    needs!("a_loop_device_is_described_and_opened", "losetup");
    let device = Loop::with("described", 16, &["--sector-size", "4096"]);
    let found = inspect(&device);
    assert_eq!((found.name.as_str(), found.size), (device.name(), 16 << 20));
    assert_eq!((found.logical_sector, found.read_only), (4096, false));
    assert_eq!(found.part, Part::Whole { partitions: vec![] });
    found.refuse_if_in_use().unwrap();
    let open = found.open(false).unwrap();
    assert!(matches!(found.refuse_if_in_use(), Err(UseError::Busy { .. })));
    assert!(matches!(found.open(true), Err(UseError::Busy { .. })));
    // The kernel releases the files of a killed program with a delay.
    let lets_go = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(300));
        drop(open);
    });
    found.open(true).unwrap();
    lets_go.join().unwrap();
    let Target::File(file) = Target::inspect(&Sys::default(), &device.backing()).unwrap() else { panic!("a file") };
    match file.open(false).unwrap_err() {
        UseError::Held { by, .. } => assert_eq!(by, device.name()),
        e => panic!("{e}"),
    }
}

#[test]
fn a_device_that_refuses_writes_is_not_opened_for_them() {
    let _turn = support::turn();
    needs!("a_device_that_refuses_writes_is_not_opened_for_them", "losetup");
    let device = Loop::with("read-only", 16, &["-r"]);
    let found = inspect(&device);
    assert!(found.read_only);
    assert!(matches!(found.open(false), Err(UseError::ReadOnly { .. })));
    found.open(true).unwrap();
}

#[test]
fn a_mounted_device_is_refused_and_its_mount_point_named() {
    let _turn = support::turn();
    needs!("a_mounted_device_is_refused_and_its_mount_point_named", "losetup", "mkfs.ext4");
    let device = Loop::new("mounted", 16);
    run("mkfs.ext4", &["-q", device.path()]);
    let at = device.scratch.directory("mount point");
    let mount = Mount::new(&device.device, at.clone());
    match inspect(&device).refuse_if_in_use().unwrap_err() {
        UseError::Mounted { at: found, .. } => assert_eq!(found, at),
        e => panic!("{e}"),
    }
    drop(mount);
    inspect(&device).refuse_if_in_use().unwrap();
}

#[test]
fn a_disk_with_a_mounted_partition_is_refused_but_not_the_other_partition() {
    let _turn = support::turn();
    const NAME: &str = "a_disk_with_a_mounted_partition_is_refused_but_not_the_other_partition";
    if let Some(why) = support::missing(&["losetup", "mkfs.ext4", "partx"]) {
        return support::skipped(NAME, &why);
    }
    let device = Loop::with("partitions", 32, &["-P"]);
    // A master boot record with two partitions of 8 MiB each.
    let mut table = [0u8; 512];
    for (index, start) in [2048u32, 2048 + 16384].into_iter().enumerate() {
        let entry = &mut table[446 + 16 * index..][..16];
        entry[4] = 0x83;
        entry[8..12].copy_from_slice(&start.to_le_bytes());
        entry[12..16].copy_from_slice(&16384u32.to_le_bytes());
    }
    table[510..].copy_from_slice(&[0x55, 0xaa]);
    let mut disk = fs::OpenOptions::new().write(true).open(&device.device).unwrap();
    disk.write_all(&table).unwrap();
    disk.sync_all().unwrap();
    drop(disk);
    if !Command::new("partx").args(["-u", device.path()]).status().unwrap().success() {
        return support::skipped(NAME, "the kernel does not read partitions here");
    }
    let names = ["p1", "p2"].map(|part| format!("{}{part}", device.name()));
    let paths = ["p1", "p2"].map(|part| format!("{}{part}", device.path()));
    if !support::wait_until(|| paths.iter().all(|path| Path::new(path).exists())) {
        return support::skipped(NAME, "no partition nodes appear here");
    }
    run("mkfs.ext4", &["-q", &paths[0]]);
    let mount = Mount::new(Path::new(&paths[0]), device.scratch.directory("at"));
    let disk = inspect(&device);
    assert_eq!(disk.part, Part::Whole { partitions: names.to_vec() });
    match disk.refuse_if_in_use().unwrap_err() {
        UseError::PartMounted { part, at, .. } => assert_eq!((part, at), (names[0].clone(), mount.0.clone())),
        e => panic!("{e}"),
    }
    let second = BlockDevice::inspect(&Sys::default(), Path::new(&paths[1])).unwrap();
    assert_eq!((second.disk(), second.size), (device.name(), 8 << 20));
    let open = second.open(false).unwrap();
    drop(mount);
    assert!(matches!(inspect(&device).refuse_if_in_use(), Err(UseError::Busy { .. })), "held through its partition");
    drop(open);
    inspect(&device).refuse_if_in_use().unwrap();
}

#[test]
fn a_device_that_is_swapped_to_is_refused() {
    let _turn = support::turn();
    const NAME: &str = "a_device_that_is_swapped_to_is_refused";
    if let Some(why) = support::missing(&["losetup", "mkswap", "swapon", "swapoff"]) {
        return support::skipped(NAME, &why);
    }
    struct Swap(String);
    impl Drop for Swap {
        fn drop(&mut self) {
            let _ = Command::new("swapoff").arg(&self.0).status();
        }
    }
    let device = Loop::new("swap", 16);
    run("mkswap", &["-q", device.path()]);
    if !Command::new("swapon").args(["-p", "0", device.path()]).status().unwrap().success() {
        return support::skipped(NAME, "no swap can be added here");
    }
    let swap = Swap(device.path().to_string());
    let e = inspect(&device).refuse_if_in_use().unwrap_err();
    assert!(matches!(e, UseError::Swap { .. }), "{e}");
    drop(swap);
    inspect(&device).refuse_if_in_use().unwrap();
}

#[test]
fn a_device_under_another_is_refused_as_held() {
    let _turn = support::turn();
    const NAME: &str = "a_device_under_another_is_refused_as_held";
    if let Some(why) = support::missing(&["losetup", "dmsetup"]) {
        return support::skipped(NAME, &why);
    }
    if !Path::new("/dev/mapper/control").exists() {
        return support::skipped(NAME, "no device mapper");
    }
    struct Mapped(String);
    impl Drop for Mapped {
        fn drop(&mut self) {
            let _ = Command::new("dmsetup").args(["remove", "--retry", &self.0]).status();
        }
    }
    let device = Loop::new("held", 16);
    let name = format!("headtime-test-{}", std::process::id());
    run("dmsetup", &["create", &name, "--table", &format!("0 32768 linear {} 0", device.path())]);
    let mapped = Mapped(name);
    match inspect(&device).refuse_if_in_use().unwrap_err() {
        UseError::Held { by, .. } => assert!(by.starts_with("dm-"), "{by}"),
        e => panic!("{e}"),
    }
    drop(mapped);
}

#[test]
fn a_real_queue_is_set_and_put_back() {
    let _turn = support::turn();
    needs!("a_real_queue_is_set_and_put_back", "losetup");
    let device = Loop::new("tuned", 16);
    fs::write(device.queue("scheduler"), "mq-deadline").unwrap();
    fs::write(device.queue("nomerges"), "1").unwrap();
    let state = device.scratch.directory("state");
    let tuning = Tuning::apply(&Sys::default(), &inspect(&device), &state).unwrap();
    assert_eq!((value(&device, "scheduler"), value(&device, "nomerges")), ("none".into(), "2".into()));
    let again = Tuning::apply(&Sys::default(), &inspect(&device), &state);
    assert!(matches!(again, Err(TuningError::InUse { .. })));
    assert_eq!(tuning.restore().unwrap().put_back, ["nomerges", "scheduler"]);
    assert_eq!((value(&device, "scheduler"), value(&device, "nomerges")), ("mq-deadline".into(), "1".into()));
    assert_eq!(fs::read_dir(&state).unwrap().count(), 0);
    fs::write(device.queue("scheduler"), "none").unwrap();
    fs::write(device.queue("nomerges"), "0").unwrap();
}

/// Helper for the next test, which starts and kills it: tunes the given device, then waits.
#[test]
fn tunes_and_waits_on_request() {
    let _turn = support::turn();
    let Some(device) = std::env::var_os("HEADTIME_TEST_TUNE") else { return };
    let state = std::env::var_os("HEADTIME_TEST_STATE").unwrap();
    let device = BlockDevice::inspect(&Sys::default(), Path::new(&device)).unwrap();
    let _tuning = Tuning::apply(&Sys::default(), &device, Path::new(&state)).unwrap();
    let _ = std::io::stdin().read(&mut [0]);
}

#[test]
fn a_queue_is_put_back_after_its_process_was_killed_and_not_before() {
    let _turn = support::turn();
    needs!("a_queue_is_put_back_after_its_process_was_killed_and_not_before", "losetup");
    let device = Loop::new("killed", 16);
    fs::write(device.queue("scheduler"), "mq-deadline").unwrap();
    let state = device.scratch.directory("state");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "devices::tunes_and_waits_on_request", "--nocapture"]).stdin(Stdio::piped());
    command.stdout(Stdio::null()).env("HEADTIME_TEST_TUNE", &device.device).env("HEADTIME_TEST_STATE", &state);
    let mut child = Process(command.spawn().unwrap());
    assert!(support::wait_until(|| value(&device, "nomerges") == "2"));
    let sys = Sys::default();
    assert!(matches!(&restore_leftovers(&sys, &state).unwrap()[..],
        [Leftover::InUse { pid, .. }] if *pid == child.0.id()));
    assert_eq!(value(&device, "scheduler"), "none");
    // Killed but not reaped: a zombie does not count as running.
    child.0.kill().unwrap();
    assert!(support::wait_until(|| headtime_host::process::Process::of(&sys, child.0.id()).unwrap().is_none()));
    assert!(matches!(&restore_leftovers(&sys, &state).unwrap()[..], [Leftover::Restored { .. }]));
    assert_eq!((value(&device, "scheduler"), value(&device, "nomerges")), ("mq-deadline".into(), "0".into()));
    assert_eq!(fs::read_dir(&state).unwrap().count(), 0);
    drop(child);
    fs::write(device.queue("scheduler"), "none").unwrap();
}

#[test]
fn a_queue_is_not_put_back_onto_another_file_behind_the_same_loop_device() {
    let _turn = support::turn();
    needs!("a_queue_is_not_put_back_onto_another_file_behind_the_same_loop_device", "losetup");
    let device = Loop::new("another", 16);
    let Some(seq) = inspect(&device).diskseq else {
        return support::skipped("a_queue_is_not_put_back_onto_another_file_behind_the_same_loop_device", "no diskseq");
    };
    let state = device.scratch.directory("state");
    let tuning = Tuning::apply(&Sys::default(), &inspect(&device), &state).unwrap();
    let file = tuning.path().to_path_buf();
    let text = fs::read_to_string(&file).unwrap();
    tuning.restore().unwrap();
    // A state file of a process that has ended, for the disk that had the name before.
    let text = text.replace("\"pid\": ", "\"pid\": 4");
    fs::write(&file, text.replace(&format!("\"diskseq\": {seq}"), &format!("\"diskseq\": {}", seq - 1))).unwrap();
    fs::write(device.queue("nomerges"), "2").unwrap();
    let left = restore_leftovers(&Sys::default(), &state).unwrap();
    assert!(matches!(&left[..], [Leftover::Gone { .. }]), "{left:?}");
    assert_eq!(value(&device, "nomerges"), "2");
    assert!(!file.exists());
    fs::write(device.queue("nomerges"), "0").unwrap();
}
