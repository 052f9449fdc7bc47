//! Background applications in normal use, a server over a block device, and a configuration that is
//! read again.

use std::fs;
use std::os::unix::net::UnixListener;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::nbd_client::{FUA, Nbd};
use super::{SMALL, SMALL_BYTES, Server, finish, headtime, noise, run as shell, scratch, serve};
use crate::support::{self, Loop, wait_until};

/// Runs an application against the server in a directory; returns its status and the JSON object
/// that it printed.
fn run(dir: &Path, arguments: &[&str]) -> (Option<i32>, serde_json::Value, String) {
    let mut command = headtime();
    command.current_dir(dir).env("XDG_STATE_HOME", dir).args(arguments).args(["--control", "control.sock", "--json"]);
    let (status, out, err) = finish(&mut command);
    (status.code(), serde_json::from_str(&out).unwrap_or_default(), err)
}

#[test]
fn scrub_backup_and_tasks_do_what_they_say_over_a_server() {
    let dir = scratch("applications");
    let at = dir.path();
    let data = noise(SMALL_BYTES as usize, 7);
    fs::write(at.join("disk.img"), &data).unwrap();
    let server = Server::start(at, serve(at));
    let (status, report, err) = run(at, &["scrub", "--export", "data", "--catalogue", "sums"]);
    assert_eq!((status, &report["complete"], &report["bytes"]), (Some(0), &true.into(), &(16 << 20).into()), "{err}");
    // Again, after one byte was changed.
    let mut changed = data.clone();
    changed[5_000_000] ^= 1;
    let mut nbd = Nbd::open(&server.socket(), "data").unwrap();
    nbd.write(FUA, 5_000_000 / 4096 * 4096, &changed[5_000_000 / 4096 * 4096..][..4096]).unwrap();
    let (status, report, err) = run(at, &["scrub", "--export", "data", "--catalogue", "sums", "--expect-unchanged"]);
    assert_eq!((status, &report["complete"]), (Some(1), &true.into()), "{report} {err}");
    nbd.write(FUA, 5_000_000 / 4096 * 4096, &data[5_000_000 / 4096 * 4096..][..4096]).unwrap();
    // The journal of one kind of scrub is not another's.
    let (status, report, err) = run(at, &["scrub", "--export", "data", "--catalogue", "sums", "--expect-unchanged"]);
    assert_eq!((status, &report["complete"]), (Some(0), &true.into()), "{report} {err}");

    let (status, report, err) = run(at, &["backup", "image", "--export", "data"]);
    assert_eq!((status, &report["moment"]), (Some(0), &"point-in-time".into()), "{report} {err}");
    assert!(fs::read(at.join("image")).unwrap() == data[..16 << 20], "the image is not the disk");
    let (status, _, err) = run(at, &["backup", "image", "--export", "data"]);
    assert!(status == Some(2) && err.contains("--overwrite"), "{err}");
    assert!(!at.join("image.part").exists() && !at.join("image.sums").exists());

    let ranges = ["task", "read", "--range", "100+8", "--range", "5000+16", "-o", "read"];
    let (status, _, err) = run(at, &ranges);
    assert_eq!(status, Some(0), "{err}");
    let sectors = |lbn: usize, count: usize| &data[lbn * 512..(lbn + count) * 512];
    assert!(fs::read(at.join("read")).unwrap() == [sectors(100, 8), sectors(5000, 16)].concat());
    let (status, _, err) = run(at, &ranges);
    assert!(status == Some(2) && err.contains("--overwrite"), "{err}");
    fs::write(at.join("new"), noise(64 * 512, 9)).unwrap();
    for more in [&[][..], &["--promote"]] {
        let write = ["task", "write", "--range", "2000+64", "--input", "new"];
        let (status, report, err) = run(at, &[&write, more].concat());
        assert_eq!((status, &report["complete"]), (Some(0), &true.into()), "{report} {err}");
        assert!(nbd.read(2000 * 512, 64 * 512).unwrap() == noise(64 * 512, 9));
    }
    drop(nbd);
    assert!(server.stop().0.success());
}

#[test]
fn a_session_has_a_highest_rate_which_can_be_changed() {
    let dir = scratch("at-most");
    let at = dir.path();
    fs::write(at.join("disk.img"), noise(SMALL_BYTES as usize, 7)).unwrap();
    let server = Server::start(at, serve(at));
    let began = Instant::now();
    let (status, report, err) = run(at, &["scrub", "--export", "data", "--at-most", "2"]);
    assert_eq!((status, &report["complete"]), (Some(0), &true.into()), "{report} {err}");
    // 16.8 MB, of which three seconds' worth may come at once.
    assert!(began.elapsed() > Duration::from_secs(5), "{:?}", began.elapsed());
    // At this rate it would take days.
    let mut slow = headtime();
    slow.current_dir(at).env("XDG_STATE_HOME", at).args([
        "scrub",
        "--export",
        "data",
        "--restart",
        "--at-most",
        "0.0001",
    ]);
    slow.args(["--control", "control.sock", "--json"]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut slow = slow.spawn().unwrap();
    let session = || run(at, &["task", "list"]).1["sessions"][0].clone();
    assert!(wait_until(|| session()["max_mb_s"] == 0.0001), "{}", session());
    let number = session()["session"].to_string();
    let change = |rate: &str| {
        let (status, _, err) =
            finish(headtime().current_dir(at).args(["task", "limit", "--control", "control.sock", &number, rate]));
        (status.code(), err)
    };
    for wrong in ["0", "-1", "nan", "fast"] {
        let (status, err) = change(wrong);
        assert!(status == Some(2) && err.contains("expected more than 0"), "{wrong}: {err}");
    }
    assert_eq!(change("1.5").0, Some(0));
    assert_eq!(session()["max_mb_s"], 1.5);
    assert_eq!(change("none").0, Some(0));
    assert!(slow.wait().unwrap().success());
    assert_eq!(change("1").0, Some(2), "the session has ended");
    let (status, _, err) = run(at, &["scrub", "--at-most", "5", "--done-by", "1h"]);
    assert!(status == Some(2) && err.contains("cannot be used with"), "{err}");
    let (status, _, err) = run(at, &["scrub", "--at-most", "5", "--at-least", "6"]);
    assert!(status == Some(2) && err.contains("--at-most"), "{err}");
    assert!(server.stop().0.success());
}

#[test]
fn a_search_finds_every_match_and_a_program_gets_every_block() {
    let dir = scratch("search");
    let at = dir.path();
    let mut data = noise(SMALL_BYTES as usize, 7);
    // At the beginning and the end of the export, and across block boundaries: of 8 KiB, of a
    // sector, and by one byte.
    let needle = b"needle in a disk";
    let places = [0, 8_192 - 5, 3 * 8_192 - 1, 100 * 8_192 - 15, 5_000_000, 511, (16 << 20) - needle.len()];
    places.iter().for_each(|&at| data[at..at + needle.len()].copy_from_slice(needle));
    fs::write(at.join("disk.img"), &data).unwrap();
    let server = Server::start(at, serve(at));
    let sorted = |mut all: Vec<u64>| {
        all.sort_unstable();
        all
    };
    let expected = sorted(places.iter().map(|&at| at as u64).collect());
    let search = |words: &[&str]| {
        let mut command = headtime();
        finish(command.current_dir(at).arg("search").args(words).args(["--control", "control.sock"]))
    };
    let (status, out, err) = search(&["needle in a disk", "--export", "data"]);
    assert!(status.success() && err.contains("matches: 7"), "{err}");
    assert_eq!(sorted(out.lines().map(|line| line.parse().unwrap()).collect()), expected);
    let hex: String = needle.iter().map(|byte| format!("{byte:02x}")).collect();
    let (status, report, err) = run(at, &["search", "--hex", &hex, "--export", "data", "--unit", "64"]);
    assert_eq!((status, &report["offsets"], &report["matches"]), (Some(0), &expected.into(), &7.into()), "{err}");

    // A program sees all of it, each block once.
    let (status, _, err) = search(&["--export", "data", "--program", "cat > blocks"]);
    assert!(status.success(), "{err}");
    let (blocks, mut seen) = (fs::read(at.join("blocks")).unwrap(), vec![0; 16 << 20]);
    let (mut rest, mut bytes) = (&blocks[..], 0);
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let line = std::str::from_utf8(&rest[..end]).unwrap();
        let (first, count) = line.split_once(' ').unwrap();
        let (first, count): (usize, usize) = (first.parse().unwrap(), count.parse().unwrap());
        seen[first..first + count].copy_from_slice(&rest[end + 1..][..count]);
        rest = &rest[end + 1 + count..];
        bytes += count;
    }
    assert!(bytes == 16 << 20 && seen == data[..16 << 20], "{bytes} bytes");
    for (words, why) in [
        (&["--export", "data", "--program", "head -c 100000 > /dev/null"][..], "reads no more"),
        (&["--export", "data", "--program", "exit 3"], "exit status: 3"),
        (&["--export", "data"], "required"),
        (&["a", "--program", "cat"], "cannot be used with"),
        (&["--hex", "abc"], "two hexadecimal digits"),
        (&["", "--export", "data"], "expected 1 to 4096 bytes"),
        (&[&*"a".repeat(600), "--unit", "1"], "expected at least 2 sectors"),
        (&["a", "--export", "none"], "expected one of the exports"),
    ] {
        let (status, _, err) = search(words);
        assert!(status.code() == Some(2) && err.contains(why), "{words:?}: {err}");
    }
    assert!(server.stop().0.success());
}

/// A file system of its own in memory, unmounted at the end.
struct Room(PathBuf);

impl Room {
    fn new(at: PathBuf, size: &str) -> Room {
        fs::create_dir(&at).unwrap();
        shell(Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={size}"), "none"]).arg(&at));
        Room(at)
    }

    /// Uses up all of its free space.
    fn fill(&self) {
        assert!(fs::write(self.0.join("fill"), vec![1; 2 << 20]).is_err(), "it is larger than that");
    }

    fn free(&self) {
        fs::remove_file(self.0.join("fill")).unwrap();
    }

    fn grow(&self, size: &str) {
        shell(Command::new("mount").args(["-o", &format!("remount,size={size}")]).arg(&self.0));
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
fn where_no_room_is_left_it_is_said_and_gone_on_with_when_there_is() {
    crate::needs!("where_no_room_is_left_it_is_said_and_gone_on_with_when_there_is", "mount", "umount");
    let dir = scratch("full");
    let at = dir.path();
    let data = noise(SMALL_BYTES as usize, 11);
    fs::write(at.join("disk.img"), &data).unwrap();
    let room = Room::new(at.join("room"), "1m");
    let server = Server::start(at, serve(at));
    room.fill();
    // The findings are reported although there is no room for a journal that is no longer needed.
    let (status, report, err) = run(at, &["scrub", "--export", "data", "--journal", "room/j"]);
    assert_eq!((status, &report["complete"]), (Some(0), &true.into()), "{err}");
    let catalogue = ["scrub", "--export", "data", "--journal", "j", "--catalogue", "room/sums"];
    let (status, _, err) = run(at, &catalogue);
    assert!(status == Some(2) && err.contains("room/sums: no room is left for it"), "{err}");
    room.free();
    let (status, report, err) = run(at, &catalogue);
    assert_eq!((status, &report["complete"]), (Some(0), &true.into()), "{err}");
    fs::remove_file(at.join("room/sums")).unwrap();

    let (status, _, err) = run(at, &["backup", "room/image", "--export", "data"]);
    assert!(status == Some(2) && err.contains("no room is left for it") && !err.contains("goes on"), "{err}");
    let (status, _, err) = run(at, &["task", "read", "--range", "0+8192", "-o", "room/read"]);
    assert!(status == Some(2) && err.contains("no room is left for it"), "{err}");
    let left: Vec<_> = fs::read_dir(at.join("room")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(left == ["j.lock"], "what cannot be gone on with is removed: {left:?}");
    let live = ["backup", "room/image", "--export", "data", "--live"];
    let (status, _, err) = run(at, &live);
    assert!(status == Some(2) && err.contains("no room is left for it"), "{err}");
    room.grow("64m");
    let (status, _, err) = run(at, &live);
    assert_eq!(status, Some(0), "{err}");
    assert!(fs::read(at.join("room/image")).unwrap() == data[..16 << 20], "the image is not the disk");
    assert!(server.stop().0.success());
}

#[test]
fn ctrl_c_ends_at_once_what_waits_for_a_server_that_says_nothing() {
    let dir = scratch("silent");
    let at = dir.path();
    // As a stopped server: it accepts connections, and never answers.
    let silent = UnixListener::bind(at.join("control.sock")).unwrap();
    for words in
        [&["task", "list"][..], &["task", "pause", "0"], &["scrub"], &["backup", "image"], &["destage", "data"]]
    {
        // A shell's background job, and its tests, ignore the signal.
        let mut command = Command::new("env");
        command.arg("--default-signal=INT").arg(headtime().get_program()).stdin(Stdio::null());
        command.current_dir(at).env("XDG_STATE_HOME", at).args(words).args(["--control", "control.sock"]);
        if words[0] == "destage" {
            command.args(["--nbd", "unix:cached.sock"]);
        }
        let said = at.join("said");
        let mut child = command.stderr(fs::File::create(&said).unwrap()).stdout(Stdio::null()).spawn().unwrap();
        let _connected = silent.accept().unwrap();
        shell(Command::new("kill").arg("-INT").arg(child.id().to_string()));
        let begun = Instant::now();
        let mut status = None;
        wait_until(|| {
            status = child.try_wait().unwrap();
            status.is_some()
        });
        let waited = begun.elapsed();
        let _ = child.kill();
        let status = status.unwrap_or_else(|| panic!("{words:?} does not hear it"));
        let said = fs::read_to_string(&said).unwrap();
        assert!(status.code() == Some(130) || status.signal() == Some(2), "{words:?}: {status}, {waited:?}: {said}");
        // Otherwise the silence is noticed after ten seconds.
        assert!(waited < Duration::from_secs(8), "{words:?}: {waited:?}");
    }
}

/// Without a server each attempt ends at once, and the next one begins a second later.
#[test]
fn the_deadline_of_a_backup_is_that_of_the_command_however_often_it_begins_anew() {
    let dir = scratch("retry");
    let (status, _, err) = run(dir.path(), &["backup", "image", "--retry", "3", "--done-by", "1h"]);
    let left = |line: &str| line.split_once("beginning anew, ")?.1.split_once(" s before")?.0.parse::<u64>().ok();
    let left: Vec<u64> = err.lines().filter_map(left).collect();
    assert_eq!((status, left.len()), (Some(2), 3), "{err}");
    assert!(left[0] < 3600 && left.windows(2).all(|w| w[0] > w[1]) && left[2] > 3500, "{left:?}");
    let (_, _, err) = run(dir.path(), &["backup", "image", "--retry", "1"]);
    assert!(err.contains("beginning anew\n"), "{err}");
}

/// The nice value of a process: field 19 of its status line.
fn nice_of(pid: u32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The name before it may contain anything, including a parenthesis.
    let fields = stat.rsplit_once(')').unwrap().1;
    fields.split_whitespace().nth(16).unwrap().parse().unwrap()
}

#[test]
fn scrub_and_backup_leave_the_processor_to_others_unless_a_rate_was_asked_for() {
    let dir = scratch("nice");
    let at = dir.path();
    let silent = UnixListener::bind(at.join("control.sock")).unwrap();
    let own = nice_of(std::process::id());
    for (words, nice) in [
        (&["scrub"][..], 19),
        (&["backup", "image"], 19),
        (&["scrub", "--at-least", "5"], own),
        (&["backup", "image", "--done-by", "36h"], own),
        (&["task", "list"], own),
    ] {
        let mut command = headtime();
        command.current_dir(at).env("XDG_STATE_HOME", at).args(words).args(["--control", "control.sock"]);
        let mut child = command.stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let _connected = silent.accept().unwrap();
        let found = nice_of(child.id());
        let _ = child.kill();
        let _ = child.wait();
        assert_eq!(found, nice, "{words:?}");
    }
}

#[test]
fn a_reload_takes_weights_over_and_says_what_it_does_not() {
    let dir = scratch("reload");
    let server = Server::start(dir.path(), serve(dir.path()));
    let config = dir.path().join("serve.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("size = \"16 MiB\"", "size = \"8 MiB\"\nweight = 300")).unwrap();
    server.signal("HUP");
    assert!(wait_until(|| server.said().contains("needs a new start: [[export]]")), "{}", server.said());
    assert!(server.said().contains("weight 100 is now 300"), "{}", server.said());
    fs::write(&config, "nothing of the kind").unwrap();
    server.signal("HUP");
    assert!(wait_until(|| server.said().contains("not reloaded: ")), "{}", server.said());
    assert!(server.stop().0.success());
}

#[test]
fn a_block_device_is_served_and_its_queue_is_put_back() {
    const NAME: &str = "a_block_device_is_served_and_its_queue_is_put_back";
    if let Some(why) = support::missing(&["losetup"]) {
        return support::skipped(NAME, &why);
    }
    let _turn = support::turn();
    let disk = Loop::new("served", 0);
    let file = disk.backing();
    fs::File::options().write(true).open(&file).unwrap().set_len(SMALL_BYTES).unwrap();
    support::run("losetup", &["-c", disk.path()]);
    let scheduler = || fs::read_to_string(disk.queue("scheduler")).unwrap();
    if scheduler().contains("mq-deadline") {
        fs::write(disk.queue("scheduler"), "mq-deadline").unwrap();
    }
    let before = scheduler();
    let dir = scratch("device");
    let config = dir.path().join("serve.toml");
    let text = format!(
        "[disk]\ndrive = \"{SMALL}\"\ndevice = \"{}\"\n[listen]\nnbd = [\"unix:nbd.sock\"]\n[[export]]\nname = \"\"\n",
        disk.path()
    );
    fs::write(&config, text).unwrap();
    let start = || {
        let mut command = headtime();
        command.arg("serve").arg(&config);
        Server::start(dir.path(), command)
    };
    let server = start();
    assert!(scheduler().contains("[none]"), "{}", scheduler());
    let (data, mut nbd) = (noise(1 << 20, 3), Nbd::open(&server.socket(), "").unwrap());
    nbd.write(FUA, 8 << 20, &data).unwrap();
    assert!(nbd.read(8 << 20, 1 << 20).unwrap() == data);
    assert!(fs::read(&file).unwrap()[8 << 20..][..1 << 20] == data, "what was written with FUA is not in the file");
    // Another server cannot open it in the meantime.
    let (status, _, err) = finish(headtime().arg("serve").arg(&config));
    assert!(status.code() == Some(2) && !err.is_empty(), "{err}");
    drop(nbd);
    server.kill();
    let server = start();
    assert!(Nbd::open(&server.socket(), "").unwrap().read(8 << 20, 1 << 20).unwrap() == data);
    assert!(server.stop().0.success());
    assert_eq!(scheduler(), before, "its scheduler was not put back");
}
