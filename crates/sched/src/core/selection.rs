//! ORDER's choice among the eligible requests, and when it is committed.

use super::Core;
use super::admission::Eligible;
use crate::order::View;

impl Core {
    /// Returns ORDER's choice among the eligible requests. It is tentative: [`Core::take`] commits
    /// it. With [`Order::SptfJoint`](super::Order::SptfJoint) it leaves in `joint.ranked` the input
    /// of [`Core::weigh`].
    pub(super) fn choose(&mut self) -> Option<u32> {
        self.joint.ranked.clear();
        self.idling_until = None;
        if self.pool.eligible() == 0 {
            return None;
        }
        // Streams may set a wake-up here, which is used only if nothing is chosen.
        let Eligible::Queues { patience } = self.select_eligible() else {
            self.begin_idling();
            return None;
        };
        self.idling_until = None;
        if let Some(slot) = self.inheriting {
            return Some(slot);
        }
        let (read, write) = self.heads_to_choose_from();
        let continuation = self.continuation();
        self.find_hits(continuation.is_some());
        let cached = self.cached_behind();
        let stream = continuation.or(cached).filter(|&slot| !self.is_piece(slot));
        let mut view = View {
            pool: &self.pool,
            queues: (!self.eligible_queues.is_empty()).then_some(&self.eligible_queues[..]),
            model: &self.model,
            now: self.now,
            read,
            write,
            lbn: self.dispatch.lbn(),
            continuation,
            stream,
            is_cached: stream.is_some() && stream == cached,
            hits: &self.hits.first,
            later_hits: &self.hits.later,
            writes_in_order: self.keeps_writes_in_order(),
            arrivals: &mut self.arrivals,
            ranked: &mut self.joint.ranked,
            looked_at: 0,
        };
        let waited = |slot: u32| self.now.since(self.pool.get(slot).submitted);
        let oldest = patience.and_then(|(queue, longest)| {
            let oldest = match queue {
                Some(queue) => self.pool.choice(Some(queue)).oldest,
                None => view.oldest_of(|queue| queue.oldest),
            };
            oldest.filter(|&slot| waited(slot) > longest)
        });
        if oldest.is_some() {
            view.ranked.clear();
        }
        let slot = oldest.or_else(|| self.config.order.next(&mut view));
        assert!(slot.is_some(), "queues {:?} have a turn, and nothing of them may go", self.eligible_queues);
        self.stats.cost.looked_at += view.looked_at;
        slot
    }

    /// Commits the choice: removes the request from the waiting ones and accounts for it in ADMIT.
    pub(super) fn take(&mut self, slot: u32) {
        self.stats.cost.decisions += 1;
        self.pool.send(slot);
        self.notify_chosen(slot);
    }

    /// Returns whether a request is a piece of a promoted task, or a straggler: background work in
    /// the pool.
    pub(super) fn is_piece(&self, slot: u32) -> bool {
        self.fill.as_ref().is_some_and(|f| f.is_piece(slot))
    }
}
