//! `headtime destage` and the server below it, killed alone and together: flushed data is on the
//! disk, and acknowledged data is lost only with the program that held it in memory.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fs, thread};

use super::verified::{Disk, EXPORT, Tally, WRITERS, Writer, a_while, joined, rounds, write};
use super::{Server, headtime, next, scratch};
use crate::support;

/// A cache too large for these writers to fill.
const MEMORY: &str = "2MiB";
/// A client's flush writes all clients' data.
const FLUSHES: Duration = Duration::from_millis(1_000);

/// `headtime destage` in front of a server.
fn cache(dir: &Path) -> Server {
    let own = dir.join("cache");
    fs::create_dir_all(&own).unwrap();
    let mut command = headtime();
    command.args(["destage", EXPORT, "--memory", MEMORY, "--control"]).arg(dir.join("control.sock"));
    command.arg("--nbd").arg(format!("unix:{}", super::socket(&own).display()));
    Server::start(&own, command)
}

/// A server, a cache in front of it, and clients of the cache.
struct Both<'a> {
    name: &'a str,
    dir: PathBuf,
    disk: &'a Disk,
    server: Option<Server>,
    cache: Option<Server>,
    writers: Vec<Writer>,
    tally: Tally,
}

impl<'a> Both<'a> {
    fn new(name: &'a str, dir: &Path, disk: &'a Disk) -> Both<'a> {
        let (server, writers) = (disk.serve(dir), (0..WRITERS).map(Writer::new).collect());
        let cache = cache(dir);
        let (server, cache) = (Some(server), Some(cache));
        Both { name, dir: dir.into(), disk, server, cache, writers, tally: Tally::default() }
    }

    fn straight(&self) -> PathBuf {
        super::socket(&self.dir)
    }

    fn cached(&self) -> PathBuf {
        super::socket(&self.dir.join("cache"))
    }

    /// Writers write to the cache while the closure runs; the remaining ones stop then.
    fn write(&mut self, action: impl FnOnce(&mut Self)) {
        let stop = Arc::new(AtomicBool::new(false));
        let writing = write(std::mem::take(&mut self.writers), &self.cached(), &stop);
        action(self);
        stop.store(true, Ordering::SeqCst);
        self.writers = joined(writing);
    }

    fn kill(&mut self, server: bool) {
        let one = if server { self.server.take() } else { self.cache.take() };
        one.expect("it runs").kill();
        self.tally.kills += 1;
    }

    fn serve(&mut self) {
        self.server = Some(self.disk.serve(&self.dir));
    }

    /// Ends everything in good order, which loses nothing.
    fn finish(mut self) {
        for one in [self.cache.take(), self.server.take()] {
            assert!(one.unwrap().stop().0.success());
        }
        let server = self.disk.serve(&self.dir);
        self.tally.answered(&mut self.writers, &super::socket(&self.dir));
        assert!(server.stop().0.success());
        self.tally.report(self.name);
    }
}

#[test]
fn what_was_flushed_is_there_after_destage_was_killed() {
    let dir = scratch("kill-destage");
    let mut both = Both::new("what_was_flushed_is_there_after_destage_was_killed", dir.path(), &Disk::Virtual);
    for round in 0..rounds(4) {
        both.write(|both| {
            thread::sleep(FLUSHES + a_while(round));
            both.kill(false);
        });
        // The server still has blocks of the dead cache on their way to the disk, and possibly its
        // session.
        both.cache = Some(cache(dir.path()));
        let cached = both.cached();
        both.tally.after_crash(&mut both.writers, &cached);
    }
    both.finish();
}

#[test]
fn what_destage_acknowledged_outlives_the_server_beneath_it() {
    let dir = scratch("kill-beneath");
    let mut both = Both::new("what_destage_acknowledged_outlives_the_server_beneath_it", dir.path(), &Disk::Virtual);
    for round in 0..rounds(3) {
        both.write(|both| {
            thread::sleep(a_while(3 * round));
            both.kill(true);
            thread::sleep(a_while(3 * round + 1) / 4);
            both.serve();
            thread::sleep(a_while(3 * round + 2));
        });
        let (cached, straight) = (both.cached(), both.straight());
        both.tally.answered(&mut both.writers, &cached);
        both.tally.flushed(&mut both.writers, &straight);
    }
    both.finish();
}

fn both_are_killed(name: &str, dir: &Path, disk: &Disk, usual: u64) {
    let mut both = Both::new(name, dir, disk);
    for round in 0..rounds(usual) {
        let server_first = next(round).is_multiple_of(2);
        both.write(|both| {
            thread::sleep(FLUSHES + a_while(round));
            both.kill(server_first);
            both.kill(!server_first);
        });
        both.serve();
        let straight = both.straight();
        both.tally.after_crash(&mut both.writers, &straight);
        both.cache = Some(cache(dir));
    }
    both.finish();
}

#[test]
fn what_was_flushed_is_there_after_destage_and_the_server_were_killed() {
    let dir = scratch("kill-both");
    const NAME: &str = "what_was_flushed_is_there_after_destage_and_the_server_were_killed";
    both_are_killed(NAME, dir.path(), &Disk::Virtual, 3);
}

#[test]
fn what_was_flushed_to_a_loop_device_is_there_after_destage_and_the_server_were_killed() {
    const NAME: &str = "what_was_flushed_to_a_loop_device_is_there_after_destage_and_the_server_were_killed";
    if let Some(why) = support::missing(&["losetup"]) {
        return support::skipped(NAME, &why);
    }
    let _turn = support::turn();
    let (dir, disk) = (scratch("kill-both-loop"), Disk::looped("destaged"));
    let Disk::Loop(device) = &disk else { unreachable!() };
    // On a disk that does not rotate no gaps are filled, so nothing is destaged.
    if let Err(why) = fs::write(device.queue("rotational"), "1") {
        return support::skipped(NAME, &format!("a loop device cannot be taken for a rotating disk: {why}"));
    }
    both_are_killed(NAME, dir.path(), &disk, 3);
}
