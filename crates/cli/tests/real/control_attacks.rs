//! Malicious clients of the control interface: their use of resources is bounded, and others are
//! served as before.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use headtime_serve::control::client::{Session, connect, info};
use headtime_serve::control::v1;
use headtime_serve::control::v1::session_call::Call;
use tokio::runtime::Runtime;

use super::nbd_client::Nbd;
use super::{Server, finish, headtime, scratch, serve};
use crate::support::wait_until;

/// What a client of the control interface hears.
fn list(at: &Path) -> (ExitStatus, String, String) {
    finish(headtime().current_dir(at).args(["task", "list"]))
}

/// Sends calls without an answer at full rate.
async fn flood(control: &Path, until: Instant) {
    let mut control = connect(control).await.unwrap();
    let on = info(&mut control).await.unwrap();
    let (calls, _events) = Session::open(&mut control, &on, "flood", 1, 8).await.unwrap().split();
    while Instant::now() < until {
        let call = v1::SessionCall { call: Some(Call::Taken(1)) };
        if tokio::time::timeout(Duration::from_millis(200), calls.send(call)).await.is_ok_and(|sent| sent.is_err()) {
            return;
        }
    }
}

#[test]
fn a_control_client_that_never_stops_talking_costs_others_nothing() {
    let dir = scratch("flood");
    let server = Server::start(dir.path(), serve(dir.path()));
    let control = dir.path().join("control.sock");
    let runtime = Runtime::new().unwrap();
    let until = Instant::now() + Duration::from_secs(5);
    let floods: Vec<_> = (0..4)
        .map(|_| {
            runtime.spawn({
                let control = control.clone();
                async move { flood(&control, until).await }
            })
        })
        .collect();
    let mut nbd = Nbd::open(&server.socket(), "data").unwrap();
    let mut done = 0;
    while Instant::now() < until {
        nbd.write(0, done % 4096 * 4096, &[7; 4096]).unwrap();
        done += 1;
    }
    assert!(done > 50, "{done} writes");
    runtime.block_on(async {
        for flood in floods {
            flood.await.unwrap()
        }
    });
    // Another client's session still works.
    let (status, out, err) = list(dir.path());
    assert!(status.success(), "{out}{err}");
    assert!(server.stop().0.success());
}

/// Connections without any call.
#[test]
fn idle_control_connections_leave_room_for_all_others() {
    let dir = scratch("idle");
    let server = Server::start(dir.path(), serve(dir.path()));
    let control = dir.path().join("control.sock");
    let mut idle: Vec<UnixStream> = (0..300).map(|_| UnixStream::connect(&control).unwrap()).collect();
    let mut nbd = Nbd::open(&server.socket(), "data").unwrap();
    nbd.read(0, 4096).unwrap();
    let (status, out, err) = list(dir.path());
    assert!(status.success(), "{out}{err}");
    // The oldest made room.
    let closed = idle.iter_mut().take(236).filter(|stream| {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        // Some had received the server's settings.
        std::iter::repeat_with(|| (&**stream).read(&mut [0; 256])).any(|got| !matches!(got, Ok(1..)))
    });
    assert_eq!(closed.count(), 236);
    assert!(server.stop().0.success());
}

#[test]
fn where_all_control_connections_are_in_use_the_next_client_hears_so() {
    let dir = scratch("in-use");
    let server = Server::start(dir.path(), serve(dir.path()));
    let control = dir.path().join("control.sock");
    let runtime = Runtime::new().unwrap();
    let watching = runtime.block_on(async {
        let mut all = Vec::new();
        for _ in 0..64 {
            let mut control = connect(&control).await.unwrap();
            let statistics = v1::StatisticsRequest { every_ms: 60_000 };
            let mut counted = control.statistics(statistics).await.unwrap().into_inner();
            counted.message().await.unwrap().unwrap();
            all.push((control, counted));
        }
        all
    });
    let (status, out, err) = list(dir.path());
    assert!(status.code() == Some(2) && err.contains("all 64 connections"), "{status}: {out}{err}");
    drop(watching);
    assert!(wait_until(|| list(dir.path()).0.success()));
    assert!(server.stop().0.success());
}

/// A hand-written HTTP/2 client: enough to begin calls and not to end them.
struct Http2(UnixStream);

impl Http2 {
    fn connect(path: &Path) -> Http2 {
        let mut to = Http2(UnixStream::connect(path).unwrap());
        to.0.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
        to.0.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        to.frame(4, 0, 0, &[]);
        to
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: u32, content: &[u8]) {
        let length = (content.len() as u32).to_be_bytes();
        let frame = [&length[1..], &[kind, flags], &stream.to_be_bytes(), content].concat();
        // A server that accepts no more data stores no more.
        let _ = self.0.write_all(&frame);
    }

    /// Begins a call.
    fn call(&mut self, stream: u32, method: &str) {
        let path = format!("/headtime.v1.Control/{method}");
        let fields = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", path.as_str()),
            (":authority", "headtime"),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
        ];
        let mut block = Vec::new();
        for (name, value) in fields {
            // A literal field without indexing (RFC 7541, section 6.2.2).
            block.push(0);
            for text in [name, value] {
                block.push(text.len() as u8);
                block.extend_from_slice(text.as_bytes());
            }
        }
        self.frame(1, 4, stream, &block);
    }

    /// Sends some of the messages of a call.
    fn data(&mut self, stream: u32, bytes: &[u8]) {
        bytes.chunks(16 << 10).for_each(|piece| self.frame(0, 0, stream, piece));
    }
}

/// Each of 512 calls announces a MiB, and sends as much as the server first accepts.
#[test]
fn calls_that_are_never_whole_hold_little() {
    let dir = scratch("never-whole");
    let server = Server::start(dir.path(), serve(dir.path()));
    let control = dir.path().join("control.sock");
    assert!(list(dir.path()).0.success());
    let before = server.memory();
    let message = [&[0][..], &(1_u32 << 20).to_be_bytes(), &vec![0x1a; 200 << 10]].concat();
    let connections: Vec<Http2> = (0..8)
        .map(|_| {
            let mut to = Http2::connect(&control);
            for stream in (1..).step_by(2).take(64) {
                to.call(stream, "Change");
                to.data(stream, &message);
            }
            to
        })
        .collect();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(2) {
        let held = server.memory().saturating_sub(before);
        assert!(held < 32 << 20, "{} MiB", held >> 20);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(list(dir.path()).0.success());
    drop(connections);
    assert!(server.stop().0.success());
}
