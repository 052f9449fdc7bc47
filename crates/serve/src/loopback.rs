//! HTTP on a loopback address, as much of it as the metrics and the live view need.
//!
//! The server reads a request header of at most 8 KiB, and a short body where one is expected,
//! within five seconds, sends one answer within five more and closes the connection. This bounds
//! the cost of a client, whatever it sends. At most eight answers are made at a time. Of all
//! connections the oldest is closed when another would exceed their number, whatever it does: a
//! client that does not fetch its answer holds up no other.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Semaphore, oneshot, watch};

use crate::net::Stream;
use crate::net::address::Listening;
use crate::net::listener::{Pace, SHORT_OF};

/// The longest request header, bytes.
const LONGEST_HEAD: usize = 8 << 10;
/// The time limit for a client's request, and for sending its answer.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Answers that are made at a time.
pub const MAX_ANSWERED: usize = 8;
/// Connections at a time, in whatever state.
pub const MAX_CONNECTIONS: usize = 64;
/// Input after the answer is discarded, so that the answer is not lost in a connection reset: at
/// most this number of bytes, for at most this time.
const MAX_IGNORED: u64 = 256 << 10;
const LONGEST_IGNORED: Duration = Duration::from_secs(1);

/// What is served.
pub(crate) trait Pages: Clone + Send + Sync + 'static {
    /// Header fields of every answer, each with its line end.
    const FIELDS: &'static str = "";
    /// The longest body of a request, bytes; 0: bodies are not read.
    const LONGEST_BODY: usize = 0;

    /// Makes the answer to a request.
    fn answer(&self, request: &Request) -> impl Future<Output = Answer> + Send;
}

/// A request.
#[derive(Debug)]
pub(crate) struct Request {
    /// GET, HEAD or another one.
    pub method: String,
    /// What is asked for, without a query.
    pub path: String,
    /// The header, with its first line.
    head: String,
    /// The body; empty if none is expected.
    pub body: Vec<u8>,
}

impl Request {
    /// Returns the values of a header field, one for each time that it occurs.
    pub(crate) fn field(&self, name: &str) -> impl Iterator<Item = &str> {
        let fields = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        fields.filter(move |f| f.0.trim().eq_ignore_ascii_case(name)).map(|f| f.1.trim())
    }

    /// Returns whether each Host names this machine. Otherwise a web page of another site could
    /// make a browser send a request here under that site's name and read the answer (DNS
    /// rebinding). Old clients send none.
    pub(crate) fn is_local(&self) -> bool {
        self.field("host").all(names_this_machine)
    }
}

/// Returns whether a Host (a name or an address, with or without a port) is this machine.
pub(crate) fn names_this_machine(host: &str) -> bool {
    let name = match host.parse::<SocketAddr>() {
        Ok(at) => return at.ip().is_loopback(),
        Err(_) => host.rsplit_once(':').filter(|h| h.1.parse::<u16>().is_ok()).map_or(host, |h| h.0),
    };
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|ip| ip.is_loopback())
}

/// An answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Its status, "200 OK".
    pub status: &'static str,
    /// The content's type.
    pub kind: &'static str,
    /// The content.
    pub body: Cow<'static, str>,
    /// The methods that would be served, for status 405.
    pub allow: &'static str,
}

impl Answer {
    /// Returns a line of text.
    pub(crate) fn plain(status: &'static str, body: impl Into<Cow<'static, str>>) -> Answer {
        Answer { status, kind: "text/plain; charset=utf-8", body: body.into(), allow: "GET, HEAD" }
    }
}

/// Serves clients until `end` becomes true.
pub(crate) async fn serve<P: Pages>(pages: P, listening: Listening, mut end: watch::Receiver<bool>) {
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
                let (pages, answering) = (pages.clone(), Arc::clone(&answering));
                tokio::spawn(async move {
                    tokio::select! {
                        // An error means that the client has gone.
                        _ = client(stream, &pages, &answering) => {}
                        _ = must_go => {}
                    }
                });
            }
            Err(_) => tokio::time::sleep(SHORT_OF).await,
        }
    }
}

/// Serves one client.
async fn client<P: Pages>(mut stream: Box<dyn Stream>, pages: &P, answering: &Semaphore) -> io::Result<()> {
    let request = tokio::time::timeout(REQUEST_TIMEOUT, request(&mut stream, P::LONGEST_BODY)).await;
    let place = answering.acquire().await;
    let mut head_only = false;
    let answer = match request {
        Ok(request) => match request? {
            Ok(request) => {
                head_only = request.method == "HEAD";
                pages.answer(&request).await
            }
            Err(refused) => refused,
        },
        Err(_) => Answer::plain("408 Request Timeout", "expected a request within 5 s\n"),
    };
    // Sending takes no place: a client that does not read would keep it from others.
    drop(place);
    let Answer { status, kind, body, allow } = &answer;
    let mut text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n{}Connection: \
         close\r\n",
        body.len(),
        P::FIELDS
    );
    if status.starts_with("405") {
        text += &format!("Allow: {allow}\r\n");
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

/// Reads a request, or returns the answer to what is none.
async fn request(stream: &mut Box<dyn Stream>, longest_body: usize) -> io::Result<Result<Request, Answer>> {
    let Some((head, mut body)) = head(stream).await? else {
        return Ok(Err(Answer::plain("431 Request Header Fields Too Large", "expected a request of at most 8 KiB\n")));
    };
    let mut request = match first_line(&head) {
        Ok(request) => request,
        Err(refused) => return Ok(Err(refused)),
    };
    if longest_body > 0 && request.method == "POST" {
        let lengths: Vec<Option<usize>> = request.field("content-length").map(|text| text.parse().ok()).collect();
        let &[Some(length)] = &lengths[..] else {
            return Ok(Err(Answer::plain("411 Length Required", "expected one Content-Length\n")));
        };
        if length > longest_body {
            return Ok(Err(Answer::plain("413 Content Too Large", "expected a shorter body\n")));
        }
        while body.len() < length {
            let mut piece = [0; 1024];
            let got = stream.read(&mut piece).await?;
            if got == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            body.extend_from_slice(&piece[..got]);
        }
        body.truncate(length);
        request.body = body;
    }
    Ok(Ok(request))
}

fn first_line(head: &[u8]) -> Result<Request, Answer> {
    let odd = || Answer::plain("400 Bad Request", "expected a request of HTTP, found something else\n");
    let line = head.split(|b| *b == b'\n').next().unwrap_or_default();
    let words: Vec<&str> = std::str::from_utf8(line).map_err(|_| odd())?.split_ascii_whitespace().collect();
    let &[method, target, version] = &words[..] else { return Err(odd()) };
    if !version.starts_with("HTTP/1.") {
        return Err(Answer::plain("505 HTTP Version Not Supported", "expected HTTP/1.1\n"));
    }
    let path = target.split('?').next().unwrap_or_default();
    let head = String::from_utf8_lossy(head).into_owned();
    Ok(Request { method: method.into(), path: path.into(), head, body: Vec::new() })
}

/// Reads a request's header up to its empty line, and what came with it of the body; returns `None`
/// if it is too long.
async fn head(stream: &mut Box<dyn Stream>) -> io::Result<Option<(Vec<u8>, Vec<u8>)>> {
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
        let end =
            |mark: &[u8]| head[from..].windows(mark.len()).position(|w| w == mark).map(|at| from + at + mark.len());
        if let Some(end) = [end(b"\r\n\r\n"), end(b"\n\n")].into_iter().flatten().min() {
            let body = head.split_off(end);
            return Ok(Some((head, body)));
        }
        if head.len() > LONGEST_HEAD {
            return Ok(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_a_page_of_another_site_made_is_refused() {
        let host = |host: &str| {
            let head = format!("GET /metrics HTTP/1.1\r\nAccept: */*\r\nhost: {host}\r\n\r\n");
            first_line(head.as_bytes()).unwrap().is_local()
        };
        for ours in ["localhost", "LOCALHOST:9100", "127.0.0.1", "127.0.0.1:9100", "[::1]", "[::1]:9100"] {
            assert!(host(ours), "{ours}");
        }
        for others in
            ["example.org", "example.org:9100", "192.0.2.1:80", "localhost.example.org", "", "127.0.0.1.example.org"]
        {
            assert!(!host(others), "{others}");
        }
        assert!(first_line(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap().is_local(), "an old client names none");
    }

    #[test]
    fn a_query_is_no_part_of_the_path_and_names_of_fields_have_no_case() {
        let request = first_line(b"GET /a/b?c=d HTTP/1.1\r\nX-One:  1 \r\nx-one: 2\r\n\r\n").unwrap();
        assert_eq!((request.method.as_str(), request.path.as_str()), ("GET", "/a/b"));
        assert_eq!(request.field("X-ONE").collect::<Vec<_>>(), ["1", "2"]);
    }
}
