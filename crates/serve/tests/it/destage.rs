//! A write-back cache in front of a server: no acknowledged data is lost, older data never returns,
//! and flush and FUA are honoured.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::destaging::{Bench, FIRST, Flushing, SECTORS};
use crate::rig::SECTOR;
use headtime_serve::destage::driver::UpstreamError;
use headtime_serve::destage::server::{Destage, DestageError};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const EIO: u32 = 5;

/// Returns `count` sectors filled with a stamp of their write.
fn data(stamp: u64, count: usize) -> Vec<u8> {
    let mut data = vec![stamp as u8; count * SECTOR];
    data.chunks_mut(SECTOR).for_each(|s| s[..8].copy_from_slice(&stamp.to_le_bytes()));
    data
}

/// Returns the stamp of each sector. Fails if one is torn.
fn stamps(data: &[u8]) -> Vec<u64> {
    let stamp = |s: &[u8]| {
        let stamp = u64::from_le_bytes(s[..8].try_into().unwrap());
        assert!(s[8..].iter().all(|&b| b == stamp as u8), "a torn sector");
        stamp
    };
    data.chunks(SECTOR).map(stamp).collect()
}

#[test]
fn what_several_clients_read_is_current_and_what_they_flush_is_on_the_disk() {
    let mut bench = Bench::new(1 << 20);
    // Each client writes its own blocks, which are interleaved with the others', so it knows their
    // current data; each reads all blocks. A read returns at least the data acknowledged before it
    // started, and at most the data whose write started before it ended.
    const CLIENTS: u64 = 3;
    const BLOCKS: u64 = 96;
    let place = |block: u64| block * 5 + block / 16 * 1000;
    let acknowledged: Vec<AtomicU64> = (0..BLOCKS).map(|_| AtomicU64::new(0)).collect();
    let begun: Vec<AtomicU64> = (0..BLOCKS).map(|_| AtomicU64::new(0)).collect();
    let until = Instant::now() + Duration::from_secs(4);
    std::thread::scope(|scope| {
        for me in 0..CLIENTS {
            let (bench, acknowledged, begun) = (&bench, &acknowledged, &begun);
            scope.spawn(move || {
                let (mut client, mut rng) = (bench.client(), Xoshiro256PlusPlus::seed_from_u64(me));
                let (mut unflushed, mut stamp) = (vec![], 0);
                while Instant::now() < until {
                    let block = rng.next_u64() % BLOCKS;
                    let mine = block - block % CLIENTS + me;
                    match rng.next_u64() % 100 {
                        0..50 => {
                            stamp += 1;
                            let fua = rng.next_u64().is_multiple_of(20);
                            begun[mine as usize].store(stamp, Ordering::SeqCst);
                            client.write(place(mine), &data(stamp, 5), fua).unwrap();
                            acknowledged[mine as usize].store(stamp, Ordering::SeqCst);
                            match fua {
                                // No other client writes there.
                                true => assert_eq!(stamps(&bench.on_disk(place(mine), 5)), [stamp; 5]),
                                false => unflushed.push((mine, stamp)),
                            }
                        }
                        50..98 => {
                            // Two neighbours, or parts of them.
                            let block = block.min(BLOCKS - 2);
                            let least: Vec<u64> =
                                (block..block + 2).map(|b| acknowledged[b as usize].load(Ordering::SeqCst)).collect();
                            let near = place(block + 1) == place(block) + 5;
                            let count = if near { 10 } else { 5 };
                            let found = stamps(&client.read(place(block), count).unwrap());
                            for (i, &f) in found.iter().enumerate() {
                                let most = begun[block as usize + i / 5].load(Ordering::SeqCst);
                                assert!(least[i / 5] <= f && f <= most, "{} <= {f} <= {most}", least[i / 5]);
                            }
                        }
                        _ => {
                            client.flush().unwrap();
                            for (b, stamp) in unflushed.drain(..) {
                                let found = stamps(&bench.on_disk(place(b), 5));
                                assert!(found.iter().all(|&f| f >= stamp), "{found:?}, flushed was {stamp}");
                            }
                        }
                    }
                }
            });
        }
    });
    let left = bench.finish();
    assert_eq!(left.bytes, 0);
    for b in 0..BLOCKS {
        assert_eq!(stamps(&bench.on_disk(place(b), 5)), [acknowledged[b as usize].load(Ordering::SeqCst); 5]);
    }
    assert!(left.counts.hits > 0 && left.counts.through > 0, "{:?}", left.counts);
    bench.stop_server();
}

#[test]
fn a_block_that_is_written_again_and_again_ends_as_it_was_written_last() {
    let mut bench = Bench::new(1 << 20);
    let mut client = bench.client();
    for stamp in 1..=300 {
        client.write(7, &data(stamp, 8), false).unwrap();
        if stamp % 50 == 0 {
            std::thread::sleep(Duration::from_millis(70));
            assert_eq!(stamps(&client.read(7, 8).unwrap()), [stamp; 8]);
        }
    }
    client.flush().unwrap();
    assert_eq!(stamps(&bench.on_disk(7, 8)), [300; 8]);
    drop(client);
    assert_eq!(bench.finish().bytes, 0);
    assert!(bench.destage.is_none());
}

#[test]
fn dirty_blocks_are_written_for_free_when_no_client_asks_for_them() {
    let mut bench = Bench::new(4 << 20);
    let mut client = bench.client();
    (0..64).for_each(|i| client.write(i * 640, &data(i + 1, 8), false).unwrap());
    let until = Instant::now() + Duration::from_secs(20);
    // All over the disk: there is no gap before reads that hit the drive's cache.
    let mut places = (1u64..).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) % (SECTORS - 8));
    while bench.counts().dirty > 0 || bench.counts().free == 0 {
        assert!(Instant::now() < until, "{:?}", bench.counts());
        client.read(places.next().unwrap(), 8).unwrap();
    }
    let counts = bench.counts();
    assert_eq!((counts.free, counts.through), (64 * 8 * 512, 0));
    (0..64).for_each(|i| assert_eq!(stamps(&bench.on_disk(i * 640, 8)), [i + 1; 8]));
    drop(client);
    bench.finish();
}

#[test]
fn writes_wait_while_the_cache_is_full_and_all_succeed() {
    let mut bench = Bench::new(1 << 20);
    let stamp = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for me in 0..4u64 {
            let (bench, stamp) = (&bench, &stamp);
            scope.spawn(move || {
                let mut client = bench.client();
                for i in 0..12 {
                    // 6 MiB in all, with one write that is larger than the cache.
                    let count = if (me, i) == (1, 5) { 4096 } else { 160 };
                    let at = me * 16_000 + i * 160;
                    client.write(at, &data(me * 100 + i + 1, count), false).unwrap();
                    stamp.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
    });
    assert_eq!(stamp.load(Ordering::SeqCst), 48);
    let left = bench.finish();
    assert!(left.bytes == 0 && left.counts.through > 0, "{left:?}");
    for (me, i) in [(0, 0), (0, 11), (3, 7), (2, 5)] {
        assert_eq!(stamps(&bench.on_disk(me * 16_000 + i * 160, 160)), vec![me * 100 + i + 1; 160]);
    }
}

#[test]
fn a_server_that_goes_away_and_comes_back_loses_nothing() {
    let mut bench = Bench::new(2 << 20);
    let mut client = bench.client();
    (0..40).for_each(|i| client.write(i * 800, &data(i + 1, 8), false).unwrap());
    // Some blocks are at the server already, and some are in flight.
    std::thread::sleep(Duration::from_millis(60));
    bench.stop_server();
    (30..60).for_each(|i| client.write(i * 800, &data(i + 101, 8), false).unwrap());
    assert_eq!(stamps(&client.read(35 * 800, 8).unwrap()), [136; 8], "what is dirty needs no server");
    let flushed = AtomicBool::new(false);
    let waits = Mutex::new(client);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = waits.lock().unwrap();
            assert_eq!(stamps(&client.read(60_000, 8).unwrap()), [0; 8], "a miss waits for the server");
            client.flush().unwrap();
            flushed.store(true, Ordering::SeqCst);
        });
        std::thread::sleep(Duration::from_millis(200));
        assert!(!flushed.load(Ordering::SeqCst));
        bench.start_server(false);
    });
    for i in 0..60 {
        let expected = if i < 30 { i + 1 } else { i + 101 };
        assert_eq!(stamps(&bench.on_disk(i * 800, 8)), [expected; 8], "block {i}");
    }
    drop(waits);
    assert_eq!(bench.finish().bytes, 0);
}

/// A different disk of the same model must not receive the data.
#[test]
fn nothing_is_written_onto_another_disk_than_before() {
    let mut bench = Bench::new(2 << 20);
    let mut client = bench.client();
    bench.stop_server();
    (0..40).for_each(|i| client.write(i * 800, &data(i + 1, 8), false).unwrap());
    let other = tempfile::tempfile().unwrap();
    other.set_len(10 << 30).unwrap();
    let (first, id) = (std::mem::replace(&mut bench.file, other), std::mem::take(&mut bench.disk_id));
    bench.disk_id = "another".into();
    bench.start_server(false);
    // The time that half of them took with the right disk.
    std::thread::sleep(Duration::from_secs(3));
    (0..40).for_each(|i| assert_eq!(stamps(&bench.on_disk(i * 800, 8)), [0; 8], "block {i}"));
    assert_eq!(stamps(&client.read(35 * 800, 8).unwrap()), [36; 8]);
    bench.stop_server();
    (bench.file, bench.disk_id) = (first, id);
    bench.start_server(false);
    client.flush().unwrap();
    (0..40).for_each(|i| assert_eq!(stamps(&bench.on_disk(i * 800, 8)), [i + 1; 8], "block {i}"));
    drop(client);
    assert_eq!(bench.finish().bytes, 0);
}

#[test]
fn a_sector_that_cannot_be_written_fails_flushes_until_it_is() {
    let mut bench = Bench::new(1 << 20);
    let mut client = bench.client();
    bench.bad.store(FIRST + 100, Ordering::SeqCst);
    client.write(64, &data(1, 128), false).unwrap();
    assert_eq!(client.flush(), Err(EIO));
    assert_eq!(client.flush(), Err(EIO), "it is not forgotten");
    assert_eq!(stamps(&client.read(64, 128).unwrap()), [1; 128], "nor lost");
    assert_eq!(stamps(&bench.on_disk(64, 32)), [1; 32], "its neighbours are written");
    assert_eq!(client.write(100, &data(2, 8), true), Err(EIO));
    bench.bad.store(u64::MAX, Ordering::SeqCst);
    client.write(100, &data(3, 8), false).unwrap();
    client.flush().unwrap();
    assert_eq!(stamps(&bench.on_disk(100, 8)), [3; 8]);
    drop(client);
    assert_eq!(bench.finish().bytes, 0);
}

#[test]
fn the_end_writes_everything_out_and_says_what_it_could_not() {
    let mut bench = Bench::new(1 << 20);
    let mut client = bench.client();
    client.write(5, &data(9, 3), false).unwrap();
    drop(client);
    assert_eq!(bench.finish().bytes, 0);
    assert_eq!(stamps(&bench.on_disk(5, 3)), [9; 3]);
    bench.destage = Some(Destage::start(bench.setup("data", 1 << 20)).unwrap());
    let mut client = bench.client();
    bench.stop_server();
    client.write(5, &data(10, 3), false).unwrap();
    drop(client);
    let left = bench.finish();
    assert_eq!((left.bytes, left.failed), (3 * 512, 0));
}

#[test]
fn the_end_waits_until_its_last_flush_was_answered_and_says_when_it_failed() {
    for (flushing, flushed) in [(Flushing::Waits, true), (Flushing::Fails, false)] {
        let mut bench = Bench::new(1 << 20);
        let mut client = bench.client();
        client.write(5, &data(9, 3), false).unwrap();
        drop(client);
        bench.flushes.lock().unwrap().0 = flushing;
        let destage = bench.destage.take().unwrap();
        let ending = std::thread::spawn(move || destage.stop().unwrap());
        if flushing == Flushing::Waits {
            let until = Instant::now() + Duration::from_secs(60);
            while bench.flushes.lock().unwrap().1 == 0 {
                assert!(Instant::now() < until && !ending.is_finished(), "it ends without a flush");
                std::thread::sleep(Duration::from_millis(1));
            }
            assert_eq!(stamps(&bench.on_disk(5, 3)), [9; 3], "it is written before it is flushed");
            // Several times as long as it takes to find that nothing else is left to do.
            std::thread::sleep(Duration::from_millis(400));
            assert!(!ending.is_finished(), "it has left before its last flush was answered");
            bench.flushes.lock().unwrap().0 = Flushing::Flushes;
        }
        let left = ending.join().unwrap();
        assert_eq!((left.bytes, left.failed, left.flushed), (0, 0, flushed), "{flushing:?}");
        assert_eq!(stamps(&bench.on_disk(5, 3)), [9; 3]);
    }
}

#[test]
fn an_export_that_is_not_there_or_read_only_is_refused() {
    let mut bench = Bench::new(1 << 20);
    bench.finish();
    let refused = |bench: &Bench, name| match Destage::start(bench.setup(name, 1 << 20)) {
        Err(DestageError::Upstream(e)) => e,
        other => panic!("{:?}", other.map(|_| ())),
    };
    assert!(matches!(refused(&bench, "other"), UpstreamError::NoExport(_)));
    bench.stop_server();
    assert!(matches!(refused(&bench, "data"), UpstreamError::Client(_)));
    bench.start_server(true);
    assert!(matches!(refused(&bench, "data"), UpstreamError::ReadOnly(_)));
}
