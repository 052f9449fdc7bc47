//! The state after a server ends: by a signal that it handles, and by SIGKILL.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use super::nbd_client::{Nbd, WRITE};
use super::verified::{BLOCK, Disk, EXPORT, Tally, WRITERS, Writer, a_while, contents, joined, rounds, write};
use super::{SMALL, Server, disk, finish, run, scratch};
use crate::support::{self, Process};

/// fio next to the writers, in the part of the drive that they do not use; it ends with the server.
fn fio(server: &Server, dir: &Path) -> Option<Process> {
    support::missing_program(&["fio"]).is_none().then(|| {
        let mut fio = Command::new("fio");
        fio.current_dir(dir).args(["--name=beside", "--ioengine=nbd", "--rw=randrw", "--bs=4k", "--offset=4M"]);
        fio.args(["--size=16M", "--iodepth=8", "--fsync=8", "--time_based", "--runtime=60", "--uri"])
            .arg(server.uri(EXPORT));
        Process(fio.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    })
}

#[test]
fn what_was_promised_before_kill_9_is_there_after_it() {
    let dir = scratch("kill");
    is_killed_again_and_again("what_was_promised_before_kill_9_is_there_after_it", dir.path(), &Disk::Virtual, 8);
}

#[test]
fn what_was_flushed_through_a_write_cache_is_there_after_kill_9() {
    let dir = scratch("kill-cached");
    const NAME: &str = "what_was_flushed_through_a_write_cache_is_there_after_kill_9";
    is_killed_again_and_again(NAME, dir.path(), &Disk::Cached, 4);
}

#[test]
fn what_was_promised_on_a_file_is_there_after_kill_9() {
    let dir = scratch("kill-file");
    let disk = Disk::file(dir.path());
    is_killed_again_and_again("what_was_promised_on_a_file_is_there_after_kill_9", dir.path(), &disk, 8);
}

#[test]
fn what_was_promised_on_a_loop_device_is_there_after_kill_9() {
    const NAME: &str = "what_was_promised_on_a_loop_device_is_there_after_kill_9";
    if let Some(why) = support::missing(&["losetup"]) {
        return support::skipped(NAME, &why);
    }
    let _turn = support::turn();
    let (dir, disk) = (scratch("kill-loop"), Disk::looped("killed"));
    is_killed_again_and_again(NAME, dir.path(), &disk, 8);
}

/// One of this number of rounds runs fio next to the writers.
const FIO_EVERY: u64 = 4;
/// Time that it needs to start.
const FIO_BEGINS: Duration = Duration::from_millis(600);
/// A client's flush writes all clients' data in a write cache.
const CACHE_FLUSHES: Duration = Duration::from_millis(1_000);

/// Writes to a server and kills it after a while, several times, and checks the guaranteed data.
fn is_killed_again_and_again(name: &str, dir: &Path, disk: &Disk, usual: u64) {
    if let Some(why) = support::missing_program(&["fio"]) {
        support::skipped(name, &format!("the part with fio beside it: {why}"));
    }
    let (mut tally, stop) = (Tally::default(), Arc::new(AtomicBool::new(false)));
    let mut writers: Vec<Writer> = (0..WRITERS).map(Writer::new).collect();
    let mut server = disk.serve(dir);
    for round in 0..rounds(usual) {
        let beside = if round % FIO_EVERY == 0 { fio(&server, dir) } else { None };
        let writing = write(writers, &server.socket(), &stop);
        let waits = [beside.is_some().then_some(FIO_BEGINS), matches!(disk, Disk::Cached).then_some(CACHE_FLUSHES)];
        thread::sleep(a_while(round) + waits.into_iter().flatten().sum::<Duration>());
        let socket = server.socket();
        server.kill();
        tally.kills += 1;
        writers = joined(writing);
        drop(beside);
        assert!(socket.exists(), "a killed server leaves its socket");
        server = disk.serve(dir);
        tally.after_crash(&mut writers, &socket);
    }
    assert!(server.stop().0.success());
    tally.report(name);
}

/// A server whose export has the smallest possible write cache.
fn cached(dir: &Path) -> Server {
    let config = dir.join("cached.toml");
    let text = format!(
        "[disk]\ndrive = \"{SMALL}\"\nbacking = \"disk.img\"\n[listen]\nnbd = [\"unix:nbd.sock\"]\n\
         [[export]]\nwrite-cache = \"1 MiB\"\n"
    );
    std::fs::write(&config, text).unwrap();
    let mut command = super::headtime();
    command.arg("serve").arg(config);
    Server::start(dir, command)
}

#[test]
fn a_write_cache_is_written_out_at_the_end_and_lost_only_with_kill_9_and_without_a_flush() {
    let dir = scratch("cache-end");
    let places: Vec<u64> = (0..32).map(|n| n * (1 << 20) + n * BLOCK).collect();
    let all = |nbd: &mut Nbd| -> Vec<bool> {
        let found = places.iter().enumerate();
        found.map(|(n, at)| nbd.read(*at, BLOCK as u32).unwrap() == contents(n as u64, 1)).collect()
    };
    let write = |server: &Server| {
        let mut nbd = Nbd::open(&server.socket(), "").unwrap();
        for (n, at) in places.iter().enumerate() {
            nbd.write(0, *at, &contents(n as u64, 1)).unwrap();
        }
        assert!(all(&mut nbd).iter().all(|found| *found), "what is read is what was written, on the disk or not");
        nbd
    };
    let server = cached(dir.path());
    let nbd = write(&server);
    server.kill();
    drop(nbd);
    // Nothing was flushed, and a block is written only when it is old. This shows that the other
    // tests are effective.
    let server = Server::disk(dir.path());
    let kept = all(&mut Nbd::open(&server.socket(), "").unwrap());
    assert!(kept.iter().all(|found| !found), "{kept:?}");
    assert!(server.stop().0.success());
    let server = cached(dir.path());
    drop(write(&server));
    assert!(server.stop().0.success());
    let server = Server::disk(dir.path());
    let kept = all(&mut Nbd::open(&server.socket(), "").unwrap());
    assert!(kept.iter().all(|found| *found), "{kept:?}");
    assert!(server.stop().0.success());
}

#[test]
fn what_fio_synced_through_a_write_cache_before_kill_9_passes_its_verification() {
    const NAME: &str = "what_fio_synced_through_a_write_cache_before_kill_9_passes_its_verification";
    if let Some(why) = support::missing_program(&["fio"]) {
        return support::skipped(NAME, &why);
    }
    let dir = scratch("cache-fio");
    let fio = |server: &Server, more: &[&str]| {
        let mut fio = Command::new("fio");
        fio.current_dir(dir.path()).args(["--name=synced", "--ioengine=nbd", "--rw=randwrite", "--bsrange=4k-32k"]);
        fio.args(["--size=4M", "--iodepth=8", "--verify=crc32c", "--verify_fatal=1", "--fsync=32", "--randseed=7"]);
        fio.args(more).arg("--uri").arg(server.uri(""));
        run(&mut fio)
    };
    let server = cached(dir.path());
    fio(&server, &["--do_verify=0", "--end_fsync=1"]);
    server.kill();
    let server = cached(dir.path());
    let report = fio(&server, &["--verify_only", "--output-format=json"]);
    let report: serde_json::Value = serde_json::from_str(&report[report.find('{').unwrap()..]).unwrap();
    let job = &report["jobs"][0];
    assert_eq!(job["error"], 0, "{job}");
    assert!(job["read"]["total_ios"].as_u64() > Some(100), "{job}");
    assert!(server.stop().0.success());
}

#[test]
fn a_server_that_is_asked_to_end_answers_first_and_leaves_with_0() {
    let dir = scratch("drain");
    let server = Server::disk(dir.path());
    let mut nbd = Nbd::open(&server.socket(), "").unwrap();
    let count = 32;
    for n in 0..count {
        nbd.send(WRITE, 0, n, n * (1 << 20), BLOCK as u32, &contents(n, 1)).unwrap();
    }
    let (socket, dir_path) = (server.socket(), dir.path().to_owned());
    let ending = thread::spawn(move || server.stop());
    let mut kept = Vec::new();
    // Accepted requests are completed; others get ESHUTDOWN (108 in the protocol).
    while let Ok((cookie, error)) = nbd.answer() {
        assert!(error == 0 || error == 108, "error {error}");
        kept.extend((error == 0).then_some(cookie));
    }
    let (status, took) = ending.join().unwrap();
    assert_eq!(status.code(), Some(0));
    assert!(took < Duration::from_secs(8), "{took:?}");
    assert!(!socket.exists(), "its socket goes with it");
    let server = Server::disk(&dir_path);
    let mut nbd = Nbd::open(&server.socket(), "").unwrap();
    for n in &kept {
        assert!(nbd.read(n * (1 << 20), BLOCK as u32).unwrap() == contents(*n, 1), "write {n}");
    }
    // SIGINT does the same.
    drop(nbd);
    let mut server = server;
    server.signal("INT");
    assert_eq!(server.ended().0.code(), Some(0));
}

#[test]
fn a_second_server_gets_neither_the_data_nor_the_socket_of_the_first() {
    let dir = scratch("second");
    let first = Server::disk(dir.path());
    let elsewhere = format!("unix:{}", dir.path().join("other.sock").display());
    let refused = |command: &mut Command| {
        let (status, out, err) = finish(command);
        assert_eq!((status.code(), out.as_str(), err.lines().count()), (Some(2), "", 1), "{err}");
        err
    };
    let mut same_data = disk(dir.path());
    let same_data = refused(same_data.args(["--nbd", &elsewhere]));
    assert!(same_data.contains("another virtual drive uses it"), "{same_data}");
    let mut same_socket = super::headtime();
    same_socket.args(["disk", super::SMALL, "--backing"]).arg(dir.path().join("other.img"));
    same_socket.arg("--nbd").arg(format!("unix:{}", first.socket().display()));
    let same_socket = refused(&mut same_socket);
    assert!(same_socket.contains("another server listens there"), "{same_socket}");
    // The first server is unaffected.
    Nbd::open(&first.socket(), "").unwrap().read(0, 512).unwrap();
    first.kill();
    // The socket of a dead server is taken over.
    let again = Server::disk(dir.path());
    Nbd::open(&again.socket(), "").unwrap().read(0, 512).unwrap();
    assert!(again.stop().0.success());
    run(Command::new("test").arg("!").arg("-e").arg(super::socket(dir.path())));
}
