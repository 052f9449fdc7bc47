//! Attacks on a server whose sockets the attacker can open, each in one thread, until a signal to
//! stop.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use headtime_serve::control::client::{Control, Session, connect, info};
use headtime_serve::control::v1::session_call::Call;
use headtime_serve::control::v1::{self, Kind, Register, SessionCall};
use tokio::runtime::Builder;
use tokio::task::JoinSet;

use super::nbd_client::{Nbd, READ, greeted, request};

/// Connections that one attacker keeps open: more than a server accepts.
const HELD_CONNECTIONS: usize = 256;
/// Clients that fetch nothing, and requests of each.
const DEAF_CLIENTS: usize = 24;
const DEAF_REQUESTS: u64 = 4;
/// Concurrent sessions, or calls, of one attacker.
const AT_A_TIME: usize = 4;

/// Addresses open to attackers: not the socket of the client under attack.
#[derive(Debug)]
pub struct Target {
    pub unix: PathBuf,
    /// HOST:PORT; empty if unknown.
    pub tcp: String,
    pub metrics: String,
    pub control: PathBuf,
}

/// Set by the measuring thread, and by the attacker when its preparation is over.
#[derive(Debug, Default)]
pub struct Signals {
    pub stop: AtomicBool,
    pub ready: AtomicBool,
}

impl Signals {
    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::SeqCst)
    }

    fn ready(&self) {
        self.ready.store(true, Ordering::SeqCst);
    }
}

pub type Attack = fn(&Target, &Signals);

/// Connects repeatedly without sending anything, and holds a number of connections open.
fn silent<S>(signals: &Signals, open: impl Fn() -> io::Result<S>) {
    let mut held = VecDeque::new();
    signals.ready();
    while signals.goes_on() {
        match open() {
            Ok(stream) => held.push_back(stream),
            Err(_) => thread::sleep(Duration::from_millis(1)),
        }
        if held.len() > HELD_CONNECTIONS {
            held.pop_front();
        }
    }
}

pub fn silent_unix(target: &Target, signals: &Signals) {
    silent(signals, || UnixStream::connect(&target.unix));
}

pub fn silent_tcp(target: &Target, signals: &Signals) {
    silent(signals, || {
        let stream = TcpStream::connect(&target.tcp)?;
        // A connection closed in the normal way keeps its port for a minute, and ports run out.
        rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO))?;
        Ok(stream)
    });
}

pub fn silent_control(target: &Target, signals: &Signals) {
    silent(signals, || UnixStream::connect(&target.control));
}

/// Each is disconnected, with a line in the log.
pub fn malformed(target: &Target, signals: &Signals) {
    signals.ready();
    while signals.goes_on() {
        let Ok(mut stream) = greeted(&target.unix) else { continue };
        let _ = stream.write_all(&[0xff; 16]);
        let _ = stream.read_to_end(&mut Vec::new());
    }
}

/// Reads that are refused, as fast as refusals are fetched.
pub fn refused(target: &Target, signals: &Signals) {
    let mut nbd = Nbd::open(&target.unix, "theirs").unwrap();
    let asks: Vec<u8> = (0..64).flat_map(|n| request(READ, 0, n, 1 << 50, 4096)).collect();
    signals.ready();
    while signals.goes_on() {
        nbd.stream.write_all(&asks).unwrap();
        (0..64).for_each(|_| assert_ne!(nbd.answer().unwrap().1, 0));
    }
}

/// Returns whether the server has no requests in flight, by its metrics.
fn at_rest(target: &Target) -> bool {
    fetch(target).is_ok_and(|page| page.lines().any(|l| l == "headtime_requests_under_way 0"))
}

/// Clients with requests of the largest size that fetch nothing. They are ready when the server
/// reads no more for them: until then they have an ordinary client's share of the disk.
pub fn deaf(target: &Target, signals: &Signals) {
    let deaf: Vec<UnixStream> = (0..DEAF_CLIENTS)
        .map(|_| {
            let mut stream = Nbd::open(&target.unix, "theirs").unwrap().stream;
            (0..DEAF_REQUESTS).for_each(|n| stream.write_all(&request(READ, 0, n, 0, 32 << 20)).unwrap());
            stream
        })
        .collect();
    let mut rests = false;
    while signals.goes_on() {
        thread::sleep(Duration::from_millis(300));
        if !signals.ready.load(Ordering::SeqCst) {
            let before = std::mem::replace(&mut rests, at_rest(target));
            if before && rests {
                signals.ready();
            }
        }
    }
    drop(deaf);
}

fn fetch(target: &Target) -> io::Result<String> {
    let mut stream = TcpStream::connect(&target.metrics)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    let mut page = String::new();
    stream.read_to_string(&mut page)?;
    Ok(page)
}

pub fn metrics(target: &Target, signals: &Signals) {
    signals.ready();
    while signals.goes_on() {
        let _ = fetch(target);
    }
}

/// Runs several attacks of one kind on this thread, each on its own connection, until the end.
fn over_control<F>(target: &Target, signals: &Signals, attack: impl Fn(Control) -> F)
where
    F: Future<Output = ()> + 'static,
{
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let mut all = JoinSet::new();
        for _ in 0..AT_A_TIME {
            all.spawn_local(attack(connect(&target.control).await.unwrap()));
        }
        signals.ready();
        while signals.goes_on() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
}

async fn session(control: &mut Control) -> Session {
    let on = info(control).await.unwrap();
    Session::open(control, &on, "attack", 1, 8).await.unwrap()
}

/// Calls without an answer.
pub fn taken(target: &Target, signals: &Signals) {
    over_control(target, signals, |mut control| async move {
        let (calls, _events) = session(&mut control).await.split();
        while calls.send(SessionCall { call: Some(Call::Taken(1)) }).await.is_ok() {}
    });
}

/// A task with the largest number of ranges, each a sector, all over the disk.
fn register(task: u64) -> SessionCall {
    let ranges = (0..4096).map(|i| v1::Range { lbn: i * 19 + task % 16, count: 1 }).collect();
    let kind = Kind::Read.into();
    let register = Register { task, kind, ranges, blksize: 1, min_pickup: 1, point_in_time: false };
    SessionCall { call: Some(Call::Register(register)) }
}

async fn registers(mut control: Control, aborts: bool) {
    let (calls, mut events) = session(&mut control).await.split();
    tokio::task::spawn_local(async move { while let Ok(Some(_)) = events.message().await {} });
    for task in 1.. {
        if calls.send(register(task)).await.is_err() {
            return;
        }
        let abort = SessionCall { call: Some(Call::Abort(v1::TaskRef { task })) };
        if aborts && calls.send(abort).await.is_err() {
            return;
        }
    }
}

/// Tasks with very many ranges that stay.
pub fn tasks(target: &Target, signals: &Signals) {
    over_control(target, signals, |control| registers(control, false));
}

/// Tasks with very many ranges that are aborted at once.
pub fn aborts(target: &Target, signals: &Signals) {
    over_control(target, signals, |control| registers(control, true));
}

/// Sessions that are opened and closed.
pub fn sessions(target: &Target, signals: &Signals) {
    over_control(target, signals, |mut control| async move {
        loop {
            drop(session(&mut control).await);
        }
    });
}

/// Requests for all statistics.
pub fn statistics(target: &Target, signals: &Signals) {
    over_control(target, signals, |mut control| async move {
        loop {
            let asked = control.statistics(v1::StatisticsRequest { every_ms: 0 }).await;
            let Ok(counted) = asked else { return };
            let _ = counted.into_inner().message().await;
        }
    });
}
