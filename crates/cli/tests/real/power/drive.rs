//! A virtual drive's backing file: data guaranteed to a client is there after a power failure.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

use headtime_serve::backing;

use super::crash::{Contents, Disk};
use super::{Op, Place, each_failure, number_of_failures, place};
use crate::real::verified::{BLOCK, EXPORT, SECTOR, Writer, generation, joined, write};
use crate::real::{SMALL, SMALL_BYTES, Server, headtime};

/// Duration of the writes.
const WRITES: Duration = Duration::from_millis(2_500);
const SECTORS: u64 = BLOCK / SECTOR as u64;

/// The guarantee of a reply: at least this generation of each of these blocks.
type Promise = Vec<(u64, u64)>;

/// Writes for a while. Returns the guarantees at each note in the log, and the last generation sent
/// of each block.
fn written(place: &Place, server: &Server) -> (Vec<Promise>, BTreeMap<u64, u64>) {
    let promises: Arc<Mutex<Vec<Promise>>> = Arc::default();
    let writers = (0..2).map(|number| {
        let (promises, note) = (Arc::clone(&promises), place.recorder.notes());
        Writer::new(number).telling(move |promise| {
            let mut promises = promises.lock().unwrap();
            note(promises.len() as u64);
            promises.push(promise);
        })
    });
    let stop = Arc::new(AtomicBool::new(false));
    let writing = write(writers.collect(), &server.socket(), &stop);
    sleep(WRITES);
    stop.store(true, Ordering::SeqCst);
    let sent = joined(writing).iter().flat_map(|w| w.sent().collect::<Vec<_>>()).collect();
    let promises = std::mem::take(&mut *promises.lock().unwrap());
    (promises, sent)
}

/// Writes to a server on a recorded file system, and checks its backing after power failures.
fn keeps_promises(test: &str, backing: &str, export: &str, find: fn(&Disk) -> Option<Contents>) {
    let Some(place) = place(test) else { return };
    let server = serve(&place, &place.recorded.join(backing), export);
    let (promises, sent) = written(&place, &server);
    server.kill();
    let log = place.recorder.finish();
    let failures = number_of_failures(200);
    let (mut checked, mut expected) = (0, 0);
    let (mut promised, mut seen) = (BTreeMap::<u64, u64>::new(), 0);
    each_failure(&log, failures, |at, disk| {
        let notes = log[seen..at].iter().filter_map(|op| if let Op::Note(n) = op { Some(*n as usize) } else { None });
        for (block, generation) in notes.flat_map(|n| &promises[n]).filter(|p| p.1 > 0) {
            let known = promised.entry(*block).or_insert(0);
            *known = (*known).max(*generation);
        }
        seen = at;
        let found = find(disk).filter(|f| f.bytes > 0).unwrap_or_default();
        if found.bytes == 0 && promised.is_empty() {
            // The drive is created anew.
            let new = tempfile::tempdir().unwrap();
            disk.save(new.path()).unwrap();
            backing::open(&new.path().join(backing), SMALL_BYTES).unwrap();
            return;
        }
        assert_eq!(found.bytes, SMALL_BYTES, "the backing's length after {at} of {} operations", log.len());
        for (block, sent) in &sent {
            let least = promised.get(block).copied().unwrap_or(0);
            expected += u64::from(least > 0);
            for n in 0..SECTORS {
                let sector = found.sector(block * SECTORS + n);
                if let Err(lost) = generation(*block, n as usize, &sector, least..=*sent) {
                    panic!("{lost}, after {at} of {} operations", log.len());
                }
                checked += 1;
            }
        }
    });
    println!("{failures} power failures in {} operations: {checked} sectors checked, none lost", log.len());
    assert!(expected > 30 * failures, "only {expected} blocks were promised anything");
}

/// A server of one export, with these options.
fn serve(place: &Place, backing: &Path, export: &str) -> Server {
    let dir = place.dir.path();
    let config = dir.join("serve.toml");
    let text = format!(
        "[disk]\ndrive = \"{SMALL}\"\nbacking = \"{}\"\n[listen]\nnbd = [\"unix:nbd.sock\"]\n\
         [[export]]\nname = \"{EXPORT}\"\n{export}",
        backing.display()
    );
    std::fs::write(&config, text).unwrap();
    let mut command = headtime();
    command.arg("serve").arg(config);
    Server::start(dir, command)
}

#[test]
fn what_a_virtual_drive_promised_is_in_its_file_after_a_power_failure() {
    keeps_promises("power-drive", "disk.img", "", |disk| disk.file("disk.img"));
}

#[test]
fn what_a_virtual_drive_promised_is_in_its_segments_after_a_power_failure() {
    keeps_promises("power-segments", "disk/", "", |disk| disk.file_below("disk", "segment-000000"));
}

#[test]
fn what_a_write_cache_promised_is_in_the_file_after_a_power_failure() {
    keeps_promises("power-cached", "disk.img", "write-cache = \"1 MiB\"\n", |disk| disk.file("disk.img"));
}
