//! Chains: more than two commands at the drive where each continues the one before, or the cache answers all.
//!
//! Two commands hide the overheads of requests that move the head. Short reads in order move nothing: a command of 4
//! KiB passes under the head in some 20 us, less than it takes to reach the drive, and with two of them outstanding the
//! drive is done before it hears of the next. So while every command at the drive is a read that continues the one
//! before, and ORDER's choice continues the last, it is sent at once, up to the depth of the drive's queue. This gives
//! up no choice: each command continues the one before, so there is nothing to reorder.
//!
//! The same holds for short writes in order on a drive without a write cache that goes on from write to write. Where a
//! drive loses a turn between them, they are merged ([`super::merged`]).
//!
//! And for reads that the drive's cache answers, while everything at the drive is one: the head moves for none of them,
//! and with two at a time the drive would wait for the host. Where the drive needs no time between two commands, these
//! reads and a chain stand together at the drive: what they cost the chain is then nothing. Otherwise the stream would
//! wait at the host while the drive answers them two at a time, and lose a turn each time.
//!
//! Streams with guarantees exclude this: what they are promised was measured with fewer commands outstanding.

use headtime_disk::command::{Command, Kind};
use headtime_disk::time::Dur;

use super::{Core, Order};
use crate::dispatch::Sent;
use crate::overheads::{between, lead_in, to_drive};
use crate::request::Request;

impl Core {
    /// The next command of a chain, or the next that the cache answers, if ORDER chooses it.
    pub(super) fn send_chained(&mut self) -> Option<Command> {
        let depth = self.chain;
        let selects = self.config.order != Order::Fcfs || self.admit.is_some() || self.fill.is_some();
        if self.dispatch.at_drive().len() >= depth
            || !selects
            || self.held.is_some()
            || !self.again.is_empty()
            || self.streams.is_some()
        {
            return None;
        }
        let next = self.next_of_chain().or_else(|| self.next_hit())?;
        self.take(next);
        self.dispatch.set_limit(depth);
        let command = self.send_request(next);
        self.limit_outstanding();
        Some(command)
    }

    /// ORDER's choice, if all that is at the drive is a chain and it continues that.
    fn next_of_chain(&mut self) -> Option<u32> {
        let next = self.continuation().or_else(|| self.short_write_behind())?;
        let Request { kind, lbn, .. } = self.pool.get(next).request;
        let goes_on = !self.is_piece(next) && self.is_chain(kind, lbn);
        (goes_on && self.choose() == Some(next)).then_some(next)
    }

    /// ORDER's choice, if the drive's cache answers it, and all that is at the drive or all but a chain.
    fn next_hit(&mut self) -> Option<u32> {
        if !self.predictor.all_are_hits() {
            let last = self.last_moved().filter(|_| self.predictor.has_cache())?.command;
            let end = last.lbn + u64::from(last.count);
            if !self.is_unhindered_by_hits(last.kind) || !self.is_chain(last.kind, end) {
                return None;
            }
        }
        self.chosen_hit()
    }

    /// ORDER's choice, if the drive's cache answers it.
    pub(super) fn chosen_hit(&mut self) -> Option<u32> {
        let next = self.choose()?;
        (self.hits.first.contains(&next) && !self.is_piece(next)).then_some(next)
    }

    /// Whether a read that the cache answers costs nothing between two commands of `kind` that continue each other: the
    /// drive needs no time between commands.
    pub(super) fn is_unhindered_by_hits(&self, kind: Kind) -> bool {
        between(&self.model, kind, Kind::Read) + between(&self.model, Kind::Read, kind) == Dur::ZERO
    }

    /// The last command at the drive for which the head moves.
    pub(super) fn last_moved(&self) -> Option<&Sent> {
        self.dispatch.at_drive().iter().rev().find(|s| !self.predictor.is_hit(s.command.id))
    }

    /// The same, if another command of its kind would continue it without a break, whatever was sent behind it.
    pub(super) fn last_of_chain(&self) -> Option<&Sent> {
        let last = self.last_moved()?;
        let is_last = self.dispatch.at_drive().last().is_some_and(|s| s.command.id == last.command.id);
        (is_last || self.is_unhindered_by_hits(last.command.kind)).then_some(last)
    }

    /// The write that continues the one sent last, where the drive may be done with all that it has before another
    /// command gets there. Two of the times that this takes are kept at the drive: how late the host was, and how far
    /// completions were from their predictions, included.
    fn short_write_behind(&self) -> Option<u32> {
        let slot = self.write_behind()?;
        let place = |c: &Command| self.model.place(c.lbn, c.count, c.kind);
        let moves = |s: &&Sent| !self.predictor.is_hit(s.command.id);
        let at_drive = self.dispatch.at_drive().iter().filter(moves);
        let media: u64 = at_drive.filter_map(|s| place(&s.command)).map(|p| p.media.0).sum();
        // What the host has heard of late is on the media already.
        let left = self.predictor.head_free_behind_all().map_or(media, |at| media.min(at.saturating_since(self.now).0));
        let count = self.pool.get(slot).request.count;
        let arrives = lead_in(&self.model, Kind::Write, Kind::Write) + to_drive(&self.model, count);
        let needs = arrives + self.commit.lateness() + self.commit.error();
        (Dur(left) <= needs + needs).then_some(slot)
    }

    /// Whether all commands at the drive for which the head moves are reads, or all are writes, each of which continues
    /// the one before, up to `end`, where one of that kind begins.
    fn is_chain(&self, kind: Kind, end: u64) -> bool {
        let mut begins = end;
        self.dispatch.at_drive().iter().rev().filter(|s| !self.predictor.is_hit(s.command.id)).all(|s| {
            let follows = s.command.kind == kind && s.command.lbn + u64::from(s.command.count) == begins;
            begins = s.command.lbn;
            follows
        })
    }
}
