//! The phases of a write: through to the media, or into the cache with a later write-back.

use crate::command::{Command, Kind, MediaTimes, Outcome};
use crate::drive::mechanism::{Feed, Pass, Stretch};
use crate::drive::{Busy, Dirty, Drive, Waiting, WriteBack};
use crate::profile::FirmwareOrder;
use crate::time::Time;

impl Drive {
    /// Whether a write completes on the media: without a write-back cache, and when no segment can
    /// hold it.
    pub(super) fn completes_on_media(&self, command: &Command) -> bool {
        let spec = &self.cache_spec;
        let fua = command.fua && !self.mech.faults.ignores_fua();
        fua || !spec.write_back || !self.cache.exists() || command.count > spec.segment_sectors
    }

    /// Whether the drive can cache several writes, as all since about 2005.
    fn many_dirty(&self) -> bool {
        self.cache_spec.write_back && self.cache_spec.dirty_segments > 1 && self.cache.exists()
    }

    /// Switches the write cache on or off. Its contents are written back as before.
    pub(super) fn switch_write_cache(&mut self, on: bool, now: Time) {
        self.cache_spec.write_back = on;
        // Writes that waited for room in the cache transfer their data now.
        for i in 0..self.queue.len() {
            let Waiting { command, fed, .. } = self.queue[i];
            if command.kind == Kind::Write && fed.is_none() && self.completes_on_media(&command) {
                self.queue[i].fed = Some(self.feed_through(&command, now));
            }
        }
    }

    /// Write-through: the bus transfer of the data begins when the command has arrived.
    pub(super) fn feed_through(&mut self, command: &Command, now: Time) -> Time {
        let asked = now + self.overheads.per_request;
        let ready = asked + self.by_last(self.overheads.write_miss) + self.overheads.data_preparation;
        let length = self.bus.write_time(command.count as u64);
        self.bus.promise(now, ready, |t| t + length).0
    }

    fn feed(&self, command: &Command, begin: Time) -> Feed {
        Feed {
            begin,
            sector_ps: self.bus.write_sector_ps(),
            lbn: command.lbn,
            burst: self.cache_spec.write_burst(command.count),
            count: command.count,
        }
    }

    /// Allocates a segment for a write. The segment of a running prefetch is neither taken nor
    /// invalidated, and keeps its data.
    fn take_segment(&mut self, lbn: u64, end: u64, now: Time) -> Option<usize> {
        self.sync_stream(now);
        self.cache.take_for_write(lbn, end)
    }

    pub(super) fn start_write(&mut self, waiting: Waiting, at: Time, waited: bool) {
        if self.completes_on_media(&waiting.command) {
            self.write_through(&waiting, at, waited);
        } else {
            self.write_cached(&waiting, at, waited);
        }
    }

    fn write_through(&mut self, waiting: &Waiting, at: Time, waited: bool) {
        let command = waiting.command;
        let (lbn, count) = (command.lbn, command.count as u64);
        let segment = self.take_segment(lbn, lbn + count, at);
        let stop = self.stop_stream(at);
        let mut begin = waiting.arrived + self.by_last(self.overheads.write_miss);
        if waited {
            begin = begin.max(at + self.queued_overhead(Kind::Write));
        }
        begin += stop + self.mech.recalibration(at);
        let fed = waiting.fed.expect("a write-through was promised the bus on arrival");
        let feed = self.feed(&command, fed);
        self.stretches.clear();
        let least = self.overheads.minimum_seek;
        let job = Pass { least, feed: Some(&feed), ..Pass::write(lbn, count, begin) };
        let times = self.mech.pass(&job, &mut self.stretches);
        self.mech.faults.written(lbn, count, at);
        self.busy = Busy::Write(segment);
        self.writing = Some((lbn, lbn + count));
        self.free_at = times.end;
        self.note_write();
        let data_in = fed + self.bus.write_time(count);
        let done = times.end.max(data_in) + self.overheads.reselect + self.overheads.write_completion;
        self.finish(command.id, Outcome::Ok, done, Some(times));
    }

    /// A cached write on a drive that caches one at a time: it completes when its data is in the
    /// cache, and the arm starts at once.
    fn write_cached(&mut self, waiting: &Waiting, at: Time, waited: bool) {
        let command = waiting.command;
        let (lbn, count) = (command.lbn, command.count as u64);
        let o = self.overheads;
        let hit = self.by_last(o.write_hit);
        let segment = self.take_segment(lbn, lbn + count, at);
        let stop = self.stop_stream(at);
        let (ready, begin) = if waited {
            let asked = waiting.arrived + hit;
            ((asked + o.write_disconnect).max(at) + o.reselect + o.data_preparation, asked.max(at))
        } else {
            (waiting.arrived + hit + o.data_preparation, waiting.arrived + hit)
        };
        let length = self.bus.write_time(count);
        let (fed, in_cache) = self.bus.promise(self.now, ready, |t| t + length);
        let feed = self.feed(&command, fed);
        let begin = begin + stop + self.mech.recalibration(at);
        self.stretches.clear();
        let job = Pass { feed: Some(&feed), ..Pass::write(lbn, count, begin) };
        let times = self.mech.pass(&job, &mut self.stretches);
        self.mech.faults.written(lbn, count, at);
        self.hide(&times);
        self.busy = Busy::Write(segment);
        self.writing = Some((lbn, lbn + count));
        self.free_at = times.end;
        self.write_back = segment.map(|segment| WriteBack { segment, lbn, end: lbn + count, times });
        self.note_write();
        self.finish(command.id, Outcome::Ok, in_cache + o.write_completion, None);
    }

    /// Appends a write that continues the one being written back: the host does not wait. The
    /// write-back continues into it until it catches up with the arriving data; the appended range
    /// is then written again as a whole.
    pub(super) fn try_append(&mut self, command: &Command, now: Time) -> bool {
        let Some(wb) = self.write_back else {
            return false;
        };
        let room = self.cache_spec.segment_sectors as u64;
        if command.kind != Kind::Write
            || self.completes_on_media(command)
            || !self.cache_spec.combine_sequential_writes
            || self.many_dirty()
            || self.queue.iter().any(|w| w.command.kind != Kind::Read)
            || now >= self.free_at
            || command.lbn != self.cache.get(wb.segment).end
            || room <= command.lbn - self.next_to_write(&wb, now)
        {
            return false;
        }
        let (lbn, count) = (command.lbn, command.count as u64);
        let o = self.overheads;
        let asked = now + o.per_request + self.by_last(o.write_hit);
        let length = self.bus.write_time(count);
        let (fed, in_cache) = self.bus.promise(now, asked + o.data_preparation, |t| t + length);
        let feed = self.feed(command, fed);
        self.cache.append(wb.segment, lbn + count);
        self.cache.empty_overlapping(lbn, lbn + count, Some(wb.segment));
        // As far as possible without waiting for data.
        self.stretches.clear();
        let arm = self.mech.arm;
        let job = Pass { in_order: true, ..Pass::write(lbn, count, self.free_at) };
        let on = self.mech.pass(&job, &mut self.stretches);
        let mut caught_up = on.end;
        let mut reached = self.mech.arm;
        let mut before = (self.free_at, arm);
        'stretches: for stretch in &self.stretches {
            for i in 0..stretch.count {
                if feed.buffered_at(stretch.lbn + i as u64) > stretch.passed(i) {
                    (caught_up, reached) =
                        if i == 0 { before } else { (stretch.passed(i), (stretch.cylinder, stretch.surface)) };
                    break 'stretches;
                }
            }
            before = (stretch.end(), (stretch.cylinder, stretch.surface));
        }
        self.mech.arm = reached;
        self.stretches.clear();
        let begin = caught_up.max(asked);
        let times = self.mech.pass(&Pass::write(lbn, count, begin), &mut self.stretches);
        self.mech.faults.written(lbn, count, now);
        self.hide(&times);
        self.free_at = times.end;
        self.write_back = Some(WriteBack { lbn, end: lbn + count, times, ..wb });
        self.writing = self.writing.map(|(first, _)| (first, lbn + count));
        self.note_write();
        self.finish(command.id, Outcome::Ok, in_cache + o.write_completion, None);
        true
    }

    /// Returns the next LBN that a write-back has to write at `now`.
    fn next_to_write(&self, wb: &WriteBack, now: Time) -> u64 {
        let stretches: &[Stretch] = &self.stretches;
        let written =
            stretches.iter().filter(|l| l.lbn >= wb.lbn && l.end_lbn() <= wb.end).map(|l| l.count_at(now) as u64);
        if now >= wb.times.end { wb.end } else { (wb.lbn + written.sum::<u64>()).min(wb.end) }
    }

    /// Caches a write on a drive that can cache several, if there is room.
    pub(super) fn try_cached_write(&mut self, command: &Command, now: Time) -> bool {
        if command.kind != Kind::Write || !self.many_dirty() || self.completes_on_media(command) {
            return false;
        }
        if !self.has_room(command.count) {
            return false;
        }
        let (lbn, count) = (command.lbn, command.count as u64);
        let Some(segment) = self.cache.take_for_write(lbn, lbn + count) else {
            return false;
        };
        let o = self.overheads;
        let ready = now + o.per_request + self.by_last(o.write_hit) + o.data_preparation;
        let length = self.bus.write_time(count);
        let (fed, in_cache) = self.bus.promise(now, ready, |t| t + length);
        let place = if self.order == FirmwareOrder::Sptf {
            self.mech.model.place(lbn, command.count, Kind::Write)
        } else {
            None
        };
        self.mech.faults.written(lbn, count, now);
        self.dirty.push(Dirty { lbn, count: command.count, segment: Some(segment), place, fed });
        self.note_write();
        self.finish(command.id, Outcome::Ok, in_cache + o.write_completion, None);
        if self.busy == Busy::No && self.queue.is_empty() {
            self.destage_if_due(now);
        }
        true
    }

    fn dirty_sectors(&self) -> u64 {
        self.dirty.iter().map(|d| u64::from(d.count)).sum()
    }

    /// Returns whether the cache can hold another write of this number of sectors.
    fn has_room(&self, sectors: u32) -> bool {
        let spec = &self.cache_spec;
        let limit = u64::from(spec.dirty_sectors);
        self.dirty.len() < spec.dirty_segments as usize
            && (limit == 0 || self.dirty.is_empty() || self.dirty_sectors() + u64::from(sectors) <= limit)
    }

    /// Returns whether an idle drive writes back now; otherwise, with cached writes, determines
    /// when it does.
    pub(super) fn is_destage_due(&mut self, at: Time) -> bool {
        let spec = &self.cache_spec;
        if self.dirty.is_empty() {
            self.destage_at = None;
            return false;
        }
        let above = u64::from(spec.dirty_sectors) * u64::from(spec.destage_above_permille) / 1000;
        let is_full = spec.dirty_sectors > 0 && self.dirty_sectors() > above;
        at >= *self.destage_at.get_or_insert(at + spec.destage_delay) || is_full
    }

    /// Writes a cached write to the media if the idle drive does so now.
    pub(super) fn destage_if_due(&mut self, at: Time) {
        if self.is_destage_due(at)
            && let Some(d) = self.choose_dirty(at)
        {
            self.destage(d, at);
        }
    }

    /// Caches the queued writes in order of arrival, while there is room and up to a flush.
    pub(super) fn cache_waiting_writes(&mut self, now: Time) {
        let mut i = 0;
        while i < self.queue.len() {
            let command = self.queue[i].command;
            if command.kind == Kind::Flush {
                return;
            }
            if self.try_cached_write(&command, now) {
                self.queue.remove(i);
            } else if command.kind == Kind::Write && self.many_dirty() && !self.completes_on_media(&command) {
                return;
            } else {
                i += 1;
            }
        }
    }

    /// Selects the cached write to write back next.
    pub(super) fn choose_dirty(&mut self, at: Time) -> Option<usize> {
        if self.dirty.is_empty() {
            return None;
        }
        if self.order == FirmwareOrder::Fcfs {
            return Some(0);
        }
        let head = self.head(at);
        let model = &self.mech.model;
        let cost = |i: usize| {
            let d = &self.dirty[i];
            let place = d.place.as_ref().expect("translated on arrival");
            let positioning = model.access(&head, place, Kind::Write).positioning();
            // If its data is still being transferred, the head waits a revolution for it.
            let feed = self.feed(&d.command(), d.fed);
            let there = feed.buffered_at(d.lbn + u64::from(d.count) - 1) <= at + positioning;
            (if there { positioning } else { positioning + model.mechanics.rotation.period() }, i)
        };
        (0..self.dirty.len()).min_by_key(|&i| cost(i))
    }

    /// Writes a cached write to the media.
    pub(super) fn destage(&mut self, i: usize, at: Time) {
        let d = self.dirty.remove(i);
        let stop = self.stop_stream(at);
        let begin = at + stop + self.mech.recalibration(at);
        let feed = self.feed(&d.command(), d.fed);
        self.stretches.clear();
        let count = d.count as u64;
        let job = Pass { feed: Some(&feed), ..Pass::write(d.lbn, count, begin) };
        let times = self.mech.pass(&job, &mut self.stretches);
        self.hide(&times);
        self.busy = Busy::Write(d.segment);
        self.writing = Some((d.lbn, d.lbn + count));
        self.free_at = times.end;
    }

    fn note_write(&mut self) {
        self.last_was_read = false;
        self.last_read_end = u64::MAX;
        self.last_read_track = None;
    }

    fn hide(&mut self, times: &MediaTimes) {
        self.hidden.seek += times.seek();
        self.hidden.rotate += times.rotate();
        self.hidden.transfer += times.transfer();
    }
}
