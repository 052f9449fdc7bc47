//! The effect of an attacker on one socket on the reads of a client on another: at most a tenth of
//! their rate.
//!
//! The attacker is a thread of this program at the priority of the server and of the reading
//! client. On a machine with two processors it uses as much of one as it can get, in addition to
//! the server's own work for it. So this test is a program of its own: other tests would occupy
//! both processors. `HEADTIME_ATTACK_SECONDS` is the duration of each attack (with more than a few
//! the table is meaningful), and `HEADTIME_ATTACKS` a word in the names of the selected attacks.

#[path = "real/attackers.rs"]
mod attackers;
#[path = "real/nbd_client.rs"]
mod nbd_client;
#[path = "real/servers.rs"]
mod servers;
#[path = "../../host/tests/support/mod.rs"]
mod support;

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use std::{io, thread};

use attackers::{Attack, Signals, Target};
use nbd_client::{Nbd, READ};
use servers::{SMALL, SMALL_BYTES, Server, headtime, next, scratch};
use support::{Process, wait_until};

const BLOCK: u64 = 4096;
/// The client's reads in flight.
const OUTSTANDING: u64 = 4;
/// Duration of each attack without `HEADTIME_ATTACK_SECONDS`.
const SECONDS: f64 = 1.4;
/// Duration of reads before that.
const WARM_UP_TIME: Duration = Duration::from_millis(200);
/// Share of the undisturbed rate that must remain.
const MIN_RATE_SHARE: f64 = 0.9;
/// Repeated measurements of an attack that seems to exceed the limit.
const TRIES_AGAIN: usize = 3;
/// A client that fetches nothing for 30 s is disconnected, and its next one reads as ordinary
/// clients do.
const LONGEST_DEAF: f64 = 20.0;

/// Results of a client's reads.
#[derive(Clone, Copy, Debug)]
struct Reads {
    rate: f64,
    p50_ms: f64,
    p99_ms: f64,
}

/// Random reads, the same each time.
fn read(nbd: &mut Nbd, seconds: f64) -> io::Result<Reads> {
    let (mut seed, begun) = (7, Instant::now());
    let until = begun + WARM_UP_TIME + Duration::from_secs_f64(seconds);
    let mut sent = vec![begun; OUTSTANDING as usize];
    let mut took = Vec::new();
    let mut ask = |nbd: &mut Nbd, cookie: u64, sent: &mut [Instant]| {
        seed = next(seed);
        sent[cookie as usize] = Instant::now();
        nbd.send(READ, 0, cookie, seed % (SMALL_BYTES / BLOCK) * BLOCK, BLOCK as u32, &[])
    };
    (0..OUTSTANDING).try_for_each(|cookie| ask(nbd, cookie, &mut sent))?;
    let mut under_way = OUTSTANDING;
    while under_way > 0 {
        let (cookie, error) = nbd.answer()?;
        assert_eq!(error, 0, "a read failed");
        nbd.data(BLOCK as usize)?;
        let now = Instant::now();
        if now < until {
            if now > begun + WARM_UP_TIME {
                took.push(now - sent[cookie as usize]);
            }
            ask(nbd, cookie, &mut sent)?;
        } else {
            under_way -= 1;
        }
    }
    took.sort();
    let at = |percent: usize| took[took.len() * percent / 100].as_secs_f64() * 1e3;
    Ok(Reads { rate: took.len() as f64 / seconds, p50_ms: at(50), p99_ms: at(99) })
}

/// Starts a server with one socket for the client and others for attackers; each export is the
/// whole drive.
fn start(dir: &Path, log_unread: bool) -> (Box<dyn std::any::Any>, Target) {
    let config = dir.join("serve.toml");
    let text = format!(
        "[disk]\ndrive = \"{SMALL}\"\nbacking = \"disk.img\"\n[listen]\n\
         nbd = [\"unix:nbd.sock\", \"unix:theirs.sock\", \"tcp:127.0.0.1:0\"]\n\
         control = \"control.sock\"\nmetrics = \"127.0.0.1:0\"\n\
         [[export]]\nname = \"ours\"\nread-only = true\n[[export]]\nname = \"theirs\"\nread-only = true\n"
    );
    std::fs::write(&config, text).unwrap();
    let mut command = headtime();
    command.arg("serve").arg(config);
    let (unix, control) = (dir.join("theirs.sock"), dir.join("control.sock"));
    if log_unread {
        command.args(["--log", "debug"]).stderr(Stdio::piped()).stdout(Stdio::null());
        let server = Process(command.spawn().unwrap());
        assert!(wait_until(|| UnixStream::connect(&unix).is_ok()));
        return (Box::new(server), Target { unix, tcp: String::new(), metrics: String::new(), control });
    }
    let server = Server::start(dir, command);
    let said = |from: &str, to: &str| {
        let at = || server.said().lines().find_map(|l| Some(l.split_once(from)?.1.split_once(to)?.0.to_owned()));
        assert!(wait_until(|| at().is_some()), "{}", server.said());
        at().unwrap()
    };
    let (tcp, metrics) = (said("clients: nbd://", "/"), said("metrics: http://", "/metrics"));
    (Box::new(server), Target { unix, tcp, metrics, control })
}

/// Reads during an attack, or alone.
fn beside(attack: Option<Attack>, log_unread: bool, seconds: f64) -> Reads {
    let dir = scratch("slow");
    let (server, target) = start(dir.path(), log_unread);
    let mut nbd = Nbd::open(&dir.path().join("nbd.sock"), "ours").unwrap();
    let signals = Arc::new(Signals::default());
    let attacking = attack.map(|attack| {
        let signals = Arc::clone(&signals);
        thread::spawn(move || attack(&target, &signals))
    });
    let ready = || attacking.as_ref().is_none_or(|a| a.is_finished()) || signals.ready.load(Ordering::SeqCst);
    assert!(wait_until(ready), "the attack does not begin");
    let reads = read(&mut nbd, seconds).unwrap();
    signals.stop.store(true, Ordering::SeqCst);
    if let Some(attacking) = attacking {
        attacking.join().unwrap();
    }
    drop(server);
    reads
}

const ATTACKS: [(&str, Attack); 13] = [
    ("silent connections, unix", attackers::silent_unix),
    ("silent connections, TCP", attackers::silent_tcp),
    ("malformed handshakes", attackers::malformed),
    ("the same, log not read", attackers::malformed),
    ("refused requests", attackers::refused),
    ("32 MiB reads, not fetched", attackers::deaf),
    ("idle control connections", attackers::silent_control),
    ("calls without an answer", attackers::taken),
    ("sessions opened and closed", attackers::sessions),
    ("tasks of 4096 ranges", attackers::tasks),
    ("the same, aborted at once", attackers::aborts),
    ("statistics", attackers::statistics),
    ("metrics", attackers::metrics),
];

#[test]
fn an_attacker_on_one_socket_takes_at_most_a_tenth_of_anothers_reads() {
    let asked = std::env::var("HEADTIME_ATTACK_SECONDS").ok();
    let seconds = asked.map_or(SECONDS, |n| n.parse().expect("HEADTIME_ATTACK_SECONDS: expected a number"));
    let row = |name: &str, reads: Reads, alone: Reads| {
        let Reads { rate, p50_ms, p99_ms } = reads;
        let change = (rate / alone.rate - 1.0) * 100.0;
        println!("{name:<30} {rate:>9.1} {p50_ms:>9.2} {p99_ms:>9.2} {change:>+9.1} %");
    };
    println!("{:<30} {:>9} {:>9} {:>9} {:>9}", "attack", "reads/s", "p50 ms", "p99 ms", "change");
    let first = beside(None, false, seconds);
    row("none", first, first);
    let mut slowed = Vec::new();
    let only = std::env::var("HEADTIME_ATTACKS").unwrap_or_default();
    for (n, (name, attack)) in ATTACKS.into_iter().enumerate().filter(|(_, a)| a.0.contains(&only)) {
        let log_unread = name.contains("log not read");
        let seconds = if n == DEAF_ATTACK { seconds.min(LONGEST_DEAF) } else { seconds };
        let reads = beside(Some(attack), log_unread, seconds);
        row(name, reads, first);
        let (mut best, mut alone) = (reads.rate, first.rate);
        for _ in 0..TRIES_AGAIN {
            if best >= MIN_RATE_SHARE * alone {
                break;
            }
            // Other programs may have been the cause: the best attempt counts, and the lowest of
            // the rates without an attack.
            let without = beside(None, false, seconds);
            row("  none, again", without, first);
            let again = beside(Some(attack), log_unread, seconds);
            row("  once more", again, without);
            (best, alone) = (best.max(again.rate), alone.min(without.rate));
        }
        if best < MIN_RATE_SHARE * alone {
            slowed.push(format!("{name}: {best:.0} of {alone:.0} reads/s"));
        }
    }
    row("none, at the end", beside(None, false, seconds), first);
    assert!(slowed.is_empty(), "slowed by more than a tenth: {slowed:#?}");
}

/// Index of the attack that is limited in duration.
const DEAF_ATTACK: usize = 5;
