//! Read-through: a request's own command starts earlier, within the drive's read-ahead before it.
//!
//! A program that reads files in disk order skips the sectors between them. The drive's read-ahead
//! does not: those sectors pass under the head while the program waits for its file. There is no
//! gap before such a request, because a command put there would stop the read-ahead. But the
//! request's own command may start earlier and include the wanted sectors in between, as a merged
//! leg. It completes as soon as its last sector has passed, as without the leg, provided that the
//! bus has transferred the rest by then.

use headtime_disk::Kind;

use super::Core;
use super::idle_time::IN_BUFFER;
use crate::fill::gap::Leg;
use crate::overheads::{crossing, hit_ready, rest_tail};
use crate::tasks::TaskRange;

impl Core {
    /// Returns the wanted sectors between the previous read and the request in `slot`, if the drive
    /// reads both ahead.
    pub(super) fn read_through(&mut self, slot: u32) -> Option<Leg> {
        let request = self.pool.get(slot).request;
        let (from, end) = (self.dispatch.lbn(), request.lbn + u64::from(request.count));
        let fill = self.fill.as_ref().expect("FILL is on");
        let waits = !self.dispatch.at_drive().is_empty() || fill.legs_before > 0 || self.hands_over();
        if waits
            || from >= request.lbn
            || !self.may_be_read_ahead(slot)
            || !self.predictor.is_sure()
            || !fill.may_fill()
        {
            return None;
        }
        // If another segment holds the request, it does not wait for the read-ahead.
        if self.predictor.has_all(&self.model, request.lbn, request.count, self.now) {
            return None;
        }
        let (until, passed) = self.predictor.reads_ahead(&self.model, from, end, self.now)?;
        if until < end {
            return None;
        }
        // Completion of the request alone, and the earliest bus transfer of what is put in front of
        // it.
        let answered = passed + rest_tail(&self.model, None);
        let begins = hit_ready(&self.model, self.predictor.last_kind(), self.now + fill.search_time(), None);
        let sector = crossing(&self.model, 1).saturating_sub(crossing(&self.model, 0));
        let time = answered.saturating_since(begins + crossing(&self.model, request.count));
        let low = from.max(request.lbn.saturating_sub(time.0 / sector.0.max(1)));
        let own = TaskRange { lbn: request.lbn, count: u64::from(request.count) };
        let mut leg = self.fill.as_mut().expect("FILL is on").front(low, own)?;
        // The drive continues its read-ahead for a command only if it already holds the command's
        // first sector. A first sector that is still about to pass would be fetched anew, a
        // revolution later.
        let mut has = |lbn: u64| {
            let ahead = self.predictor.reads_ahead(&self.model, lbn, lbn + 1, self.now);
            ahead.is_some_and(|(_, passed)| passed + IN_BUFFER <= self.now)
        };
        if !has(leg.lbn) {
            if from < low || !has(from) {
                return None;
            }
            leg = Leg { lbn: from, count: (request.lbn - from) as u32, ..leg };
        }
        let bad = self.fill.as_ref().expect("FILL is on").holds_bad(&leg);
        let conflicts = self.pool.conflicts(Kind::Read, leg.lbn, leg.count);
        (!bad && !conflicts && self.has_time_before(slot, &leg)).then_some(leg)
    }
}
