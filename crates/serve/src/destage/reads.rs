//! Reads: what is dirty comes from the cache, the rest from upstream.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use headtime_sched::tasks::Range;

use super::Counts;
use super::cache::Cache;
use super::machine::{Calls, READ, Tokens, foreground};
use crate::control::v1;
use crate::engine::telling::{Answer, Ask};

/// A read under way.
#[derive(Debug)]
struct Reading {
    ask: Ask,
    parts: Vec<Option<Bytes>>,
    missing: usize,
}

/// A part of one that upstream was asked for.
#[derive(Debug)]
struct Miss {
    reading: u64,
    part: usize,
    range: Range,
}

/// All of them. Clients' budgets bound how many there are.
#[derive(Debug, Default)]
pub(super) struct Reads {
    readings: BTreeMap<u64, Reading>,
    misses: BTreeMap<u64, Miss>,
    next: u64,
}

impl Reads {
    /// A read comes: it is answered at once when all of it is in the cache.
    pub(super) fn begin(
        &mut self,
        ask: Ask,
        cache: &Cache,
        tokens: &mut Tokens,
        calls: &mut Calls,
        counts: &mut Counts,
    ) {
        let found = cache.look_up(&Range { lbn: ask.lbn, count: u64::from(ask.count) });
        self.next += 1;
        let (reading, mut parts, mut missing) = (self.next, Vec::with_capacity(found.len()), 0);
        for (at, (range, data)) in found.into_iter().enumerate() {
            if data.is_none() {
                let token = tokens.next(READ);
                self.misses.insert(token, Miss { reading, part: at, range });
                calls.reads.push_back(foreground(token, v1::Kind::Read, range, Bytes::new()));
                missing += 1;
            }
            parts.push(data);
        }
        match missing {
            0 => counts.hits += 1,
            _ => counts.misses += 1,
        }
        let read = Reading { ask, parts, missing };
        match missing {
            0 => read.finish(),
            _ => _ = self.readings.insert(reading, read),
        }
    }

    /// Upstream has answered. The first part that fails fails the read; what comes of the others is dropped.
    pub(super) fn answered(&mut self, token: u64, answer: Answer) {
        let Some(miss) = self.misses.remove(&token) else { return };
        let Some(read) = self.readings.get_mut(&miss.reading) else { return };
        let fault = match answer {
            Ok(data) => {
                read.parts[miss.part] = Some(data);
                read.missing -= 1;
                None
            }
            Err(fault) => Some(fault),
        };
        if fault.is_none() && read.missing > 0 {
            return;
        }
        let read = self.readings.remove(&miss.reading).expect("seen just now");
        match fault {
            None => read.finish(),
            Some(fault) => read.ask.answer(Err(fault)),
        }
    }

    /// A new session was told nothing yet.
    pub(super) fn again(&mut self, calls: &mut Calls) {
        self.misses.retain(|_, m| self.readings.contains_key(&m.reading));
        for (&token, m) in &self.misses {
            calls.reads.push_back(foreground(token, v1::Kind::Read, m.range, Bytes::new()));
        }
    }
}

impl Reading {
    fn finish(mut self) {
        let data = match &mut self.parts[..] {
            [one] => one.take().unwrap_or_default(),
            many => {
                let len = many.iter().flatten().map(Bytes::len).sum();
                let mut all = BytesMut::with_capacity(len);
                many.iter().flatten().for_each(|p| all.extend_from_slice(p));
                all.freeze()
            }
        };
        self.ask.answer(Ok(data));
    }
}
