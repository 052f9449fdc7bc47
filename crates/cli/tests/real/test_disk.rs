//! `headtime disk` as a disk for tests: faults, power failures, lateness, and examples for a CI.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::nbd_client::{FUA, Nbd};
use super::{SMALL, Server, disk, finish, headtime, next, noise, run, scratch};
use crate::support;

const EIO: Option<i32> = Some(5);
/// What NBD says of a device that is gone.
const ESHUTDOWN: Option<i32> = Some(108);

fn control(dir: &Path) -> PathBuf {
    dir.join("fault.sock")
}

/// The small drive with these options and a control socket.
fn start(dir: &Path, options: &[&str]) -> Server {
    let mut command = disk(dir);
    command.arg("--control").arg(control(dir)).args(options);
    Server::start(dir, command)
}

fn fault(dir: &Path, words: &[&str]) -> String {
    run(headtime().arg("fault").args(words).arg("--control").arg(control(dir)))
}

fn status(dir: &Path) -> serde_json::Value {
    serde_json::from_str(&fault(dir, &["list", "--json"])).unwrap()
}

fn errno<T>(result: std::io::Result<T>) -> Option<i32> {
    result.err().map(|e| e.raw_os_error().unwrap_or(-1))
}

#[test]
fn faults_of_a_file_and_of_commands_are_what_a_client_observes() {
    let dir = scratch("faults");
    let dir = dir.path();
    let file = dir.join("faults.toml");
    let text = "[[fault]]\nkind = \"unreadable\"\nstart = \"1 MiB\"\nsize = \"4 KiB\"\n\
                [[fault]]\nkind = \"hang\"\nfor = \"300ms\"\nafter-commands = 1000000\n";
    fs::write(&file, text).unwrap();
    let server = start(dir, &["--fault", file.to_str().unwrap()]);
    let mut nbd = Nbd::open(&server.socket(), "").unwrap();
    assert_eq!(errno(nbd.read(1 << 20, 512)), EIO);
    assert_eq!(errno(nbd.read((1 << 20) + 4096, 512)), None);
    // As a drive does, it replaces a sector when it is written.
    nbd.write(0, 1 << 20, &noise(512, 1)).unwrap();
    assert_eq!(nbd.read(1 << 20, 512).unwrap(), noise(512, 1));
    assert_eq!(errno(nbd.read(1 << 20, 1024)), EIO);
    let now = status(dir);
    assert_eq!((&now["faults"][0]["unreadable_sectors"], &now["faults"][1]["state"]), (&7.into(), &"waiting".into()));
    assert_eq!(fault(dir, &["clear", "1"]), "1 cleared\n");
    assert_eq!(errno(nbd.read(1 << 20, 4096)), None);

    assert_eq!(fault(dir, &["add", "slow", "--start", "0", "--size", "1MiB", "--revolutions", "3"]), "3\n");
    assert_eq!(fault(dir, &["add", "failure", "--after-commands", "1"]), "4\n");
    assert_eq!((errno(nbd.read(0, 512)), errno(nbd.read(0, 512))), (None, ESHUTDOWN));
    let list = fault(dir, &["list"]);
    assert!(list.contains("4  failure") && list.contains("start 0 size 1048576 revolutions 3"), "{list}");
    assert_eq!(fault(dir, &["clear"]), "3 cleared\n");
    assert_eq!((errno(nbd.read(0, 512)), status(dir)["faults"].as_array().unwrap().len()), (None, 0));

    // What is wrong is said in one line, and changes nothing.
    let refused = |words: &[&str]| {
        let (status, out, err) = finish(headtime().arg("fault").args(words).arg("--control").arg(control(dir)));
        assert_eq!((status.code(), out.as_str(), err.lines().count()), (Some(2), "", 1), "{err}");
        err
    };
    assert!(refused(&["add", "unreadible", "--start", "0"]).contains("the closest is `unreadable`"));
    assert!(refused(&["add", "slow", "--start", "100"]).contains("start: expected whole sectors of 512 bytes"));
    assert!(refused(&["clear", "9"]).contains("expected the number of a fault, found 9"));
    assert!(server.stop().0.success());
    assert!(refused(&["list"]).contains("expected the control socket of a drive"));

    fs::write(&file, "[[fault]]\nkind = \"slow\"\nstrat = 0\n").unwrap();
    let (status, _, err) = finish(disk(dir).arg("--fault").arg(&file));
    let said = format!("{}:3: unknown key `strat`; the closest is `start`", file.display());
    assert!(status.code() == Some(2) && err.contains(&said), "{err}");
}

#[test]
fn fio_and_qemu_io_report_an_unreadable_sector_and_verify_the_rest() {
    for program in ["fio", "qemu-io"] {
        if let Some(why) = support::missing_program(&[program]) {
            return support::skipped("fio_and_qemu_io_report_an_unreadable_sector_and_verify_the_rest", &why);
        }
    }
    let dir = scratch("faults-fio");
    let dir = dir.path();
    let server = start(dir, &["--speed", "20"]);
    let fio = |job: &[&str]| {
        let mut fio = Command::new("fio");
        fio.current_dir(dir).args(["--name=f", "--ioengine=nbd", "--size=4M", "--bs=64k", "--output-format=json"]);
        let (status, out, err) = finish(fio.args(job).arg("--uri").arg(server.uri("")));
        (status.success(), out + &err)
    };
    let verify = ["--rw=read", "--verify=crc32c"];
    let written = fio(&["--rw=write", "--verify=crc32c", "--do_verify=0"]);
    assert!(written.0, "{}", written.1);
    fault(dir, &["add", "unreadable", "--start", "2MiB"]);
    let (good, said) = fio(&verify);
    assert!(!good && said.contains("Input/output error"), "{said}");
    let io = |command: &str| {
        let (_, out, err) = finish(Command::new("qemu-io").args(["-f", "raw", "-c", command]).arg(server.uri("")));
        out + &err
    };
    assert!(io("read 2M 512").contains("Input/output error"));
    assert!(io("read 2097664 512").contains("read 512/512 bytes"));
    fault(dir, &["clear"]);
    let (good, said) = fio(&verify);
    assert!(good, "{said}");
    assert!(server.stop().0.success());
}

/// Records of a journal: a block of data, and a block that says that it is there.
const RECORDS: u64 = 6;
const BLOCK: u64 = 4096;

/// Appends records: of a journal that flushes, the data is on the media before the block that says
/// so.
fn append(nbd: &mut Nbd, seed: u64, flushes: bool) {
    for n in 0..RECORDS {
        let at = 2 * n * BLOCK;
        nbd.write(0, at, &noise(BLOCK as usize, seed + n)).unwrap();
        if flushes {
            nbd.flush().unwrap();
        }
        nbd.write(if flushes { FUA } else { 0 }, at + BLOCK, &noise(512, !(seed + n))).unwrap();
    }
    // Never promised to anyone.
    nbd.write(0, 2 * RECORDS * BLOCK, &noise(BLOCK as usize, seed)).unwrap();
}

/// Returns the number of records that are said to be there, and of those whose data is.
fn recovered(nbd: &mut Nbd, seed: u64) -> (u64, u64) {
    let (mut said, mut there) = (0, 0);
    for n in 0..RECORDS {
        let at = 2 * n * BLOCK;
        if nbd.read(at + BLOCK, 512).unwrap() == noise(512, !(seed + n)) {
            said += 1;
            there += u64::from(nbd.read(at, BLOCK as u32).unwrap() == noise(BLOCK as usize, seed + n));
        }
    }
    (said, there)
}

#[test]
fn a_journal_that_flushes_survives_power_failures_and_one_that_does_not_loses_records() {
    let (mut said_in_all, mut broken) = (0, 0);
    for flushes in [true, false] {
        let dir = scratch(if flushes { "journal" } else { "no-journal" });
        let dir = dir.path();
        let server = start(dir, &["--write-cache", "hold", "--speed", "100", "--seed", "5"]);
        let mut nbd = Nbd::open(&server.socket(), "").unwrap();
        let mut seed = 1;
        for _ in 0..12 {
            seed = next(seed);
            append(&mut nbd, seed, flushes);
            fault(dir, &["add", "power-off"]);
            assert_eq!(errno(nbd.read(0, 512)), ESHUTDOWN);
            assert_eq!(errno(nbd.write(FUA, 0, &[0; 512])), ESHUTDOWN);
            fault(dir, &["add", "power-on"]);
            let (said, there) = recovered(&mut nbd, seed);
            if flushes {
                assert_eq!((said, there), (RECORDS, RECORDS), "a record was promised and is lost");
            } else {
                said_in_all += said;
                broken += said - there;
            }
        }
        assert_eq!(status(dir)["problem"], serde_json::Value::Null);
        assert!(server.stop().0.success());
    }
    println!(
        "without flushes: {said_in_all} of {} records are said to be there, of {broken} it is not true",
        12 * RECORDS
    );
    assert!(said_in_all < 12 * RECORDS && broken > 0, "{said_in_all} {broken}");
}

#[test]
fn a_drive_whose_completions_may_not_be_late_at_all_fails_its_check() {
    for (most, expected) in [("0us", 1), ("1h", 0)] {
        let dir = scratch(&format!("late-{most}"));
        let dir = dir.path();
        let server = start(dir, &["--max-lateness", most]);
        let mut nbd = Nbd::open(&server.socket(), "").unwrap();
        for n in 0..20 {
            nbd.read(n << 20, 512).unwrap();
        }
        let said = server.said.clone();
        assert_eq!(server.stop().0.code(), Some(expected), "{most}");
        assert_eq!(fs::read_to_string(said).unwrap().contains("this machine was too slow"), expected == 1);
    }
}

/// The script of the examples; `None`, with a note, where something that it needs is missing.
fn example(test: &str, name: &str) -> Option<Command> {
    let programs = ["mkfs.ext4", "e2fsck", "mount", "umount", "nbdfuse", "fusermount3", "losetup"];
    if let Some(why) = support::missing(&programs) {
        support::skipped(test, &why);
        return None;
    }
    let mut script = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/ci").join(name));
    script.env("HEADTIME", env!("CARGO_BIN_EXE_headtime")).env("DRIVE", SMALL).env("SIZE", "32M").env("SPEED", "50");
    script.env("MAX_LATENESS", "1h");
    Some(script)
}

#[test]
fn the_example_for_a_ci_runs_a_command_on_the_drive_from_end_to_end() {
    let test = "the_example_for_a_ci_runs_a_command_on_the_drive_from_end_to_end";
    let Some(mut script) = example(test, "on-slow-disk.sh") else { return };
    let _turn = support::turn();
    // The last word is the exit status of the script.
    let program = "set -e; findmnt -no FSTYPE .; echo data >file; sync file; cat file; \
                   \"$HEADTIME\" fault list --control \"$HEADTIME_FAULTS\"; exit 7";
    let (status, out, err) = finish(script.args(["sh", "-c", program]));
    assert_eq!(status.code(), Some(7), "{out}{err}");
    assert!(out.contains("ext4\ndata\npower on, write cache off"), "{out}{err}");
}

#[test]
fn synced_files_of_ext4_survive_power_failures_and_others_do_not() {
    let test = "synced_files_of_ext4_survive_power_failures_and_others_do_not";
    let Some(mut script) = example(test, "power-failure.sh") else { return };
    let _turn = support::turn();
    let (status, out, err) = finish(script.arg("2"));
    print!("{out}{err}");
    assert!(status.success() && out.lines().count() == 2, "{out}{err}");
}
