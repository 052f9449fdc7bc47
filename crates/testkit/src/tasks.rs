//! A reference task manager with one flag per sector: slow, and meant to be obviously right.
//!
//! The same calls as [`headtime_sched::internals::manager::TaskManager`], with the same events in
//! the same order. It has no memory limits, and takes a task's identifier from the caller. A
//! session's flow control and the bound on events are followed unit by unit.

mod writes;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use headtime_disk::{Dur, Kind, Outcome, Time};
use headtime_sched::internals::tasks::{Wants, Who};
use headtime_sched::internals::wanted::Wanted;
use headtime_sched::{SessionId, TaskEvent, TaskId, TaskRange, TaskSpec};

/// A session, with public state.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Session {
    pub priority: u32,
    pub suspended: bool,
    pub window: u64,
    pub untaken: u64,
    pub delivered: u64,
}

/// A task, with public state.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Task {
    pub session: SessionId,
    pub kind: Kind,
    pub total: u64,
    pub promoted: bool,
    /// First sector, one past the last, number of the range; ascending.
    pub units: Vec<(u64, u64, usize)>,
    /// Every sector that is still wanted.
    pub wanted: BTreeSet<u64>,
}

#[derive(Clone, Debug)]
struct Ask {
    range: TaskRange,
    pieces: Vec<(TaskId, TaskRange, Option<bool>)>,
}

#[derive(Clone, Debug)]
struct Flight {
    range: TaskRange,
    pieces: Vec<(TaskId, TaskRange)>,
    /// Sectors for which newer data exists.
    stale: BTreeSet<(TaskId, u64)>,
}

/// The slow task manager.
#[derive(Clone, Debug)]
pub struct NaiveTasks {
    most_events: usize,
    backoff: Dur,
    now: Time,
    /// Open sessions.
    pub sessions: BTreeMap<SessionId, Session>,
    /// Unfinished tasks; a higher identifier was registered later.
    pub tasks: BTreeMap<TaskId, Task>,
    events: VecDeque<TaskEvent>,
    /// Sectors that a session no longer wants: session, whether written, sector.
    pub lost: BTreeSet<(SessionId, bool, u64)>,
    asks: Vec<Ask>,
    flights: Vec<Flight>,
    refused: BTreeMap<(TaskId, u64), Time>,
    carried: Vec<(TaskId, Kind, TaskRange)>,
    promoted: Vec<TaskId>,
    cursor: Option<(TaskId, u64)>,
}

fn sectors(range: &TaskRange) -> std::ops::Range<u64> {
    range.lbn..range.end()
}

fn is_inside(inner: &TaskRange, outer: &TaskRange) -> bool {
    sectors(inner).all(|l| sectors(outer).contains(&l))
}

fn span(lo: u64, hi: u64) -> TaskRange {
    TaskRange { lbn: lo, count: hi - lo }
}

/// How units end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Delivered,
    Written,
    Superseded,
    Failed,
}

impl NaiveTasks {
    /// Returns a manager without sessions.
    pub fn new(most_events: usize, backoff: Dur) -> NaiveTasks {
        NaiveTasks {
            most_events,
            backoff,
            now: Time::ZERO,
            sessions: BTreeMap::new(),
            tasks: BTreeMap::new(),
            events: VecDeque::new(),
            lost: BTreeSet::new(),
            asks: vec![],
            flights: vec![],
            refused: BTreeMap::new(),
            carried: vec![],
            promoted: vec![],
            cursor: None,
        }
    }

    /// Advances the time.
    pub fn advance(&mut self, now: Time) {
        self.now = self.now.max(now);
        let now = self.now;
        self.refused.retain(|_, until| *until > now);
    }

    /// Opens a session under an identifier.
    pub fn open(&mut self, id: SessionId, priority: u32) {
        let fresh = Session { priority, suspended: false, window: u64::MAX, untaken: 0, delivered: 0 };
        self.sessions.insert(id, fresh);
    }

    /// Closes a session.
    pub fn close(&mut self, id: SessionId) {
        let of: Vec<TaskId> = self.tasks.iter().filter(|(_, t)| t.session == id).map(|(t, _)| *t).collect();
        of.into_iter().for_each(|task| self.forget(task));
        self.events.retain(|e| e.session() != id);
        self.sessions.remove(&id);
    }

    /// Suspends a session.
    pub fn suspend(&mut self, id: SessionId) {
        self.sessions.get_mut(&id).expect("open").suspended = true;
        let tasks = &self.tasks;
        self.asks.retain(|a| a.pieces.iter().all(|p| tasks[&p.0].session != id));
    }

    /// Aborts a task.
    pub fn abort(&mut self, id: TaskId) {
        let owner = self.tasks[&id].session;
        for e in &self.events {
            if let TaskEvent::Delivered { task, range, .. } = e
                && *task == id
            {
                let s = self.sessions.get_mut(&owner).expect("open");
                s.untaken = s.untaken.saturating_sub(range.count);
            }
        }
        self.events.retain(|e| e.task() != id);
        let task = &self.tasks[&id];
        let write = task.kind == Kind::Write;
        self.lost.extend(task.wanted.iter().map(|&l| (owner, write, l)));
        self.forget(id);
    }

    fn forget(&mut self, id: TaskId) {
        self.tasks.remove(&id);
        self.asks.retain(|a| a.pieces.iter().all(|p| p.0 != id));
        self.flights.iter_mut().for_each(|f| f.pieces.retain(|p| p.0 != id));
        self.refused.retain(|(task, _), _| *task != id);
        self.carried.retain(|c| c.0 != id);
        self.promoted.retain(|t| *t != id);
    }

    /// Number of runs of older write tasks' units that a new write task would supersede.
    pub fn superseded_by(&self, spec: &TaskSpec) -> usize {
        let mut ranges = spec.ranges.clone();
        ranges.sort();
        let runs = |r: &TaskRange| -> usize {
            let writers = self.tasks.values().filter(|t| t.kind == Kind::Write);
            writers.map(|t| runs_of(t, |u| touches(u, r) && t.wanted.contains(&u.0)).len()).sum()
        };
        ranges.iter().map(runs).sum()
    }

    /// Number of events that still fit.
    pub fn room(&self) -> usize {
        self.most_events.saturating_sub(self.events.len())
    }

    /// Registers a valid task that fits, under an identifier.
    pub fn register(&mut self, session: SessionId, id: TaskId, spec: &TaskSpec) {
        let mut ranges = spec.ranges.clone();
        ranges.sort();
        if spec.kind == Kind::Write {
            ranges.iter().for_each(|r| self.supersede(r));
        }
        let mut units = vec![];
        for (n, r) in ranges.iter().enumerate() {
            let mut lo = r.lbn;
            while lo < r.end() {
                let hi = (lo + u64::from(spec.min_pickup)).min(r.end());
                units.push((lo, hi, n));
                lo = hi;
            }
        }
        let wanted: BTreeSet<u64> = ranges.iter().flat_map(sectors).collect();
        let total = wanted.len() as u64;
        self.tasks.insert(id, Task { session, kind: spec.kind, total, promoted: false, units, wanted });
    }

    /// Returns whether a session may be served reads, or writes.
    fn may(&self, id: SessionId, kind: Kind) -> bool {
        let s = &self.sessions[&id];
        !s.suspended && (kind == Kind::Write || s.untaken < s.window)
    }

    /// Sectors that a session wants.
    pub fn left(&self, id: SessionId, kind: Kind) -> u64 {
        let of = self.tasks.values().filter(|t| t.session == id && t.kind == kind);
        of.map(|t| t.wanted.len() as u64).sum()
    }

    /// Draws a session by lottery.
    pub fn draw(&self, random: u64) -> Option<SessionId> {
        let wants = |id: SessionId| [Kind::Read, Kind::Write].iter().any(|&k| self.may(id, k) && self.left(id, k) > 0);
        let playing: Vec<(SessionId, u64)> =
            self.sessions.iter().filter(|(id, _)| wants(**id)).map(|(id, s)| (*id, u64::from(s.priority))).collect();
        let total: u64 = playing.iter().map(|p| p.1).sum();
        let mut winner = ((u128::from(random) * u128::from(total)) >> 64) as u64;
        for (id, tickets) in playing {
            if winner < tickets {
                return Some(id);
            }
            winner -= tickets;
        }
        None
    }

    /// Returns the next event.
    pub fn next_event(&mut self) -> Option<TaskEvent> {
        self.events.pop_front()
    }

    /// Returns whether there is room for another event.
    pub fn has_room(&self) -> bool {
        self.events.len() < self.most_events
    }

    fn end(&mut self, id: TaskId, lo: u64, hi: u64, how: End) {
        let task = self.tasks.get_mut(&id).expect("a task that wants something exists");
        let write = task.kind == Kind::Write;
        for l in lo..hi {
            assert!(task.wanted.remove(&l), "sector {l} ended twice");
            self.lost.insert((task.session, write, l));
        }
        let (session, range) = (task.session, span(lo, hi));
        let s = self.sessions.get_mut(&session).expect("open");
        self.events.push_back(match how {
            End::Delivered => {
                s.untaken += range.count;
                s.delivered += range.count;
                TaskEvent::Delivered { session, task: id, range }
            }
            End::Written => {
                s.delivered += range.count;
                TaskEvent::Written { session, task: id, range }
            }
            End::Superseded => TaskEvent::Superseded { session, task: id, range },
            End::Failed => TaskEvent::Failed { session, task: id, range },
        });
        if task.wanted.is_empty() {
            self.events.push_back(TaskEvent::Done { session, task: id });
            self.forget(id);
        }
    }

    /// Completes a command.
    pub fn completed(&mut self, kind: Kind, lbn: u64, count: u32, outcome: Outcome, now: Time) {
        self.advance(now);
        let range = span(lbn, lbn + u64::from(count));
        self.carried.retain(|c| c.1 != kind || !is_inside(&c.2, &range));
        match (kind, outcome) {
            (Kind::Read, Outcome::Ok) => self.read(|u| u.0 >= range.lbn && u.1 <= range.end(), End::Delivered),
            (Kind::Read, Outcome::MediaError { lbn: bad }) if sectors(&range).contains(&bad) => {
                self.read(|u| (u.0..u.1).contains(&bad), End::Failed);
            }
            (Kind::Read, _) => {}
            _ => {
                let bad = if let Outcome::MediaError { lbn } = outcome { Some(lbn) } else { None };
                while let Some(n) = self.flights.iter().position(|f| is_inside(&f.range, &range)) {
                    let flight = self.flights.remove(n);
                    self.land(flight, outcome == Outcome::Ok, bad);
                }
            }
        }
    }

    /// Ends units of read tasks, one after the other; adjacent ones make one event.
    fn read(&mut self, ends: impl Fn(&(u64, u64, usize)) -> bool, how: End) {
        let readers: Vec<TaskId> = self.tasks.iter().filter(|(_, t)| t.kind == Kind::Read).map(|(id, _)| *id).collect();
        for id in readers {
            let task = self.tasks[&id].clone();
            for run in runs_of(&task, |u| ends(u) && task.wanted.contains(&u.0)) {
                if !self.may(task.session, Kind::Read) || !self.has_room() {
                    break;
                }
                let s = &self.sessions[&task.session];
                let mut coming = 0;
                let fit = run.iter().take_while(|u| {
                    let open = s.untaken.saturating_add(coming) < s.window;
                    coming += u.1 - u.0;
                    open
                });
                let hi = fit.last().expect("the window is open").1;
                let hi = if how == End::Failed { run.last().expect("a run has a unit").1 } else { hi };
                self.end(id, run[0].0, hi, how);
            }
        }
    }

    /// A foreground write was submitted.
    pub fn foreground_write(&mut self, lbn: u64, count: u64) {
        self.supersede(&span(lbn, lbn + count));
    }

    fn supersede(&mut self, range: &TaskRange) {
        let writers: Vec<TaskId> =
            self.tasks.iter().filter(|(_, t)| t.kind == Kind::Write).map(|(id, _)| *id).collect();
        for id in writers {
            let task = self.tasks[&id].clone();
            let flying = |f: &Flight, l: u64| f.pieces.iter().any(|p| p.0 == id && sectors(&p.1).contains(&l));
            for u in task.units.iter().filter(|u| touches(u, range)) {
                for f in &mut self.flights {
                    if flying(f, u.0) {
                        f.stale.extend((u.0..u.1).map(|l| (id, l)));
                    }
                }
            }
            let free = |u: &(u64, u64, usize)| {
                touches(u, range) && task.wanted.contains(&u.0) && !self.flights.iter().any(|f| flying(f, u.0))
            };
            for run in runs_of(&task, free) {
                let lost = span(run[0].0, run[run.len() - 1].1);
                self.asks.retain(|a| !a.pieces.iter().any(|p| p.0 == id && p.1.overlaps(&lost)));
                self.refused.retain(|(task, l), _| *task != id || !sectors(&lost).contains(l));
                self.end(id, lost.lbn, lost.end(), End::Superseded);
            }
        }
    }

    /// Promotes a task.
    pub fn promote(&mut self, id: TaskId) {
        if !self.promoted.contains(&id) {
            self.promoted.push(id);
            self.tasks.get_mut(&id).expect("it exists").promoted = true;
        }
    }

    /// Returns the next promoted piece.
    pub fn next_promoted(&mut self, most_sectors: u64) -> Option<(TaskId, Kind, TaskRange)> {
        if !self.has_room() || self.carried.len() >= 64 {
            return None;
        }
        for &id in &self.promoted {
            let t = &self.tasks[&id];
            if !self.may(t.session, t.kind) {
                continue;
            }
            let carried = |c: &(TaskId, Kind, TaskRange), l: u64| sectors(&c.2).contains(&l);
            let taken = |l: u64| match t.kind {
                Kind::Write => self.busy(l) || self.carried.iter().any(|c| c.1 == Kind::Write && carried(c, l)),
                _ => self.carried.iter().any(|c| c.0 == id && carried(c, l)),
            };
            let free = |u: &(u64, u64, usize)| t.wanted.contains(&u.0) && !(u.0..u.1).any(taken);
            let from = self.cursor.filter(|c| c.0 == id).map_or(0, |c| c.1);
            let behind = t.units.iter().position(|u| u.0 >= from && free(u));
            let Some(first) = behind.or_else(|| t.units.iter().position(free)) else { continue };
            let unit = t.units.iter().filter(|u| u.2 == t.units[first].2).map(|u| u.1 - u.0).max().expect("a unit");
            let fits = |hi: u64| hi - t.units[first].0 <= unit * (most_sectors / unit).max(1);
            let rest = t.units[first..].iter();
            let run = rest.take_while(|u| u.2 == t.units[first].2 && free(u) && fits(u.1));
            let range = span(t.units[first].0, run.last().expect("the first is free").1);
            self.cursor = Some((id, range.end()));
            self.carried.push((id, t.kind, range));
            return Some((id, t.kind, range));
        }
        None
    }
}

fn touches(unit: &(u64, u64, usize), range: &TaskRange) -> bool {
    unit.0 < range.end() && range.lbn < unit.1
}

/// Runs of adjacent units within one range that satisfy `is`.
fn runs_of(task: &Task, is: impl Fn(&(u64, u64, usize)) -> bool) -> Vec<Vec<(u64, u64, usize)>> {
    let mut runs: Vec<Vec<(u64, u64, usize)>> = vec![];
    for u in task.units.iter().filter(|u| is(u)) {
        match runs.last_mut() {
            Some(run) if run[run.len() - 1].1 == u.0 && run[0].2 == u.2 => run.push(*u),
            _ => runs.push(vec![*u]),
        }
    }
    runs
}

impl Wants for NaiveTasks {
    fn wanted(&self, who: Who, kind: Kind, out: &mut Wanted) {
        out.clear();
        let asked = |t: &Task| match who {
            Who::Anyone => true,
            Who::Session(id) => t.session == id,
        };
        for t in self.tasks.values().filter(|t| t.kind == kind && asked(t) && self.may(t.session, kind)) {
            let (lo, hi) = (out.from(), out.end());
            for u in t.units.iter().filter(|u| u.0 >= lo && u.1 <= hi && t.wanted.contains(&u.0)) {
                (u.0..u.1).for_each(|l| out.set(l, l + 1));
            }
        }
        if kind == Kind::Write {
            let carried = |l: u64| self.carried.iter().any(|c| c.1 == kind && sectors(&c.2).contains(&l));
            let hidden: Vec<u64> = (out.from()..out.end()).filter(|&l| self.busy(l) || carried(l)).collect();
            hidden.into_iter().for_each(|l| out.unset(l, l + 1));
        }
    }

    fn any(&self, who: Who, kind: Kind) -> bool {
        let wants = |id: SessionId| self.may(id, kind) && self.left(id, kind) > 0;
        match who {
            Who::Anyone => self.sessions.keys().any(|&id| wants(id)),
            Who::Session(id) => self.sessions.contains_key(&id) && wants(id),
        }
    }
}
