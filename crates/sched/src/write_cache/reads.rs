//! Reads: dirty sectors come from the cache, the rest from the disk.

use std::collections::BTreeMap;

use super::cache::Cache;
use super::calls::{Answers, Ask, Call, Calls, READ, Tokens};
use super::{Counts, Traffic};
use crate::tasks::TaskRange;

/// A read in progress.
#[derive(Debug)]
struct Reading<T: Traffic> {
    ticket: T::Ticket,
    parts: Vec<Option<T::Data>>,
    missing: usize,
}

/// A part of a read that was requested from the disk.
#[derive(Debug)]
struct Miss {
    reading: u64,
    part: usize,
    range: TaskRange,
    owner: u32,
}

/// All reads in progress. The clients' budgets bound their number.
#[derive(Debug)]
pub(super) struct Reads<T: Traffic> {
    readings: BTreeMap<u64, Reading<T>>,
    misses: BTreeMap<u64, Miss>,
    next: u64,
}

impl<T: Traffic> Default for Reads<T> {
    fn default() -> Reads<T> {
        Reads { readings: BTreeMap::new(), misses: BTreeMap::new(), next: 0 }
    }
}

impl<T: Traffic> Reads<T> {
    /// Begins a read: it is answered at once when all of it is in the cache.
    pub(super) fn begin(
        &mut self,
        ask: Ask<T>,
        cache: &Cache<T>,
        tokens: &mut Tokens,
        calls: &mut Calls<T>,
        answers: &mut Answers<T>,
        counts: &mut Counts,
    ) {
        let found = cache.look_up(&TaskRange { lbn: ask.lbn, count: u64::from(ask.count) });
        self.next += 1;
        let (reading, mut parts, mut missing) = (self.next, Vec::with_capacity(found.len()), 0);
        for (at, (range, data)) in found.into_iter().enumerate() {
            if data.is_none() {
                let token = tokens.next(READ);
                self.misses.insert(token, Miss { reading, part: at, range, owner: ask.owner });
                calls.reads.push_back(Call::Read { token, range, owner: ask.owner });
                missing += 1;
            }
            parts.push(data);
        }
        match missing {
            0 => counts.hits += 1,
            _ => counts.misses += 1,
        }
        let read = Reading { ticket: ask.ticket, parts, missing };
        match missing {
            0 => answers.push_back(read.finish()),
            _ => _ = self.readings.insert(reading, read),
        }
    }

    /// Handles an answer of the disk. The first failed part fails the read; the results of the
    /// others are dropped.
    pub(super) fn answered(&mut self, token: u64, answer: Result<T::Data, T::Fault>, answers: &mut Answers<T>) {
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
        answers.push_back(match fault {
            None => read.finish(),
            Some(fault) => (read.ticket, Err(fault)),
        });
    }

    /// Returns the ticket of the read for a token.
    pub(super) fn ticket(&self, token: u64) -> Option<&T::Ticket> {
        let miss = self.misses.get(&token)?;
        self.readings.get(&miss.reading).map(|r| &r.ticket)
    }

    /// Fails all reads.
    pub(super) fn fail(&mut self, fault: T::Fault, answers: &mut Answers<T>) {
        self.misses.clear();
        let readings = std::mem::take(&mut self.readings);
        answers.extend(readings.into_values().map(|read| (read.ticket, Err(fault))));
    }

    /// Repeats all calls in a new session.
    pub(super) fn again(&mut self, calls: &mut Calls<T>) {
        self.misses.retain(|_, m| self.readings.contains_key(&m.reading));
        for (&token, m) in &self.misses {
            calls.reads.push_back(Call::Read { token, range: m.range, owner: m.owner });
        }
    }
}

impl<T: Traffic> Reading<T> {
    fn finish(self) -> (T::Ticket, Result<T::Data, T::Fault>) {
        let mut parts: Vec<T::Data> = self.parts.into_iter().flatten().collect();
        let data = match &parts[..] {
            [_] => parts.pop().unwrap_or_default(),
            many => T::join(&many.iter().collect::<Vec<_>>()),
        };
        (self.ticket, Ok(data))
    }
}
