//! The prefetch of a drive: how far it reads, its beginning, extension and end.

use crate::drive::mechanism::{Pass, Stretch};
use crate::drive::{AfterRead, Drive};
use crate::read_ahead;
use crate::time::{Dur, Time};

impl Drive {
    /// Updates the segment being prefetched.
    pub(super) fn sync_stream(&mut self, now: Time) {
        if self.stream.running {
            self.stream.forget_passed(now);
            self.cache.fill_to(self.stream.segment, self.stream.reached(now));
            if self.stream.end() <= now {
                self.stream.running = false;
                self.cache.filled(self.stream.segment);
            }
        }
    }

    /// Stops a running prefetch for a command that arrives at `now`; returns the time it takes.
    pub(super) fn stop_stream(&mut self, now: Time) -> Dur {
        if !self.stream.running {
            return Dur::ZERO;
        }
        self.stream.running = false;
        let Some(stopped) = self.stream.stop(now, self.cache_spec.stop_in_sector) else {
            return Dur::ZERO;
        };
        self.cache.fill_to(self.stream.segment, stopped.end);
        self.cache.filled(self.stream.segment);
        self.mech.arm = stopped.arm;
        stopped.at.since(now)
    }

    /// Returns the limit of the prefetch after a read that ends at `end`, in a segment that begins
    /// at `first`.
    pub(super) fn prefetch_limit(&self, first: u64, end: u64, sequential: bool) -> u64 {
        read_ahead::limit(&self.mech.model.geometry, &self.cache_spec, first, end, sequential)
    }

    /// Whether this is the second successive read on one track, on a drive that then prefetches
    /// first.
    pub(super) fn delays_for_prefetch(&self) -> bool {
        self.cache_spec.same_track_prefetch_delays && self.last_read_track == Some(self.mech.arm)
    }

    /// Returns the end of the part of `from..to` that can be read ahead: the first unreadable
    /// sector.
    pub(super) fn readable_to(&self, from: u64, to: u64, now: Time) -> u64 {
        if self.mech.faults.is_empty() || from >= to {
            return to;
        }
        self.mech.faults.unreadable(from, to - from, now).unwrap_or(to)
    }

    /// Starts the prefetch when a read has left the media and no command waits.
    pub(super) fn begin_stream(&mut self, mut after: AfterRead, at: Time) {
        after.limit = self.readable_to(after.end, after.limit, at);
        if !self.mech.faults.is_empty() {
            after.known_to = 0;
        }
        if after.limit <= after.end {
            return self.cache.filled(after.segment);
        }
        self.stream.stretches.clear();
        self.stream.segment = after.segment;
        self.stream.limit = after.limit;
        self.stream.known_to = after.known_to;
        self.stream.running = true;
        self.stream.from = (at, self.mech.arm);
        let count = after.limit - after.end;
        self.mech.pass(&Pass::ahead(after.end, count, at), &mut self.stream.stretches);
        self.hold_back(after.lbn, after.request_end, after.bus_begin);
    }

    /// Ends the filling of a segment without a prefetch.
    pub(super) fn cache_filled(&mut self, after: AfterRead) {
        self.cache.filled(after.segment);
    }

    /// Extends a running prefetch to `limit`.
    pub(super) fn extend_stream(&mut self, limit: u64) {
        let mut from = self.stream.limit;
        if limit <= from {
            return;
        }
        // The last stretch is lengthened, not followed by a new one: each new one would begin a
        // nanosecond later by rounding, and after many short reads its sector would have passed.
        if let Some(stretch) = self.stream.stretches.last_mut().filter(|_| self.mech.faults.is_empty()) {
            let whole = u32::try_from(limit - stretch.lbn).unwrap_or(u32::MAX);
            let run = self.mech.model.geometry.run_at(stretch.lbn, whole).filter(|r| r.span == r.count);
            stretch.count = run.map_or(stretch.count, |r| r.count.max(stretch.count));
            from = stretch.end_lbn();
        }
        if limit > from {
            let begin = self.stream.end();
            self.mech.pass(&Pass::ahead(from, limit - from, begin), &mut self.stream.stretches);
        }
        self.stream.limit = limit;
        self.stream.known_to = 0;
    }

    /// While its read is being delivered, a prefetch may be one segment ahead of the next sector to
    /// be sent; where it reaches that limit it loses a revolution.
    fn hold_back(&mut self, lbn: u64, end: u64, bus_begin: Time) {
        let size = self.cache_spec.segment_sectors as u64;
        let bus_end = bus_begin + self.bus.read_time(end - lbn);
        let turn = self.mech.spindle.rotation().period();
        let mut i = 0;
        let mut shift = Dur::ZERO;
        while i < self.stream.stretches.len() {
            let mut stretch = self.stream.stretches[i];
            stretch.start += shift;
            if i > 0 {
                stretch.arrived += shift;
            }
            self.stream.stretches[i] = stretch;
            if stretch.start >= bus_end {
                if shift == Dur::ZERO {
                    return;
                }
                i += 1;
                continue;
            }
            let late = (0..stretch.count).find(|&n| {
                let sector = stretch.lbn + n as u64;
                let must_be_sent = (sector + 1).saturating_sub(size);
                must_be_sent > lbn && {
                    let sent = bus_begin + self.bus.read_time(must_be_sent.min(end) - lbn);
                    stretch.passed(n) < sent
                }
            });
            if let Some(n) = late {
                let rest = Stretch {
                    lbn: stretch.lbn + n as u64,
                    count: stretch.count - n,
                    start: stretch.passed(n) + turn,
                    ..stretch
                };
                self.stream.stretches[i].count = n;
                if n == 0 {
                    self.stream.stretches[i] = rest;
                } else {
                    self.stream.stretches.insert(i + 1, Stretch { start: stretch.passed(n), ..rest });
                }
                shift += turn;
                if n == 0 {
                    continue;
                }
            }
            i += 1;
        }
    }
}
