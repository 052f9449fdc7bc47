//! Tests with real exports: the requests that reach the server, cleanup, and failures.

use std::fs;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support;
use crate::support::{Mount, Process, Scratch, run, wait_until};
use headtime_host::attach::{AttachError, Attached, Attachments, Export, Means, Method, Status, become_flusher};
use headtime_host::blockdev::{BlockDevice, UseError, WriteCache};
use headtime_host::process;
use headtime_host::sys::Sys;
use rustix::fs::OFlags;

const PROGRAMS: [&str; 6] = ["losetup", "nbdkit", "nbdfuse", "fusermount3", "setsid", "mkfs.ext4"];

/// A server with 64 MiB of memory that logs its requests, and a test's attachments, which are
/// detached when it is dropped.
struct Served {
    host: Attachments,
    server: Process,
    uri: String,
    log: PathBuf,
    scratch: Scratch,
}

impl Served {
    fn new(name: &str) -> Served {
        Served::with(name, &["memory", "64M"])
    }

    fn with(name: &str, plugin: &[&str]) -> Served {
        let scratch = Scratch::new(name);
        let (socket, log) = (scratch.path().join("server.sock"), scratch.path().join("log"));
        let mut command = Command::new("nbdkit");
        command.arg("-f").arg("-U").arg(&socket).arg("--filter=log").args(plugin);
        command.arg(format!("logfile={}", log.display())).stdin(Stdio::null()).stderr(Stdio::null());
        let server = Process(command.spawn().unwrap());
        assert!(wait_until(|| socket.exists()), "the server did not start");
        let host = Attachments::in_directory(scratch.path().join("state"));
        let uri = format!("nbd+unix:///?socket={}", socket.display());
        Served { host, server, uri, log, scratch }
    }

    fn export(&self, name: &str) -> Export {
        Export { method: Method::Fuse, ..Export::new(&self.uri, name) }
    }

    fn attach(&self) -> Attached {
        self.host.attach(&self.export("disk0")).unwrap()
    }

    /// Returns the requests that reached the server while `what` ran.
    fn asked(&self, what: impl FnOnce()) -> Vec<String> {
        let before = fs::read_to_string(&self.log).unwrap().lines().count();
        what();
        // A request is logged before it is answered, so all are in the log.
        let log = fs::read_to_string(&self.log).unwrap();
        let begins = log.lines().skip(before).filter(|line| line.ends_with("..."));
        // Without date, time and connection.
        begins.map(|line| line.split(' ').skip(3).collect::<Vec<_>>().join(" ")).collect()
    }

    /// Asserts that no file, mount, process or device remains.
    fn assert_clean(&self) {
        assert_eq!(fs::read_dir(&self.host.state_dir).unwrap().count(), 0);
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let place = self.scratch.path().to_str().unwrap();
        assert!(!mounts.contains(place), "{mounts}");
        assert!(!run("losetup", &["--list", "--noheadings", "--output", "BACK-FILE"]).contains(place));
        for process in fs::read_dir("/proc").unwrap().flatten() {
            let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line);
            assert!(!(line.contains("nbdfuse") && line.contains(place)), "{line}");
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        for listed in self.host.list().unwrap_or_default().into_iter().flatten() {
            let _ = self.host.detach(&listed.attached.name);
        }
    }
}

fn device(attached: &Attached) -> PathBuf {
    attached.device.clone().unwrap()
}

fn server_of(attached: &Attached) -> process::Process {
    match &attached.means {
        Means::Fuse { server, .. } => server.clone().unwrap(),
        Means::Kernel { .. } => panic!("not by way of FUSE"),
    }
}

fn count(asked: &[String], what: &str) -> usize {
    asked.iter().filter(|line| line.starts_with(what)).count()
}

fn direct(device: &Path, flags: OFlags) -> fs::File {
    let flags = (flags | OFlags::DIRECT).bits().cast_signed();
    fs::OpenOptions::new().read(true).write(true).custom_flags(flags).open(device).unwrap()
}

/// Provides a buffer aligned for direct I/O.
fn sectors(bytes: usize, with: impl FnOnce(&mut [u8])) {
    let mut buffer = vec![0x5a; bytes + 4096];
    let at = buffer.as_ptr().align_offset(4096);
    with(&mut buffer[at..at + bytes]);
}

#[test]
fn a_file_system_on_an_attached_export_is_whole_and_nothing_is_left_of_it() {
    let _turn = support::turn();
    const NAME: &str = "a_file_system_on_an_attached_export_is_whole_and_nothing_is_left_of_it";
    if let Some(why) = support::missing(&PROGRAMS).or_else(|| support::missing_program(&["fsck.ext4"])) {
        return support::skipped(NAME, &why);
    }
    let served = Served::new("attach-ext4");
    let attached = served.attach();
    let path = device(&attached);
    assert!(attached.warnings.iter().all(|warning| warning.starts_with("nbdfuse")), "{:?}", attached.warnings);
    let found = BlockDevice::inspect(&Sys::default(), &path).unwrap();
    assert_eq!((found.size, found.logical_sector, found.read_only), (64 << 20, 512, false));
    assert!(found.rotational);
    assert!(fs::read_to_string(found.disk_directory().join("queue/scheduler")).unwrap().contains("[none]"));
    assert_eq!(found.write_cache, WriteCache::Back, "without it, no flush would ever be sent");
    let listed = served.host.list().unwrap().remove(0).unwrap();
    assert_eq!((listed.attached, listed.status), (attached.clone(), Status::Working));

    run("mkfs.ext4", &["-q", path.to_str().unwrap()]);
    let at = served.scratch.directory("at");
    let mount = Mount::new(&path, at.clone());
    let data: Vec<u8> = (0..8u32 << 20).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::write(at.join("data"), &data).unwrap();
    match served.host.detach("disk0").unwrap_err() {
        AttachError::Used(UseError::Mounted { at: found, .. }) => assert_eq!(found, at),
        e => panic!("{e}"),
    }
    assert_eq!(fs::read(at.join("data")).unwrap(), data);
    drop(mount);
    run("fsck.ext4", &["-f", "-n", path.to_str().unwrap()]);

    // Detached by the device's name; the second call has no effect.
    let detached = served.host.detach(path.to_str().unwrap()).unwrap().unwrap();
    assert_eq!((detached.attached, detached.unflushed), (attached, None));
    assert_eq!(served.host.detach("disk0").unwrap(), None);
    served.assert_clean();

    // The data is at the server and visible through the next attachment.
    let again = served.attach();
    let mount = Mount::new(&device(&again), at.clone());
    assert_eq!(fs::read(at.join("data")).unwrap(), data);
    drop(mount);
    served.host.detach("disk0").unwrap().unwrap();
    served.assert_clean();
}

#[test]
fn flushes_and_forced_writes_reach_the_server_and_nothing_is_cached_on_the_way() {
    let _turn = support::turn();
    const NAME: &str = "flushes_and_forced_writes_reach_the_server_and_nothing_is_cached_on_the_way";
    if let Some(why) = support::missing(&PROGRAMS).or_else(|| support::missing_program(&["blkdiscard"])) {
        return support::skipped(NAME, &why);
    }
    let served = Served::new("attach-flush");
    let attached = served.attach();
    let path = device(&attached);
    let file = direct(&path, OFlags::empty());
    // Programs that probe new devices have done so by then.
    std::thread::sleep(std::time::Duration::from_millis(300));

    let asked = served.asked(|| file.sync_all().unwrap());
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(count(&asked, "Flush"), 1, "{asked:?}");

    // A minimum-size write reaches the server unchanged: no reads around it, no flush.
    let asked = served.asked(|| sectors(512, |bytes| assert_eq!(file.write_at(bytes, 1536).unwrap(), 512)));
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert!(asked[0].contains("offset=0x600 count=0x200"), "{asked:?}");

    // A FUA write (`O_DSYNC`) completes only after a flush that follows it.
    let forced = direct(&path, OFlags::DSYNC);
    let asked = served.asked(|| sectors(4096, |bytes| assert_eq!(forced.write_at(bytes, 8192).unwrap(), 4096)));
    assert_eq!(count(&asked, "Write"), 1, "{asked:?}");
    let flush = asked.iter().rposition(|line| line.starts_with("Flush")).expect("a flush");
    assert!(flush > asked.iter().position(|line| line.starts_with("Write")).unwrap(), "{asked:?}");

    // There is no cache in between: each read reaches the server.
    for _ in 0..2 {
        let asked = served.asked(|| sectors(4096, |bytes| assert_eq!(file.read_at(bytes, 8192).unwrap(), 4096)));
        assert_eq!(asked.len(), 1, "{asked:?}");
        assert!(asked[0].starts_with("Read") && asked[0].contains("offset=0x2000 count=0x1000"), "{asked:?}");
    }

    // One write through the page cache reaches the server with the fsync, followed by a flush.
    let buffered = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let asked = served.asked(|| {
        buffered.write_at(&[7; 4096], 1 << 20).unwrap();
        buffered.sync_all().unwrap();
    });
    assert_eq!((count(&asked, "Write"), count(&asked, "Flush")), (1, 1), "{asked:?}");
    drop((file, forced, buffered));

    // The tool itself reads the device, so only the trim is checked.
    let asked = served.asked(|| drop(run("blkdiscard", &["-f", "-o", "1M", "-l", "1M", path.to_str().unwrap()])));
    let trims: Vec<_> = asked.iter().filter(|line| line.starts_with("Trim")).collect();
    assert!(trims.len() == 1 && trims[0].contains("offset=0x100000 count=0x100000"), "{asked:?}");

    // Detaching flushes unflushed writes.
    let dirty = direct(&path, OFlags::empty());
    sectors(4096, |bytes| assert_eq!(dirty.write_at(bytes, 0).unwrap(), 4096));
    drop(dirty);
    let asked = served.asked(|| assert_eq!(served.host.detach("disk0").unwrap().unwrap().unflushed, None));
    assert!(count(&asked, "Flush") >= 1, "{asked:?}");
    served.assert_clean();
}

#[test]
fn nbdfuse_has_a_session_of_its_own_and_does_not_wait_for_its_own_writes() {
    let _turn = support::turn();
    const NAME: &str = "nbdfuse_has_a_session_of_its_own_and_does_not_wait_for_its_own_writes";
    if let Some(why) = support::missing(&PROGRAMS) {
        return support::skipped(NAME, &why);
    }
    let served = Served::new("attach-session");
    let attached = served.attach();
    let server = server_of(&attached);
    let tasks = PathBuf::from(format!("/proc/{}/task", server.pid));
    let may = std::thread::spawn(|| become_flusher().is_ok()).join().unwrap();
    for task in fs::read_dir(&tasks).unwrap() {
        let stat = fs::read_to_string(task.unwrap().path().join("stat")).unwrap();
        let fields: Vec<&str> = stat[stat.rfind(')').unwrap() + 2..].split(' ').collect();
        assert_eq!(fields[3], server.pid.to_string(), "a session of its own");
        // Bit 19 of the flags: allocations do not start I/O. The kernel shows it only here.
        let flags: u64 = fields[6].parse().unwrap();
        assert!(!may || flags & (1 << 19) != 0, "{flags:#x}");
    }
    if may {
        let spared = fs::read_to_string(format!("/proc/{}/oom_score_adj", server.pid)).unwrap();
        assert_eq!(spared.trim(), "-1000");
        assert!(attached.warnings.is_empty(), "{:?}", attached.warnings);
    } else {
        assert_eq!(attached.warnings.len(), 2, "{:?}", attached.warnings);
        support::skipped(NAME, "the part about memory: CAP_SYS_RESOURCE is missing");
    }
    assert!(!rustix::process::is_io_flusher().unwrap_or(false), "this thread is what it was");
    served.host.detach("disk0").unwrap().unwrap();
    served.assert_clean();
}

#[test]
fn sectors_and_refusing_writes_are_as_asked_for() {
    let _turn = support::turn();
    const NAME: &str = "sectors_and_refusing_writes_are_as_asked_for";
    if let Some(why) = support::missing(&PROGRAMS) {
        return support::skipped(NAME, &why);
    }
    let served = Served::new("attach-options");
    let export = Export { sector_size: 4096, read_only: true, rotational: false, ..served.export("disk0") };
    let attached = served.host.attach(&export).unwrap();
    let found = BlockDevice::inspect(&Sys::default(), &device(&attached)).unwrap();
    assert_eq!((found.logical_sector, found.read_only, found.rotational), (4096, true, false));
    served.host.detach("disk0").unwrap().unwrap();

    let uneven = Served::with("attach-uneven", &["memory", "1000000"]);
    let e = uneven.host.attach(&uneven.export("disk0")).unwrap_err();
    assert!(matches!(e, AttachError::Uneven { size: 1_000_000, sector: 512, .. }), "{e}");
    uneven.assert_clean();
    let empty = Served::with("attach-empty", &["memory", "0"]);
    let e = empty.host.attach(&empty.export("disk0")).unwrap_err();
    assert!(matches!(e, AttachError::Empty { .. }), "{e}");
    empty.assert_clean();
}

#[test]
fn a_failure_at_any_step_leaves_nothing() {
    let _turn = support::turn();
    const NAME: &str = "a_failure_at_any_step_leaves_nothing";
    if let Some(why) = support::missing(&PROGRAMS) {
        return support::skipped(NAME, &why);
    }
    use headtime_host::attach::programs::Programs;
    let mut served = Served::new("attach-fails");
    // No server at all.
    let nowhere = Export { uri: "nbd+unix:///?socket=/no/such/socket".into(), ..served.export("disk0") };
    let e = served.host.attach(&nowhere).unwrap_err();
    assert!(matches!(&e, AttachError::Ended { said, .. } if said.contains("No such file")), "{e}");
    served.assert_clean();
    // A server but no loop device; then a loop device without direct I/O.
    let bin = served.scratch.directory("bin");
    let script = |text: &str| {
        // Another thread's child would inherit a file that this process writes, and keep it busy.
        let write = r#"printf '#!/bin/sh\n%s\n' "$2" > "$1" && chmod 755 "$1""#;
        let path = bin.join("losetup");
        let done = Command::new("/bin/sh").args(["-c", write, "sh"]).arg(path).arg(text).status();
        assert!(done.unwrap().success());
    };
    let usual = std::env::var_os("PATH").unwrap();
    let usual = || std::env::split_paths(&usual).chain(["/usr/sbin".into(), "/sbin".into()]);
    served.host.programs = Programs::within([bin.clone()].into_iter().chain(usual()));
    script("echo cannot find an unused loop device >&2; exit 1");
    let e = served.host.attach(&served.export("disk0")).unwrap_err().to_string();
    assert!(e.contains("cannot find an unused loop device"), "{e}");
    served.assert_clean();
    let real = usual().map(|place| place.join("losetup")).find(|path| path.is_file()).unwrap();
    script(&format!(
        "case $1 in --direct-io=on) shift; set -- --direct-io=off \"$@\";; esac\nexec {} \"$@\"",
        real.display()
    ));
    let e = served.host.attach(&served.export("disk0")).unwrap_err();
    assert!(matches!(e, AttachError::NotDirect { .. }), "{e}");
    served.assert_clean();
}

#[test]
fn what_broke_is_seen_and_can_be_detached() {
    let _turn = support::turn();
    const NAME: &str = "what_broke_is_seen_and_can_be_detached";
    if let Some(why) = support::missing(&PROGRAMS) {
        return support::skipped(NAME, &why);
    }
    let mut served = Served::new("attach-broken");
    let attached = served.attach();
    // nbdfuse is killed.
    let server = server_of(&attached);
    run("kill", &["-KILL", &server.pid.to_string()]);
    assert!(wait_until(|| !server.is_running(&Sys::default()).unwrap()));
    let listed = served.host.list().unwrap().remove(0).unwrap();
    assert_eq!(listed.status, Status::Broken { what: "nbdfuse has ended" });
    assert!(matches!(served.host.attach(&served.export("disk0")), Err(AttachError::Taken { .. })));
    let detached = served.host.detach("disk0").unwrap().unwrap();
    assert!(detached.unflushed.is_some());
    served.assert_clean();
    // The server is killed.
    served.attach();
    served.server.0.kill().unwrap();
    served.server.0.wait().unwrap();
    let detached = served.host.detach("disk0").unwrap().unwrap();
    assert!(detached.unflushed.is_some());
    served.assert_clean();
}

#[test]
fn a_device_that_is_open_somewhere_goes_when_it_is_closed() {
    let _turn = support::turn();
    const NAME: &str = "a_device_that_is_open_somewhere_goes_when_it_is_closed";
    if let Some(why) = support::missing(&PROGRAMS) {
        return support::skipped(NAME, &why);
    }
    let mut served = Served::new("attach-open");
    served.host.within = std::time::Duration::from_secs(2);
    let attached = served.attach();
    let open = fs::File::open(device(&attached)).unwrap();
    match served.host.detach("disk0").unwrap_err() {
        AttachError::StillOpen { device: found } => assert_eq!(found, device(&attached)),
        e => panic!("{e}"),
    }
    assert_eq!(served.host.list().unwrap().len(), 1);
    drop(open);
    served.host.detach("disk0").unwrap().unwrap();
    served.assert_clean();
}

/// Helper for the next test, which starts and kills it: attaches the export it is given.
#[test]
fn attaches_on_request() {
    let _turn = support::turn();
    let Some(uri) = std::env::var_os("HEADTIME_TEST_URI") else { return };
    let host = Attachments::in_directory(std::env::var_os("HEADTIME_TEST_STATE").unwrap());
    let export = Export { method: Method::Fuse, ..Export::new(uri.to_str().unwrap(), "disk0") };
    host.attach(&export).unwrap();
}

#[test]
fn a_process_killed_at_any_moment_of_attaching_leaves_what_another_takes_away() {
    let _turn = support::turn();
    const NAME: &str = "a_process_killed_at_any_moment_of_attaching_leaves_what_another_takes_away";
    if let Some(why) = support::missing(&PROGRAMS) {
        return support::skipped(NAME, &why);
    }
    let served = Served::new("attach-killed");
    fs::create_dir_all(&served.host.state_dir).unwrap();
    for millis in (0..100).step_by(7) {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "attaching::attaches_on_request"]).stdin(Stdio::null()).stdout(Stdio::null());
        command.env("HEADTIME_TEST_URI", &served.uri).env("HEADTIME_TEST_STATE", &served.host.state_dir);
        let mut child = Process(command.spawn().unwrap());
        std::thread::sleep(std::time::Duration::from_millis(millis));
        child.0.kill().unwrap();
        child.0.wait().unwrap();
        // A losetup that was started before its parent was killed may still complete.
        std::thread::sleep(std::time::Duration::from_millis(200));
        served.host.detach("disk0").unwrap();
        let left: Vec<_> = fs::read_dir(&served.host.state_dir).unwrap().flatten().collect();
        // A temporary file that was never renamed is not an attachment.
        assert!(left.iter().all(|file| file.file_name().to_string_lossy().ends_with(".tmp")), "{millis} ms: {left:?}");
        left.iter().for_each(|file| fs::remove_file(file.path()).unwrap());
        served.assert_clean();
    }
}
