//! Requests that are answered when earlier writes are on the disk: flushes, writes with FUA, and
//! the machine's own drain.

use std::collections::BTreeMap;

use super::Traffic;
use super::cache::Cache;
use super::calls::{Answers, Call, Calls, FLUSH, Tokens};
use crate::tasks::TaskRange;

#[derive(Debug)]
struct Waiter<T: Traffic> {
    /// The last write that it waits for.
    upto: u64,
    /// In these sectors; everywhere for a flush.
    range: Option<TaskRange>,
    /// `None`: the machine's own drain.
    ticket: Option<T::Ticket>,
}

/// All waiting requests.
#[derive(Debug)]
pub(super) struct Waiters<T: Traffic> {
    waiting: Vec<Waiter<T>>,
    /// Flushes at the scheduler, with the requests that wait for each.
    flushing: BTreeMap<u64, Vec<Waiter<T>>>,
}

impl<T: Traffic> Default for Waiters<T> {
    fn default() -> Waiters<T> {
        Waiters { waiting: Vec::new(), flushing: BTreeMap::new() }
    }
}

impl<T: Traffic> Waiters<T> {
    /// Adds a flush that waits for every write up to `upto`; without a ticket, the machine's own.
    pub(super) fn flush(&mut self, upto: u64, ticket: Option<T::Ticket>) {
        self.waiting.push(Waiter { upto, range: None, ticket });
    }

    /// Adds a write with FUA, which waits for its own sectors.
    pub(super) fn write(&mut self, upto: u64, range: TaskRange, ticket: T::Ticket) {
        self.waiting.push(Waiter { upto, range: Some(range), ticket: Some(ticket) });
    }

    /// Returns whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.flushing.is_empty()
    }

    /// Returns the last write for which a flush waits.
    pub(super) fn flushes_upto(&self) -> Option<u64> {
        self.waiting.iter().filter(|w| w.range.is_none()).map(|w| w.upto).max()
    }

    /// Repeats the flushes in a new session. What was written in between is on the disk.
    pub(super) fn again(&mut self) {
        self.waiting.extend(std::mem::take(&mut self.flushing).into_values().flatten());
    }

    /// Answers the writes that need not wait any longer, and requests one flush for such flushes.
    pub(super) fn answer(
        &mut self,
        cache: &Cache<T>,
        tokens: &mut Tokens,
        calls: &mut Calls<T>,
        answers: &mut Answers<T>,
    ) {
        if self.waiting.is_empty() {
            return;
        }
        let oldest = cache.oldest();
        let written = |w: &mut Waiter<T>| match w.range {
            None => oldest.is_none_or(|o| o > w.upto),
            // The oldest write of all decides most cases quickly.
            Some(r) => oldest.is_none_or(|o| o > w.upto) || cache.oldest_in(&r).is_none_or(|o| o > w.upto),
        };
        let done: Vec<Waiter<T>> = self.waiting.extract_if(.., written).collect();
        let (flushes, writes): (Vec<_>, Vec<_>) = done.into_iter().partition(|w| w.range.is_none());
        answers.extend(writes.into_iter().filter_map(|w| w.ticket).map(|t| (t, Ok(T::Data::default()))));
        if !flushes.is_empty() {
            let token = tokens.next(FLUSH);
            calls.others.push_back(Call::Flush { token });
            self.flushing.insert(token, flushes);
        }
    }

    /// Handles the end of a flush at the scheduler.
    pub(super) fn flushed(&mut self, token: u64, answer: &Result<T::Data, T::Fault>, answers: &mut Answers<T>) {
        let waiters = self.flushing.remove(&token).unwrap_or_default();
        let answer = answer.as_ref().map(|_| T::Data::default()).map_err(|e| *e);
        answers.extend(waiters.into_iter().filter_map(|w| w.ticket).map(|ticket| (ticket, answer.clone())));
    }

    /// Fails the requests that wait for sectors dirty since write `since`, whose write failed. A
    /// waiter without a ticket is the machine's own, and continues to wait.
    pub(super) fn fail(&mut self, since: u64, range: &TaskRange, fault: T::Fault, answers: &mut Answers<T>) {
        let hit =
            |w: &mut Waiter<T>| w.ticket.is_some() && w.upto >= since && w.range.is_none_or(|r| r.overlaps(range));
        let tickets = self.waiting.extract_if(.., hit).filter_map(|w| w.ticket);
        answers.extend(tickets.map(|ticket| (ticket, Err(fault))));
    }

    /// Answers all of them with `fault`.
    pub(super) fn fail_all(&mut self, fault: T::Fault, answers: &mut Answers<T>) {
        let flushing = std::mem::take(&mut self.flushing).into_values().flatten();
        let tickets = std::mem::take(&mut self.waiting).into_iter().chain(flushing).filter_map(|w| w.ticket);
        answers.extend(tickets.map(|ticket| (ticket, Err(fault))));
    }
}
