//! What is done with requests and with what comes from upstream. It holds no socket and reads no clock: requests, events and
//! ticks go in, calls for upstream come out, and requests are answered.
//!
//! Reads are in [`super::reads`], writes to the disk in [`super::writes`].

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use headtime_disk::command::Kind;
use headtime_sched::tasks::Range;

use super::cache::{Cache, State};
use super::reads::Reads;
use super::writes::Writes;
use super::{Counts, Limits};
use crate::control::v1::session_call::Call;
use crate::control::v1::session_event::Event;
use crate::control::v1::{self, Foreground};
use crate::device::Fault;
use crate::engine::telling::Ask;

/// Where each token came from: the lowest bits say it.
const SORTS: u64 = 4;
/// Tokens of reads.
pub(super) const READ: u64 = 0;
/// Tokens of writes.
pub(super) const WRITE: u64 = 1;
const FLUSH: u64 = 2;

/// A request that is answered when what came before it is on the disk.
#[derive(Debug)]
struct Waiter {
    /// Everything up to this write.
    upto: u64,
    /// In these sectors; everywhere for a flush.
    range: Option<Range>,
    ask: Ask,
}

/// Names for requests upstream.
#[derive(Debug, Default)]
pub(super) struct Tokens(u64);

impl Tokens {
    pub(super) fn next(&mut self, sort: u64) -> u64 {
        self.0 += SORTS;
        self.0 + sort
    }
}

/// Calls for upstream that were not sent yet.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Reads: they may overtake everything, since nothing that waits is data of sectors that they are for.
    pub(super) reads: VecDeque<Call>,
    /// All others, in their order.
    pub(super) others: VecDeque<Call>,
}

/// A foreground request.
pub(super) fn foreground(token: u64, kind: v1::Kind, range: Range, data: Bytes) -> Call {
    let fua = kind == v1::Kind::Write;
    Call::Foreground(Foreground { token, kind: kind.into(), lbn: range.lbn, count: range.count as u32, fua, data })
}

/// The whole of it.
#[derive(Debug)]
pub struct Machine {
    limits: Limits,
    sector: u64,
    pub(super) cache: Cache,
    /// Whether there is a session upstream.
    up: bool,
    /// Upstream says that its device has gone: as good as not being there.
    gone: bool,
    pub(super) calls: Calls,
    tokens: Tokens,
    reads: Reads,
    writes: Writes,
    waiters: Vec<Waiter>,
    /// Flushes upstream, and whom they are for.
    flushing: BTreeMap<u64, Vec<Waiter>>,
    /// Writes that wait for room in the cache.
    blocked: VecDeque<Ask>,
    /// Everything is to be written out.
    draining: bool,
    /// The last flush failed.
    unflushed: bool,
    pub(super) counts: Counts,
    notes: Vec<String>,
}

impl Machine {
    /// An empty cache for a disk with sectors of so many bytes.
    pub fn new(sector_bytes: u32, limits: Limits) -> Machine {
        Machine {
            limits,
            sector: u64::from(sector_bytes),
            cache: Cache::new(sector_bytes),
            up: false,
            gone: false,
            calls: Calls::default(),
            tokens: Tokens::default(),
            reads: Reads::default(),
            writes: Writes::new(sector_bytes),
            waiters: Vec::new(),
            flushing: BTreeMap::new(),
            blocked: VecDeque::new(),
            draining: false,
            unflushed: false,
            counts: Counts::default(),
            notes: Vec::new(),
        }
    }

    /// A request of a client.
    pub fn ask(&mut self, ask: Ask) {
        match ask.kind {
            Kind::Read => self.reads.begin(ask, &self.cache, &mut self.tokens, &mut self.calls, &mut self.counts),
            Kind::Write => {
                self.blocked.push_back(ask);
                self.admit();
            }
            Kind::Flush => {
                // What could not be written is tried once more for everyone who asks.
                self.writes.retry(&mut self.cache);
                self.waiters.push(Waiter { upto: self.cache.seq(), range: None, ask });
            }
        }
        self.work();
    }

    /// Writes go into the cache in their order, as long as there is room. One that is larger than the cache has it alone.
    fn admit(&mut self) {
        while let Some(ask) = self.blocked.front() {
            let full = self.cache.bytes() + Cache::cost(ask.data.len() as u64) > self.limits.memory;
            if full && !self.cache.is_empty() {
                return;
            }
            let ask = self.blocked.pop_front().expect("seen just now");
            let range = Range { lbn: ask.lbn, count: u64::from(ask.count) };
            let state = if ask.fua { State::Urgent } else { State::Waiting };
            let upto = self.cache.write(&range, &ask.data, state);
            self.counts.accepted += ask.data.len() as u64;
            match ask.fua {
                true => self.waiters.push(Waiter { upto, range: Some(range), ask: Ask { data: Bytes::new(), ..ask } }),
                false => ask.answer(Ok(Bytes::new())),
            }
        }
    }

    /// There is a session upstream, which knows nothing.
    pub fn connected(&mut self) {
        (self.up, self.gone) = (true, false);
        self.calls = Calls::default();
        self.writes.forget_session(&mut self.cache);
        // Flushes are asked for anew: what was written meanwhile is on the disk.
        self.waiters.extend(std::mem::take(&mut self.flushing).into_values().flatten());
        self.reads.again(&mut self.calls);
        self.work();
    }

    /// The session upstream has ended. Everything waits for the next.
    pub fn disconnected(&mut self) {
        self.up = false;
        self.calls = Calls::default();
    }

    /// Whether upstream's device has gone, so that another session is to be tried after a while.
    pub fn is_gone(&self) -> bool {
        self.gone
    }

    /// Upstream says something.
    pub fn event(&mut self, event: Event) {
        match event {
            Event::Written(p) => {
                let range = Range { lbn: p.lbn, count: p.count };
                self.counts.free += range.count * self.sector;
                self.writes.written(&mut self.cache, p.task, &range);
            }
            Event::Superseded(p) | Event::NotTaken(p) => {
                let range = Range { lbn: p.lbn, count: p.count };
                self.writes.not_written(&mut self.cache, p.task, &range, State::Waiting);
            }
            Event::Failed(f) => {
                let range = Range { lbn: f.lbn, count: f.count };
                self.writes.not_written(&mut self.cache, f.task, &range, State::Urgent);
            }
            Event::Done(t) => self.writes.ended(&mut self.cache, t.task, State::Waiting),
            Event::Refused(r) => {
                if let Some(task) = r.task {
                    // There is no room for it among the tasks: what it was to write goes in the foreground.
                    self.writes.ended(&mut self.cache, task, State::Urgent);
                }
            }
            Event::Answered(a) => self.answered(a),
            Event::Gone(_) => self.gone = true,
            // Data follows its task at once, so it is on its way already when it is wanted; the rest is for reading tasks.
            Event::Wanted(_)
            | Event::Opened(_)
            | Event::Registered(_)
            | Event::Delivered(_)
            | Event::Broken(_)
            | Event::Suspended(_)
            | Event::End(_) => {}
        }
        self.admit();
        self.work();
    }

    fn answered(&mut self, a: v1::Answered) {
        let fault = match a.fault() {
            v1::Fault::None => None,
            v1::Fault::Gone => {
                // The server ends, or its device has gone: the request is made anew in the next session.
                self.gone = true;
                return;
            }
            v1::Fault::NoSpace => Some(Fault::NoSpace),
            v1::Fault::Late => Some(Fault::Late),
            v1::Fault::Io | v1::Fault::Invalid => Some(Fault::Io),
        };
        match a.token % SORTS {
            READ => self.reads.answered(a.token, fault.map_or(Ok(a.data), Err)),
            WRITE => match fault {
                None => self.counts.through += self.writes.answered(&mut self.cache, a.token),
                Some(fault) => self.failed(a.token, fault, &a.why_not),
            },
            _ => {
                let waiters = self.flushing.remove(&a.token).unwrap_or_default();
                self.unflushed = fault.is_some();
                waiters.into_iter().for_each(|w| w.ask.answer(fault.map_or(Ok(Bytes::new()), Err)));
            }
        }
    }

    /// A foreground write failed. Whoever waits for what is given up is told so.
    fn failed(&mut self, token: u64, fault: Fault, why: &str) {
        for lbn in self.writes.failed(&mut self.cache, token) {
            let (e, range) = (self.cache.at(lbn), self.cache.range_of(lbn));
            let (since, noted) = (e.since, e.noted);
            if !noted {
                self.cache.change(lbn, |e| e.noted = true);
                self.notes.push(format!(
                    "sectors {} to {} cannot be written ({why}); flushes fail until they are",
                    range.lbn,
                    range.end() - 1
                ));
            }
            let hit = |w: &mut Waiter| w.upto >= since && w.range.is_none_or(|r| r.overlaps(&range));
            self.waiters.extract_if(.., hit).for_each(|w| w.ask.answer(Err(fault)));
        }
    }

    /// Time passes: dirty data that nobody has yet is given to a task.
    pub fn tick(&mut self) {
        if self.up {
            self.writes.register(&mut self.cache, &mut self.calls);
        }
    }

    /// What could not be written is tried again: by whoever has a slower clock than [`Machine::tick`]'s.
    pub fn retry(&mut self) {
        self.writes.retry(&mut self.cache);
        self.work();
    }

    /// From now on everything is written out as soon as possible.
    pub fn drain(&mut self) {
        self.draining = true;
        self.waiters.push(Waiter { upto: self.cache.seq(), range: None, ask: Ask::flush() });
        self.work();
    }

    /// Whether nothing is left to do.
    pub fn is_idle(&self) -> bool {
        self.cache.is_empty() && self.waiters.is_empty() && self.flushing.is_empty() && self.blocked.is_empty()
    }

    /// Whether everything is written and was flushed after that.
    pub fn is_flushed(&self) -> bool {
        self.is_idle() && !self.unflushed
    }

    /// Bytes that are not on the disk, and those of them that cannot be written.
    pub fn left(&self) -> (u64, u64) {
        let failed = self.cache.failed().iter().map(|&lbn| self.cache.range_of(lbn).count * self.sector).sum();
        (self.cache.data_bytes(), failed)
    }

    fn work(&mut self) {
        if !self.up {
            return;
        }
        let asked = self.waiters.iter().filter(|w| w.range.is_none()).map(|w| w.upto).max();
        let upto = if self.draining { Some(u64::MAX) } else { asked };
        // Above the mark the oldest goes, and a write that waits for room gets what it needs.
        let first = self.blocked.front().map_or(0, |a| Cache::cost(a.data.len() as u64));
        let mark = self.limits.high().min(self.limits.memory.saturating_sub(first));
        while let Some((since, lbn)) = self.cache.first_waiting() {
            // What is on its way already will be gone.
            let pressed = self.cache.bytes() - self.cache.leaving() > mark;
            if !pressed && upto.is_none_or(|upto| since > upto) {
                break;
            }
            self.cache.change(lbn, |e| e.state = State::Urgent);
        }
        self.writes.send(&mut self.cache, &mut self.tokens, &mut self.calls);
        self.answer_waiters();
    }

    fn answer_waiters(&mut self) {
        if self.waiters.is_empty() {
            return;
        }
        let (cache, oldest) = (&self.cache, self.cache.oldest());
        let written = |w: &mut Waiter| match w.range {
            None => oldest.is_none_or(|o| o > w.upto),
            // The oldest of all is a quick answer for most.
            Some(r) => oldest.is_none_or(|o| o > w.upto) || cache.oldest_in(&r).is_none_or(|o| o > w.upto),
        };
        let done: Vec<Waiter> = self.waiters.extract_if(.., written).collect();
        let (flushes, writes): (Vec<_>, Vec<_>) = done.into_iter().partition(|w| w.range.is_none());
        writes.into_iter().for_each(|w| w.ask.answer(Ok(Bytes::new())));
        if !flushes.is_empty() {
            let token = self.tokens.next(FLUSH);
            let none = Range { lbn: 0, count: 0 };
            self.calls.others.push_back(foreground(token, v1::Kind::Flush, none, Bytes::new()));
            self.flushing.insert(token, flushes);
        }
    }

    /// Whether something is to be said upstream.
    pub fn has_calls(&self) -> bool {
        !self.calls.reads.is_empty() || !self.calls.others.is_empty()
    }

    /// What is to be said upstream next.
    pub fn next_call(&mut self) -> Option<Call> {
        self.calls.reads.pop_front().or_else(|| self.calls.others.pop_front())
    }

    /// What is to be said to the operator.
    pub fn notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// What was done so far.
    pub fn counts(&self) -> Counts {
        Counts { dirty: self.cache.data_bytes(), ..self.counts }
    }
}
