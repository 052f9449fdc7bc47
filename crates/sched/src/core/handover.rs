//! Handover: from the arrival of a write until the drive's own write cache is empty, the drive
//! orders commands itself.
//!
//! A drive that keeps writes in its volatile cache writes them to the media when it sees fit, and
//! does not report it. Where its head is cannot be known then, and two commands selected outside
//! are worse than all of them selected inside. So while data may be in the cache the drive is given
//! as many commands as its queue takes, as it would have without a scheduler in front of it. Once
//! nothing was written for a while, or a flush has emptied the cache, selection outside resumes.
//!
//! An idle drive writes its cache back at once. The cache is believed empty after the drive has
//! been idle for as long as that takes: for each write, the move from the previous command, at most
//! one turn, and the transfer. Until then the drive does not count as idle, because a background
//! command would wait behind a write for longer than predicted. A command that arrives earlier
//! waits for the write in progress; writes that did not fit into this pause remain for the next
//! one.
//!
//! Streams with guarantees and ADMIT's shares exclude this: both rest on the selection outside.

use headtime_disk::angle::Angle;
use headtime_disk::command::{Command, Kind, Outcome};
use headtime_disk::mechanics::Head;
use headtime_disk::model::Place;
use headtime_disk::time::{Dur, Time};

use super::Core;
use crate::dispatch::Sent;
use crate::overheads::lead_in;

/// A drive is taken to have written its cache back so long after it answered the last write. Drives
/// write back as soon as no command waits, so data outlasts this only on a drive that is never
/// idle, where reads show it: they come later than predicted, and filling stops.
const DIRTY: Dur = Dur::from_secs(1);

/// What the drive's write cache may hold.
#[derive(Clone, Copy, Debug)]
struct Dirty {
    /// When the drive answered the last write that it may have cached.
    written: Time,
    /// Writes that it may hold.
    writes: u32,
    /// What it takes to write all of it back, with no command in between.
    takes: Dur,
}

impl Dirty {
    /// What the cache may still hold after the drive was idle for `quiet`. The drive completes a
    /// write-back that it has begun even if a command arrives, so after any pause at least one
    /// write is gone.
    fn after(self, quiet: Dur) -> Option<Dirty> {
        let each = Dur(self.takes.0 / u64::from(self.writes.max(1)));
        let gone = if quiet == Dur::ZERO { 0 } else { 1.max(quiet.0 / each.0.max(1)) };
        let writes = u64::from(self.writes).checked_sub(gone).filter(|&left| left > 0)?;
        Some(Dirty { writes: writes as u32, takes: Dur(each.0 * writes), ..self })
    }
}

/// The state of handover.
#[derive(Clone, Debug, Default)]
pub(super) struct Handover {
    /// Commands that the drive's queue takes; 0: the drive never orders them itself.
    depth: usize,
    dirty: Option<Dirty>,
    /// Writes at the drive that it may cache: the command, and what it takes to write it back.
    at_drive: Vec<(u64, Dur)>,
    /// The track on which the write ends that was sent last, and the angle there.
    arm: (u32, u16),
    end_angle: Angle,
    /// Since when no command is at the drive.
    quiet: Option<Time>,
}

impl Handover {
    /// Whether the drive orders commands itself while its cache may hold data: it has a queue.
    pub(super) fn orders(&self) -> bool {
        self.depth > 0
    }

    /// Until when the cache may hold data if nothing happens.
    fn dirty_until(&self) -> Option<Time> {
        let dirty = self.dirty?;
        let at_most = dirty.written + DIRTY;
        Some(self.quiet.map_or(at_most, |since| at_most.min(since + dirty.takes)))
    }
}

impl Core {
    /// Sets the depth of the drive's own queue. The core sends up to `depth` commands while the
    /// drive's write cache may hold data, and in chains ([`super::chain`]). Call it before the
    /// first request is submitted.
    #[must_use]
    pub fn handing_over(mut self, depth: u32) -> Core {
        if depth > self.config.max_outstanding {
            self.chain = depth as usize;
            self.enlarge(depth as usize);
            self.set_handover(self.model.cache.write_back);
        }
        self
    }

    /// The drive's write cache is on, or off.
    pub(super) fn set_handover(&mut self, write_back: bool) {
        self.handover.depth = if write_back { self.chain } else { 0 };
        if !write_back {
            self.handover.dirty = None;
            self.handover.at_drive.clear();
        }
    }

    /// Whether the drive orders commands itself now. From the arrival of a write on that it may
    /// cache: the drive takes that in a tenth of a millisecond, whatever else it has to do.
    pub(super) fn hands_over(&self) -> bool {
        let caches = self.pool.has_cacheable_writes(self.write_policy.ignores_fua()) || self.dirty_until().is_some();
        self.handover.depth > 0 && caches && self.streams.is_none() && self.admit.is_none()
    }

    /// Whether a drive whose cache is on may cache a write, which has FUA or not.
    fn may_cache(&self, fua: bool) -> bool {
        !fua || self.write_policy.ignores_fua()
    }

    /// Until when the drive's write cache may hold data; `None`: it holds none.
    pub(super) fn dirty_until(&self) -> Option<Time> {
        self.handover.dirty_until().filter(|&at| self.now < at)
    }

    /// A command ended: the drive's cache holds data, or none.
    pub(super) fn note_cached(&mut self, sent: &Sent, outcome: Outcome) {
        if !self.model.cache.write_back || outcome != Outcome::Ok {
            self.handover.at_drive.retain(|w| w.0 != sent.command.id);
            return;
        }
        match sent.command.kind {
            Kind::Write if self.may_cache(sent.command.fua) => {
                let at = self.handover.at_drive.iter().position(|w| w.0 == sent.command.id);
                let takes = at.map_or(Dur::ZERO, |at| self.handover.at_drive.swap_remove(at).1);
                let before = self.dirty_until().and(self.handover.dirty);
                let (writes, so_far) = before.map_or((0, Dur::ZERO), |d| (d.writes, d.takes));
                self.handover.dirty = Some(Dirty { written: self.now, writes: writes + 1, takes: so_far + takes });
            }
            // It covers what the drive had answered when it was sent.
            Kind::Flush if self.handover.dirty.is_some_and(|d| d.written <= sent.at) => self.handover.dirty = None,
            _ => {}
        }
    }

    /// Notes of a write that is about to be sent what the drive takes at most to write it back if
    /// it caches it: the move from the command before, a turn, the transfer.
    pub(super) fn note_sent(&mut self, command: &Command, place: Option<&Place>) {
        let Some(place) = place.filter(|_| command.kind == Kind::Write && self.model.cache.write_back) else { return };
        let (_, head) = self.likely_heads();
        let mechanics = &self.model.mechanics;
        let moves = mechanics.reposition((head.cylinder, head.surface), (place.cylinder, place.surface), Kind::Write);
        let takes =
            lead_in(&self.model, Kind::Write, Kind::Write) + moves + mechanics.rotation.period() + place.transfer;
        if self.may_cache(command.fua) {
            self.handover.at_drive.push((command.id, takes));
        }
        self.handover.arm = (place.end_cylinder, place.end_surface);
        self.handover.end_angle = place.end_angle;
    }

    /// Where a read and a write sent now would find the head. The predictor does not follow what
    /// the drive does by itself: behind writes that it cached the head is where the last of them
    /// ends.
    pub(super) fn likely_heads(&mut self) -> (Head, Head) {
        let (read, write) = self.predictor.next_heads(&self.model, self.now);
        if self.predictor.is_sure() || !self.model.cache.write_back {
            return (read, write);
        }
        let (cylinder, surface) = self.handover.arm;
        let there = |head: Head| Head { cylinder, surface, ..head };
        (there(read), there(write))
    }

    /// Where ORDER is to take the head to be. A drive that takes one command at a time, and has
    /// cached the last write, comes to the next command when it has written that: from its end,
    /// whatever the angle is now.
    pub(super) fn heads_to_choose_from(&mut self) -> (Head, Head) {
        if self.predictor.is_sure() || !self.writes_back_in_order() {
            return self.predictor.next_heads(&self.model, self.now);
        }
        let (read, write) = self.likely_heads();
        let angle = self.handover.end_angle;
        (Head { angle, ..read }, Head { angle, ..write })
    }

    /// Whether the drive is writing to the media what it has answered last, and does that in the
    /// order of arrival.
    fn writes_back_in_order(&self) -> bool {
        self.dirty_until().is_some() && !self.handover.orders() && self.predictor.last_kind() == Kind::Write
    }

    /// The write that continues the one which such a drive is writing back.
    pub(super) fn cached_behind(&self) -> Option<u32> {
        let slot = self.pool.write_at(self.dispatch.lbn()).filter(|_| self.writes_back_in_order())?;
        (self.may_cache(self.pool.get(slot).request.fua) && self.may_go(slot)).then_some(slot)
    }

    /// How many commands the drive is given now.
    pub(super) fn limit_outstanding(&mut self) {
        let quiet = self.dispatch.at_drive().is_empty();
        if let Some(since) = self.handover.quiet.take_if(|_| !quiet) {
            self.handover.dirty = self.handover.dirty.and_then(|d| d.after(self.now.since(since)));
        } else if quiet {
            self.handover.quiet = self.handover.quiet.or(Some(self.now));
        }
        if self.dirty_until().is_none() {
            self.handover.dirty = None;
        }
        let limit = if self.hands_over() { self.handover.depth } else { self.config.max_outstanding as usize };
        self.dispatch.set_limit(limit);
    }
}
