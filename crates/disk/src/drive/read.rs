//! The phases of a read: cache lookup, media and bus.

use crate::command::{Completion, Kind, Outcome};
use crate::drive::cache::{Found, State};
use crate::drive::mechanism::{Pass, Stretch};
use crate::drive::{AfterRead, Busy, Drive, RETRY_TURNS, Waiting};
use crate::read_ahead;
use crate::time::{Dur, Time};

impl Drive {
    pub(super) fn start_read(&mut self, waiting: Waiting, at: Time, waited: bool) {
        let (lbn, end) = (waiting.command.lbn, waiting.command.lbn + waiting.command.count as u64);
        self.sync_stream(at);
        if self.cache.exists() {
            match self.cache.look_up(lbn, end) {
                Found::Full(i) => return self.read_hit(&waiting, at, waited, i, true),
                // Some of the rest is unreadable: the miss path retries and reports it.
                Found::Partial(i) if self.readable_to(self.cache.get(i).end, end, at) == end => {
                    return self.read_hit(&waiting, at, waited, i, false);
                }
                Found::Partial(_) => {}
                // The prefetch reads it next, or continues for it because it was queued
                // (`Drive::continuation_end`).
                Found::Miss
                    if (waited || !self.mech.disksim_exact && lbn < self.stream.limit)
                        && self.stream.running
                        && self.continues(&waiting.command, self.stream.segment) =>
                {
                    let i = self.stream.segment;
                    if self.readable_to(lbn, end, at) == end {
                        return self.read_hit(&waiting, at, waited, i, false);
                    }
                }
                Found::Miss => {}
            }
        }
        self.read_miss(&waiting, at, waited);
    }

    fn read_miss(&mut self, waiting: &Waiting, at: Time, waited: bool) {
        let command = waiting.command;
        let (lbn, count) = (command.lbn, command.count as u64);
        let end = lbn + count;
        let overhead = self.by_last(self.overheads.read_miss);
        let stop = self.stop_stream(at);
        let mut begin = waiting.arrived + overhead;
        if waited {
            begin = begin.max(at + self.queued_overhead(Kind::Read));
        }
        begin += stop + self.mech.recalibration(at);
        let segment = self.cache.take_for_read(lbn);
        self.stretches.clear();
        let mut times = self.mech.pass(&Pass::read(lbn, count, begin), &mut self.stretches);
        if !self.mech.faults.is_empty()
            && let Some(bad) = self.mech.faults.unreadable(lbn, count, at)
        {
            let retries = Dur(self.mech.spindle.rotation().period().0 * RETRY_TURNS as u64);
            times.end += retries;
            self.free_at = times.end;
            if let Some(i) = segment {
                self.cache.filled(i);
            }
            self.busy = Busy::Other;
            self.note_read(end);
            return self.finish(command.id, Outcome::MediaError { lbn: bad }, times.end, Some(times));
        }
        let (known_from, known_to, tail) = self.passed_besides(lbn, end);
        if let Some(i) = segment {
            self.cache.set_range(i, known_from, known_to);
        }

        // Bus phase: data flows once the watermark is reached.
        let wanted = self.cache_spec.read_watermark(count);
        let ready = self.in_buffer(lbn, lbn + wanted, end) + self.overheads.reselect + self.overheads.data_preparation;
        let ready = if self.never_disconnect {
            waiting.arrived.max(if waited { at } else { Time::ZERO }) + overhead + self.overheads.data_preparation
        } else {
            ready
        };
        let (bus_begin, bus_end) = self.bus_to_host(lbn, end, ready, wanted);
        let finished = bus_end + self.overheads.read_completion;
        let sequential = lbn == self.last_read_end;
        let delays = self.delays_for_prefetch();
        self.note_read(end);

        self.free_at = times.end;
        self.busy = match segment {
            None => Busy::Other,
            Some(i) => {
                let limit = self.prefetch_limit(known_from, end, sequential).min(tail).max(known_to);
                let known_to = if tail < u64::MAX && limit >= tail { self.track_end(end - 1) } else { 0 };
                let from = self.cache.get(i).end;
                Busy::Read(AfterRead { segment: i, lbn, request_end: end, end: from, limit, known_to, bus_begin })
            }
        };
        if delays && let Some(i) = segment {
            // The firmware treats the two reads as a sequential pattern and reads the track to its
            // end first. An unreadable sector ends this, and is never cached.
            let upto = self.readable_to(end, self.track_end(end - 1), at);
            if upto > end {
                let more = self.mech.pass(&Pass::ahead(end, upto - end, times.end), &mut self.stretches);
                self.free_at = more.end;
                self.hidden.transfer += more.end.since(times.end);
                self.cache.fill_to(i, upto);
                if let Busy::Read(after) = &mut self.busy {
                    after.end = after.end.max(upto);
                    after.limit = after.limit.max(upto);
                }
            }
        }
        if !self.cache_spec.keep_delivered
            && let Some(i) = segment
        {
            self.cache.drop_delivered(i, end);
        }
        self.finish_read(command.id, finished, count, Some(times));
    }

    fn read_hit(&mut self, waiting: &Waiting, at: Time, waited: bool, i: usize, full: bool) {
        let command = waiting.command;
        let (lbn, count) = (command.lbn, command.count as u64);
        let end = lbn + count;
        let o = self.overheads;
        let ready = if waited {
            let asked = waiting.arrived + self.by_last(o.read_miss) + self.by_last(o.read_disconnect);
            asked.max(at) + o.reselect + o.data_preparation
        } else {
            waiting.arrived + self.by_last(o.read_hit) + o.data_preparation
        };
        let sequential = lbn == self.last_read_end;
        self.cache.hit(i);
        self.stretches.clear();
        let mut times = None;
        if self.stream.running && self.stream.segment == i {
            // The prefetch continues, up to a later limit.
            let first = self.cache.get(i).first;
            let limit = self.prefetch_limit(first, end, sequential).max(end).max(self.stream.limit);
            let limit = self.readable_to(self.stream.limit, limit, at);
            self.extend_stream(limit);
            self.stretches.extend_from_slice(&self.stream.stretches);
            self.hidden.transfer += self.passing(lbn, end);
            if !full {
                self.free_at = self.in_buffer(lbn, end, end);
                self.busy = Busy::Streaming;
            }
        } else {
            let from = self.cache.get(i).end;
            if !full || (self.cache_spec.prefetch_on_idle_hit && from < self.capacity()) {
                let stop = self.stop_stream(at);
                let begin = if waited { at } else { waiting.arrived };
                let begin = begin + self.by_last(o.read_miss) + stop;
                let limit = match self.cache.get(i).state {
                    // A segment that waits to be written is not extended: only the rest of the
                    // request is read.
                    State::Writing => end,
                    _ => self.prefetch_limit(self.cache.get(i).first, end, sequential).max(end),
                };
                let limit = self.readable_to(from, limit, at);
                if limit > from {
                    self.cache.refill(i);
                    self.stream.stretches.clear();
                    let upto = limit - from;
                    self.stream.from = (begin, self.mech.arm);
                    let work = self.mech.pass(&Pass::ahead(from, upto, begin), &mut self.stream.stretches);
                    self.stream.segment = i;
                    self.stream.limit = limit;
                    self.stream.known_to = 0;
                    self.stream.running = self.cache.get(i).state == State::Reading;
                    self.stretches.extend_from_slice(&self.stream.stretches);
                    if !full {
                        self.free_at = self.in_buffer(lbn, end, end);
                        self.busy = Busy::Streaming;
                        times = Some(crate::command::MediaTimes { end: self.free_at, ..work });
                    }
                }
            } else {
                self.stop_stream(at);
            }
        }
        let (_, bus_end) = self.bus_to_host(lbn, end, ready, 1);
        self.note_read(end);
        self.last_read_track = self.mech.model.geometry.track_of(end - 1).map(|t| (t.cylinder, t.surface));
        if !self.cache_spec.keep_delivered {
            self.cache.drop_delivered(i, end);
        }
        self.finish_read(command.id, bus_end + o.read_completion, count, times);
    }

    fn finish_read(&mut self, id: u64, at: Time, count: u64, media: Option<crate::command::MediaTimes>) {
        let late = self.mech.noise.overlap_delay(count * self.mech.model.sector_bytes as u64);
        let late = late + self.mech.noise.completion_delay();
        self.done.push(Completion { id, outcome: Outcome::Ok, at: at + late, media });
    }

    fn note_read(&mut self, end: u64) {
        self.last_was_read = true;
        self.last_read_end = end;
        self.last_read_track = Some(self.mech.arm);
    }

    /// Returns the time in which the part of `from..to` covered by the stretches passes under the
    /// head.
    fn passing(&self, from: u64, to: u64) -> Dur {
        let part = |stretch: &Stretch| {
            let (a, b) = (stretch.lbn.max(from), stretch.end_lbn().min(to));
            if a < b {
                stretch.passed((b - stretch.lbn) as u32).since(stretch.passed((a - stretch.lbn) as u32))
            } else {
                Dur::ZERO
            }
        };
        self.stretches.iter().map(part).sum()
    }

    /// Returns the time at which all of `from..to` is in the buffer, according to the current
    /// stretches; what no stretch covers is already there.
    fn in_buffer(&self, from: u64, to: u64, end: u64) -> Time {
        let mut t = Time::ZERO;
        for stretch in &self.stretches {
            let (a, b) = (stretch.lbn.max(from), stretch.end_lbn().min(to).min(end));
            if a < b {
                t = t.max(stretch.passed((b - stretch.lbn) as u32));
            }
        }
        t
    }

    /// Reserves the bus for `lbn..end`, with data available from `ready` on and as the stretches
    /// deliver it. Sector i finishes at finish(i) = max(finish(i-1), in-buffer(i)) + b; in-buffer
    /// is linear along a stretch, so the maximum occurs at its first or last sector.
    fn bus_to_host(&mut self, lbn: u64, end: u64, ready: Time, chunk: u64) -> (Time, Time) {
        let count = end - lbn;
        let overhead = self.overheads.reselect + self.overheads.data_preparation;
        if !self.hold_for_reads && overhead > Dur::ZERO {
            let finish = |begin: Time| self.chunked(lbn, end, begin, chunk, overhead);
            let end_at = finish(ready);
            return self.bus.promise(self.now, ready, |t| end_at + t.saturating_since(ready));
        }
        let bus = &self.bus;
        let mut least = Time::ZERO;
        for stretch in &self.stretches {
            let (a, b) = (stretch.lbn.max(lbn), stretch.end_lbn().min(end));
            if a < b {
                let first = stretch.passed((a - stretch.lbn) as u32 + 1) + bus.read_time(end - a);
                let last = stretch.passed((b - stretch.lbn) as u32) + bus.read_time(end - b + 1);
                least = least.max(first).max(last);
            }
        }
        let length = bus.read_time(count);
        self.bus.promise(self.now, ready, |begin| (begin + length).max(least))
    }

    /// The end of a transfer by a drive that disconnects whenever its buffer runs empty, and pays
    /// to reconnect.
    fn chunked(&self, lbn: u64, end: u64, begin: Time, chunk: u64, overhead: Dur) -> Time {
        let sector = self.bus.read_time(1);
        let mut t = begin;
        let mut at = lbn;
        while at < end {
            if self.in_buffer(at, at + 1, end) > t {
                t = self.in_buffer(at, (at + chunk).min(end), end).max(t) + overhead;
            }
            t += sector;
            at += 1;
        }
        t
    }

    /// Returns what else of the track passed under the head during a read (for drives that keep
    /// it): the first and one past the last known LBN, and the LBN from which the rest of the track
    /// is known, too (`u64::MAX`: none).
    fn passed_besides(&self, lbn: u64, end: u64) -> (u64, u64, u64) {
        let none = (lbn, end, u64::MAX);
        if !self.keep_passing || self.stretches.is_empty() {
            return none;
        }
        let first = self.stretches[0];
        let Some(track) = self.mech.model.geometry.track_of(lbn) else {
            return none;
        };
        let track_end = track.first_lbn + track.lbns as u64;
        if first.lbn > lbn {
            // The head landed inside the range and waited for its beginning: the whole track has
            // passed.
            return if end <= track_end { (track.first_lbn, track_end, u64::MAX) } else { none };
        }
        let waited = first.start.saturating_since(first.arrived).0;
        let passed = (((waited as u128) << 32) / first.sector_fx.max(1) as u128) as u64;
        let before = lbn - track.first_lbn;
        if passed <= before {
            return (lbn - passed, end, u64::MAX);
        }
        let tail = track_end.saturating_sub(passed - before);
        if end <= track_end { (track.first_lbn, end, tail.max(end)) } else { (track.first_lbn, end, u64::MAX) }
    }

    /// Returns one past the last LBN of the track with `lbn`.
    pub(super) fn track_end(&self, lbn: u64) -> u64 {
        read_ahead::track_end(&self.mech.model.geometry, lbn)
    }
}
