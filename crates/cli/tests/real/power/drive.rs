//! A virtual drive's backing file: what a client was promised is there after a power failure.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use headtime_serve::backing;

use super::crash::{Contents, Disk};
use super::{Place, each_failure, number_of_failures, place};
use crate::real::verified::{BLOCK, SECTOR, contents};
use crate::real::nbd_client::{FLUSH, FUA, Nbd, WRITE};
use crate::real::{SMALL, SMALL_BYTES, Server, headtime, next, socket};

/// Blocks that are written over and over, and their distance in blocks.
const BLOCKS: u64 = 96;
const APART: u64 = 53;
/// Requests under way.
const DEPTH: usize = 6;
/// How long is written.
const WRITES: Duration = Duration::from_millis(2_500);

/// What a client is promised with an answer: of each of these blocks at least this generation.
type Promise = Vec<(u64, u64)>;

/// Writes for a while, and gives what was promised with each note in the account, and what was sent of each block.
fn write(place: &Place, server: &Server) -> (Vec<Promise>, BTreeMap<u64, u64>) {
    let mut nbd = Nbd::open(&server.socket(), "").unwrap();
    let (mut sent, mut answered) = (BTreeMap::new(), BTreeMap::<u64, u64>::new());
    let (mut under_way, mut promises) = (BTreeMap::<u64, (Option<u64>, Promise)>::new(), Vec::new());
    let (begun, mut chance) = (Instant::now(), 5);
    let mut cookie = 0;
    while begun.elapsed() < WRITES || !under_way.is_empty() {
        while begun.elapsed() < WRITES && under_way.len() < DEPTH {
            chance = next(chance);
            let block = chance / 7 % BLOCKS;
            // Two requests for one block at a time may be done in either order.
            let busy = under_way.values().any(|(of, _)| *of == Some(block));
            cookie += 1;
            if chance.is_multiple_of(9) {
                let all = answered.iter().map(|(b, g)| (*b, *g)).collect();
                under_way.insert(cookie, (None, all));
                nbd.send(FLUSH, 0, cookie, 0, 0, &[]).unwrap();
            } else if !busy {
                let generation = sent.entry(block).or_insert(0);
                *generation += 1;
                let fua = chance.is_multiple_of(4);
                let promise = if fua { vec![(block, *generation)] } else { Vec::new() };
                under_way.insert(cookie, (Some(block), promise));
                let flags = if fua { FUA } else { 0 };
                let data = contents(block, *generation);
                nbd.send(WRITE, flags, cookie, block * APART * BLOCK, BLOCK as u32, &data).unwrap();
            }
        }
        let (cookie, error) = nbd.answer().unwrap();
        assert_eq!(error, 0);
        let (block, promise) = under_way.remove(&cookie).expect("an answer to a request");
        if let Some(block) = block {
            answered.insert(block, sent[&block]);
        }
        if !promise.is_empty() {
            place.recorder.note(promises.len() as u64);
            promises.push(promise);
        }
    }
    (promises, sent)
}

/// Writes to a server on a recorded file system, and looks at what is left of its backing at power failures.
fn keeps_promises(
    test: &str,
    backing: &str,
    command: fn(&Path, &Path) -> Command,
    find: fn(&Disk) -> Option<Contents>,
) {
    let Some(place) = place(test) else { return };
    let server = Server::start(place.dir.path(), command(place.dir.path(), &place.recorded.join(backing)));
    let (promises, sent) = write(&place, &server);
    server.kill();
    let log = place.recorder.finish();
    let failures = number_of_failures(200);
    let (mut checked, mut expected) = (0, 0);
    let (mut promised, mut seen) = (BTreeMap::<u64, u64>::new(), 0);
    each_failure(&log, failures, |at, disk| {
        for op in &log[seen..at] {
            if let super::Op::Note(n) = op {
                for (block, generation) in &promises[*n as usize] {
                    let known = promised.entry(*block).or_insert(0);
                    *known = (*known).max(*generation);
                }
            }
        }
        seen = at;
        let found = find(disk).filter(|f| f.bytes > 0).unwrap_or_default();
        if found.bytes == 0 && promised.is_empty() {
            // The drive is made anew.
            let new = tempfile::tempdir().unwrap();
            disk.save(new.path()).unwrap();
            backing::open(&new.path().join(backing), SMALL_BYTES).unwrap();
            return;
        }
        assert_eq!(found.bytes, SMALL_BYTES, "the backing's length after {at} of {} operations", log.len());
        for (block, sent) in &sent {
            let least = promised.get(block).copied().unwrap_or(0);
            expected += u64::from(least > 0);
            for n in 0..BLOCK / SECTOR as u64 {
                let sector = found.sector(block * APART * (BLOCK / SECTOR as u64) + n);
                let generation = u64::from_le_bytes(sector[..8].try_into().unwrap());
                let said = format!("block {block}, sector {n}: {generation}, promised {least}, sent {sent}, at {at}");
                assert!((least..=*sent).contains(&generation), "lost: {said}");
                let whole = contents(*block, generation);
                let whole = &whole[n as usize * SECTOR..][..SECTOR];
                assert!(sector[..] == *if generation == 0 { &[0; SECTOR] } else { whole }, "torn: {said}");
                checked += 1;
            }
        }
    });
    println!("{failures} power failures in {} operations: {checked} sectors checked, none lost", log.len());
    assert!(expected > 30 * failures, "only {expected} blocks were promised anything");
}

fn drive(dir: &Path, backing: &Path) -> Command {
    let mut command = headtime();
    command.args(["disk", SMALL, "--backing"]).arg(backing);
    command.arg("--nbd").arg(format!("unix:{}", socket(dir).display()));
    command
}

fn cached(dir: &Path, backing: &Path) -> Command {
    let config = dir.join("serve.toml");
    let text = format!(
        "[disk]\ndrive = \"{SMALL}\"\nbacking = \"{}\"\n[listen]\nnbd = [\"unix:nbd.sock\"]\n\
         [[export]]\nwrite-cache = \"1 MiB\"\n",
        backing.display()
    );
    std::fs::write(&config, text).unwrap();
    let mut command = headtime();
    command.arg("serve").arg(config);
    command
}

#[test]
fn what_a_virtual_drive_promised_is_in_its_file_after_a_power_failure() {
    keeps_promises("power-drive", "disk.img", drive, |disk| disk.file("disk.img"));
}

#[test]
fn what_a_virtual_drive_promised_is_in_its_segments_after_a_power_failure() {
    keeps_promises("power-segments", "disk/", drive, |disk| disk.file_below("disk", "segment-000000"));
}

#[test]
fn what_a_write_cache_promised_is_in_the_file_after_a_power_failure() {
    keeps_promises("power-cached", "disk.img", cached, |disk| disk.file("disk.img"));
}
