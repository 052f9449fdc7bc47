//! Merged writes: writes that share one command ([`crate::merge`]) are collected when the first of
//! them is dispatched and finished one by one.
//!
//! Not with streams with guarantees: their guarantees count the time of each request.

use headtime_disk::{Command, Dur, Kind, Outcome, Place};

use super::Core;
use super::admission::Eligible;
use crate::dispatch::{Purpose, Sent};
use crate::merge::{MAX_BYTES, MAX_REQUESTS, can_merge};
use crate::overheads::between;
use crate::request::{Prediction, Request};

impl Core {
    /// Returns whether writes that continue each other keep their order: the drive does not merge
    /// them.
    pub(super) fn keeps_writes_in_order(&self) -> bool {
        let by_drive = self.model.cache.write_back && self.handover.orders();
        self.config.order.looks_ahead() && !by_drive && self.streams.is_none()
    }

    /// Returns whether adjacent writes are also merged into one command: if the drive loses a
    /// revolution between them. Otherwise the clients of a merged command would all submit their
    /// next writes at its completion, and the drive would be idle until then.
    pub(super) fn merges(&self) -> bool {
        self.keeps_writes_in_order() && !self.model.cache.write_back && !self.writes_on(false)
    }

    /// Returns whether the drive continues without a break from a write to one that continues it;
    /// `fua`: both have FUA.
    pub(super) fn writes_on(&self, fua: bool) -> bool {
        self.continues_between(Kind::Write, Kind::Write, fua)
    }

    /// Returns whether the drive continues without a break from a command of kind `last` to one of
    /// kind `next` that continues it, where at least one is a write: it needs no time between the
    /// two, written data goes to the media before completion (no write cache, or `fua`), and the
    /// drive has a queue to which short commands can be sent in time ([`super::chain`]).
    pub(super) fn continues_between(&self, last: Kind, next: Kind, fua: bool) -> bool {
        let no_time = between(&self.model, last, next) == Dur::ZERO;
        let to_media = fua || !self.model.cache.write_back;
        let selects = self.config.order.looks_ahead() && self.streams.is_none();
        self.chain > 0 && no_time && to_media && selects
    }

    /// Dispatches the request in `slot`, with the writes merged into its command.
    pub(super) fn send_request(&mut self, slot: u32) -> Command {
        let last = self.with_those_behind(slot);
        let first = self.pool.get(slot);
        if last == slot {
            return self.send_alone(slot);
        }
        let end = self.pool.get(last).request;
        let all = Request { count: (end.lbn - first.request.lbn) as u32 + end.count, ..first.request };
        let place = self.model.place(all.lbn, all.count, all.kind);
        self.send_as(slot, &all, place)
    }

    /// Dispatches it without merging.
    pub(super) fn send_alone(&mut self, slot: u32) -> Command {
        let chosen = self.pool.get(slot);
        let (request, place) = (chosen.request, chosen.place);
        self.send_as(slot, &request, place)
    }

    /// Dispatches the command of the request in `slot` and of the writes merged into it.
    fn send_as(&mut self, slot: u32, request: &Request, place: Option<Place>) -> Command {
        let command = self.dispatch.send(Purpose::Request(slot), request, self.now);
        self.note_stream(&command);
        self.notify_sent(slot, &command, 0);
        self.learn_reuse(slot);
        self.flies(&command, place, false);
        self.predictor.sent(&self.model, command.id, command.kind, place.as_ref(), self.now);
        self.note_piece(slot);
        command
    }

    /// Commits to the writes that are merged into the command of the one in `slot`, which is
    /// dispatched now. Returns the last of them, or `slot` itself if there is none.
    fn with_those_behind(&mut self, slot: u32) -> u32 {
        if self.pool.get(slot).request.kind != Kind::Write || !self.merges() {
            return slot;
        }
        let most = MAX_BYTES / u64::from(self.model.sector_bytes);
        let (command, from) = (self.dispatch.next_command(), self.pool.get(slot).request.lbn);
        let mut last = slot;
        for _ in 1..MAX_REQUESTS {
            let Some(next) = self.behind(last) else { break };
            let request = &self.pool.get(next).request;
            if request.lbn + u64::from(request.count) - from > most {
                break;
            }
            self.take(next);
            self.behind.push((command, next));
            last = next;
        }
        last
    }

    /// Returns the write that can be merged behind the one in `slot`, if ADMIT allows it.
    fn behind(&mut self, slot: u32) -> Option<u32> {
        let first = self.pool.get(slot);
        let queue = first.queue;
        let next = self.pool.write_at(first.request.lbn + u64::from(first.request.count))?;
        let other = self.pool.get(next);
        let piece = self.is_piece(slot) || self.is_piece(next);
        let of_another = self.admit.is_some() && other.queue != queue;
        if piece || of_another || !can_merge(&first.request, &other.request) {
            return None;
        }
        let may_go = self.admit.is_none()
            || self.select_eligible() != Eligible::NoRequest && self.eligible_queues.contains(&queue);
        self.idling_until = None;
        may_go.then_some(next)
    }

    /// Finishes the request in `slot` and the requests merged into its command. If a merged command
    /// fails it is unknown which requests were written: each is sent again, alone.
    pub(super) fn finish_all(&mut self, slot: u32, sent: &Sent, outcome: Outcome, prediction: Option<Prediction>) {
        let of_it = |&(command, _): &(u64, u32)| command == sent.command.id;
        let fails = matches!(outcome, Outcome::MediaError { .. }) && self.behind.iter().any(of_it);
        match fails {
            true => self.retry_alone.push_back(slot),
            false => self.finish(slot, sent, outcome, prediction),
        }
        while let Some(at) = self.behind.iter().position(of_it) {
            let (_, slot) = self.behind.remove(at);
            match fails {
                true => self.retry_alone.push_back(slot),
                false => self.finish(slot, sent, outcome, None),
            }
        }
    }

    /// Returns the driver's ids of the foreground requests behind the first one in a command in
    /// flight, in order of LBN.
    pub fn requests_behind(&self, command: u64) -> impl Iterator<Item = u64> {
        let behind = self.behind.iter().filter(move |b| b.0 == command);
        behind.map(|b| self.pool.get(b.1).request.id)
    }
}
