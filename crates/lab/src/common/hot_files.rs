//! A file system's load on a reorganised export, its heat and its block map: the server's part of
//! `headtime reorganise`, in virtual time.
//!
//! Contents are modelled as versions: every write to a unit makes a new one. A place that does not
//! have the unit's current version when the unit is read there is a loss.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use headtime_disk::{Dur, Kind, Time};
use headtime_sched::TaskRange;
use headtime_sched::layout::{BlockMap, Heat, Move, Place};
use headtime_sim::stats::histogram::Histogram;
use headtime_sim::workload::variates::Variates;
use headtime_sim::workload::{Ask, Workload, WorkloadError};

use super::host_memory::HostMemory;

/// Sectors of a unit: 128 KiB.
const UNIT: u64 = 256;
/// Sectors of a copy of the map: 12 bytes a unit.
const MAP_SECTORS: u64 = 64;
/// Number of files. A file is 4 to 252 KiB.
const FILES: u64 = 20_000;
/// Sectors that a program reads at a time: 64 KiB.
const READ: u64 = 128;
/// Of five accesses to files, one overwrites 8 KiB.
const WRITES: u64 = 5;
const WRITTEN: u64 = 16;
/// The owner of the requests at the end of moves.
const MAP: u32 = u32::MAX;

/// Where the reserve is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reserve {
    /// In the middle of the export.
    Middle,
    /// Before it: the outermost part of the disk.
    Edge,
}

/// Moves that end: the data is copied, but what was overwritten meanwhile. Writes to their units
/// wait.
#[derive(Debug)]
pub(super) struct Settling {
    pub(super) moves: Vec<Move>,
    /// The requests left: the last copies, and the maps.
    pub(super) left: VecDeque<(Kind, TaskRange)>,
}

/// A unit on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moving {
    /// The unit and version of its copy: those when the move began.
    pub(super) copy: (u64, u64),
    /// What was overwritten since, in the export's sectors.
    pub(super) overwritten: Option<TaskRange>,
}

/// The version of a copy that may have a part of a write.
pub(super) const TORN: u64 = u64::MAX;

/// What load and application share: the server's state.
#[derive(Debug)]
pub(crate) struct Export {
    pub(super) map: BlockMap,
    pub(super) heat: Heat,
    /// The version of each unit that was written, and of each place: by unit, and by first sector.
    versions: BTreeMap<u64, u64>,
    stored: BTreeMap<u64, (u64, u64)>,
    /// Writes in flight, by unit.
    pub(super) writing: BTreeMap<u64, u32>,
    /// Units on their way.
    pub(super) moving: BTreeMap<u64, Moving>,
    pub(super) settling: VecDeque<Settling>,
    /// Reads of a place that had not what was written last.
    pub(crate) lost: u64,
    /// Units that were moved, moves that were in vain, and units with a last copy.
    pub(crate) moved: u64,
    pub(crate) in_vain: u64,
    pub(crate) recopied: u64,
}

impl Export {
    /// Creates an export on a disk of `capacity` sectors, of which a hundredth is the reserve.
    pub(crate) fn new(capacity: u64, at: Reserve) -> Rc<RefCell<Export>> {
        let count = capacity / 100 / UNIT * UNIT;
        let map = match at {
            Reserve::Edge => {
                let part = TaskRange { lbn: count, count: capacity - count };
                BlockMap::new(part, TaskRange { lbn: 0, count }, UNIT)
            }
            Reserve::Middle => {
                let gap = TaskRange { lbn: (capacity - count) / 2 / UNIT * UNIT, count };
                BlockMap::around(TaskRange { lbn: 0, count: capacity - count }, gap, gap, UNIT)
            }
        };
        Rc::new(RefCell::new(Export {
            map: map.expect("a hundredth of the disk has room for units"),
            heat: Heat::new(),
            versions: BTreeMap::new(),
            stored: BTreeMap::new(),
            writing: BTreeMap::new(),
            moving: BTreeMap::new(),
            settling: VecDeque::new(),
            lost: 0,
            moved: 0,
            in_vain: 0,
            recopied: 0,
        }))
    }

    fn place(&self, unit: u64) -> u64 {
        self.map.range(unit, self.map.place(unit)).lbn
    }

    /// Returns the unit and version at a place: its home's, if nothing was written there.
    fn at(&self, place: u64) -> (u64, u64) {
        let home = || {
            let gap = self.map.gap().filter(|gap| gap.end() <= place);
            (self.map.unit_of(place.max(self.map.part().lbn) - gap.map_or(0, |gap| gap.count)), 0)
        };
        self.stored.get(&place).copied().unwrap_or_else(home)
    }

    /// Returns the unit and version at a unit's place.
    pub(super) fn content(&self, unit: u64) -> (u64, u64) {
        self.at(self.place(unit))
    }

    /// Sets the unit and version at the place that a unit is moved to.
    pub(super) fn copied(&mut self, m: Move, content: (u64, u64)) {
        self.stored.insert(self.map.range(m.unit, m.to).lbn, content);
    }

    /// Returns what a request has of a unit.
    fn part_of(&self, unit: u64, range: TaskRange) -> TaskRange {
        let begin = self.map.part().lbn + unit * UNIT;
        let lbn = range.lbn.max(begin);
        TaskRange { lbn, count: range.end().min(begin + UNIT) - lbn }
    }

    /// Returns where a part of a unit is in a place.
    pub(super) fn in_place(&self, unit: u64, part: TaskRange, place: Place) -> TaskRange {
        let lbn = self.map.range(unit, place).lbn + (part.lbn - self.map.part().lbn) % UNIT;
        TaskRange { lbn, count: part.count }
    }

    /// Returns whether a request waits for the end of a move.
    fn holds(&self, kind: Kind, range: TaskRange) -> bool {
        let units = self.map.unit_of(range.lbn)..=self.map.unit_of(range.end() - 1);
        kind == Kind::Write && self.settling.iter().flat_map(|s| &s.moves).any(|m| units.contains(&m.unit))
    }

    /// Returns the next request at the end of moves.
    fn next_step(&mut self) -> Option<(Kind, TaskRange)> {
        let settling = self.settling.front_mut()?;
        let (kind, range) = settling.left.pop_front()?;
        // A last copy, during which no write goes to the unit.
        let copied = |m: &&Move| kind == Kind::Write && self.map.range(m.unit, m.to).overlaps(&range);
        if let Some(&m) = settling.moves.iter().find(copied) {
            self.copied(m, self.content(m.unit));
        }
        Some((kind, range))
    }

    /// Ends the moves of which all requests are done.
    fn end(&mut self) {
        if self.settling.front().is_none_or(|s| !s.left.is_empty()) {
            return;
        }
        for m in self.settling.pop_front().expect("there is one").moves {
            self.map.set(m.unit, m.to).expect("the slot was free when this was planned");
            self.moved += 1;
        }
    }

    /// Returns the places of the two copies of the map.
    pub(super) fn maps(&self) -> [TaskRange; 2] {
        let reserve = self.map.reserve();
        [reserve.lbn, reserve.end() - MAP_SECTORS].map(|lbn| TaskRange { lbn, count: MAP_SECTORS })
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
                    let part = self.part_of(unit, range);
                    if let Some(m) = self.moving.get_mut(&unit) {
                        m.overwritten = Some(m.overwritten.map_or(part, |all| spanned(all, part)));
                    }
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

/// Returns the sectors from the first of two ranges to the last.
fn spanned(a: TaskRange, b: TaskRange) -> TaskRange {
    let lbn = a.lbn.min(b.lbn);
    TaskRange { lbn, count: a.end().max(b.end()) - lbn }
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
    /// A piece of one, or a request at the end of moves.
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
    /// A request at the end of moves is under way.
    ends_moves: bool,
    /// Responses of requests.
    responses: Histogram,
    memory: HostMemory,
}

/// How the files are accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accesses {
    /// Mean think time from the end of an access to the next one.
    pub think: Dur,
    /// The host's memory for files, sectors.
    pub memory: u64,
    /// Of the files, which are the same for each seed of the accesses.
    pub files_seed: u64,
    /// Of the accesses.
    pub seed: u64,
}

impl HotFiles {
    /// Creates `tasks` tasks.
    pub(crate) fn new(export: &Rc<RefCell<Export>>, tasks: usize, accesses: Accesses) -> HotFiles {
        let part = export.borrow().map.part();
        // The requests of an earlier load have ended with it.
        export.borrow_mut().writing.clear();
        let mut random = Variates::new(accesses.files_seed, 0);
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
            random: Variates::new(accesses.seed, 1),
            tasks: (0..tasks).map(|_| Task::default()).collect(),
            think: accesses.think,
            due: BTreeMap::new(),
            next: 0,
            ends_moves: false,
            responses: Histogram::default(),
            memory: HostMemory::new(accesses.memory),
        };
        (0..tasks as u32).for_each(|task| load.continues(task, Time::ZERO));
        load
    }

    /// Returns the responses of requests.
    pub(crate) fn responses(&self) -> &Histogram {
        &self.responses
    }

    /// Makes a task's next request due.
    fn continues(&mut self, task: u32, now: Time) {
        let mut due = now;
        // What is in memory takes no time.
        while self.tasks[task as usize].left.is_empty() {
            due += Dur(self.random.exponential(self.think.0));
            let access = self.access();
            self.tasks[task as usize].left = access;
        }
        let step = self.tasks[task as usize].left.pop_front().expect("an access has a request");
        self.put(due, task, Due::Next(step));
    }

    /// Draws an access; without a request if the file is read and in the host's memory.
    fn access(&mut self) -> VecDeque<Step> {
        let drawn = self.random.below(*self.sums.last().expect("there are files"));
        let number = self.sums.partition_point(|&sum| sum <= drawn);
        let file = self.files[number];
        if self.random.below(WRITES) == 0 {
            let count = WRITTEN.min(file.count);
            let lbn = file.lbn + 8 * self.random.below((file.count - count) / 8 + 1);
            return [Step { kind: Kind::Write, range: TaskRange { lbn, count } }].into();
        }
        if self.memory.read(number, file.count) {
            return VecDeque::new();
        }
        let read = |from: u64| TaskRange { lbn: file.lbn + from, count: READ.min(file.count - from) };
        (0..file.count).step_by(READ as usize).map(|from| Step { kind: Kind::Read, range: read(from) }).collect()
    }

    /// Returns the first request that does not wait for the end of a move.
    fn first(&self) -> Option<(Time, u32, u64)> {
        let export = self.export.borrow();
        let is_free = |what: &Due| match what {
            Due::Next(step) => !export.holds(step.kind, step.range),
            Due::Piece(..) => true,
        };
        self.due.iter().find(|(_, what)| is_free(what)).map(|(&key, _)| key)
    }

    fn put(&mut self, due: Time, owner: u32, what: Due) {
        self.next += 1;
        self.due.insert((due, owner, self.next), what);
    }
}

impl Workload for HotFiles {
    fn next_due(&self) -> Option<Time> {
        self.first().map(|(due, ..)| due)
    }

    fn take(&mut self) -> Result<Ask, WorkloadError> {
        let key = self.first().expect("one is due");
        let (due, owner, _) = key;
        let what = self.due.remove(&key).expect("it is there");
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
        Ok(Ask { due, kind, lbn, count, fua: owner == MAP && kind == Kind::Write, sync: true, owner, class: 0 })
    }

    fn finished(&mut self, owner: u32, now: Time) {
        self.ends_moves &= owner != MAP;
        if !self.ends_moves {
            if owner == MAP {
                self.export.borrow_mut().end();
            }
            let step = self.export.borrow_mut().next_step();
            if let Some((kind, range)) = step {
                self.ends_moves = true;
                self.put(now, MAP, Due::Piece(kind, range));
            }
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
        self.responses.record(now.since(due));
        self.continues(owner, now);
    }

    fn endless(&self) -> bool {
        true
    }
}

impl Export {
    /// Returns the units in the reserve, and the part of the accesses that was to them, 0 to 1.
    pub(crate) fn in_reserve(&self) -> (u64, f64) {
        let inside = self.heat.units().filter(|h| self.map.place(h.unit) != Place::Home).map(|h| u64::from(h.count));
        (self.map.moved().len() as u64, inside.sum::<u64>() as f64 / self.heat.accesses().max(1) as f64)
    }
}
