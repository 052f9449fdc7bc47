//! Dropping privileges permanently, in a process with one thread: so this is a program of its own,
//! without the test harness.

mod support;

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use headtime_host::blockdev::BlockDevice;
use headtime_host::privileges::{Account, PrivilegeError, drop_to};
use headtime_host::sys::Sys;
use headtime_host::tuning::{Leftover, Tuning, restore_leftovers};
use support::Loop;

/// A test; returns why it was skipped, if it was.
type Test = fn() -> Option<String>;

/// A process can drop its privileges only once, so each test is a process.
const TESTS: [(&str, Test); 4] = [
    ("root_is_given_up_for_good", root_is_given_up_for_good),
    ("root_is_not_dropped_to", root_is_not_dropped_to),
    ("what_another_user_left_closed_is_left_to_him", what_another_user_left_closed_is_left_to_him),
    ("an_open_disk_stays_usable_and_its_queue_is_put_back", an_open_disk_stays_usable_and_its_queue_is_put_back),
];

fn main() {
    if let Some(device) = std::env::var_os("HEADTIME_TEST_DEVICE") {
        return use_a_disk_without_privileges(Path::new(&device));
    }
    if let Ok(name) = std::env::var("HEADTIME_TEST_PRIVILEGES") {
        let (name, test) = TESTS.iter().find(|(known, _)| *known == name).expect("a test of this name");
        if let Some(why) = test() {
            support::skipped(name, &why);
        }
        return;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--list") {
        return TESTS.iter().for_each(|(name, _)| println!("{name}: test"));
    }
    let wanted = |name: &str| {
        let filters: Vec<_> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
        filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str()))
    };
    for (name, _) in TESTS.iter().filter(|(name, _)| wanted(name)) {
        let own = std::env::current_exe().unwrap();
        let status = Command::new(own).env("HEADTIME_TEST_PRIVILEGES", name).status().unwrap();
        assert!(status.success(), "{name}: {status}");
        println!("test {name} ... ok");
    }
}

fn root_is_given_up_for_good() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("not root".into());
    }
    let account = Account { uid: 61234, gid: 61235 };
    drop_to(&Sys::default(), account).unwrap();
    assert_eq!(rustix::process::getuid().as_raw(), 61234);
    assert_eq!(rustix::process::getgid().as_raw(), 61235);
    assert!(rustix::thread::no_new_privs().unwrap());
    assert!(rustix::thread::capabilities(None).unwrap().permitted.is_empty());
    assert!(fs::File::open("/etc/shadow").is_err());
    // Threads started later have no privileges either.
    std::thread::spawn(|| assert!(fs::File::open("/etc/shadow").is_err())).join().unwrap();
    // A second call with the same account succeeds; one with another account fails.
    drop_to(&Sys::default(), account).unwrap();
    let other = drop_to(&Sys::default(), Account { uid: 61236, gid: 61235 });
    assert!(matches!(other, Err(PrivilegeError::NotRoot { wanted: 61236, own: 61234 })));
    None
}

fn what_another_user_left_closed_is_left_to_him() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("not root".into());
    }
    let scratch = support::Scratch::new("closed");
    let state = scratch.directory("state");
    fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).unwrap();
    // The directory is removed at the end, without root's privileges.
    chown(scratch.path(), Some(61234), None).unwrap();
    drop_to(&Sys::default(), Account { uid: 61234, gid: 61235 }).unwrap();
    assert!(fs::read_dir(&state).is_err());
    assert!(restore_leftovers(&Sys::default(), &state).unwrap().is_empty());
    fs::remove_dir(&state).unwrap();
    None
}

fn root_is_not_dropped_to() -> Option<String> {
    let refusal = drop_to(&Sys::default(), Account { uid: 0, gid: 0 });
    assert!(matches!(refusal, Err(PrivilegeError::StaysRoot)));
    None
}

fn an_open_disk_stays_usable_and_its_queue_is_put_back() -> Option<String> {
    if let Some(why) = support::missing(&["losetup"]) {
        return Some(why);
    }
    let device = Loop::new("dropped", 16);
    fs::write(device.queue("scheduler"), "mq-deadline").unwrap();
    let state = device.scratch.directory("state");
    // A process without privileges cannot remove the device: this process does.
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.env("HEADTIME_TEST_DEVICE", &device.device).env("HEADTIME_TEST_STATE", &state);
    assert!(child.status().unwrap().success());
    assert!(fs::read_to_string(device.queue("scheduler")).unwrap().contains("[mq-deadline]"));
    fs::write(device.queue("scheduler"), "none").unwrap();
    // A state file that could not be removed without privileges is recognised as restored.
    assert_eq!(fs::read_dir(&state).unwrap().count(), 1);
    let left = restore_leftovers(&Sys::default(), &state).unwrap();
    assert!(matches!(&left[..], [Leftover::Restored { .. }]), "{left:?}");
    assert_eq!(fs::read_dir(&state).unwrap().count(), 0);
    None
}

/// The process that opens the disk, drops its privileges, and restores the queue.
fn use_a_disk_without_privileges(device: &Path) {
    let sys = Sys::default();
    let state = PathBuf::from(std::env::var_os("HEADTIME_TEST_STATE").unwrap());
    let device = BlockDevice::inspect(&sys, device).unwrap();
    let disk = File::from(device.open(false).unwrap());
    let tuning = Tuning::apply(&sys, &device, &state).unwrap();
    drop_to(&sys, Account { uid: 61234, gid: 61235 }).unwrap();
    assert!(device.open(false).is_err());
    assert!(fs::write(device.disk_directory().join("queue/nomerges"), "1").is_err());
    // Direct I/O needs a sector-aligned buffer, taken from a larger one.
    let buffer = vec![7u8; 8192];
    let at = buffer.as_ptr().align_offset(4096);
    assert_eq!(disk.write_at(&buffer[at..at + 4096], 4096).unwrap(), 4096);
    disk.sync_all().unwrap();
    let restored = tuning.restore().unwrap();
    assert_eq!((restored.put_back.len(), restored.file_left.is_some()), (2, true));
}
