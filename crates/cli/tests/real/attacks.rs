//! Malicious clients and other users: their use of resources is bounded, and others are served as
//! before.

use std::io::{ErrorKind, PipeWriter, Read, Write, pipe};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use std::{fs, thread};

use headtime_serve::control::client::{Session, connect, info};
use headtime_serve::control::v1::session_call::Call;
use headtime_serve::control::v1::session_event::Event;
use headtime_serve::control::v1::{self, Kind, Register};
use rustix::fs::OFlags;
use tokio::runtime::Runtime;

use super::nbd_client::{Nbd, READ, WRITE, greeted, option, request};
use super::{SMALL_BYTES, Server, finish, headtime, next, scratch, serve};
use crate::support::{Process, skipped, wait_until};

/// Mean time of 100 random reads, ms.
fn mean_read(nbd: &mut Nbd, mut seed: u64) -> f64 {
    let begun = Instant::now();
    for _ in 0..100 {
        seed = next(seed);
        nbd.read(seed % 4096 * 4096, 4096).unwrap();
    }
    begun.elapsed().as_secs_f64() * 10.0
}

/// Fills a pipe, so that the next line written to it waits for a reader.
fn fill(pipe: &PipeWriter) {
    // Opened anew it has a mode of its own: the server's writes still block.
    let path = format!("/proc/self/fd/{}", pipe.as_raw_fd());
    let flags = OFlags::NONBLOCK.bits() as i32;
    let mut pipe = fs::File::options().write(true).custom_flags(flags).open(path).unwrap();
    while pipe.write(b"\n").is_ok() {}
}

/// Each connection is a line of the log, and the log is not read.
#[test]
fn a_log_that_is_not_read_delays_neither_clients_nor_the_end() {
    let dir = scratch("unread");
    let (mut lines, pipe) = pipe().unwrap();
    let mut command = serve(dir.path());
    command.args(["--log", "debug"]).stderr(pipe.try_clone().unwrap());
    let mut child = Process(command.spawn().unwrap());
    // It holds the other end of the pipe.
    drop(command);
    let socket = dir.path().join("nbd.sock");
    assert!(wait_until(|| UnixStream::connect(&socket).is_ok()));
    let mut other = Nbd::open(&socket, "data").unwrap();
    fill(&pipe);
    drop(pipe);
    for _ in 0..2_000 {
        let mut stream = greeted(&socket).unwrap();
        stream.write_all(&[0xff; 16]).unwrap();
        let hung_up = stream.read_to_end(&mut Vec::new());
        assert!(!hung_up.is_err_and(|e| e.kind() == ErrorKind::WouldBlock), "the server waits for the log's reader");
    }
    other.read(0, 4096).unwrap();
    let begun = Instant::now();
    finish(std::process::Command::new("kill").arg("-TERM").arg(child.0.id().to_string()));
    assert!(wait_until(|| child.0.try_wait().unwrap().is_some()), "it did not end");
    assert!(begun.elapsed() < Duration::from_secs(10));
    // Everything written is in the pipe's buffer.
    drop(child);
    let mut said = String::new();
    lines.read_to_string(&mut said).unwrap();
    assert!(said.ends_with('\n') && !said.contains("start of an option"));
}

/// Its lines do not fit, or its findings do not, or nothing can be written at all.
#[test]
fn a_scrub_whose_output_is_not_read_ends_when_it_is_asked_to() {
    let dir = scratch("unread-scrub");
    let server = Server::start(dir.path(), serve(dir.path()));
    let (_unread, full) = pipe().unwrap();
    fill(&full);
    for unread in ["stderr", "stdout", "none"] {
        let mut command = headtime();
        command
            .current_dir(dir.path())
            .args(["scrub", "--journal", "scrub.journal"])
            .stdin(std::process::Stdio::null());
        let (read, other) = pipe().unwrap();
        match unread {
            "stdout" => command.stdout(full.try_clone().unwrap()).stderr(other),
            "stderr" => command.stdout(other).stderr(full.try_clone().unwrap()),
            _ => command.stdout(fs::File::options().write(true).open("/dev/full").unwrap()).stderr(other),
        };
        let mut child = Process(command.spawn().unwrap());
        drop(command);
        assert!(wait_until(|| dir.path().join("scrub.journal.lock").exists()), "it does not begin");
        thread::sleep(Duration::from_millis(500));
        let ask = || finish(std::process::Command::new("kill").arg("-TERM").arg(child.0.id().to_string()));
        ask();
        if unread == "stdout" {
            thread::sleep(Duration::from_secs(1));
            ask();
        }
        assert!(wait_until(|| child.0.try_wait().unwrap().is_some()), "it waits for the reader of {unread}");
        assert_eq!(child.0.wait().unwrap().code(), Some(130), "{unread}");
        drop(read);
        // So that the next one is asked only once it has begun.
        fs::remove_file(dir.path().join("scrub.journal.lock")).unwrap();
    }
    assert!(server.stop().0.success());
}

/// All clients together could need more files than the limit.
#[test]
fn a_server_that_could_not_take_all_its_clients_does_not_start() {
    let dir = scratch("files");
    drop(serve(dir.path()));
    let start = |arguments: &str| {
        let mut command = std::process::Command::new("sh");
        let headtime = headtime();
        command.args(["-c", &format!("ulimit -n 256; exec \"$0\" {arguments}")]).arg(headtime.get_program());
        finish(command.current_dir(dir.path()))
    };
    for arguments in ["serve serve.toml --check", "serve serve.toml"] {
        let (status, _, err) = start(arguments);
        assert!(status.code() == Some(2) && err.contains("expected a limit of") && err.contains("found 256"), "{err}");
    }
}

#[test]
fn of_clients_that_break_the_protocol_a_few_are_named() {
    let dir = scratch("named");
    let server = Server::start(dir.path(), serve(dir.path()));
    for _ in 0..200 {
        let mut stream = greeted(&server.socket()).unwrap();
        stream.write_all(&[0xff; 16]).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    }
    let named = || server.said().matches("start of an option").count();
    assert!(wait_until(|| named() >= 5));
    assert!(named() <= 45, "{}", named());
}

#[test]
fn who_says_nothing_takes_no_place_and_each_socket_has_its_own() {
    let dir = scratch("silent");
    let command = serve(dir.path());
    let config = dir.path().join("serve.toml");
    let text = fs::read_to_string(&config).unwrap();
    let text = text.replace("[\"unix:nbd.sock\"]", "[\"unix:nbd.sock\", \"unix:b.sock\"]\nclients = 1");
    fs::write(&config, text).unwrap();
    let server = Server::start(dir.path(), command);
    let others = dir.path().join("b.sock");
    // A few that may negotiate, and then more than may.
    let few: Vec<UnixStream> = (0..3).map(|_| UnixStream::connect(server.socket()).unwrap()).collect();
    Nbd::open(&server.socket(), "data").unwrap().read(0, 4096).unwrap();
    let silent: Vec<UnixStream> = (0..100).map(|_| UnixStream::connect(server.socket()).unwrap()).collect();
    let begun = Instant::now();
    let mut one = Nbd::open(&server.socket(), "data").unwrap();
    let mut other = Nbd::open(&others, "data").unwrap();
    for nbd in [&mut one, &mut other] {
        nbd.read(0, 4096).unwrap();
    }
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    // There is one place: the next client waits, and gets it when it is free.
    let waits = {
        let socket = server.socket();
        thread::spawn(move || Nbd::open(&socket, "data").and_then(|mut nbd| nbd.read(0, 4096)))
    };
    thread::sleep(Duration::from_millis(300));
    assert!(!waits.is_finished());
    drop(one);
    waits.join().unwrap().unwrap();
    // Or it is refused with the reason: flags first, and the request for an export a moment later.
    let held = Nbd::open(&server.socket(), "data").unwrap();
    let mut refused = greeted(&server.socket()).unwrap();
    thread::sleep(Duration::from_millis(200));
    refused.write_all(&option(7, &[0, 0, 0, 4, b'd', b'a', b't', b'a', 0, 0])).unwrap();
    let mut answer = [0; 20];
    refused.read_exact(&mut answer).unwrap();
    assert_eq!(answer[12..16], (1u32 << 31 | 2).to_be_bytes());
    let mut words = String::new();
    refused.read_to_string(&mut words).unwrap();
    assert_eq!(words, "the server has as many clients as it takes");
    drop((few, silent, held));
    assert!(server.stop().0.success());
}

/// On a fast disk: their requests would be in memory within a few seconds. The other client is new,
/// so its weight is raised and most of the disk's time is its own at first.
#[test]
fn clients_that_fetch_nothing_share_what_memory_there_is_for_all() {
    let dir = scratch("hogs");
    let command = serve(dir.path());
    let config = dir.path().join("serve.toml");
    let text = fs::read_to_string(&config).unwrap().replace("backing = ", "device = ");
    fs::write(&config, text).unwrap();
    fs::File::create(dir.path().join("disk.img")).unwrap().set_len(SMALL_BYTES).unwrap();
    let server = Server::start(dir.path(), command);
    let before = server.memory();
    let hogs: Vec<UnixStream> = (0..24)
        .map(|_| {
            let mut stream = Nbd::open(&server.socket(), "data").unwrap().stream;
            (0..4).for_each(|n| stream.write_all(&request(READ, 0, n, 0, 16 << 20)).unwrap());
            stream
        })
        .collect();
    let (mut other, begun, mut most) = (Nbd::open(&server.socket(), "archive").unwrap(), Instant::now(), 0);
    let is_over = |most| begun.elapsed() > Duration::from_secs(if most > 128 << 20 { 4 } else { 20 });
    while !is_over(most) {
        other.read(0, 4096).unwrap();
        most = most.max(server.memory().saturating_sub(before));
    }
    // 256 MiB for all of them, and each connection's own. Without a limit it would be 1.5 GiB.
    assert!((128 << 20..24 * (1 << 20) + (300 << 20)).contains(&most), "{} MiB", most >> 20);
    drop(hogs);
    assert!(wait_until(|| server.memory() < before + (64 << 20)));
}

/// A write uses its share of the common budget from its first byte on.
#[test]
fn clients_that_never_finish_their_writes_share_that_memory_too() {
    let dir = scratch("half");
    let server = Server::start(dir.path(), serve(dir.path()));
    let before = server.memory();
    let begin = || {
        let mut stream = Nbd::open(&server.socket(), "data").unwrap().stream;
        stream.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
        stream.write_all(&request(WRITE, 0, 1, 0, 16 << 20)).unwrap();
        // As much as the server takes.
        let _ = stream.write_all(&vec![1; 15 << 20]);
        stream
    };
    let hogs: Vec<UnixStream> = (0..48).map(|_| begin()).collect();
    let held = server.memory().saturating_sub(before);
    // All of them together would have 720 MiB.
    assert!((64 << 20..48 * (1 << 20) + (256 << 20)).contains(&held), "{} MiB", held >> 20);
    let mut other = Nbd::open(&server.socket(), "archive").unwrap();
    other.read(0, 4096).unwrap();
    Nbd::open(&server.socket(), "data").unwrap().write(0, 0, &[1; 4096]).unwrap();
    drop(hogs);
    assert!(wait_until(|| server.memory() < before + (64 << 20)));
    assert!(server.stop().0.success());
}

/// Tasks of 4,096 ranges at full rate, all closed at once. Other programs may slow one attempt
/// down.
#[test]
fn tasks_of_many_ranges_hold_up_no_other_client() {
    let in_time = (0..3).any(|_| {
        let [alone, beside, closing] = reads_beside_tasks_of_many_ranges();
        println!("a read takes {alone:.2} ms alone, {beside:.2} beside, {closing:.2} while they are closed");
        beside < 1.5 * alone + 1.0 && closing < 1.5 * alone + 1.0
    });
    assert!(in_time);
}

fn reads_beside_tasks_of_many_ranges() -> [f64; 3] {
    let dir = scratch("ranges");
    let server = Server::start(dir.path(), serve(dir.path()));
    let mut nbd = Nbd::open(&server.socket(), "data").unwrap();
    let alone = mean_read(&mut nbd, 1);
    let control = dir.path().join("control.sock");
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let talks = thread::spawn(move || {
        Runtime::new().unwrap().block_on(async {
            let mut control = connect(&control).await.unwrap();
            let on = info(&mut control).await.unwrap();
            let mut session = Session::open(&mut control, &on, "many", 1, 8).await.unwrap();
            let ranges = |n: u64| (0..n).map(|i| v1::Range { lbn: i * 4 % 40_000 + i / 10_000, count: 1 }).collect();
            let register = |task, n| {
                let kind = Kind::Read.into();
                Call::Register(Register {
                    task,
                    kind,
                    ranges: ranges(n),
                    blksize: 1,
                    min_pickup: 1,
                    point_in_time: false,
                })
            };
            session.say(register(0, 4_097)).await.unwrap();
            let Event::Refused(r) = session.next().await.unwrap() else { panic!("it was not refused") };
            assert!(r.why.contains("at most 4096, found 4097"), "{}", r.why);
            session.say(Call::Suspend(v1::Empty {})).await.unwrap();
            for task in 1.. {
                if stopped.try_recv().is_ok() {
                    return task - 1;
                }
                session.say(register(task, 4_096)).await.unwrap();
                while !matches!(session.next().await.unwrap(), Event::Registered(_) | Event::Refused(_)) {}
            }
            unreachable!()
        })
    });
    let beside = mean_read(&mut nbd, 2);
    stop.send(()).unwrap();
    let registered = talks.join().unwrap();
    let closing = mean_read(&mut nbd, 3);
    assert!(registered > 5, "{registered}");
    assert!(server.stop().0.success());
    [alone, beside, closing]
}

#[test]
fn a_backup_follows_no_planted_link_and_no_other_user_may_read_what_it_writes() {
    let dir = scratch("planted");
    let server = Server::start(dir.path(), serve(dir.path()));
    let path = |name: &str| dir.path().join(name);
    let backup = |image: &str| finish(headtime().current_dir(dir.path()).args(["backup", image, "--export", "data"]));
    fs::write(path("victim"), "dear").unwrap();
    symlink(path("victim"), path("img.part")).unwrap();
    let (status, _, err) = backup("img");
    assert_eq!(status.code(), Some(2), "{err}");
    assert!(err.contains("img.part: expected a file, found a symbolic link"), "{err}");
    assert_eq!(fs::read(path("victim")).unwrap(), b"dear");
    let (status, _, err) = backup("good");
    assert!(status.success(), "{err}");
    for name in ["good", "disk.img"] {
        assert_eq!(fs::metadata(path(name)).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
    }
    assert!(server.stop().0.success());
}

/// A write beyond the file-size limit fails, and the program reports it.
#[test]
fn a_limit_of_file_sizes_fails_writes_and_ends_no_server() {
    let dir = scratch("limited");
    let server = Server::start(dir.path(), serve(dir.path()));
    let limited = |arguments: &str| {
        let mut shell = std::process::Command::new("sh");
        let run = format!("ulimit -f 100; exec \"$0\" {arguments}");
        shell.current_dir(dir.path()).args(["-c", &run]).arg(headtime().get_program());
        shell
    };
    let (status, _, err) = finish(&mut limited("backup --export data --at-least 100 image"));
    assert_eq!(status.code(), Some(2), "{status}: {err}");
    assert!(err.contains("image.part") && err.contains("File too large"), "{err}");
    assert!(server.stop().0.success());
    // A server continues without its recording.
    let mut recording = limited("serve serve.toml --record requests");
    recording.stdin(std::process::Stdio::null());
    let server = Server::start(dir.path(), recording);
    let mut nbd = Nbd::open(&server.socket(), "data").unwrap();
    let batch: Vec<u8> = (0..64).flat_map(|n| request(READ, 0, n, 0, 512)).collect();
    for _ in 0..100 {
        nbd.stream.write_all(&batch).unwrap();
        for _ in 0..64 {
            assert_eq!(nbd.answer().unwrap().1, 0);
            nbd.data(512).unwrap();
        }
    }
    assert!(wait_until(|| server.said().contains("requests: ")), "{}", server.said());
    nbd.read(0, 4096).unwrap();
}

/// A file in use is not replaced, nor is one that is not a journal.
#[test]
fn a_file_in_use_and_what_is_no_journal_stay() {
    let dir = scratch("in-use");
    let server = Server::start(dir.path(), serve(dir.path()));
    fs::write(dir.path().join("dear"), "precious").unwrap();
    for (arguments, why) in [
        ("backup --export data --overwrite disk.img", "another headtime uses it"),
        ("task read --range 0+8 --overwrite -o disk.img", "another headtime uses it"),
        ("scrub --export data --restart --journal disk.img", "expected a journal"),
        ("scrub --export data --restart --journal dear", "expected a journal"),
    ] {
        let mut command = headtime();
        let (status, _, err) = finish(command.current_dir(dir.path()).args(arguments.split(' ')));
        assert_eq!(status.code(), Some(2), "{arguments}: {err}");
        assert!(err.contains(why), "{arguments}: {err}");
    }
    assert_eq!(fs::read(dir.path().join("dear")).unwrap(), b"precious");
    let mut nbd = Nbd::open(&server.socket(), "data").unwrap();
    nbd.write(0, 0, &[7; 4096]).unwrap();
    assert!(server.stop().0.success());
    assert_eq!(fs::read(dir.path().join("disk.img")).unwrap()[..4096], [7; 4096]);
}

/// The file with the image's name comes into use during the backup.
#[test]
fn a_file_that_came_into_use_during_a_backup_stays() {
    let dir = scratch("in-use-since");
    let server = Server::start(dir.path(), serve(dir.path()));
    let image = dir.path().join("image");
    fs::write(&image, "precious").unwrap();
    let mut command = headtime();
    command.current_dir(dir.path()).args(["backup", "--export", "data", "--overwrite", "image"]);
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
    let mut child = Process(command.spawn().unwrap());
    assert!(wait_until(|| dir.path().join("image.part").exists() || child.0.try_wait().unwrap().is_some()));
    let used = fs::File::open(&image).unwrap();
    rustix::fs::flock(&used, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
    let mut err = String::new();
    child.0.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert!(child.0.wait().unwrap().code() == Some(2) && err.contains("another headtime uses it"), "{err}");
    assert_eq!(fs::read(&image).unwrap(), b"precious");
    assert!(server.stop().0.success());
}

/// Any user can put a socket into a world-writable directory.
#[test]
fn a_socket_of_another_user_is_used_only_if_it_is_named() {
    if !rustix::process::geteuid().is_root() {
        return skipped("a_socket_of_another_user_is_used_only_if_it_is_named", "only root can give a file away");
    }
    let dir = scratch("theirs");
    let server = Server::start(dir.path(), serve(dir.path()));
    let others = Some(rustix::process::Uid::from_raw(65_534));
    let list = |arguments: &[&str]| {
        let mut command = headtime();
        command.current_dir(dir.path()).env("XDG_RUNTIME_DIR", dir.path()).args(["task", "list"]).args(arguments);
        finish(&mut command)
    };
    assert!(list(&[]).0.success());
    rustix::fs::chown(dir.path().join("control.sock"), others, None).unwrap();
    let (status, _, err) = list(&[]);
    assert!(status.code() == Some(2) && err.contains("expected a server's socket"), "{status}: {err}");
    assert!(list(&["--control", "control.sock"]).0.success());
    assert!(server.stop().0.success());
}
