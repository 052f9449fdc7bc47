//! Many clients, misbehaving clients, and others next to them.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use super::nbd_client::{FLUSH, Nbd, READ, WRITE, greeted, option, request};
use super::{SMALL_BYTES, Server, next, noise, scratch, serve};
use crate::support::wait_until;

const MIB: u64 = 1 << 20;

/// The median time of 21 small reads at scattered places.
pub fn median_read(nbd: &mut Nbd) -> Duration {
    let mut took: Vec<Duration> = (0..21)
        .map(|n| {
            let asked = Instant::now();
            nbd.read(next(n) % 4_000 * 4096, 4096).unwrap();
            asked.elapsed()
        })
        .collect();
    took.sort();
    took[10]
}

#[test]
fn thirty_two_clients_at_once_each_find_their_own_data() {
    let dir = scratch("clients");
    let server = Server::disk(dir.path());
    let socket = server.socket();
    let clients: Vec<_> = (0..32u64)
        .map(|n| {
            let socket = socket.clone();
            thread::spawn(move || {
                let mut nbd = Nbd::open(&socket, "").unwrap();
                assert_eq!(nbd.size, SMALL_BYTES);
                let data = noise(64 << 10, n);
                for (at, piece) in data.chunks(16 << 10).enumerate() {
                    nbd.write(0, n * MIB + (at as u64) * 16_384, piece).unwrap();
                }
                nbd.flush().unwrap();
                assert!(nbd.read(n * MIB, 64 << 10).unwrap() == data, "client {n}");
            })
        })
        .collect();
    clients.into_iter().for_each(|c| c.join().unwrap());
    // And each of the others' data, from one more client.
    let mut nbd = Nbd::open(&socket, "").unwrap();
    for n in 0..32 {
        assert!(nbd.read(n * MIB, 64 << 10).unwrap() == noise(64 << 10, n), "client {n}");
    }
    assert!(server.stop().0.success());
}

#[test]
fn a_client_that_stops_reading_costs_bounded_memory_and_holds_up_no_other_client() {
    let dir = scratch("stuck");
    let server = Server::disk(dir.path());
    let before = server.memory();
    let stuck: Vec<UnixStream> = [1u32, 32]
        .map(|mib| {
            let mut stream = Nbd::open(&server.socket(), "").unwrap().stream;
            stream.set_nonblocking(true).unwrap();
            // Requests 512 MiB and fetches none of it.
            for n in 0..512 / u64::from(mib) {
                let _ = stream.write_all(&request(READ, 0, n, 0, mib << 20));
            }
            stream
        })
        .into();
    // 64 MiB per client may be in flight and unfetched; until then the drive works for them at 28
    // MB/s.
    let mut most = 0;
    let mut slowest = Duration::ZERO;
    let mut other = Nbd::open(&server.socket(), "").unwrap();
    let begun = Instant::now();
    for n in 0.. {
        let asked = Instant::now();
        other.write(0, n % 30 * MIB, &noise(4096, n)).unwrap();
        assert!(other.read(n % 30 * MIB, 4096).unwrap() == noise(4096, n));
        slowest = slowest.max(asked.elapsed());
        most = most.max(server.memory());
        if begun.elapsed() > Duration::from_secs(6) {
            break;
        }
    }
    let grown = most.saturating_sub(before);
    assert!(grown < 192 * MIB, "it grew by {} MiB", grown / MIB);
    assert!(slowest < Duration::from_secs(10), "another client waited for {slowest:?}");
    // A client that waits for answers does not delay the server's exit.
    let (status, took) = server.stop();
    assert!(status.success() && took < Duration::from_secs(10), "{status} after {took:?}");
    drop(stuck);
}

#[test]
fn an_export_whose_clients_ask_without_end_leaves_another_its_part_of_the_server() {
    let dir = scratch("greedy");
    let server = Server::start(dir.path(), serve(dir.path()));
    // More than the server holds for all: each may have 128 in flight, and sends as many as fit
    // into its socket.
    let greedy: Vec<_> = (0..44u64)
        .map(|n| {
            let mut stream = Nbd::open(&server.socket(), "archive").unwrap().stream;
            let mut back = stream.try_clone().unwrap();
            let asks: Vec<u8> =
                (0..1_000).flat_map(|i| request(READ, 0, i, next(n << 32 | i) % 6_000 * 4096, 4096)).collect();
            thread::spawn(move || stream.write_all(&asks));
            thread::spawn(move || std::io::copy(&mut back, &mut std::io::sink()))
        })
        .collect();
    let mut other = Nbd::open(&server.socket(), "data").unwrap();
    thread::sleep(Duration::from_secs(2));
    let took = median_read(&mut other);
    assert!(took < Duration::from_millis(150), "half of the reads of another took {took:?} or longer");
    server.kill();
    drop(greedy);
}

/// Messages that a server must refuse, before and after an export is open.
fn hostile() -> Vec<(&'static str, bool, Vec<u8>)> {
    let go = |n: u32| [&n.to_be_bytes()[..], b"x", &0u16.to_be_bytes()].concat();
    let mut all = vec![
        ("noise for a greeting", false, noise(100_000, 7)),
        ("a name longer than what it is in", false, option(7, &go(u32::MAX))),
        ("an option of 4 GiB", false, [&option(3, &[])[..12], &u32::MAX.to_be_bytes()].concat()),
        ("a flood of options", false, option(3, &[]).repeat(100_000)),
        ("an option that is none", false, option(0xffff_ffff, &[0; 1000])),
        ("TLS where there is none", false, option(5, &[])),
        ("half an option", false, option(7, &go(1))[..10].to_vec()),
        ("noise for requests", true, noise(100_000, 8)),
        ("half a request", true, request(READ, 0, 1, 0, 512)[..13].to_vec()),
        ("a write without its data", true, request(WRITE, 0, 1, 0, 1 << 20)),
        ("a write of 4 GiB", true, request(WRITE, 0, 1, 0, u32::MAX)),
        ("a flood of flushes", true, request(FLUSH, 0, 1, 0, 0).repeat(20_000)),
    ];
    let odd =
        [(READ, u64::MAX, 512), (READ, 0, u32::MAX), (READ, 1, 512), (READ, 0, 0), (READ, 1 << 40, 512), (6, 0, 512)];
    for (op, offset, length) in odd {
        all.push(("an odd request", true, request(op, 0xffff, 1, offset, length)));
    }
    all
}

#[test]
fn hostile_bytes_harm_neither_the_server_nor_others() {
    let dir = scratch("hostile");
    let server = Server::disk(dir.path());
    let mut other = Nbd::open(&server.socket(), "").unwrap();
    let data = noise(1 << 20, 3);
    other.write(0, 8 * MIB, &data).unwrap();
    let before = server.memory();
    let mut open = Vec::new();
    for (what, opened, bytes) in hostile() {
        let mut stream = match opened {
            true => Nbd::open(&server.socket(), "").unwrap().stream,
            false if what.starts_with("noise") => UnixStream::connect(server.socket()).unwrap(),
            false => greeted(&server.socket()).unwrap(),
        };
        stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
        // The server may disconnect early, or stop reading.
        let _ = stream.write_all(&bytes);
        let _ = stream.read(&mut [0; 4096]);
        open.push(stream);
        assert!(other.read(8 * MIB, 4096).unwrap() == data[..4096], "after {what}");
    }
    let mut seed = 11;
    for _ in 0..100 {
        seed = next(seed);
        // Valid up to a point, then noise.
        let mut bytes = [option(3, &[]), option(6, &[0, 0, 0, 0, 0, 0]), request(READ, 0, 1, 0, 512)].concat();
        let at = seed as usize % bytes.len();
        bytes.truncate(at);
        bytes.extend(noise(200, seed));
        let mut stream = greeted(&server.socket()).unwrap();
        let _ = stream.write_all(&bytes);
        drop(stream);
    }
    let grown = server.memory().saturating_sub(before);
    assert!(grown < 64 * MIB, "it grew by {} MiB", grown / MIB);
    drop(open);
    assert!(other.read(8 * MIB, 1 << 20).unwrap() == data);
    // Their places are free again: the maximum number of clients can connect.
    let mut all = Vec::new();
    assert!(wait_until(|| {
        all.extend(Nbd::open(&server.socket(), ""));
        all.len() >= 60
    }));
    assert!(!server.said().contains("panicked"), "{}", server.said());
    assert!(server.stop().0.success());
}
