//! Handling of requests and of the results of the machine's calls.
//!
//! Reads are in `reads`, writes to the disk in `writes`, requests that wait for
//! these in `waiters`.

use std::collections::VecDeque;

use headtime_disk::Kind;

use super::cache::{Cache, State};
use super::calls::{Answer, Answers, Ask, Call, Calls, Event, READ, SORTS, Tokens, WRITE};
use super::policy::Policy;
use super::reads::Reads;
use super::waiters::Waiters;
use super::writes::Writes;
use super::{Counts, Limits, Traffic};
use crate::tasks::TaskRange;

/// Blocks written together in the foreground when the cache is above its high mark: enough to lie
/// near each other, few enough that reads do not wait long.
const PRESSED: usize = 16;

/// Maximum failed ranges that are reported individually.
const MAX_NAMED: u64 = 16;

/// Returns the sectors of a request.
fn range<T: Traffic>(ask: &Ask<T>) -> TaskRange {
    TaskRange { lbn: ask.lbn, count: u64::from(ask.count) }
}

/// The state machine of the cache.
#[derive(Debug)]
pub struct Machine<T: Traffic> {
    limits: Limits,
    sector: u64,
    pub(super) cache: Cache<T>,
    /// Whether there is a session.
    up: bool,
    /// The device has gone: equivalent to having no session.
    gone: bool,
    /// Whether there are write tasks: without FILL there are none.
    fills: bool,
    policy: Policy,
    /// Whether tasks may be picked up, as last notified to the scheduler.
    free: bool,
    pub(super) calls: Calls<T>,
    answers: Answers<T>,
    tokens: Tokens,
    reads: Reads<T>,
    writes: Writes<T>,
    waiters: Waiters<T>,
    /// Writes that wait for room in the cache, and the reads that wait for one of these, in the
    /// order of arrival. The first is a write.
    blocked: VecDeque<Ask<T>>,
    /// Everything is to be written.
    draining: bool,
    /// Where the search for extents to write for lack of memory resumes.
    swept: u64,
    /// The last flush failed.
    unflushed: bool,
    /// Failed ranges reported so far.
    named: u64,
    /// Why the last foreground write failed; `None` once a later one succeeded and no failed extent
    /// remains.
    fault: Option<T::Fault>,
    /// The device will not return: all requests are answered with this.
    dead: Option<T::Fault>,
    pub(super) counts: Counts,
    notes: Vec<String>,
}

impl<T: Traffic> Machine<T> {
    /// Creates an empty cache for a disk with sectors of `sector_bytes`. `fills`: the scheduler has
    /// FILL, and accepts write tasks.
    pub fn new(sector_bytes: u32, limits: Limits, fills: bool) -> Machine<T> {
        Machine {
            limits,
            sector: u64::from(sector_bytes),
            cache: Cache::new(sector_bytes),
            up: false,
            gone: false,
            fills,
            policy: Policy::default(),
            free: true,
            calls: Calls::default(),
            answers: VecDeque::new(),
            tokens: Tokens::default(),
            reads: Reads::default(),
            writes: Writes::new(sector_bytes),
            waiters: Waiters::default(),
            blocked: VecDeque::new(),
            draining: false,
            swept: 0,
            unflushed: false,
            named: 0,
            fault: None,
            dead: None,
            counts: Counts::default(),
            notes: Vec::new(),
        }
    }

    /// Returns the same machine with eager destaging: blocks are written as soon as there is a gap
    /// (`policy`).
    #[must_use]
    pub fn eager(mut self) -> Machine<T> {
        self.policy.set_eager();
        self
    }

    /// Returns the same machine with requests limited to this number of bytes.
    #[must_use]
    pub fn with_requests_up_to(mut self, bytes: u64) -> Machine<T> {
        self.writes.set_longest(bytes);
        self
    }

    /// Handles a request of a client.
    pub fn ask(&mut self, ask: Ask<T>) {
        if let Some(fault) = self.dead {
            self.answers.push_back((ask.ticket, Err(fault)));
            return;
        }
        match ask.kind {
            // The data of an earlier write is not in the cache yet.
            Kind::Read if self.blocked.iter().any(|b| b.kind == Kind::Write && range(b).overlaps(&range(&ask))) => {
                self.blocked.push_back(ask);
                return;
            }
            Kind::Read => {
                self.read(ask);
                return;
            }
            Kind::Write => {
                self.blocked.push_back(ask);
                self.admit();
            }
            Kind::Flush => {
                // Failed extents are retried with every flush.
                self.writes.retry(&mut self.cache);
                self.policy.flushed();
                self.waiters.flush(self.cache.seq(), Some(ask.ticket));
            }
        }
        self.work();
    }

    fn read(&mut self, ask: Ask<T>) {
        let Machine { reads, cache, tokens, calls, answers, counts, .. } = self;
        reads.begin(ask, cache, tokens, calls, answers, counts);
    }

    /// Moves writes into the cache in order, as long as there is room. One that is larger than the
    /// cache is admitted when it is empty. If the writes of all extents in the cache failed, there
    /// will be no room: then a write fails with the same fault. A read that waits for a write
    /// begins when that and all before it are in the cache, or have failed; it needs no room.
    fn admit(&mut self) {
        while let Some(ask) = self.blocked.front() {
            if ask.kind == Kind::Read {
                let ask = self.blocked.pop_front().expect("seen just now");
                self.read(ask);
                continue;
            }
            let full = self.cache.bytes() + Cache::<T>::cost(T::len(&ask.data)) > self.limits.memory;
            if full && !self.cache.is_empty() {
                let Some(fault) = self.fault.filter(|_| self.cache.is_all_failed()) else { return };
                let ask = self.blocked.pop_front().expect("seen just now");
                self.answers.push_back((ask.ticket, Err(fault)));
                continue;
            }
            let ask = self.blocked.pop_front().expect("seen just now");
            let range = range(&ask);
            let state = if ask.fua { State::Urgent } else { State::Waiting };
            let upto = self.cache.write(&range, &ask.data, state);
            self.counts.accepted += T::len(&ask.data);
            match ask.fua {
                true => self.waiters.write(upto, range, ask.ticket),
                false => self.answers.push_back((ask.ticket, Ok(T::Data::default()))),
            }
        }
    }

    /// Handles a new session, which has no state yet.
    pub fn connected(&mut self) {
        (self.up, self.gone, self.free) = (true, false, true);
        self.calls = Calls::default();
        self.writes.forget_session(&mut self.cache);
        self.waiters.again();
        self.reads.again(&mut self.calls);
        self.work();
    }

    /// Handles the end of the session. Everything waits for the next.
    pub fn disconnected(&mut self) {
        self.up = false;
        self.calls = Calls::default();
    }

    /// Returns whether the device has gone, so that another session is to be tried later.
    pub fn is_gone(&self) -> bool {
        self.gone
    }

    /// Handles a message of the scheduler.
    pub fn event(&mut self, event: Event<T>) {
        match event {
            Event::Written { task, range } => {
                self.counts.free += range.count * self.sector;
                self.writes.written(&mut self.cache, task, &range);
            }
            Event::NotWritten { task, range } => {
                self.writes.not_written(&mut self.cache, task, &range, State::Waiting);
            }
            Event::Failed { task, range } => {
                self.writes.not_written(&mut self.cache, task, &range, State::Urgent);
            }
            Event::Done { task } => self.writes.ended(&mut self.cache, task, State::Waiting),
            // There is no room for the task: its data is written in the foreground.
            Event::Refused { task } => self.writes.ended(&mut self.cache, task, State::Urgent),
            Event::Answered { token, answer } => self.answered(token, answer),
            Event::Gone => self.gone = true,
        }
        self.admit();
        self.work();
    }

    fn answered(&mut self, token: u64, answer: Result<T::Data, (T::Fault, String)>) {
        match token % SORTS {
            READ => self.reads.answered(token, answer.map_err(|e| e.0), &mut self.answers),
            WRITE => match answer {
                Ok(_) => {
                    self.counts.through += self.writes.answered(&mut self.cache, token);
                    if self.cache.is_empty() {
                        self.named = 0;
                    }
                    if self.cache.failed().is_empty() {
                        self.fault = None;
                    }
                }
                Err((fault, why)) => self.failed(token, fault, &why),
            },
            _ => {
                self.unflushed = answer.is_err();
                self.waiters.flushed(token, &answer.map_err(|e| e.0), &mut self.answers);
            }
        }
    }

    /// Handles a failed foreground write. The requests that wait for its sectors are answered with
    /// the fault.
    fn failed(&mut self, token: u64, fault: T::Fault, why: &str) {
        self.fault = Some(fault);
        for lbn in self.writes.failed(&mut self.cache, token) {
            let (e, range) = (self.cache.at(lbn), self.cache.range_of(lbn));
            let (since, noted) = (e.since, e.noted);
            if !noted {
                self.cache.change(lbn, |e| e.noted = true);
                self.note_failed(&range, why);
            }
            self.waiters.fail(since, &range, fault, &mut self.answers);
        }
    }

    /// Reports a range that cannot be written, up to a limit, since on a full disk that is
    /// everything.
    fn note_failed(&mut self, range: &TaskRange, why: &str) {
        let (first, last) = (range.lbn, range.end() - 1);
        self.named += 1;
        if self.named <= MAX_NAMED {
            self.notes
                .push(format!("sectors {first} to {last} cannot be written ({why}); flushes fail until they are"));
        }
        if self.named == MAX_NAMED {
            self.notes.push("what else cannot be written is not named until the cache has been empty".into());
        }
    }

    /// Handles a tick ([`super::policy::TICK`]): registers a task for dirty data without one.
    pub fn tick(&mut self) {
        self.policy.tick(self.cache.seq());
        if self.up && self.fills {
            self.allow();
            self.writes.register(&mut self.cache, &mut self.calls);
        }
    }

    /// Calls the scheduler when the permission to pick up tasks has changed.
    fn allow(&mut self) {
        let free = self.may_write_in_gaps() || self.draining;
        if self.fills && std::mem::replace(&mut self.free, free) != free {
            self.calls.others.push_back(Call::Free(free));
        }
    }

    /// Failed extents do not make the policy hurry: they are not written in gaps.
    fn may_write_in_gaps(&mut self) -> bool {
        let oldest = self.cache.first_waiting().map(|(since, _)| since);
        self.policy.is_free(&self.limits, self.cache.bytes(), oldest)
    }

    /// Answers all pending and later requests with `fault`, since the device will not return.
    pub fn abandon(&mut self, fault: T::Fault) {
        (self.up, self.dead, self.unflushed) = (false, Some(fault), true);
        self.calls = Calls::default();
        self.reads.fail(fault, &mut self.answers);
        self.waiters.fail_all(fault, &mut self.answers);
        self.answers.extend(std::mem::take(&mut self.blocked).into_iter().map(|ask| (ask.ticket, Err(fault))));
    }

    /// Returns whether ticks have an effect: not while nothing is dirty.
    pub fn wants_ticks(&self) -> bool {
        self.up && !self.cache.is_empty()
    }

    /// Writes the next block in LBN order, if no other is being written; to be called when the disk
    /// is idle and there is no FILL. Returns whether there is one.
    pub fn use_idle_time(&mut self) -> bool {
        if !self.up || self.cache.leaving() > 0 || !self.may_write_in_gaps() {
            return false;
        }
        let next = self.cache.next_unassigned(self.writes.reached());
        if let Some(lbn) = next {
            self.cache.change(lbn, |e| e.state = State::Urgent);
            self.work();
        }
        next.is_some()
    }

    /// Retries failed writes. To be called less often than [`Machine::tick`].
    pub fn retry(&mut self) {
        self.writes.retry(&mut self.cache);
        self.work();
    }

    /// Writes everything as soon as possible from now on.
    pub fn drain(&mut self) {
        self.draining = true;
        self.waiters.flush(self.cache.seq(), None);
        self.work();
    }

    /// Returns whether nothing is left to do, or can be done.
    pub fn is_idle(&self) -> bool {
        let done = self.cache.is_empty() && self.waiters.is_empty() && self.blocked.is_empty();
        done || self.dead.is_some()
    }

    /// Returns whether everything is written and was flushed after that.
    pub fn is_flushed(&self) -> bool {
        self.is_idle() && !self.unflushed
    }

    /// Returns whether a write to the disk has failed, and no later success has cleared that.
    pub fn has_failed(&self) -> bool {
        self.fault.is_some()
    }

    /// Returns the dirty bytes, and those of them whose write failed.
    pub fn left(&self) -> (u64, u64) {
        let failed = self.cache.failed().iter().map(|&lbn| self.cache.range_of(lbn).count * self.sector).sum();
        (self.cache.data_bytes(), failed)
    }

    fn work(&mut self) {
        if !self.up {
            return;
        }
        let upto = if self.draining { Some(u64::MAX) } else { self.waiters.flushes_upto() };
        // Above the mark some are written, and a write that waits for room gets what it needs.
        let first = self.blocked.front().map_or(0, |a| Cache::<T>::cost(T::len(&a.data)));
        let mark = self.limits.high().min(self.limits.memory.saturating_sub(first));
        // Data already in flight will leave the cache.
        while self.cache.bytes() - self.cache.leaving() > mark && self.press() {}
        while let Some((since, lbn)) = self.cache.first_waiting()
            && upto.is_some_and(|upto| since <= upto)
        {
            self.cache.change(lbn, |e| e.state = State::Urgent);
        }
        self.writes.send(&mut self.cache, &mut self.tokens, &mut self.calls);
        self.waiters.answer(&self.cache, &mut self.tokens, &mut self.calls, &mut self.answers);
    }

    /// Makes the next few waiting extents urgent, in LBN order, so that they lie near each other.
    /// Returns whether there are any.
    fn press(&mut self) -> bool {
        let before = self.swept;
        for _ in 0..PRESSED {
            let Some(lbn) = self.cache.next_waiting(self.swept) else { break };
            self.swept = lbn + 1;
            self.cache.change(lbn, |e| e.state = State::Urgent);
        }
        self.swept != before
    }

    /// Returns the ticket of the client's read for which this read of the machine is.
    pub fn reads_for(&self, token: u64) -> Option<&T::Ticket> {
        self.reads.ticket(token)
    }

    /// Returns whether there are calls for the scheduler.
    pub fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Returns the next call for the scheduler.
    pub fn next_call(&mut self) -> Option<Call<T>> {
        self.calls.pop()
    }

    /// Puts back a call that the scheduler had no room for.
    pub fn put_back(&mut self, call: Call<T>) {
        self.calls.put_back(call);
    }

    /// Returns the next answer to a client.
    pub fn next_answer(&mut self) -> Option<Answer<T>> {
        self.answers.pop_front()
    }

    /// Returns messages for the operator.
    pub fn notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// Returns the counters.
    pub fn counts(&self) -> Counts {
        Counts { dirty: self.cache.data_bytes(), ..self.counts }
    }
}
