//! The virtual drive: a state machine whose inputs are commands and time, and whose outputs are
//! completions.
//!
//! One controller works on one command at a time; its bus phase overlaps the next command's media
//! phase. A read may be followed by a prefetch, a cached write by a write-back; both run in the
//! background and may still be running when the next command arrives. Times are computed in closed
//! form when a command starts, so a command costs a few hundred nanoseconds; only where the bus
//! delays the media is a run examined sector by sector.
//!
//! * [`Drive::submit`] takes a command, [`Drive::next_event`] returns the time of the next event,
//!   [`Drive::advance`] advances to it and returns completions.
//! * `queue.rs` selects the next command, `read.rs` and `write.rs` hold the phases of a command,
//!   `mechanism.rs` arm and platter, `prefetch.rs` and `stream.rs` prefetch, `cache.rs` the
//!   segments, `bus.rs` the bus, `noise.rs` and `faults.rs` noise and faults, `injecting.rs` faults
//!   that are injected while a drive is used.

mod bus;
mod cache;
mod config;
mod faults;
mod injecting;
mod mechanism;
mod noise;
mod prefetch;
mod queue;
mod read;
mod spindle;
mod stream;
mod write;

pub use config::{DriveConfig, DriveNoise};
pub use faults::{Fault, RETRY_TURNS};

use crate::command::{Command, Completion, Kind, MediaTimes, Outcome, SubmitError};
use crate::error::ModelError;
use crate::model::{Model, Place};
use crate::profile::{ByLast, CacheSpec, Electronics, FirmwareOrder, Overheads, Profile};
use crate::time::{Dur, Time};

use bus::Bus;
use cache::Cache;
use faults::Faults;
use mechanism::{Mechanism, Stretch};
use noise::Noise;
use spindle::Spindle;
use stream::Stream;

/// A command in the drive's queue.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    command: Command,
    arrived: Time,
    /// Write-through: when the bus starts to transfer its data.
    fed: Option<Time>,
    place: Option<Place>,
}

/// A cached write not yet on the media.
#[derive(Clone, Copy, Debug)]
struct Dirty {
    lbn: u64,
    count: u32,
    segment: Option<usize>,
    place: Option<Place>,
    fed: Time,
}

impl Dirty {
    fn command(&self) -> Command {
        Command { id: 0, kind: Kind::Write, lbn: self.lbn, count: self.count, fua: false }
    }
}

/// The mechanism's activity until `Drive::free_at`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Busy {
    /// Idle.
    No,
    /// A read; a prefetch may follow.
    Read(AfterRead),
    /// A hit on a running prefetch.
    Streaming,
    /// An activity without follow-up.
    Other,
    /// A write, or the write-back of a cached one, in this segment.
    Write(Option<usize>),
}

/// Parameters of the prefetch after a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AfterRead {
    segment: usize,
    /// The request.
    lbn: u64,
    /// One past its last LBN.
    request_end: u64,
    /// One past the last LBN of its segment: the start of the prefetch.
    end: u64,
    limit: u64,
    known_to: u64,
    /// The bus phase of the read, which may delay the prefetch when the segment is full.
    bus_begin: Time,
}

/// Media work that no completion reports: write-backs, prefetched data that reads hit while the
/// prefetch ran, and tracks read to their end while commands waited. Other read-ahead is not
/// counted: the next command stops it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HiddenWork {
    /// Seeking.
    pub seek: Dur,
    /// Rotational latency.
    pub rotate: Dur,
    /// Transfer.
    pub transfer: Dur,
}

impl HiddenWork {
    /// Returns the work since `before`, an earlier state. Panics if it is a later one.
    pub fn since(&self, before: &HiddenWork) -> HiddenWork {
        HiddenWork {
            seek: self.seek - before.seek,
            rotate: self.rotate - before.rotate,
            transfer: self.transfer - before.transfer,
        }
    }
}

/// A virtual drive.
#[derive(Clone, Debug)]
pub struct Drive {
    mech: Mechanism,
    bus: Bus,
    cache: Cache,
    cache_spec: CacheSpec,
    overheads: Overheads,
    hold_for_reads: bool,
    never_disconnect: bool,
    order: FirmwareOrder,
    oldest_after: Dur,
    depth: usize,
    keep_passing: bool,

    now: Time,
    queue: Vec<Waiting>,
    done: Vec<Completion>,
    busy: Busy,
    free_at: Time,
    stream: Stream,
    stretches: Vec<Stretch>,
    dirty: Vec<Dirty>,
    /// When cached writes are written back unless a command arrives before; `None`: not determined.
    destage_at: Option<Time>,
    /// The running write-back, which a contiguous write may extend.
    write_back: Option<WriteBack>,
    /// First LBN and end of what the mechanism is writing.
    writing: Option<(u64, u64)>,
    /// When the last hang ends.
    hung_until: Time,
    last_was_read: bool,
    last_read_end: u64,
    last_read_track: Option<(u32, u16)>,
    hidden: HiddenWork,
}

/// A write-back in progress.
#[derive(Clone, Copy, Debug)]
struct WriteBack {
    segment: usize,
    lbn: u64,
    end: u64,
    times: MediaTimes,
}

impl Drive {
    /// Creates a drive at time zero with the head on cylinder 0, surface 0, angle 0.
    ///
    /// # Errors
    /// As [`Model::new`].
    pub fn new(profile: &Profile, config: DriveConfig) -> Result<Drive, ModelError> {
        let mut model = Model::new(profile)?;
        let electronics: &Electronics = match &profile.rig {
            Some(rig) if config.use_rig => rig,
            _ => &profile.electronics,
        };
        if config.disksim_exact {
            model.mechanics.read_on_arrival = false;
            model.mechanics.write_on_arrival = false;
        }
        let spec = config.noise.of(profile);
        let noise = Noise::new(spec, config.seed);
        let spindle = Spindle::new(model.mechanics.rotation, spec.speed_error_ppb, spec.speed_drift_ppb > 0);
        let faults = Faults::new(config.faults);
        let keep_passing = profile.mechanics.keep_passing && !config.disksim_exact;
        Ok(Drive {
            mech: Mechanism::new(model, spindle, noise, faults, config.disksim_exact),
            bus: Bus::new(&electronics.bus, profile.sector_bytes),
            cache: Cache::new(&electronics.cache),
            cache_spec: CacheSpec {
                same_track_prefetch_delays: electronics.cache.same_track_prefetch_delays && !config.inside,
                ..electronics.cache
            },
            overheads: electronics.acting_overheads(),
            hold_for_reads: electronics.bus.hold_for_reads || electronics.bus.never_disconnect,
            never_disconnect: electronics.bus.never_disconnect,
            order: electronics.queue.order,
            oldest_after: electronics.queue.oldest_after,
            depth: electronics.queue.depth.max(1) as usize,
            keep_passing,
            now: Time::ZERO,
            queue: Vec::with_capacity(64),
            done: Vec::with_capacity(64),
            busy: Busy::No,
            free_at: Time::ZERO,
            stream: Stream::default(),
            stretches: Vec::with_capacity(16),
            dirty: Vec::new(),
            destage_at: None,
            write_back: None,
            writing: None,
            hung_until: Time::ZERO,
            last_was_read: true,
            last_read_end: u64::MAX,
            last_read_track: None,
            hidden: HiddenWork::default(),
        })
    }

    /// Returns the number of usable sectors.
    pub fn capacity(&self) -> u64 {
        self.mech.model.geometry.capacity()
    }

    /// Returns the queue depth.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Returns the true geometry and mechanics, without noise.
    pub fn truth(&self) -> &Model {
        &self.mech.model
    }

    /// Returns the number of outstanding commands: queued, in service, or not yet reported.
    pub fn outstanding(&self) -> usize {
        self.queue.len() + self.done.len()
    }

    /// Returns the media work so far that no completion reports.
    pub fn hidden_work(&self) -> HiddenWork {
        self.hidden
    }

    /// Submits a command. Every event due before `now` must have been taken with
    /// [`Drive::advance`]. A dead drive accepts it and completes it with [`Outcome::Dead`].
    ///
    /// # Errors
    /// The drive's queue is full; the range is empty, or extends beyond the last sector.
    ///
    /// # Panics
    /// `now` is before an earlier call's.
    pub fn submit(&mut self, command: Command, now: Time) -> Result<(), SubmitError> {
        assert!(now >= self.now, "time went back: {now} after {}", self.now);
        if self.outstanding() >= self.depth {
            return Err(SubmitError::Full { depth: self.depth as u32 });
        }
        let capacity = self.capacity();
        let end = command.lbn.checked_add(command.count as u64);
        if command.kind != Kind::Flush && (command.count == 0 || end.is_none_or(|e| e > capacity)) {
            return Err(SubmitError::OutOfRange { lbn: command.lbn, count: command.count, capacity });
        }
        self.free_up(now);
        self.now = now;
        self.destage_at = None;
        self.mech.spindle.wander_to(now, &mut self.mech.noise);
        while let Some(on) = self.mech.faults.write_cache(now) {
            self.switch_write_cache(on, now);
        }
        if self.mech.faults.dead(now) {
            self.finish(command.id, Outcome::Dead, now, None);
            return Ok(());
        }
        // A write that arrives after a flush must not extend what the flush waits for.
        let flushing = self.queue.iter().any(|w| w.command.kind == Kind::Flush);
        if !flushing && !self.hangs(now) && (self.try_append(&command, now) || self.try_cached_write(&command, now)) {
            return Ok(());
        }
        let arrived = now + self.overheads.per_request;
        let mut waiting = Waiting { command, arrived, fed: None, place: None };
        if command.kind == Kind::Write && self.completes_on_media(&command) {
            waiting.fed = Some(self.feed_through(&command, now));
        }
        let ready = self.dirty.is_empty() || !self.needs_destage(&command);
        if ready && self.busy == Busy::No && self.queue.is_empty() {
            self.start(waiting, now, false);
        } else {
            if self.order == FirmwareOrder::Sptf && command.kind != Kind::Flush {
                waiting.place = self.mech.model.place(command.lbn, command.count, command.kind);
            }
            self.queue.push(waiting);
            if self.busy == Busy::No {
                self.next_work(now);
            }
        }
        Ok(())
    }

    /// Returns the time of the next event that a host could observe; `None` when there is none
    /// without a further command.
    pub fn next_event(&self) -> Option<Time> {
        let t = self.done.iter().map(|c| c.at).min();
        let waits = !self.queue.is_empty() || !self.dirty.is_empty();
        let own = self.next_own_event().filter(|_| waits);
        t.into_iter().chain(own).min()
    }

    /// Advances to `now`; returns a due completion, or `None` when no more are due. Call until
    /// `None`.
    ///
    /// # Panics
    /// `now` is before an earlier call's.
    pub fn advance(&mut self, now: Time) -> Option<Completion> {
        assert!(now >= self.now, "time went back: {now} after {}", self.now);
        loop {
            let first = (0..self.done.len()).min_by_key(|&i| (self.done[i].at, i));
            let due = first.map_or(Time::NEVER, |i| self.done[i].at);
            if let Some(at) = self.next_own_event().filter(|&at| at <= now && at <= due) {
                self.release(at);
                continue;
            }
            if due <= now {
                self.now = self.now.max(due);
                let dead = self.mech.faults.dead(due);
                return first.map(|i| self.done.remove(i)).map(|c| match dead {
                    true => Completion { outcome: Outcome::Dead, ..c },
                    false => c,
                });
            }
            self.now = now;
            return None;
        }
    }

    /// Ends the mechanism's activities that are due by `now`.
    fn free_up(&mut self, now: Time) {
        while let Some(at) = self.next_own_event().filter(|&at| at <= now) {
            self.release(at);
        }
    }

    /// Returns when the mechanism's activity ends, or when the next one begins without a command.
    fn next_own_event(&self) -> Option<Time> {
        if self.busy == Busy::No { self.destage_at } else { Some(self.free_at) }
    }

    /// Ends the mechanism's activity at `at`, records its effects, and starts the next one.
    fn release(&mut self, at: Time) {
        self.now = self.now.max(at);
        self.mech.spindle.wander_to(at, &mut self.mech.noise);
        match std::mem::replace(&mut self.busy, Busy::No) {
            Busy::No => {}
            Busy::Read(after) => {
                let continuation = self.continuation_end(after.segment, at);
                if continuation.is_some() || (self.queue.is_empty() && !self.is_destage_due(at)) {
                    let after = match continuation {
                        Some(end) if end > after.limit => AfterRead { limit: end, known_to: 0, ..after },
                        _ => after,
                    };
                    self.begin_stream(after, at);
                } else {
                    self.cache_filled(after);
                }
            }
            Busy::Streaming if self.stream.running => {
                self.cache.fill_to(self.stream.segment, self.stream.reached(at));
                if let Some(end) = self.continuation_end(self.stream.segment, at) {
                    self.extend_stream(self.readable_to(self.stream.limit, end, at));
                }
            }
            Busy::Streaming | Busy::Other => {}
            Busy::Write(segment) => {
                self.write_back = None;
                self.writing = None;
                if let Some(i) = segment {
                    self.cache.written(i);
                }
            }
        }
        self.next_work(at);
    }

    /// Starts a command at `at`, when the mechanism is idle or prefetching; `waited`: it was busy
    /// when the command arrived.
    fn start(&mut self, mut waiting: Waiting, at: Time, waited: bool) {
        if !self.mech.faults.is_empty() {
            if self.mech.faults.dead(at) {
                return self.finish(waiting.command.id, Outcome::Dead, at, None);
            }
            if self.hang(at) {
                // All commands wait, starting with this one.
                let c = waiting.command;
                if c.kind != Kind::Flush {
                    waiting.place = self.mech.model.place(c.lbn, c.count, c.kind);
                }
                self.queue.insert(0, waiting);
                return;
            }
        }
        match waiting.command.kind {
            Kind::Read => self.start_read(waiting, at, waited),
            Kind::Write => self.start_write(waiting, at, waited),
            Kind::Flush => {
                let at = at.max(waiting.arrived) + self.by_last(self.overheads.write_hit);
                self.finish(waiting.command.id, Outcome::Ok, at, None);
            }
        }
    }

    /// Returns the figure of a pair that applies after the last command.
    #[inline]
    fn by_last(&self, pair: ByLast) -> Dur {
        if self.last_was_read { pair.after_read } else { pair.after_write }
    }

    /// Returns the overhead between the last command and a queued one of `kind`.
    fn queued_overhead(&self, kind: Kind) -> Dur {
        let q = &self.overheads.queued;
        match (self.last_was_read, kind.is_read()) {
            (true, true) => q.read_read,
            (true, false) => q.read_write,
            (false, true) => q.write_read,
            (false, false) => q.write_write,
        }
    }

    /// Finishes a command; the host is notified at `at`, or later by the completion noise.
    fn finish(&mut self, id: u64, outcome: Outcome, at: Time, media: Option<MediaTimes>) {
        let at = at + self.mech.noise.completion_delay();
        self.done.push(Completion { id, outcome, at, media });
    }
}
