//! Requests that are answered when what came before them is on the disk: flushes, writes with FUA,
//! and the machine itself while it drains.

use std::collections::BTreeMap;

use super::Traffic;
use super::cache::Cache;
use super::calls::{Answers, Call, Calls, FLUSH, Tokens};
use crate::tasks::Range;

#[derive(Debug)]
struct Waiter<T: Traffic> {
    /// Everything up to this write.
    upto: u64,
    /// In these sectors; everywhere for a flush.
    range: Option<Range>,
    /// `None`: the machine itself, which is to be empty.
    ticket: Option<T::Ticket>,
}

/// All of them.
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
    /// A flush waits for every write up to `upto`; without a ticket, the machine itself.
    pub fn flush(&mut self, upto: u64, ticket: Option<T::Ticket>) {
        self.waiting.push(Waiter { upto, range: None, ticket });
    }

    /// A write with FUA waits for its own sectors.
    pub fn write(&mut self, upto: u64, range: Range, ticket: T::Ticket) {
        self.waiting.push(Waiter { upto, range: Some(range), ticket: Some(ticket) });
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.flushing.is_empty()
    }

    /// Up to which write a flush waits for every one.
    pub fn flushes_upto(&self) -> Option<u64> {
        self.waiting.iter().filter(|w| w.range.is_none()).map(|w| w.upto).max()
    }

    /// The session is new: flushes are asked for anew. What was written meanwhile is on the disk.
    pub fn again(&mut self) {
        self.waiting.extend(std::mem::take(&mut self.flushing).into_values().flatten());
    }

    /// Those that need wait no longer are answered, or a flush is asked for in their name.
    pub fn answer(&mut self, cache: &Cache<T>, tokens: &mut Tokens, calls: &mut Calls<T>, answers: &mut Answers<T>) {
        if self.waiting.is_empty() {
            return;
        }
        let oldest = cache.oldest();
        let written = |w: &mut Waiter<T>| match w.range {
            None => oldest.is_none_or(|o| o > w.upto),
            // The oldest of all is a quick answer for most.
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

    /// A flush at the scheduler has ended.
    pub fn flushed(&mut self, token: u64, answer: &Result<T::Data, T::Fault>, answers: &mut Answers<T>) {
        let waiters = self.flushing.remove(&token).unwrap_or_default();
        let answer = answer.as_ref().map(|_| T::Data::default()).map_err(|e| *e);
        answers.extend(waiters.into_iter().filter_map(|w| w.ticket).map(|ticket| (ticket, answer.clone())));
    }

    /// Sectors that have been dirty since write `since` could not be written. A waiter without a
    /// ticket is the machine's own, and waits on.
    pub fn fail(&mut self, since: u64, range: &Range, fault: T::Fault, answers: &mut Answers<T>) {
        let hit =
            |w: &mut Waiter<T>| w.ticket.is_some() && w.upto >= since && w.range.is_none_or(|r| r.overlaps(range));
        let tickets = self.waiting.extract_if(.., hit).filter_map(|w| w.ticket);
        answers.extend(tickets.map(|ticket| (ticket, Err(fault))));
    }

    /// All of them are answered with `fault`.
    pub fn fail_all(&mut self, fault: T::Fault, answers: &mut Answers<T>) {
        let flushing = std::mem::take(&mut self.flushing).into_values().flatten();
        let tickets = std::mem::take(&mut self.waiting).into_iter().chain(flushing).filter_map(|w| w.ticket);
        answers.extend(tickets.map(|ticket| (ticket, Err(fault))));
    }
}
