//! Killed clients: acknowledged writes are there, and nothing of an interrupted write is.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread;

use super::nbd_client::{Nbd, WRITE, request};
use super::scratch;
use super::verified::{BLOCK, BLOCKS, Disk, EXPORT, Tally, Writer, a_while, rounds};
use crate::support::{self, Process};

/// Clients that write and are killed in each round.
const KILLED_CLIENTS: u64 = 2;
/// The writer whose blocks are written by interrupted connections.
const CUT_OFF: u64 = KILLED_CLIENTS;
/// In this program's environment, when it is run to be killed: the socket, the writer's number,
/// what was sent before, and its diary.
const TO_BE_KILLED: &str = "HEADTIME_TO_BE_KILLED";

/// Runs this program again, of which only [`writes_until_it_is_killed`] does anything.
fn client(socket: &Path, number: u64, sent: u64, diary: &Path) -> Process {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "real::kills_clients::writes_until_it_is_killed", "--nocapture"]);
    command.env(TO_BE_KILLED, format!("{}\n{number}\n{sent}\n{}", socket.display(), diary.display()));
    Process(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap())
}

/// The program that the tests below kill; it does nothing if run as a test.
#[test]
fn writes_until_it_is_killed() {
    let Ok(said) = std::env::var(TO_BE_KILLED) else { return };
    let said: Vec<&str> = said.lines().collect();
    let diary = File::options().append(true).open(said[3]).unwrap();
    let mut writer = Writer::with_diary(said[1].parse().unwrap(), said[2].parse().unwrap(), diary);
    writer.write(Path::new(said[0]), &AtomicBool::new(false));
}

/// Starts a write of all its blocks and disconnects in the middle of the data.
fn cut_off(socket: &Path, writer: &Writer, round: u64) {
    let (at, length) = writer.place();
    let mut nbd = Nbd::open(socket, EXPORT).unwrap();
    nbd.stream.write_all(&request(WRITE, 0, 1, at, length)).unwrap();
    // Never all of it, and never a whole number of sectors.
    let sent = 1 + super::next(round) as usize % (length as usize / 2) * 2;
    nbd.stream.write_all(&vec![0xee; sent]).unwrap();
}

fn clients_are_killed(name: &str, disk: &Disk, dir: &Path, usual: u64) {
    let (server, mut tally) = (disk.serve(dir), Tally::default());
    let mut writers: Vec<Writer> = (0..=CUT_OFF).map(Writer::new).collect();
    let socket = server.socket();
    // Blocks that interrupted writes must not change.
    let mut straight = Nbd::open(&socket, EXPORT).unwrap();
    let (at, length) = writers[CUT_OFF as usize].place();
    let whole: Vec<u8> = (0..BLOCKS).flat_map(|n| super::verified::contents(at / BLOCK + n, 1)).collect();
    assert_eq!(whole.len(), length as usize);
    straight.write(0, at, &whole).unwrap();
    for b in &mut writers[CUT_OFF as usize].blocks {
        (b.sent, b.answered) = (1, 1);
    }
    for round in 0..rounds(usual) {
        let diaries: Vec<PathBuf> = (0..KILLED_CLIENTS).map(|n| dir.join(format!("diary-{n}"))).collect();
        let sent = |w: &Writer| w.blocks.iter().map(|b| b.sent).max().unwrap_or(0);
        let clients: Vec<Process> = (0..KILLED_CLIENTS)
            .map(|n| {
                let diary = &diaries[n as usize];
                fs::write(diary, "").unwrap();
                client(&socket, n, sent(&writers[n as usize]), diary)
            })
            .collect();
        support::wait_until(|| diaries.iter().all(|d| fs::metadata(d).unwrap().len() > 0));
        thread::sleep(a_while(round));
        // SIGKILL to one after the other, with requests in flight.
        drop(clients);
        cut_off(&socket, &writers[CUT_OFF as usize], round);
        tally.kills += KILLED_CLIENTS + 1;
        for (w, diary) in writers.iter_mut().zip(&diaries) {
            w.read_diary(&fs::read_to_string(diary).unwrap());
        }
        tally.answered(&mut writers, &socket);
    }
    drop(straight);
    assert!(server.stop().0.success());
    let server = disk.serve(dir);
    tally.answered(&mut writers, &socket);
    assert!(server.stop().0.success());
    tally.report(name);
}

#[test]
fn writes_acknowledged_to_a_killed_client_are_on_the_disk() {
    let dir = scratch("kill-clients");
    clients_are_killed("writes_acknowledged_to_a_killed_client_are_on_the_disk", &Disk::Virtual, dir.path(), 4);
}

#[test]
fn writes_acknowledged_to_a_killed_client_of_a_write_cache_are_on_the_disk() {
    let dir = scratch("kill-clients-cached");
    const NAME: &str = "writes_acknowledged_to_a_killed_client_of_a_write_cache_are_on_the_disk";
    clients_are_killed(NAME, &Disk::Cached, dir.path(), 4);
}
