//! Cache hits: which of them are dispatched before the requests that move the head.
//!
//! Hits do not move the head, so they are dispatched first. But a client whose data the cache holds
//! submits the next read while others of its reads are served: if each were first, the head would
//! never move for another client. A drive with its own queue serves the hits that have arrived by
//! the time its head is free, and then moves it. The same holds here: later hits wait behind one
//! request that moves the head, unless the continuation of a stream waits, for which the head does
//! not move either. (If hits were first until the request had waited for four revolutions, 28
//! readers of cached data would get two to four times their requests, and two other readers 47 to
//! 65% of theirs; measured on two drives.)

use headtime_disk::{Kind, Model, Time};

use super::Core;
use crate::order::ahead;
use crate::predictor::Predictor;
use crate::request::Request;

/// The eligible cache hits.
#[derive(Clone, Debug, Default)]
pub(super) struct Hits {
    /// Hits that are dispatched first.
    pub first: Vec<u32>,
    /// Hits that wait behind a request that moves the head.
    pub later: Vec<u32>,
    /// Whether each other waiting request continues the last command that moved the head, or
    /// another waiting request.
    pub alone: bool,
    /// Completion of the last command that moved the head.
    pub moved: Time,
}

impl Core {
    /// Finds the hits, if the order uses them and few requests are waiting. `continues`: the
    /// continuation of a stream waits.
    pub(super) fn find_hits(&mut self, continues: bool) {
        self.hits.first.clear();
        self.hits.later.clear();
        self.hits.alone = false;
        if !self.asks_for_hits() {
            return;
        }
        let queues = (!self.eligible_queues.is_empty()).then_some(&self.eligible_queues[..]);
        let moves = !self.predictor.all_are_held();
        let last = self.last_moved().map(|s| (s.command.kind, s.end));
        let (mut others, mut alone) = (false, true);
        for entry in self.pool.choices(queues).flat_map(|queue| queue.index) {
            let waiting = self.pool.get(entry.slot);
            let Request { kind, lbn, .. } = waiting.request;
            let mut is_hit = |r: &Request| is_hit(&mut self.predictor, &self.model, r, self.now);
            if !is_hit(&waiting.request) {
                others = true;
                alone &= last == Some((kind, lbn))
                    || self.pool.ends_at(lbn).any(|before| {
                        let before = &self.pool.get(before).request;
                        before.kind == kind && !is_hit(before)
                    });
            } else if moves || waiting.submitted <= self.hits.moved {
                self.hits.first.push(entry.slot);
            } else {
                self.hits.later.push(entry.slot);
            }
        }
        self.hits.alone = alone;
        if continues || !others {
            let Hits { first, later, .. } = &mut self.hits;
            first.append(later);
        }
    }

    /// Returns whether a read waits that ORDER would take first, eligible or not. Cheaper than
    /// ORDER and ADMIT.
    pub(super) fn a_hit_waits(&mut self) -> bool {
        let waiting = self.pool.choices(None).flat_map(|queue| queue.index);
        self.asks_for_hits()
            && waiting
                .map(|entry| &self.pool.get(entry.slot).request)
                .any(|r| is_hit(&mut self.predictor, &self.model, r, self.now))
    }

    /// Returns whether ORDER takes hits first, and the drive has a cache.
    fn asks_for_hits(&self) -> bool {
        let few = self.pool.eligible() <= ahead::MAX_EXACT;
        self.config.order.looks_ahead() && few && self.predictor.has_cache()
    }
}

/// Returns whether `request` is a cache hit if sent now.
fn is_hit(predictor: &mut Predictor, model: &Model, request: &Request, now: Time) -> bool {
    let Request { kind, lbn, count, .. } = *request;
    kind == Kind::Read && predictor.has_all(model, lbn, count, now)
}
