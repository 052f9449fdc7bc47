//! Metrics for Prometheus: HTTP on a loopback address ([`crate::loopback`]), `GET /metrics`.
//!
//! * this file: the answer to a request
//! * [`exposition`]: the page

mod exposition;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::control::caches::Cached;
use crate::control::counts;
use crate::engine::inbox::Outbox;
use crate::engine::messages::EngineMessage;
use crate::loopback::{Answer, Pages, Request};
use crate::net::exports::Exports;

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

impl Pages for Source {
    async fn answer(&self, request: &Request) -> Answer {
        if !["GET", "HEAD"].contains(&request.method.as_str()) {
            return Answer::plain("405 Method Not Allowed", "expected GET\n");
        }
        if request.path != "/metrics" {
            return Answer::plain("404 Not Found", "the metrics are at /metrics\n");
        }
        if !request.is_local() {
            let why = "expected a Host header that names this machine: localhost or a loopback address\n";
            return Answer::plain("421 Misdirected Request", why);
        }
        match counts::take(&self.engine, &self.exports, &self.names, &self.cached).await {
            Ok(snapshot) => Answer {
                kind: "text/plain; version=0.0.4; charset=utf-8",
                ..Answer::plain("200 OK", exposition::page(&snapshot))
            },
            Err(_) => Answer::plain("503 Service Unavailable", "the server ends\n"),
        }
    }
}

#[cfg(test)]
mod tests;
