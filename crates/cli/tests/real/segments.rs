//! A drive larger than the largest file of many file systems, in a directory of segments.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::nbd_client::Nbd;
use super::{Server, finish, headtime, noise, run, scratch, socket};
use crate::support::wait_until;

const BYTES: u64 = 4_882_956_288 * 4096;
const SEGMENT: u64 = 1 << 40;
const DATA: usize = 48 << 10;
/// Near the beginning, across the ends of the first and of the last whole segment, and at the very
/// end.
const PLACES: [u64; 4] = [8192, SEGMENT - (20 << 10), 18 * SEGMENT - (32 << 10), BYTES - DATA as u64];

fn disk(dir: &Path, drive: &str, backing: &str) -> Command {
    let mut command = headtime();
    command.args(["disk", drive, "--backing"]).arg(dir.join(backing));
    command.arg("--nbd").arg(format!("unix:{}", socket(dir).display()));
    command
}

fn serve(dir: &Path) -> Command {
    let config = "[disk]\ndrive = \"nearline-20tb\"\nbacking = \"drive.d/\"\n[listen]\nnbd = \
            [\"unix:nbd.sock\"]\ncontrol = \"control.sock\"\n[[export]]\nname = \"\"\n";
    fs::write(dir.join("serve.toml"), config).unwrap();
    let mut serve = headtime();
    serve.arg("serve").arg(dir.join("serve.toml"));
    serve
}

fn refused(mut command: Command) -> String {
    let (status, out, err) = finish(&mut command);
    assert_eq!((status.code(), out.as_str(), err.lines().count()), (Some(2), "", 1), "{err}");
    err
}

fn check(server: &Server) {
    let mut nbd = Nbd::open(&server.socket(), "").unwrap();
    assert_eq!(nbd.size, BYTES);
    for (n, &at) in PLACES.iter().enumerate() {
        assert!(nbd.read(at, DATA as u32).unwrap() == noise(DATA, n as u64), "at {at}");
        let before = nbd.read(at - 4096, 8192).unwrap();
        assert!(before[..4096] == [0; 4096] && before[4096..] == noise(DATA, n as u64)[..4096], "before {at}");
    }
    assert!(nbd.read(2 * SEGMENT - 4096, 8192).unwrap() == [0; 8192], "never written");
}

#[test]
fn a_drive_of_20_tb_keeps_what_is_written_across_its_segments() {
    let dir = scratch("segments");
    let dir = dir.path();
    let server = Server::start(dir, disk(dir, "nearline-20tb", "drive.d/"));
    let mut nbd = Nbd::open(&server.socket(), "").unwrap();
    for (n, &at) in PLACES.iter().enumerate() {
        nbd.write(0, at, &noise(DATA, n as u64)).unwrap();
    }
    nbd.flush().unwrap();
    check(&server);
    let mut second = disk(dir, "nearline-20tb", "drive.d");
    second.arg("--nbd").arg(format!("unix:{}", dir.join("other.sock").display()));
    let e = refused(second);
    assert!(e.contains("drive.d/segment-000000: another virtual drive uses it"), "{e}");
    drop(nbd);
    assert!(server.stop().0.success());

    let mut files: Vec<_> = fs::read_dir(dir.join("drive.d")).unwrap().map(|e| e.unwrap()).collect();
    files.sort_by_key(|f| f.file_name());
    let found: Vec<_> = files.iter().map(|f| f.metadata().unwrap()).map(|m| (m.len(), m.blocks() > 0)).collect();
    // 18 whole ones and the rest, and data where it was written.
    let expected = |n: u64| (SEGMENT.min(BYTES - n * SEGMENT), [0, 1, 17, 18].contains(&n));
    assert_eq!(found, (0..19).map(expected).collect::<Vec<_>>());

    // A scheduler in front of it finds the same data.
    let server = Server::start(dir, serve(dir));
    check(&server);
    assert!(server.stop().0.success());

    let e = refused(disk(dir, "atlas10k", "drive.d/"));
    let [expected, found] = ["bytes (1)", "found segment-000018, too"];
    assert!(e.contains(expected) && e.contains(found), "{e}");
    fs::remove_file(files[7].path()).unwrap();
    let e = refused(disk(dir, "nearline-20tb", "drive.d/"));
    let missing = format!("drive.d/: expected the segments of a drive of {BYTES} bytes (19), found no segment-000007");
    assert!(e.contains(&missing), "{e}");
}

#[test]
fn a_scrub_of_20_tb_goes_on_from_its_journal_after_the_server_was_killed() {
    let dir = scratch("large-scrub");
    let dir = dir.path();
    // Scrubs until its journal was written `times` times, then stops; returns the units done in
    // all.
    let scrub = |times: u32| {
        let done = || fs::read(dir.join("journal")).map_or(0, |journal| done(&journal));
        let (mut before, mut left) = (done(), times);
        let mut command = headtime();
        command.current_dir(dir).args(["scrub", "--control", "control.sock", "--journal", "journal", "--json"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut is_written = || {
            let now = done();
            left -= u32::from(now != before);
            before = now;
            left == 0
        };
        // A machine with other work may take several times as long.
        let written = (0..5).any(|_| wait_until(&mut is_written));
        assert!(written, "it does nothing");
        run(Command::new("kill").arg("-INT").arg(child.id().to_string()));
        let report = child.wait_with_output().unwrap();
        let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
        assert_eq!(report["complete"], false, "{report}");
        report["bytes"].as_u64().unwrap()
    };
    let server = Server::start(dir, serve(dir));
    let first = scrub(2);
    server.kill();
    let server = Server::start(dir, serve(dir));
    // One that began anew would have done half as much at the first write of its journal.
    let second = scrub(1);
    println!("{first} bytes, then {second}; the server takes {} bytes", server.memory());
    assert!(first > 0 && second > first && second < BYTES / 1000, "{first} {second}");
    assert!(server.stop().0.success());
}

/// Units done by a journal: the bits after its two lines, before the checksum.
fn done(journal: &[u8]) -> u64 {
    let mut lines = journal.splitn(3, |&b| b == b'\n');
    let bits = lines.nth(2).unwrap();
    bits[..bits.len() - 8].iter().map(|b| u64::from(b.count_ones())).sum()
}

#[test]
fn a_file_system_whose_files_are_too_short_for_the_drive_is_reported_with_a_remedy() {
    let dir = scratch("short-files");
    let dir = dir.path();
    // A process limit stands for the file system's: the kernel reports the same.
    let limited = |backing: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' XFSZ; ulimit -f 1000; exec \"$@\"", "sh"]);
        let disk = disk(dir, "nearline-20tb", backing);
        command.arg(disk.get_program()).args(disk.get_args());
        refused(command)
    };
    let e = limited("disk.img");
    assert!(e.contains(&format!("disk.img: expected a file system with files of {BYTES} bytes")), "{e}");
    assert!(e.contains("--backing DIR/") && e.contains("backing = \"DIR/\""), "{e}");
    assert!(!dir.join("disk.img").exists(), "the name is free for a directory");
    let e = limited("drive.d/");
    assert!(e.contains("drive.d/segment-000001: File too large"), "{e}");
    // Without the limit, the failed start is continued.
    let server = Server::start(dir, disk(dir, "nearline-20tb", "drive.d/"));
    assert!(server.stop().0.success());
    fs::write(dir.join("disk.img"), "a letter").unwrap();
    let e = refused(disk(dir, "nearline-20tb", "disk.img/"));
    assert!(e.contains("disk.img/: expected a directory or nothing there, found a file"), "{e}");
}

#[test]
fn segments_are_as_long_as_the_file_system_supports() {
    let dir = scratch("fat");
    let dir = dir.path();
    let lengths = || {
        let lengths = fs::read_dir(dir.join("drive.d")).unwrap().map(|e| e.unwrap().metadata().unwrap().len());
        let mut lengths: Vec<_> = lengths.collect();
        lengths.sort_unstable();
        lengths
    };
    // A process limit stands for the file system's: 4 GiB less one block, nearly as on FAT.
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 8388607; exec \"$@\"", "sh"]);
    let whole = disk(dir, "atlas10k", "drive.d/");
    limited.arg(whole.get_program()).args(whole.get_args());
    let server = Server::start(dir, limited);
    let mut nbd = Nbd::open(&server.socket(), "").unwrap();
    let (bytes, gib) = (nbd.size, 1 << 30);
    nbd.write(0, (2 << 30) - 4096, &noise(DATA, 3)).unwrap();
    nbd.flush().unwrap();
    drop(nbd);
    assert!(server.stop().0.success());
    let count = bytes / (2 * gib);
    let expected: Vec<_> = [vec![bytes - count * 2 * gib], vec![2 * gib; count as usize]].concat();
    assert!(lengths() == expected && count > 2, "{:?}", lengths());
    // Without the limit, its segments stay as they are.
    let server = Server::start(dir, disk(dir, "atlas10k", "drive.d/"));
    let mut nbd = Nbd::open(&server.socket(), "").unwrap();
    assert!(nbd.read((2 << 30) - 4096, DATA as u32).unwrap() == noise(DATA, 3));
    assert!(server.stop().0.success() && lengths() == expected);
}
