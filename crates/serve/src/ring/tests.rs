use super::*;
use std::io::{Read, Write};

fn file() -> File {
    tempfile::tempfile().unwrap()
}

fn next(ring: &mut Ring) -> Finished {
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        match ring.poll() {
            Some(f) => return f,
            None => std::thread::sleep(std::time::Duration::from_micros(50)),
        }
        assert!(std::time::Instant::now() < until, "nothing finishes");
    }
}

#[test]
fn what_was_written_is_read_back() {
    let mut ring = Ring::new(file().into(), 2).unwrap();
    ring.write(1, 4096, Bytes::from(vec![5; 8192]), true).unwrap();
    assert!(next(&mut ring).result.is_ok());
    ring.flush(2).unwrap();
    assert_eq!(next(&mut ring).token, 2);
    ring.read(3, 0, 12288).unwrap();
    let read = next(&mut ring).result.unwrap();
    assert!(read[..4096].iter().all(|&b| b == 0) && read[4096..].iter().all(|&b| b == 5));
    assert_eq!(ring.outstanding(), 0);
}

/// A rejected operation fails once and is never carried out later; the next ones are carried out as
/// soon as the kernel accepts them.
#[test]
fn what_the_kernel_refuses_fails_and_is_never_done() {
    let file = file();
    file.set_len(8192).unwrap();
    let seen = file.try_clone().unwrap();
    let mut ring = Ring::new(file.into(), 2).unwrap();
    for errno in [1, 12, 38] {
        ring.refuses = Some(errno);
        for token in 0..20 {
            ring.write(token, 0, Bytes::from(vec![9; 4096]), false).unwrap();
            assert!(ring.is_held_up());
            let finished = next(&mut ring);
            assert_eq!((finished.token, finished.result.unwrap_err().raw_os_error()), (token, Some(errno)));
            assert_eq!((ring.outstanding(), ring.is_held_up()), (0, false));
        }
        ring.refuses = None;
        ring.write(30, 4096, Bytes::from(vec![errno as u8; 4096]), true).unwrap();
        assert!(next(&mut ring).result.is_ok());
        let mut all = vec![0; 8192];
        std::os::unix::fs::FileExt::read_exact_at(&seen, &mut all, 0).unwrap();
        assert!(all[..4096].iter().all(|&b| b == 0) && all[4096..].iter().all(|&b| b == errno as u8));
    }
    // Operations that the kernel has accepted complete as usual, and no other is started before.
    ring.read(40, 0, 4096).unwrap();
    ring.refuses = Some(1);
    ring.read(41, 0, 4096).unwrap();
    assert!(ring.read(42, 0, 4096).is_err());
    let tokens = [next(&mut ring), next(&mut ring)].map(|f| (f.token, f.result.is_ok()));
    assert_eq!(tokens, [(41, false), (40, true)]);
}

/// Segments of 1,000 bytes, the last one shorter.
fn over_segments(files: Vec<File>, depth: u32) -> Ring {
    Ring::over(Arc::new(Backing::of_segments(files, 1000)), depth).unwrap()
}

#[test]
fn data_in_several_files_is_what_it_would_be_in_memory() {
    const BYTES: usize = 12_345;
    let files: Vec<File> = (0..13).map(|_| file()).collect();
    files.iter().enumerate().for_each(|(n, f)| f.set_len(if n < 12 { 1000 } else { 345 }).unwrap());
    let lengths = files.iter().map(|f| f.try_clone().unwrap()).collect::<Vec<_>>();
    let mut ring = over_segments(files, 3);
    let (mut memory, mut seed) = (vec![0; BYTES], 1u64);
    let mut chance = |of: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % of
    };
    for n in 0..3000 {
        let at = chance(BYTES);
        // Mostly about as long as a segment, some across many.
        let len = 1 + chance(if n % 10 == 0 { BYTES } else { 1500 }).min(BYTES - at - 1);
        if chance(2) == 0 {
            let data = vec![1 + chance(255) as u8; len];
            memory[at..at + len].copy_from_slice(&data);
            ring.write(n, at as u64, data.into(), n % 7 == 0).unwrap();
            assert!(next(&mut ring).result.unwrap().is_empty());
        } else {
            ring.read(n, at as u64, len).unwrap();
            let f = next(&mut ring);
            assert!(f.token == n && f.result.unwrap() == memory[at..at + len], "{len} bytes at {at}");
        }
    }
    assert_eq!(ring.outstanding(), 0);
    let lengths: Vec<u64> = lengths.iter().map(|f| f.metadata().unwrap().len()).collect();
    assert_eq!(lengths, [vec![1000; 12], vec![345]].concat(), "no file has grown");
}

#[test]
fn an_error_in_any_of_several_files_is_the_answer() {
    let full = || File::options().read(true).write(true).open("/dev/full").unwrap();
    let data = || Bytes::from(vec![1; 200]);
    for files in [vec![file(), full(), file()], vec![file(), file(), full()]] {
        let mut ring = over_segments(files, 2);
        ring.write(1, 900, data(), false).unwrap();
        ring.write(2, 1900, data(), false).unwrap();
        let mut results =
            [next(&mut ring), next(&mut ring)].map(|f| (f.token, f.result.err().and_then(|e| e.raw_os_error())));
        results.sort();
        assert!(results.iter().any(|r| r.1 == Some(28)), "no space: {results:?}");
    }
    // A read of a short segment takes nothing from the next one.
    let files: Vec<File> = [1000, 500, 1000]
        .map(|len| {
            let f = file();
            f.set_len(len).unwrap();
            f
        })
        .into();
    let mut ring = over_segments(files, 1);
    ring.read(3, 900, 1500).unwrap();
    assert_eq!(next(&mut ring).result.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
}

#[test]
fn a_flush_is_one_of_every_file() {
    // A pipe cannot be flushed.
    for (pipe_at, expected) in [(0, Some(22)), (2, Some(22)), (3, None)] {
        let mut files: Vec<File> = (0..3).map(|_| file()).collect();
        let (reader, _writer) = std::io::pipe().unwrap();
        files.insert(pipe_at, OwnedFd::from(reader).into());
        files.truncate(3);
        let mut ring = over_segments(files, 1);
        ring.flush(1).unwrap();
        assert_eq!(next(&mut ring).result.err().and_then(|e| e.raw_os_error()), expected);
    }
}

#[test]
fn what_the_kernel_did_not_take_for_a_moment_is_handed_over_at_the_next_poll() {
    let mut f = file();
    f.write_all(&[7; 1024]).unwrap();
    let mut ring = Ring::new(f.into(), 3).unwrap();
    ring.read_held_up(1, 0, 512);
    ring.read_held_up(2, 512, 512);
    assert!(ring.is_held_up() && ring.outstanding() == 2);
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert!(ring.ring.completion().is_empty(), "the kernel has not seen them");
    let mut tokens = [next(&mut ring), next(&mut ring)].map(|f| {
        assert!(f.result.unwrap().iter().all(|&b| b == 7));
        f.token
    });
    tokens.sort();
    assert!(tokens == [1, 2] && !ring.is_held_up() && ring.outstanding() == 0);
    // The next operation submits them as well.
    ring.read_held_up(3, 0, 512);
    ring.read(4, 0, 512).unwrap();
    assert!(!ring.is_held_up());
    assert_eq!(next(&mut ring).token + next(&mut ring).token, 7);
}

#[test]
fn temporary_refusals_are_distinguished_from_permanent_ones() {
    let by = |errno| Refused::by(&io::Error::from_raw_os_error(errno));
    assert_eq!(by(rustix::io::Errno::INTR.raw_os_error()), Refused::Again);
    for errno in [rustix::io::Errno::AGAIN, rustix::io::Errno::BUSY] {
        assert_eq!(by(errno.raw_os_error()), Refused::Later, "{errno}");
    }
    for errno in [rustix::io::Errno::BADF, rustix::io::Errno::INVAL, rustix::io::Errno::NOMEM] {
        assert_eq!(by(errno.raw_os_error()), Refused::ForGood, "{errno}");
    }
    assert_eq!(Refused::by(&io::ErrorKind::Interrupted.into()), Refused::ForGood, "no answer of the kernel's");
}

#[test]
fn a_read_beyond_the_end_is_an_error_not_zeros() {
    let mut f = file();
    f.write_all(&[1; 100]).unwrap();
    let mut ring = Ring::new(f.into(), 1).unwrap();
    ring.read(9, 0, 512).unwrap();
    let e = next(&mut ring).result.unwrap_err();
    assert_eq!(e.kind(), io::ErrorKind::UnexpectedEof);
}

#[test]
fn an_error_of_the_kernel_comes_back_with_its_operation() {
    let read_only = File::open("/dev/null").unwrap();
    let mut ring = Ring::new(read_only.into(), 1).unwrap();
    ring.write(4, 0, Bytes::from_static(&[0; 512]), false).unwrap();
    let f = next(&mut ring);
    assert_eq!((f.token, f.result.unwrap_err().raw_os_error()), (4, Some(9)));
}

#[test]
fn a_ring_that_is_dropped_with_operations_under_way_lets_them_end() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let file: OwnedFd = reader.try_clone().unwrap().into();
    let mut ring = Ring::new(file, 1).unwrap();
    // The pipe is empty, so this read does not complete.
    ring.read(1, u64::MAX, 16).unwrap();
    assert!(ring.poll().is_none());
    drop(ring);
    drop(writer);
    let mut rest = vec![];
    reader.read_to_end(&mut rest).unwrap();
    assert!(rest.is_empty());
}
