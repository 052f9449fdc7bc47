//! The live view of a server: one page for browsers on this machine, over HTTP on a loopback
//! address ([`crate::loopback`]).
//!
//! The page shows what the server's head, clients and background work do. It may pause and resume
//! sessions and set their priorities, with a token. It loads nothing from elsewhere, and no other
//! page can read what it reads.
//!
//! * this file: the answer to a request
//! * [`token`]: the secret that changes need
//! * [`figures`]: the counters and the last commands as JSON
//! * `live.html`, `live.css`, `live.js`: the page

pub(crate) mod figures;
mod token;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use headtime_disk::{Dur, Geometry};
use serde::Deserialize;
use tokio::sync::Mutex;
use tonic::Code;

use crate::control::service::Service;
use crate::control::v1::ChangeRequest;
use crate::control::v1::change_request::Change;
use crate::control::v1::control_server::Control;
use crate::loopback::{Answer, Pages, Request, names_this_machine};
pub use token::{Token, TokenError};

/// Figures of this age are sent again: the engine is asked at most once in this time, whatever the
/// number of browsers.
const FRESH: Duration = Duration::from_millis(200);

/// Where the live view is, and what it needs beside the counters.
#[derive(Clone)]
pub struct WebAt {
    /// The address, a loopback address.
    pub address: SocketAddr,
    /// The secret that changes need; `None`: none can be made.
    pub token: Option<Token>,
    /// The drive's name.
    pub disk: String,
    /// Whether background work is enabled.
    pub fills: bool,
    /// The drive's geometry, by which its commands are drawn.
    pub geometry: Arc<Geometry>,
    /// The time of a revolution.
    pub revolution: Dur,
}

impl fmt::Debug for WebAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebAt").field("address", &self.address).finish_non_exhaustive()
    }
}

/// The source of the figures.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    at: WebAt,
    service: Service,
    /// The last figures. A request that waits for it waits for the engine, never for another
    /// client.
    latest: Arc<Mutex<Option<(Instant, String)>>>,
}

impl Source {
    /// Creates the source of a server's figures.
    pub(crate) fn new(at: WebAt, service: Service) -> Source {
        Source { at, service, latest: Arc::default() }
    }
}

/// A change that the page asks for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    session: u32,
    suspended: Option<bool>,
    priority: Option<u32>,
}

impl Wanted {
    fn change(&self) -> Option<Change> {
        match (self.suspended, self.priority) {
            (Some(suspended), None) => Some(Change::Suspended(suspended)),
            (None, Some(priority)) => Some(Change::Priority(priority)),
            _ => None,
        }
    }
}

const NOT_HERE: &str = "expected a Host header that names this machine: localhost or a loopback address\n";

impl Pages for Source {
    // Scripts, styles and figures come from this server alone, and no other page may show this one
    // in a frame. The empty icon is in the page itself.
    const FIELDS: &'static str = "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; \
        connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n\
        X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
        Cross-Origin-Resource-Policy: same-origin\r\nCross-Origin-Opener-Policy: same-origin\r\n";
    const LONGEST_BODY: usize = 256;

    async fn answer(&self, request: &Request) -> Answer {
        // Stricter than the metrics: each browser names a host.
        if request.field("host").next().is_none() || !request.is_local() {
            return Answer::plain("403 Forbidden", NOT_HERE);
        }
        let reads = ["GET", "HEAD"].contains(&request.method.as_str());
        let file = |kind, text: &'static str| Answer { kind, ..Answer::plain("200 OK", text) };
        match request.path.as_str() {
            "/sessions" if request.method == "POST" => self.change(request).await,
            "/sessions" => Answer { allow: "POST", ..Answer::plain("405 Method Not Allowed", "expected POST\n") },
            _ if !reads => Answer::plain("405 Method Not Allowed", "expected GET\n"),
            "/" => file("text/html; charset=utf-8", include_str!("live.html")),
            "/live.css" => file("text/css; charset=utf-8", include_str!("live.css")),
            "/live.js" => file("text/javascript; charset=utf-8", include_str!("live.js")),
            "/figures.json" => self.figures().await,
            _ => Answer::plain("404 Not Found", "the live view is at /\n"),
        }
    }
}

impl Source {
    async fn figures(&self) -> Answer {
        let mut latest = self.latest.lock().await;
        let kept = latest.as_ref().filter(|(made, _)| made.elapsed() < FRESH).map(|(_, text)| text.clone());
        let text = match kept {
            Some(text) => text,
            None => {
                let Ok(snapshot) = self.service.engine.snapshot().await else {
                    return Answer::plain("503 Service Unavailable", "the server ends\n");
                };
                let text = figures::json(&self.at, &self.service, snapshot);
                *latest = Some((Instant::now(), text.clone()));
                text
            }
        };
        Answer { kind: "application/json", ..Answer::plain("200 OK", text) }
    }

    async fn change(&self, request: &Request) -> Answer {
        let Some(token) = &self.at.token else {
            return Answer::plain("403 Forbidden", "nothing can be changed here: listen.web-token is not set\n");
        };
        // A browser names the page that sends a request. Another site's would not have the token.
        let ours = |origin: &str| origin.strip_prefix("http://").is_some_and(names_this_machine);
        if !request.field("origin").all(ours) {
            return Answer::plain("403 Forbidden", "expected a request of the live view, found one of another page\n");
        }
        let given: Vec<&str> = request.field("authorization").collect();
        let given = match given[..] {
            [one] => one.strip_prefix("Bearer ").unwrap_or_default(),
            _ => "",
        };
        if !token.is(given) {
            return Answer::plain("401 Unauthorized", "expected the token of listen.web-token\n");
        }
        let expected = "expected {\"session\": N} and \"suspended\" or \"priority\"\n";
        let wanted = serde_json::from_slice::<Wanted>(&request.body).ok();
        let Some((session, Some(change))) = wanted.map(|w| (w.session, w.change())) else {
            return Answer::plain("400 Bad Request", expected);
        };
        let change = ChangeRequest { session, change: Some(change) };
        match Control::change(&self.service, tonic::Request::new(change)).await {
            Ok(_) => {
                // The next figures show it.
                *self.latest.lock().await = None;
                Answer::plain("200 OK", "done\n")
            }
            Err(why) if why.code() == Code::Unavailable => {
                Answer::plain("503 Service Unavailable", format!("{}\n", why.message()))
            }
            Err(why) => Answer::plain("409 Conflict", format!("{}\n", why.message())),
        }
    }
}

#[cfg(test)]
mod tests;
