//! Handover: from the arrival of a write until the drive's own write cache is empty, the drive
//! orders commands itself.
//!
//! A drive with a volatile write cache writes cached data to the media at times of its own and does
//! not report it. The head position is unknown then, and a scheduler outside the drive selects
//! worse than the drive itself. So while data may be in the cache the drive gets as many commands
//! as its queue takes, as without a scheduler in front of it. Once nothing was written for a while,
//! or a flush has emptied the cache, outside selection resumes.
//!
//! An idle drive writes its cache back, at once or after the delay in its profile. The cache counts
//! as empty after the drive has been idle for as long as that takes: for each write, the move from
//! the previous command, at most one revolution, and the transfer. Until then the drive does not
//! count as idle, because a background command would wait behind a write for longer than predicted.
//! A command that arrives earlier waits for the write in progress; writes that did not fit into
//! this pause remain for the next one.
//!
//! Not with streams with guarantees or ADMIT's shares: both rest on outside selection.

use headtime_disk::{Angle, Command, Dur, Head, Kind, Outcome, Place, Time};

use super::Core;
use crate::dispatch::Sent;
use crate::overheads::lead_in;

/// Time after the last completion of a write at which the drive's write cache counts as empty.
/// Drives write back soon after no command waits any more, so data outlasts this only on a drive
/// that is never idle; reads then show it by completing later than predicted, and filling stops.
const DIRTY: Dur = Dur::from_secs(1);

/// Possible contents of the drive's write cache.
#[derive(Clone, Copy, Debug)]
struct Dirty {
    /// Completion of the last write that may be cached.
    written: Time,
    /// Number of writes that it may hold.
    writes: u32,
    /// Time to write all of it back, without commands in between.
    takes: Dur,
}

impl Dirty {
    /// Returns what the cache may still hold after the drive wrote back for `quiet`. The drive
    /// completes a write-back in progress even if a command arrives, so any pause removes at least
    /// one write.
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
    /// Depth of the drive's queue; 0: the drive never orders commands itself.
    depth: usize,
    dirty: Option<Dirty>,
    /// Cacheable writes in flight: the command, and the time to write it back.
    at_drive: Vec<(u64, Dur)>,
    /// End track and end angle of the last write sent.
    arm: (u32, u16),
    end_angle: Angle,
    /// Since when no command is in flight.
    quiet: Option<Time>,
}

impl Handover {
    /// Returns whether the drive, having a queue, orders commands itself while its cache may hold
    /// data.
    pub(super) fn orders(&self) -> bool {
        self.depth > 0
    }

    /// Returns until when the cache may hold data if no command follows, with a drive that begins
    /// to write back `delay` after its last command.
    fn dirty_until(&self, delay: Dur) -> Option<Time> {
        let dirty = self.dirty?;
        let at_most = dirty.written + DIRTY;
        Some(self.quiet.map_or(at_most, |since| at_most.min(since + delay + dirty.takes)))
    }
}

impl Core {
    /// Makes room for `depth` commands in flight.
    fn enlarge(&mut self, depth: usize) {
        self.pool = self.config.pool(depth);
        if self.admit.is_some() || self.streams.is_some() {
            self.pool.divide();
        }
    }

    /// Sets the depth of the drive's own queue. The core sends up to `depth` commands while the
    /// drive's write cache may hold data, and in chains (`chain`). Must be called before
    /// the first request.
    #[must_use]
    pub fn handing_over(mut self, depth: u32) -> Core {
        if depth > self.config.max_outstanding {
            self.chain = depth as usize;
            self.enlarge(depth as usize);
            self.set_handover(self.model.cache.write_back);
        }
        self
    }

    /// Sets whether the drive's write cache is on.
    pub(super) fn set_handover(&mut self, write_back: bool) {
        self.handover.depth = if write_back { self.chain } else { 0 };
        if !write_back {
            self.handover.dirty = None;
            self.handover.at_drive.clear();
        }
    }

    /// Returns whether the drive orders commands itself now: from the arrival of a cacheable write,
    /// since the drive caches that within a tenth of a millisecond, whatever else it has to do.
    pub(super) fn hands_over(&self) -> bool {
        let caches = self.pool.has_cacheable_writes(self.write_policy.ignores_fua()) || self.dirty_until().is_some();
        self.handover.depth > 0 && caches && self.streams.is_none() && self.admit.is_none()
    }

    /// Returns whether a drive with its cache on may cache a write with or without FUA.
    fn may_cache(&self, fua: bool) -> bool {
        !fua || self.write_policy.ignores_fua()
    }

    /// Returns until when the drive's write cache may hold data; `None`: it is empty.
    pub(super) fn dirty_until(&self) -> Option<Time> {
        self.handover.dirty_until(self.model.cache.destage_delay).filter(|&at| self.now < at)
    }

    /// Updates the contents of the drive's cache at a completion.
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
            // The flush covers the writes that had completed when it was sent.
            Kind::Flush if self.handover.dirty.is_some_and(|d| d.written <= sent.at) => self.handover.dirty = None,
            _ => {}
        }
    }

    /// Records, for a write about to be sent, the maximum time to write it back if the drive caches
    /// it: the move from the previous command, a revolution, the transfer.
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

    /// Returns the likely heads for a read and a write sent now. The predictor does not follow the
    /// drive's own writes: behind cached writes the head is at the end of the last one.
    pub(super) fn likely_heads(&mut self) -> (Head, Head) {
        let (read, write) = self.predictor.next_heads(&self.model, self.now);
        if self.predictor.is_sure() || !self.model.cache.write_back {
            return (read, write);
        }
        let (cylinder, surface) = self.handover.arm;
        let there = |head: Head| Head { cylinder, surface, ..head };
        (there(read), there(write))
    }

    /// Returns the heads from which ORDER chooses. A drive without a queue that has cached the last
    /// write starts the next command after writing that: from its end, whatever the angle is now.
    pub(super) fn heads_to_choose_from(&mut self) -> (Head, Head) {
        if self.predictor.is_sure() || !self.writes_back_in_order() {
            return self.predictor.next_heads(&self.model, self.now);
        }
        let (read, write) = self.likely_heads();
        let angle = self.handover.end_angle;
        (Head { angle, ..read }, Head { angle, ..write })
    }

    /// Returns whether the drive is writing back its last completed write, in order of arrival.
    fn writes_back_in_order(&self) -> bool {
        self.dirty_until().is_some() && !self.handover.orders() && self.predictor.last_kind() == Kind::Write
    }

    /// Returns the write that continues the one which such a drive is writing back.
    pub(super) fn cached_behind(&self) -> Option<u32> {
        let slot = self.pool.write_at(self.dispatch.lbn()).filter(|_| self.writes_back_in_order())?;
        (self.may_cache(self.pool.get(slot).request.fua) && self.may_go(slot)).then_some(slot)
    }

    /// Sets the maximum number of commands in flight now.
    pub(super) fn limit_outstanding(&mut self) {
        let quiet = self.dispatch.at_drive().is_empty();
        if let Some(since) = self.handover.quiet.take_if(|_| !quiet) {
            let wrote = self.now.since(since).saturating_sub(self.model.cache.destage_delay);
            self.handover.dirty = self.handover.dirty.and_then(|d| d.after(wrote));
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
