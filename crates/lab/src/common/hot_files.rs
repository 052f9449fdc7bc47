//! A file system's load on a reorganised export, its heat and its block map, and the application
//! that moves units in free bandwidth: `headtime reorganise` in virtual time.
//!
//! Contents are modelled as versions: every write to a unit makes a new one. A place that does not
//! have the unit's current version when the unit is read there is a loss.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use headtime_disk::{Dur, Kind, Time};
use headtime_sched::layout::{BlockMap, Heat, Move, Place, moves};
use headtime_sched::{Core, SessionId, TaskError, TaskEvent, TaskId, TaskRange, TaskSpec};
use headtime_sim::background::{Background, Progress};
use headtime_sim::workload::variates::Variates;
use headtime_sim::workload::{Ask, Workload, WorkloadError};

/// Sectors of a unit: 128 KiB.
const UNIT: u64 = 256;
/// Sectors that are picked up at a time, as `headtime reorganise` does: 32 KiB.
const PICKUP: u32 = 64;
/// Units of a batch, as `headtime reorganise` has them.
const BATCH: usize = 256;
/// Number of files. A file is 4 to 252 KiB.
const FILES: u64 = 20_000;
/// Sectors that a program reads at a time: 64 KiB.
const READ: u64 = 128;
/// Of five accesses to files, one overwrites 8 KiB.
const WRITES: u64 = 5;
const WRITTEN: u64 = 16;
/// The owner of the writes of the map.
const MAP: u32 = u32::MAX;

/// Which units are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chosen {
    /// The hot ones.
    Hot,
    /// As many others: the mechanism switched off.
    #[cfg(test)]
    Any,
}

/// What load and application share: the server's state.
#[derive(Debug)]
pub(crate) struct Export {
    map: BlockMap,
    heat: Heat,
    /// The version of each unit that was written, and of each place: by unit, and by first sector.
    versions: BTreeMap<u64, u64>,
    stored: BTreeMap<u64, (u64, u64)>,
    /// Writes in flight, by unit.
    writing: BTreeMap<u64, u32>,
    /// Units on their way, with whether they were overwritten.
    moving: BTreeMap<u64, bool>,
    /// Maps to be written.
    map_writes: u32,
    /// Reads of a place that had not what was written last.
    pub(crate) lost: u64,
    /// Units that were moved, and moves that were in vain.
    pub(crate) moved: u64,
    pub(crate) in_vain: u64,
}

impl Export {
    /// Creates an export on a disk of `capacity` sectors, of which the first hundredth is the
    /// reserve.
    pub(crate) fn new(capacity: u64) -> Rc<RefCell<Export>> {
        let reserve = TaskRange { lbn: 0, count: capacity / 100 };
        let part = TaskRange { lbn: reserve.count, count: capacity - reserve.count };
        Rc::new(RefCell::new(Export {
            map: BlockMap::new(part, reserve, UNIT).expect("a hundredth of the disk has room for units"),
            heat: Heat::new(),
            versions: BTreeMap::new(),
            stored: BTreeMap::new(),
            writing: BTreeMap::new(),
            moving: BTreeMap::new(),
            map_writes: 0,
            lost: 0,
            moved: 0,
            in_vain: 0,
        }))
    }

    fn place(&self, unit: u64) -> u64 {
        self.map.range(unit, self.map.place(unit)).lbn
    }

    /// Returns the unit and version at a place: its home's, if nothing was written there.
    fn at(&self, place: u64) -> (u64, u64) {
        let home = || (self.map.unit_of(place.max(self.map.part().lbn)), 0);
        self.stored.get(&place).copied().unwrap_or_else(home)
    }

    /// Handles a request: counts it, writes or checks the versions, and returns where it begins.
    fn request(&mut self, kind: Kind, range: TaskRange) -> Vec<TaskRange> {
        let units = self.map.unit_of(range.lbn)..=self.map.unit_of(range.end() - 1);
        self.heat.accessed(units.clone());
        for unit in units {
            let (place, version) = (self.place(unit), self.versions.get(&unit).copied().unwrap_or(0));
            match kind {
                Kind::Write => {
                    self.versions.insert(unit, version + 1);
                    self.stored.insert(place, (unit, version + 1));
                    *self.writing.entry(unit).or_default() += 1;
                    self.moving.get_mut(&unit).into_iter().for_each(|overwritten| *overwritten = true);
                }
                _ => self.lost += u64::from(self.at(place) != (unit, version)),
            }
        }
        self.map.runs(range)
    }

    fn written(&mut self, range: TaskRange) {
        for unit in self.map.unit_of(range.lbn)..=self.map.unit_of(range.end() - 1) {
            let left = self.writing.get_mut(&unit).expect("a write that began");
            *left -= 1;
            if *left == 0 {
                self.writing.remove(&unit);
            }
        }
    }
}

/// A file.
#[derive(Clone, Copy, Debug)]
struct File {
    lbn: u64,
    count: u64,
}

/// A request of a task, in the export's sectors.
#[derive(Clone, Copy, Debug)]
struct Step {
    kind: Kind,
    range: TaskRange,
}

/// A task of the load: reads or overwrites one file after another.
#[derive(Debug, Default)]
struct Task {
    /// What is left of its access.
    left: VecDeque<Step>,
    /// The request under way, its pieces that are not finished, and when it was due.
    under_way: Option<(Step, usize, Time)>,
}

/// What is due.
#[derive(Clone, Copy, Debug)]
enum Due {
    /// The next request of a task. Where it is on the disk follows when it is submitted.
    Next(Step),
    /// A piece of one, or a map.
    Piece(Kind, TaskRange),
}

/// Programs that read and overwrite files, of which few are accessed often: the n-th file with a
/// frequency of 1/n. The files are scattered over the export.
pub(crate) struct HotFiles {
    export: Rc<RefCell<Export>>,
    files: Vec<File>,
    /// Sums of the frequencies up to each file.
    sums: Vec<u64>,
    random: Variates,
    tasks: Vec<Task>,
    /// Mean time from the end of an access to the next one.
    think: Dur,
    due: BTreeMap<(Time, u32, u64), Due>,
    next: u64,
    /// Responses of requests, and their sum.
    pub(crate) requests: u64,
    total: Dur,
}

impl HotFiles {
    /// Creates `tasks` tasks. The files are the same for each seed.
    pub(crate) fn new(export: &Rc<RefCell<Export>>, tasks: usize, think: Dur, seed: u64) -> HotFiles {
        let part = export.borrow().map.part();
        let mut random = Variates::new(seed, 0);
        let stretch = part.count / FILES;
        let mut order: Vec<u64> = (0..FILES).collect();
        for last in (1..FILES).rev() {
            order.swap(last as usize, random.below(last + 1) as usize);
        }
        let files = order.into_iter().map(|at| {
            let count = 8 * (1 + random.below(63));
            let lbn = part.lbn + at * stretch + 8 * random.below((stretch - count) / 8);
            File { lbn, count }
        });
        let files: Vec<File> = files.collect();
        let sums = (1..=FILES).scan(0, |sum, n| {
            *sum += (1 << 40) / n;
            Some(*sum)
        });
        let mut load = HotFiles {
            export: Rc::clone(export),
            files,
            sums: sums.collect(),
            random: Variates::new(seed, 1),
            tasks: (0..tasks).map(|_| Task::default()).collect(),
            think,
            due: BTreeMap::new(),
            next: 0,
            requests: 0,
            total: Dur::ZERO,
        };
        (0..tasks as u32).for_each(|task| load.continues(task, Time::ZERO));
        load
    }

    /// Returns the mean response, ms.
    pub(crate) fn mean_ms(&self) -> f64 {
        self.total.as_ms_f64() / self.requests.max(1) as f64
    }

    /// Makes a task's next request due.
    fn continues(&mut self, task: u32, now: Time) {
        let mut due = now;
        if self.tasks[task as usize].left.is_empty() {
            due = now + Dur(self.random.exponential(self.think.0));
            let access = self.access();
            self.tasks[task as usize].left = access;
        }
        let step = self.tasks[task as usize].left.pop_front().expect("an access has a request");
        self.put(due, task, Due::Next(step));
    }

    fn access(&mut self) -> VecDeque<Step> {
        let drawn = self.random.below(*self.sums.last().expect("there are files"));
        let file = self.files[self.sums.partition_point(|&sum| sum <= drawn)];
        if self.random.below(WRITES) == 0 {
            let count = WRITTEN.min(file.count);
            let lbn = file.lbn + 8 * self.random.below((file.count - count) / 8 + 1);
            return [Step { kind: Kind::Write, range: TaskRange { lbn, count } }].into();
        }
        let read = |from: u64| TaskRange { lbn: file.lbn + from, count: READ.min(file.count - from) };
        (0..file.count).step_by(READ as usize).map(|from| Step { kind: Kind::Read, range: read(from) }).collect()
    }

    fn put(&mut self, due: Time, owner: u32, what: Due) {
        self.next += 1;
        self.due.insert((due, owner, self.next), what);
    }
}

impl Workload for HotFiles {
    fn next_due(&self) -> Option<Time> {
        self.due.first_key_value().map(|((due, ..), _)| *due)
    }

    fn take(&mut self) -> Result<Ask, WorkloadError> {
        let ((due, owner, _), what) = self.due.pop_first().expect("one is due");
        let (kind, range) = match what {
            Due::Piece(kind, range) => (kind, range),
            Due::Next(step) => {
                let runs = self.export.borrow_mut().request(step.kind, step.range);
                self.tasks[owner as usize].under_way = Some((step, runs.len(), due));
                runs[1..].iter().for_each(|&run| self.put(due, owner, Due::Piece(step.kind, run)));
                (step.kind, runs[0])
            }
        };
        let (lbn, count) = (range.lbn, range.count as u32);
        Ok(Ask { due, kind, lbn, count, fua: owner == MAP, sync: true, owner, class: 0 })
    }

    fn finished(&mut self, owner: u32, now: Time) {
        // The application has moved a batch: its map is written.
        let maps = std::mem::take(&mut self.export.borrow_mut().map_writes);
        for _ in 0..maps {
            self.put(now, MAP, Due::Piece(Kind::Write, TaskRange { lbn: 0, count: 64 }));
        }
        let Some(task) = self.tasks.get_mut(owner as usize) else { return };
        let (step, left, due) = task.under_way.take().expect("a request that began");
        if left > 1 {
            task.under_way = Some((step, left - 1, due));
            return;
        }
        if step.kind == Kind::Write {
            self.export.borrow_mut().written(step.range);
        }
        self.requests += 1;
        self.total += now.since(due);
        self.continues(owner, now);
    }

    fn endless(&self) -> bool {
        true
    }
}

/// `headtime reorganise` in virtual time.
#[derive(Debug)]
pub(crate) struct Reorganiser {
    export: Rc<RefCell<Export>>,
    planned: VecDeque<Move>,
    session: Option<SessionId>,
    batch: Vec<Move>,
    /// The task under way, and whether it writes.
    task: Option<(TaskId, bool)>,
    done_at: Option<Time>,
}

impl Reorganiser {
    /// Plans the moves.
    pub(crate) fn new(export: &Rc<RefCell<Export>>, chosen: Chosen) -> Reorganiser {
        let planned = {
            let e = export.borrow();
            let planned = moves(&e.map, &e.heat.units().collect::<Vec<_>>(), e.heat.accesses());
            match chosen {
                Chosen::Hot => planned,
                #[cfg(test)]
                Chosen::Any => {
                    let unit = |n: usize| n as u64 * 97 % e.map.units();
                    planned.iter().enumerate().map(|(n, m)| Move { unit: unit(n), to: m.to }).collect()
                }
            }
        };
        let export = Rc::clone(export);
        Reorganiser { export, planned: planned.into(), session: None, batch: Vec::new(), task: None, done_at: None }
    }

    fn register(&mut self, writes: bool, core: &mut Core, now: Time) -> Result<(), TaskError> {
        let session = self.session.expect("it is open");
        let ranges: Vec<TaskRange> = {
            let map = &self.export.borrow().map;
            let place = |m: &Move| if writes { m.to } else { map.place(m.unit) };
            self.batch.iter().map(|m| map.range(m.unit, place(m))).collect()
        };
        let kind = if writes { Kind::Write } else { Kind::Read };
        let task = core.register(session, &TaskSpec { kind, ranges, blksize: PICKUP, min_pickup: PICKUP }, now)?;
        self.task = Some((task, writes));
        Ok(())
    }

    /// Begins the next batch.
    fn begins(&mut self, core: &mut Core, now: Time) -> Result<(), TaskError> {
        let size = BATCH.min(self.planned.len());
        self.batch = self.planned.drain(..size).collect();
        if self.batch.is_empty() {
            self.done_at = Some(now);
            return Ok(());
        }
        {
            let mut e = self.export.borrow_mut();
            for m in &self.batch {
                let overwritten = e.writing.contains_key(&m.unit);
                e.moving.insert(m.unit, overwritten);
            }
        }
        self.register(false, core, now)
    }

    /// The batch is copied: those of its units that were not overwritten are in their new places.
    fn settles(&mut self) {
        let mut e = self.export.borrow_mut();
        for m in std::mem::take(&mut self.batch) {
            let overwritten = e.moving.remove(&m.unit).expect("it began");
            if overwritten {
                e.in_vain += 1;
                continue;
            }
            let content = e.at(e.place(m.unit));
            let to = e.map.range(m.unit, m.to).lbn;
            e.stored.insert(to, content);
            if e.map.set(m.unit, m.to).is_ok() {
                e.moved += 1;
            }
        }
        e.map_writes += 1;
    }
}

impl Background for Reorganiser {
    fn start(&mut self, core: &mut Core, now: Time) -> Result<(), TaskError> {
        self.session = Some(core.open(1, now)?);
        self.begins(core, now)
    }

    fn event(&mut self, event: &TaskEvent, core: &mut Core, now: Time) -> Result<(), TaskError> {
        match *event {
            TaskEvent::GetBuffer { task, range, .. } => _ = core.buffer(task, range, true, now)?,
            TaskEvent::Done { task, .. } if self.task == Some((task, false)) => self.register(true, core, now)?,
            TaskEvent::Done { .. } => {
                self.settles();
                self.begins(core, now)?;
            }
            TaskEvent::Delivered { .. }
            | TaskEvent::Written { .. }
            | TaskEvent::Superseded { .. }
            | TaskEvent::Failed { .. } => {}
        }
        Ok(())
    }

    fn ends(&self) -> bool {
        true
    }

    fn is_done(&self) -> bool {
        self.done_at.is_some()
    }

    fn progress(&self) -> Progress {
        Progress { done_at: self.done_at, ..Progress::default() }
    }
}

impl Export {
    /// Returns the units in the reserve, and the part of the accesses that was to them, 0 to 1.
    pub(crate) fn in_reserve(&self) -> (u64, f64) {
        let inside = self.heat.units().filter(|h| self.map.place(h.unit) != Place::Home).map(|h| u64::from(h.count));
        (self.map.moved().len() as u64, inside.sum::<u64>() as f64 / self.heat.accesses().max(1) as f64)
    }
}
