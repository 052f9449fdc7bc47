//! Chains: more than two commands in flight, where each continues an earlier one or is a cache hit.
//!
//! Two commands hide the overheads of requests that move the head. Short sequential reads do not
//! move it: a command of 4 KiB passes under the head in about 20 us, less than it takes to reach
//! the drive, and with two in flight the drive is done before the next arrives. So while every
//! command in flight is a read that continues the one before, and ORDER's choice continues the
//! last, it is dispatched at once, up to the depth of the drive's queue. This gives up no choice:
//! each command continues the one before, so there is nothing to reorder.
//!
//! The same holds for short sequential writes that go to the media before they complete, on a drive
//! that continues from write to write, and for sequences of both, where it continues from reads to
//! writes. The data of a write cannot cross the bus while those of a read do; with only one command
//! waiting the drive would have to wait for them. On drives that lose a revolution between writes,
//! writes are merged ([`super::merged`]).
//!
//! Cache hits are dispatched likewise while all commands in flight are hits: the head moves for
//! none of them, and with two at a time the drive would wait for the host. If the drive needs no
//! time between two commands, hits and a chain are dispatched together, and the hits cost the chain
//! nothing. Otherwise the stream would wait at the host while the drive serves the hits two at a
//! time, and lose a revolution each time. They are dispatched together only while no other waiting
//! request moves the head: it would have to wait for all of them.
//!
//! Not with streams with guarantees: their service times were measured with fewer commands in
//! flight.

use headtime_disk::{Command, Dur, Kind};

use super::{Core, Order};
use crate::dispatch::Sent;
use crate::overheads::{between, lead_in, to_drive};
use crate::request::Request;

impl Core {
    /// Returns the next command of a chain, or the next cache hit, if ORDER chooses it.
    pub(super) fn send_chained(&mut self) -> Option<Command> {
        let depth = self.chain;
        let selects = self.config.order != Order::Fcfs || self.admit.is_some() || self.fill.is_some();
        if self.dispatch.at_drive().len() >= depth
            || !selects
            || self.next_request.is_some()
            || !self.retry_alone.is_empty()
            || self.streams.is_some()
        {
            return None;
        }
        let next = self.next_of_chain()?;
        self.take(next);
        self.dispatch.set_limit(depth);
        let command = self.send_request(next);
        self.limit_outstanding();
        Some(command)
    }

    /// Returns ORDER's choice if it continues the chain in flight, or if it is a cache hit and the
    /// commands in flight are only hits, or hits and one chain.
    fn next_of_chain(&mut self) -> Option<u32> {
        let behind_last = self.continuation().or_else(|| self.behind_last());
        let behind_last = behind_last.filter(|&slot| {
            let Request { kind, lbn, .. } = self.pool.get(slot).request;
            self.is_chain(kind, lbn) && self.is_wanted(slot)
        });
        let chain = self.chain_beside_hits();
        let behind_hits = chain.and_then(|last| self.behind_hits(&last)).filter(|&slot| self.is_wanted(slot));
        let only_hits = self.predictor.all_are_held();
        let takes_hits = only_hits || chain.is_some_and(|last| self.is_chain_of_two(&last));
        if behind_last.or(behind_hits).is_none() && !(takes_hits && self.a_hit_waits()) {
            return None;
        }
        let next = self.choose()?;
        let is_hit = takes_hits && self.hits.first.contains(&next) && !self.is_piece(next);
        let beside = self.hits.alone && (is_hit || Some(next) == behind_hits);
        (Some(next) == behind_last || only_hits && is_hit || beside).then_some(next)
    }

    /// Returns the request that continues the last command in flight, where one of the two is a
    /// write.
    fn behind_last(&self) -> Option<u32> {
        let last = self.dispatch.at_drive().last().filter(|last| self.dispatch.lbn() == last.end)?;
        self.continues_write(last)
    }

    /// Returns the request that continues `last`, where one of the two is a write, if the drive
    /// continues from one to the other without a break.
    fn continues_write(&self, last: &Sent) -> Option<u32> {
        let Command { kind, fua, .. } = last.command;
        if kind == Kind::Flush {
            return None;
        }
        let read = || self.pool.read_at(last.end).filter(|_| kind == Kind::Write);
        let slot = self.pool.write_at(last.end).or_else(read)?;
        let next = &self.pool.get(slot).request;
        let fua = if kind == next.kind { fua && next.fua } else { fua || next.fua };
        (self.continues_between(kind, next.kind, fua) && self.may_go(slot)).then_some(slot)
    }

    /// Returns whether the request in `slot` may join a chain, and is needed at the drive now.
    fn is_wanted(&self, slot: u32) -> bool {
        let Request { kind, count, .. } = self.pool.get(slot).request;
        let writes = kind == Kind::Write && self.last_moved().is_none_or(|last| last.command.kind == kind);
        !self.is_piece(slot) && (!writes || self.is_needed_now(count))
    }

    /// Returns the last command of a chain in flight beside which cache hits cost nothing.
    fn chain_beside_hits(&self) -> Option<Sent> {
        let last = *self.last_moved().filter(|s| s.command.kind != Kind::Flush && self.predictor.has_cache())?;
        let kind = last.command.kind;
        (self.is_unhindered_by_hits(kind) && self.is_chain(kind, last.end)).then_some(last)
    }

    /// Returns whether the chain that ends with `last` has two commands or more, including a
    /// waiting one.
    fn is_chain_of_two(&self, last: &Sent) -> bool {
        self.dispatch.at_drive().iter().any(|s| s.end == last.command.lbn) || self.pool.begins_at(last.end)
    }

    /// Returns the request that continues `last`, the last command of a chain, if cache hits were
    /// dispatched behind that.
    fn behind_hits(&self, last: &Sent) -> Option<u32> {
        let ends_with_hit = self.dispatch.at_drive().last().is_some_and(|s| self.predictor.is_held(s.command.id));
        if !ends_with_hit || !self.predictor.is_sure() {
            return None;
        }
        let read = self.pool.read_at(last.end).filter(|&slot| last.command.kind.is_read() && self.may_go(slot));
        read.or_else(|| self.continues_write(last))
    }

    /// Returns whether a cache hit costs nothing between two commands of `kind` that continue each
    /// other: the drive needs no time between commands.
    fn is_unhindered_by_hits(&self, kind: Kind) -> bool {
        between(&self.model, kind, Kind::Read) + between(&self.model, Kind::Read, kind) == Dur::ZERO
    }

    /// Returns the last command in flight that moves the head.
    pub(super) fn last_moved(&self) -> Option<&Sent> {
        self.dispatch.at_drive().iter().rev().find(|s| !self.predictor.is_held(s.command.id))
    }

    /// Returns whether the drive may finish all commands in flight before another write of `count`
    /// sectors arrives. The drive is kept supplied for twice that time, which includes the host's
    /// lateness and the prediction error.
    fn is_needed_now(&self, count: u32) -> bool {
        let place = |c: &Command| self.model.place(c.lbn, c.count, c.kind);
        let moves = |s: &&Sent| !self.predictor.is_held(s.command.id);
        let at_drive = self.dispatch.at_drive().iter().filter(moves);
        let media: u64 = at_drive.filter_map(|s| place(&s.command)).map(|p| p.media.0).sum();
        // Sectors whose completion the host received late are on the media already.
        let left = self.predictor.head_free_behind_all().map_or(media, |at| media.min(at.saturating_since(self.now).0));
        let arrives = lead_in(&self.model, Kind::Write, Kind::Write) + to_drive(&self.model, count);
        let needs = arrives + self.commit.lateness() + self.commit.error();
        Dur(left) <= needs + needs
    }

    /// Returns whether the commands in flight form one chain that ends at `end` with one of `kind`.
    /// Cache hits do not count. Commands of the chain that completed early count by [`Sent::end`].
    fn is_chain(&self, kind: Kind, end: u64) -> bool {
        let (mut begins, mut kind) = (end, kind);
        self.dispatch.at_drive().iter().rev().all(|s| {
            // A write that the drive's cache takes is never dispatched behind two others.
            let continues = s.command.kind == kind || self.continues_between(s.command.kind, kind, true);
            let follows = continues && s.end == begins;
            if follows {
                (begins, kind) = (s.command.lbn, s.command.kind);
            }
            follows || self.predictor.is_held(s.command.id)
        })
    }
}
