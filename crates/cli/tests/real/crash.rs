//! What is left when a server ends: by a signal it can hear, and by one it cannot.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use super::nbd_client::{FLUSH, FUA, Nbd, WRITE};
use super::{SMALL, Server, disk, finish, next, run, scratch};
use crate::support::{self, Process};

pub(super) const SECTOR: usize = 512;
pub(super) const BLOCK: u64 = 4096;
/// Blocks of each writer, beside the others'.
const BLOCKS: u64 = 64;
const WRITERS: u64 = 4;
/// Requests that a writer has under way.
const DEPTH: usize = 8;
/// Times that the server is killed; `HEADTIME_KILLS` in the environment says otherwise.
const ROUNDS: u64 = 3;

/// What one block may hold after a crash: the generation that was promised last, and the last one sent.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    promised: u64,
    answered: u64,
    sent: u64,
}

/// A client that writes its own blocks over and over and keeps account of what it was promised.
struct Writer {
    first: u64,
    blocks: Vec<Block>,
    seed: u64,
}

/// A request that is not answered yet.
enum Asked {
    Write {
        block: usize,
        generation: u64,
        fua: bool,
    },
    /// With what had been answered when it was sent, by block: this much it promises.
    Flush(Vec<u64>),
}

/// A block of this generation: each of its sectors says which it is of, so that a torn one can be told.
pub(super) fn contents(block: u64, generation: u64) -> Vec<u8> {
    let sector = |s: u64| {
        let mut bytes = Vec::with_capacity(SECTOR);
        let mut seed = block << 40 ^ generation << 8 ^ s;
        bytes.extend_from_slice(&generation.to_le_bytes());
        while bytes.len() < SECTOR {
            seed = next(seed);
            bytes.extend_from_slice(&seed.to_le_bytes());
        }
        bytes
    };
    (0..BLOCK / SECTOR as u64).flat_map(sector).collect()
}

impl Writer {
    fn new(number: u64) -> Writer {
        Writer { first: number * BLOCKS, blocks: vec![Block::default(); BLOCKS as usize], seed: number }
    }

    fn chance(&mut self, of: u64) -> u64 {
        self.seed = next(self.seed);
        self.seed % of
    }

    /// Writes until the server is gone.
    fn write(&mut self, socket: &Path) {
        let Ok(mut nbd) = Nbd::open(socket, "") else { return };
        let mut under_way: BTreeMap<u64, Asked> = BTreeMap::new();
        for cookie in 1.. {
            let sent = self.ask(&mut nbd, cookie, &mut under_way);
            // Answers that came before the end count, even when a request could not be sent any more.
            while under_way.len() >= DEPTH || sent.is_err() {
                let Ok((cookie, error)) = nbd.answer() else { return };
                assert_eq!(error, 0, "a request failed");
                self.answered(under_way.remove(&cookie).expect("an answer to what was asked"));
            }
        }
    }

    fn ask(&mut self, nbd: &mut Nbd, cookie: u64, under_way: &mut BTreeMap<u64, Asked>) -> std::io::Result<()> {
        if self.chance(16) == 0 {
            under_way.insert(cookie, Asked::Flush(self.blocks.iter().map(|b| b.answered).collect()));
            return nbd.send(FLUSH, 0, cookie, 0, 0, &[]);
        }
        // One write of a block at a time: two could be carried out in either order.
        let busy = |n: usize| under_way.values().any(|a| matches!(a, Asked::Write { block, .. } if *block == n));
        let start = self.chance(BLOCKS) as usize;
        let block =
            (start..start + BLOCKS as usize).map(|n| n % BLOCKS as usize).find(|n| !busy(*n)).expect("a free one");
        self.blocks[block].sent += 1;
        let (generation, fua) = (self.blocks[block].sent, self.chance(4) == 0);
        under_way.insert(cookie, Asked::Write { block, generation, fua });
        let number = self.first + block as u64;
        let flags = if fua { FUA } else { 0 };
        nbd.send(WRITE, flags, cookie, number * BLOCK, BLOCK as u32, &contents(number, generation))
    }

    fn answered(&mut self, asked: Asked) {
        match asked {
            Asked::Write { block, generation, fua } => {
                let b = &mut self.blocks[block];
                b.answered = generation;
                if fua {
                    b.promised = generation;
                }
            }
            Asked::Flush(by_then) => {
                for (b, generation) in self.blocks.iter_mut().zip(by_then) {
                    b.promised = b.promised.max(generation);
                }
            }
        }
    }

    /// Looks at every block; from now on, what is found is what was promised. How many were promised something.
    fn check(&mut self, nbd: &mut Nbd) -> usize {
        let promised = self.blocks.iter().filter(|b| b.promised > 0).count();
        for (n, b) in self.blocks.iter_mut().enumerate() {
            let number = self.first + n as u64;
            let found = nbd.read(number * BLOCK, BLOCK as u32).unwrap();
            let mut newest = 0;
            for (s, sector) in found.chunks(SECTOR).enumerate() {
                let generation = u64::from_le_bytes(sector[..8].try_into().unwrap());
                let said = format!("block {number}, sector {s}: generation {generation}, of {b:?}");
                assert!((b.promised..=b.sent).contains(&generation), "lost: {said}");
                let whole = if generation == 0 { vec![0; SECTOR] } else { piece(number, generation, s) };
                assert!(sector == whole, "a torn sector: {said}");
                newest = newest.max(generation);
            }
            // A block may be torn between sectors when its write was not answered. It is written anew, as a file system would.
            nbd.write(FUA, number * BLOCK, &contents(number, b.sent + 1)).unwrap();
            let now = b.sent + 1;
            *b = Block { promised: now, answered: now, sent: now };
        }
        promised
    }
}

fn piece(block: u64, generation: u64, sector: usize) -> Vec<u8> {
    contents(block, generation)[sector * SECTOR..][..SECTOR].to_vec()
}

/// fio beside the writers, in the part of the drive that is not theirs; it ends with the server.
fn fio(server: &Server, dir: &Path) -> Option<Process> {
    support::missing_program(&["fio"]).is_none().then(|| {
        let mut fio = Command::new("fio");
        fio.current_dir(dir).args(["--name=beside", "--ioengine=nbd", "--rw=randrw", "--bs=4k", "--offset=4M"]);
        fio.args(["--size=16M", "--iodepth=8", "--fsync=8", "--time_based", "--runtime=60", "--uri"])
            .arg(server.uri(""));
        Process(fio.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    })
}

#[test]
fn what_was_promised_before_kill_9_is_there_after_it() {
    let dir = scratch("kill");
    is_killed_again_and_again("what_was_promised_before_kill_9_is_there_after_it", dir.path(), Server::disk, 1_000);
}

#[test]
fn what_was_flushed_through_a_write_cache_is_there_after_kill_9() {
    let dir = scratch("kill-cached");
    const NAME: &str = "what_was_flushed_through_a_write_cache_is_there_after_kill_9";
    // A flush of one client writes what all have written, and fio beside them flushes without end.
    is_killed_again_and_again(NAME, dir.path(), cached, 6_000);
}

/// A server whose export has the smallest write cache there is.
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

/// Starts a server, writes to it and kills it after so long, several times, and looks for what was promised.
fn is_killed_again_and_again(name: &str, dir: &Path, start: fn(&Path) -> Server, after_ms: u64) {
    if let Some(why) = support::missing_program(&["fio"]) {
        support::skipped(name, &format!("the part with fio beside it: {why}"));
    }
    let mut writers: Vec<Writer> = (0..WRITERS).map(Writer::new).collect();
    let asked = std::env::var("HEADTIME_KILLS").ok();
    let rounds = asked.map_or(ROUNDS, |n| n.parse().expect("HEADTIME_KILLS: expected a number"));
    for round in 0..rounds {
        let server = start(dir);
        let beside = fio(&server, dir);
        let socket: PathBuf = server.socket();
        let writing = writers.into_iter().map(|mut w| {
            let socket = socket.clone();
            thread::spawn(move || {
                w.write(&socket);
                w
            })
        });
        let writing: Vec<_> = writing.collect();
        thread::sleep(Duration::from_millis(after_ms + 137 * round));
        server.kill();
        writers = writing.into_iter().map(|w| w.join().unwrap()).collect();
        drop(beside);
        assert!(socket.exists(), "a killed server leaves its socket");
        let server = start(dir);
        let mut nbd = Nbd::open(&server.socket(), "").unwrap();
        let promised: usize = writers.iter_mut().map(|w| w.check(&mut nbd)).sum();
        eprintln!("round {round}: {promised} blocks were promised something");
        assert!(promised > 20, "only {promised} blocks were promised anything: nothing was tested");
        assert!(server.stop().0.success());
    }
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
    // Nothing was flushed, and a block is written only when it is old. This shows that the other tests show something.
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
    // Those that it had taken are carried out; others are told that it ends (ESHUTDOWN is 108 in the protocol).
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
    // The first has not noticed.
    Nbd::open(&first.socket(), "").unwrap().read(0, 512).unwrap();
    first.kill();
    // What the dead one left is nobody's.
    let again = Server::disk(dir.path());
    Nbd::open(&again.socket(), "").unwrap().read(0, 512).unwrap();
    assert!(again.stop().0.success());
    run(Command::new("test").arg("!").arg("-e").arg(super::socket(dir.path())));
}
