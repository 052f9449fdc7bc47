//! The destination of a copy: a session in which blocks are written as they come.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::{Plan, Side, WINDOW, counts};
use crate::apps::error::AppError;
use crate::apps::job::Stage;
use crate::apps::link::{Link, MAX_SENT, answer, covered, look};
use crate::apps::pace::Floor;
use crate::apps::units::Units;
use crate::control::client::Session;
use crate::control::v1::session_call::Call;
use crate::control::v1::session_event::Event;
use crate::control::v1::{self, Answered, Data, Failed, Foreground, Kind, Register, TaskRef};

/// Bytes on their way beyond which there is little room for further blocks, so that tasks are
/// promoted: the last quarter holds what the source reads until these are written.
const LITTLE_ROOM: u64 = WINDOW / 4 * 3;
/// Tasks at a time.
const MAX_TASKS: usize = 512;
/// Blocks of one task. Blocks that come meanwhile go into the next task.
const MAX_BLOCKS: usize = 1024;
/// The interval at which tasks begin, and are promoted.
const TICK: Duration = Duration::from_millis(50);
/// Shortest interval between two flushes while there is more to write.
const FLUSH_EVERY: Duration = Duration::from_secs(1);
/// How long a task waits for gaps before it is promoted, if it is to be.
const PATIENCE: Duration = Duration::from_secs(2);
/// What has to be zero at both ends of a destination: there are partition tables and superblocks.
const END_BYTES: u64 = 128 << 10;

/// A block on its way to the destination.
pub(super) struct Block {
    pub(super) index: u64,
    pub(super) data: Bytes,
}

/// A block that was not written yet.
struct Pending {
    task: u64,
    data: Bytes,
    /// Sectors left.
    left: u64,
    /// Whether the server has its data.
    sent: bool,
}

/// A task that is not complete.
struct Waiting {
    since: Instant,
    promoted: bool,
    /// Its pending blocks.
    blocks: usize,
}

pub(super) struct Writer {
    link: Link,
    units: Units,
    sector: u64,
    what: String,
    blocks: UnboundedReceiver<Block>,
    stages: UnboundedSender<(u64, Stage)>,
    /// Whether tasks are promoted: always, or when there is little room for further blocks.
    keeps_up: bool,
    keeps_room: bool,
    next_task: u64,
    tasks: BTreeMap<u64, Waiting>,
    gathered: Vec<Block>,
    pending: BTreeMap<u64, Pending>,
    unsent: VecDeque<u64>,
    /// Bytes of all pending blocks, and of those that the server has.
    pending_bytes: u64,
    at_server: u64,
    /// Blocks written since the last flush began, and those that it makes durable.
    written: Vec<u64>,
    flushing: Option<Vec<u64>>,
    flushed: Instant,
    /// The last task that the server accepted.
    registered: u64,
}

impl Writer {
    /// Opens a session. With `keeps_room`, blocks are written as foreground work when there is
    /// little room for further ones.
    pub(super) async fn open(
        plan: &Plan,
        to: &Side,
        units: Units,
        keeps_room: bool,
        blocks: UnboundedReceiver<Block>,
        stages: UnboundedSender<(u64, Stage)>,
        stop: &watch::Receiver<bool>,
    ) -> Result<Writer, AppError> {
        let opening = async {
            let (mut control, info) = look(plan.to.clone()).await?;
            // The server may be another one since it was first asked.
            let (_, range) = covered(&info, plan.to_export.as_deref())?;
            if (range, info.sector_bytes) != (to.range, to.info.sector_bytes) {
                return Err(AppError::OtherExport { name: plan.to_export.clone().unwrap_or_default() });
            }
            Ok(Session::open(&mut control, &to.info, &plan.job.name, plan.job.priority, 1).await?)
        };
        let mut link = Link::new(answer(&plan.to, stop, opening).await?, 1);
        if let Some(mb) = plan.job.max_mb_s {
            link.say(Call::MaxMbS(mb));
        }
        Ok(Writer {
            link,
            units,
            sector: to.sector_bytes(),
            what: to.what.clone(),
            blocks,
            stages,
            keeps_up: plan.job.floor != Floor::default(),
            keeps_room,
            next_task: 1,
            tasks: BTreeMap::new(),
            gathered: Vec::new(),
            pending: BTreeMap::new(),
            unsent: VecDeque::new(),
            pending_bytes: 0,
            at_server: 0,
            written: Vec::new(),
            flushing: None,
            flushed: Instant::now(),
            registered: 0,
        })
    }

    /// Checks that there are only zeros at both ends of the destination.
    pub(super) async fn expect_no_data(&mut self, stop: &watch::Receiver<bool>) -> Result<(), AppError> {
        let mut stop = stop.clone();
        tokio::select! {
            biased;
            _ = stop.wait_for(|&s| s) => Err(AppError::Stopped),
            checked = self.check_ends() => checked,
        }
    }

    async fn check_ends(&mut self) -> Result<(), AppError> {
        let (first, sectors) = (self.units.ranges()[0].lbn, self.units.sectors());
        let count = (END_BYTES / self.sector).clamp(1, sectors);
        for lbn in [first, first + sectors - count] {
            let count = count as u32;
            self.link.say(Call::Foreground(Foreground {
                kind: Kind::Read.into(),
                lbn,
                count,
                ..Foreground::default()
            }));
            let answered = loop {
                match self.link.next().await? {
                    Event::Answered(a) => break a,
                    Event::Gone(_) => return Err(AppError::Gone),
                    Event::Refused(r) => return Err(AppError::Refused(r.why)),
                    _ => {}
                }
            };
            succeeded(&answered, |why| AppError::Refused(format!("reading the destination failed: {why}")))?;
            let (expected, found) = (u64::from(count) * self.sector, answered.data.len() as u64);
            if found != expected {
                return Err(AppError::Refused(format!("expected {expected} bytes of a read, found {found}")));
            }
            if answered.data.iter().any(|&b| b != 0) {
                return Err(AppError::DestinationData(self.what.clone()));
            }
        }
        Ok(())
    }

    /// Writes what comes until it is dropped; returns only for an error.
    pub(super) async fn run(&mut self) -> AppError {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let handled = tokio::select! {
                biased;
                _ = tick.tick() => {
                    self.tick();
                    Ok(())
                }
                event = self.link.next() => event.map_err(AppError::from).and_then(|e| self.handle(e)),
                Some(block) = self.blocks.recv() => {
                    self.pending_bytes += block.data.len() as u64;
                    self.gathered.push(block);
                    Ok(())
                }
            };
            if let Err(why) = handled {
                return why;
            }
        }
    }

    fn tick(&mut self) {
        if !self.gathered.is_empty() && self.tasks.len() < MAX_TASKS {
            self.begin_task();
        }
        if self.keeps_up || self.keeps_room && self.pending_bytes > LITTLE_ROOM {
            let now = Instant::now();
            for (&task, waiting) in &mut self.tasks {
                if !waiting.promoted && now - waiting.since > PATIENCE {
                    waiting.promoted = true;
                    self.link.say(Call::Promote(TaskRef { task }));
                }
            }
        }
        let idle = self.pending.is_empty() && self.gathered.is_empty();
        if self.flushing.is_none() && !self.written.is_empty() && (idle || self.flushed.elapsed() > FLUSH_EVERY) {
            self.flushing = Some(std::mem::take(&mut self.written));
            self.link.say(Call::Foreground(Foreground { kind: Kind::Flush.into(), ..Foreground::default() }));
        }
    }

    /// Registers the gathered blocks as a task.
    fn begin_task(&mut self) {
        let most = self.gathered.len().min(MAX_BLOCKS);
        let blocks: Vec<Block> = self.gathered.drain(..most).collect();
        let task = self.next_task;
        self.next_task += 1;
        self.tasks.insert(task, Waiting { since: Instant::now(), promoted: false, blocks: most });
        let ranges = blocks.iter().map(|b| self.units.range(b.index));
        self.link.say(Call::Register(Register {
            task,
            kind: Kind::Write.into(),
            ranges: ranges.map(|r| v1::Range { lbn: r.lbn, count: r.count }).collect(),
            blksize: self.units.unit(),
            min_pickup: self.units.unit(),
            point_in_time: false,
        }));
        for Block { index, data } in blocks {
            let left = self.units.range(index).count;
            self.pending.insert(index, Pending { task, data, left, sent: false });
            self.unsent.push_back(index);
        }
        self.send();
    }

    /// Sends data for which the server has room.
    fn send(&mut self) {
        while let Some(&index) = self.unsent.front() {
            if !self.send_block(index) {
                return;
            }
            self.unsent.pop_front();
        }
    }

    /// Sends a block's data, unless it is there or not pending; returns false if there is no room.
    fn send_block(&mut self, index: u64) -> bool {
        let Some(p) = self.pending.get_mut(&index).filter(|p| !p.sent) else { return true };
        let bytes = p.data.len() as u64;
        if self.at_server + bytes > MAX_SENT {
            return false;
        }
        (p.sent, self.at_server) = (true, self.at_server + bytes);
        let lbn = self.units.range(index).lbn;
        self.link.say(Call::Data(Data { task: p.task, lbn, data: p.data.clone() }));
        true
    }

    fn handle(&mut self, event: Event) -> Result<(), AppError> {
        match event {
            Event::Written(p) => self.over(p.lbn, p.count, None)?,
            Event::Superseded(p) => self.over(p.lbn, p.count, Some(counts::SUPERSEDED))?,
            Event::Failed(f) if f.fault() == v1::Fault::Gone => return Err(AppError::Gone),
            // Nothing that was not written counts as done: the same command tries it again.
            Event::Failed(f) => return Err(self.failed(f)),
            Event::Wanted(p) => self.holding(p.lbn, p.count)?.for_each(|index| _ = self.send_block(index)),
            Event::NotTaken(p) => self.not_taken(p.lbn, p.count)?,
            Event::Registered(t) => self.registered = self.registered.max(t.task),
            Event::Done(t) => {
                if self.tasks.remove(&t.task).is_some_and(|waiting| waiting.blocks > 0) {
                    return Err(AppError::Refused(format!("task {} ended before all of it was written", t.task)));
                }
            }
            Event::Answered(a) => {
                succeeded(&a, |why| AppError::DestinationFlush { what: self.what.clone(), why: why.into() })?;
                let durable = self.flushing.take().unwrap_or_default();
                durable.into_iter().for_each(|index| self.tell(index, Stage::Durable));
                self.flushed = Instant::now();
            }
            // A task that was accepted may have ended before it could be promoted.
            Event::Refused(r) if r.task.is_some_and(|task| task <= self.registered) => {}
            Event::Refused(r) => return Err(AppError::Refused(r.why)),
            Event::Gone(_) => return Err(AppError::Gone),
            Event::Opened(_)
            | Event::Delivered(_)
            | Event::Suspended(_)
            | Event::End(_)
            | Event::Moving(_)
            | Event::Settled(_)
            | Event::Broken(_) => {}
        }
        Ok(())
    }

    /// Returns the error for sectors that could not be written.
    fn failed(&self, f: Failed) -> AppError {
        AppError::DestinationWrite {
            what: self.what.clone(),
            offset: self.units.offset(f.lbn) * self.sector,
            bytes: f.count.saturating_mul(self.sector),
            why: f.why,
        }
    }

    fn tell(&self, index: u64, stage: Stage) {
        // The receiver lives as long as the run that this belongs to.
        let _ = self.stages.send((index, stage));
    }

    /// Returns the units that contain these sectors.
    fn holding(&self, lbn: u64, count: u64) -> Result<std::ops::Range<u64>, AppError> {
        let last = lbn.checked_add(count).and_then(|end| end.checked_sub(1)).filter(|&last| last >= lbn);
        match (self.units.holding(lbn), last.and_then(|last| self.units.holding(last))) {
            (Some(first), Some(last)) => Ok(first..last + 1),
            _ => Err(AppError::Refused(format!(
                "the destination reported {count} sectors at {lbn}, which are not part of the copy"
            ))),
        }
    }

    /// Notes that the server is done with these sectors; if they were not written, in this counter.
    fn over(&mut self, lbn: u64, count: u64, lost: Option<&'static str>) -> Result<(), AppError> {
        for index in self.holding(lbn, count)? {
            let unit = self.units.range(index);
            let sectors = unit.end().min(lbn + count) - unit.lbn.max(lbn);
            let Some(p) = self.pending.get_mut(&index) else { continue };
            if lost.is_none() && !p.sent {
                return Err(AppError::Refused(format!("sectors at {lbn} were written without their data")));
            }
            let promoted = self.tasks.get(&p.task).is_some_and(|task| task.promoted);
            if let Some(name) = lost.or(promoted.then_some(counts::PROMOTED_THERE)) {
                let _ = self.stages.send((index, Stage::Counts(name, sectors * self.sector)));
            }
            p.left = p.left.saturating_sub(sectors);
            if p.left > 0 {
                continue;
            }
            let p = self.pending.remove(&index).expect("it was just there");
            let bytes = p.data.len() as u64;
            self.pending_bytes -= bytes;
            self.at_server -= if p.sent { bytes } else { 0 };
            if let Some(waiting) = self.tasks.get_mut(&p.task) {
                waiting.blocks -= 1;
            }
            self.written.push(index);
            self.tell(index, Stage::Written);
        }
        self.send();
        Ok(())
    }

    /// Notes that the server did not keep the data of these sectors.
    fn not_taken(&mut self, lbn: u64, count: u64) -> Result<(), AppError> {
        for index in self.holding(lbn, count)? {
            if let Some(p) = self.pending.get_mut(&index).filter(|p| p.sent) {
                p.sent = false;
                self.at_server -= p.data.len() as u64;
                self.unsent.push_back(index);
            }
        }
        Ok(())
    }
}

/// Returns the error of a foreground request that failed, made from the server's cause.
fn succeeded(answered: &Answered, error: impl FnOnce(&str) -> AppError) -> Result<(), AppError> {
    match answered.fault() {
        v1::Fault::None => Ok(()),
        v1::Fault::Gone => Err(AppError::Gone),
        _ => Err(error(&answered.why_not)),
    }
}
