//! Metrics for Prometheus: HTTP on a loopback address, `GET /metrics`.
//!
//! A single page needs little of HTTP: the server reads a request header of at most 8 KiB within
//! five seconds, sends one answer within five more and closes the connection. This bounds the cost
//! of a client, whatever it sends. At most eight pages are made at a time. Of all connections the
//! oldest is closed when another would exceed their number, whatever it does: a client that does
//! not fetch its page holds up no other.
//!
//! * this file: the server
//! * [`exposition`]: the page

mod exposition;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Semaphore, oneshot, watch};

use crate::control::caches::Cached;
use crate::control::counts;
use crate::engine::inbox::Outbox;
use crate::engine::messages::EngineMessage;
use crate::net::Stream;
use crate::net::address::Listening;
use crate::net::exports::Exports;
use crate::net::listener::{Pace, SHORT_OF};

/// The longest request header, bytes.
const LONGEST_HEAD: usize = 8 << 10;
/// The time limit for a client's request, and for sending its answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Pages that are made at a time.
pub const MAX_ANSWERED: usize = 8;
/// Connections at a time, in whatever state.
pub const MAX_CONNECTIONS: usize = 64;
/// Input after the answer is discarded, so that the answer is not lost in a connection reset: at
/// most this number of bytes, for at most this time.
const MAX_IGNORED: u64 = 256 << 10;
const LONGEST_IGNORED: Duration = Duration::from_secs(1);

/// The source of the figures.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// The exports.
    pub exports: Exports,
    /// The handle to the engine.
    pub engine: Outbox<EngineMessage>,
    /// The names that clients gave their sessions.
    pub names: Arc<Mutex<BTreeMap<u32, String>>>,
    /// The exports with a write cache.
    pub cached: Cached,
}

/// An answer.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: &'static str,
    kind: &'static str,
    body: String,
    /// The request is HEAD: only the header is sent.
    head_only: bool,
}

/// Serves clients until `end` becomes true.
pub(crate) async fn serve(source: Source, listening: Listening, mut end: watch::Receiver<bool>) {
    let (answering, mut pace) = (Arc::new(Semaphore::new(MAX_ANSWERED)), Pace::default());
    let mut connections: VecDeque<oneshot::Sender<()>> = VecDeque::new();
    while !*end.borrow_and_update() {
        let accepted = tokio::select! {
            accepted = listening.accept() => accepted,
            _ = end.changed() => continue,
        };
        match accepted {
            Ok(stream) => {
                pace.next().await;
                connections.retain(|one| !one.is_closed());
                if connections.len() == MAX_CONNECTIONS {
                    // Dropping the sender disconnects the client.
                    connections.pop_front();
                }
                let (goes_on, must_go) = oneshot::channel();
                connections.push_back(goes_on);
                let (source, answering) = (source.clone(), Arc::clone(&answering));
                tokio::spawn(async move {
                    tokio::select! {
                        // An error means that the client has gone.
                        _ = client(stream, &source, &answering) => {}
                        _ = must_go => {}
                    }
                });
            }
            Err(_) => tokio::time::sleep(SHORT_OF).await,
        }
    }
}

/// Serves one client.
async fn client(mut stream: Box<dyn Stream>, source: &Source, answering: &Semaphore) -> io::Result<()> {
    let head = tokio::time::timeout(REQUEST_TIMEOUT, head(&mut stream)).await;
    let place = answering.acquire().await;
    let answer = match head {
        Ok(head) => match head? {
            Some(head) => answer(&head, source).await,
            None => plain("431 Request Header Fields Too Large", "expected a request of at most 8 KiB\n"),
        },
        Err(_) => plain("408 Request Timeout", "expected a request within 5 s\n"),
    };
    // Sending takes no place: a client that does not read would keep it from others.
    drop(place);
    let Answer { status, kind, body, head_only } = &answer;
    let mut text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\nConnection: \
         close\r\n",
        body.len()
    );
    if status.starts_with("405") {
        text += "Allow: GET, HEAD\r\n";
    }
    text += "\r\n";
    if !head_only {
        text += body;
    }
    tokio::time::timeout(REQUEST_TIMEOUT, async {
        stream.write_all(text.as_bytes()).await?;
        stream.shutdown().await
    })
    .await??;
    let (mut rest, mut nowhere) = (stream.take(MAX_IGNORED), tokio::io::sink());
    let _ = tokio::time::timeout(LONGEST_IGNORED, tokio::io::copy(&mut rest, &mut nowhere)).await;
    Ok(())
}

/// Reads a request up to its empty line; returns `None` if it is too long.
async fn head(stream: &mut Box<dyn Stream>) -> io::Result<Option<Vec<u8>>> {
    let mut head = Vec::with_capacity(1024);
    let mut piece = [0; 1024];
    loop {
        let got = stream.read(&mut piece).await?;
        if got == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // The end may span two reads.
        let from = head.len().saturating_sub(3);
        head.extend_from_slice(&piece[..got]);
        if head[from..].windows(4).any(|w| w == b"\r\n\r\n") || head[from..].windows(2).any(|w| w == b"\n\n") {
            return Ok(Some(head));
        }
        if head.len() > LONGEST_HEAD {
            return Ok(None);
        }
    }
}

async fn answer(head: &[u8], source: &Source) -> Answer {
    let line = head.split(|b| *b == b'\n').next().unwrap_or_default();
    let Ok(line) = std::str::from_utf8(line) else {
        return plain("400 Bad Request", "expected a request of HTTP, found something else\n");
    };
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let &[method, target, version] = &words[..] else {
        return plain("400 Bad Request", "expected a request of HTTP, found something else\n");
    };
    if !version.starts_with("HTTP/1.") {
        return plain("505 HTTP Version Not Supported", "expected HTTP/1.1\n");
    }
    let head_only = method == "HEAD";
    if !head_only && method != "GET" {
        return plain("405 Method Not Allowed", "expected GET\n");
    }
    if target.split('?').next() != Some("/metrics") {
        return Answer { head_only, ..plain("404 Not Found", "the metrics are at /metrics\n") };
    }
    if !is_local(head) {
        let why = "expected a Host header that names this machine: localhost or a loopback address\n";
        return Answer { head_only, ..plain("421 Misdirected Request", why) };
    }
    match counts::take(&source.engine, &source.exports, &source.names, &source.cached).await {
        Ok(snapshot) => {
            let kind = "text/plain; version=0.0.4; charset=utf-8";
            Answer { status: "200 OK", kind, body: exposition::page(&snapshot), head_only }
        }
        Err(_) => Answer { head_only, ..plain("503 Service Unavailable", "the server ends\n") },
    }
}

/// Returns whether a request's Host names this machine. Otherwise a web page of another site could
/// make a browser send a request here under that site's name and read the answer (DNS rebinding).
fn is_local(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let fields = text.lines().skip(1).filter_map(|line| line.split_once(':'));
    let mut hosts = fields.filter(|f| f.0.trim().eq_ignore_ascii_case("host")).map(|f| f.1.trim());
    hosts.all(|host| {
        let name = match host.parse::<SocketAddr>() {
            Ok(at) => return at.ip().is_loopback(),
            Err(_) => host.rsplit_once(':').filter(|h| h.1.parse::<u16>().is_ok()).map_or(host, |h| h.0),
        };
        let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|ip| ip.is_loopback())
    })
}

fn plain(status: &'static str, body: &str) -> Answer {
    Answer { status, kind: "text/plain; charset=utf-8", body: body.into(), head_only: false }
}

#[cfg(test)]
mod tests;
