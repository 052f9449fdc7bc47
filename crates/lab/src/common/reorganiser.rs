//! `headtime reorganise` in virtual time: the application that moves units in free bandwidth.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use headtime_disk::{Kind, Time};
use headtime_sched::layout::{Move, moves};
use headtime_sched::{Core, SessionId, TaskError, TaskEvent, TaskId, TaskRange, TaskSpec};
use headtime_sim::background::{Background, Progress};

use super::hot_files::{Export, Moving, Settling, TORN};

/// Sectors that are picked up at a time, as `headtime reorganise` does: 32 KiB.
const PICKUP: u32 = 64;
/// Units of a batch, as `headtime reorganise` has them: of the first attempt, and of the further
/// ones.
const BATCHES: [usize; 3] = [256, 16, 4];
/// Units of a batch that were overwritten and are copied again at its end, at most: the server's.
const MAX_RECOPIES: u32 = 4;

/// Which units are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chosen {
    /// The hot ones.
    Hot,
    /// As many others: the mechanism switched off.
    #[cfg(test)]
    Any,
}

/// `headtime reorganise`.
#[derive(Debug)]
pub(crate) struct Reorganiser {
    export: Rc<RefCell<Export>>,
    planned: VecDeque<Move>,
    /// Moves to be tried again.
    again: Vec<Move>,
    attempt: usize,
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
        Reorganiser {
            export: Rc::clone(export),
            planned: planned.into(),
            again: Vec::new(),
            attempt: 0,
            session: None,
            batch: Vec::new(),
            task: None,
            done_at: None,
        }
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
        if self.planned.is_empty() && self.attempt + 1 < BATCHES.len() {
            self.attempt += 1;
            self.planned = std::mem::take(&mut self.again).into();
        }
        let size = BATCHES[self.attempt].min(self.planned.len());
        self.batch = self.planned.drain(..size).collect();
        if self.batch.is_empty() {
            self.done_at = Some(now);
            return Ok(());
        }
        {
            let mut e = self.export.borrow_mut();
            for m in &self.batch {
                // What a write in flight may still overwrite: any part.
                let begin = e.map.part().lbn + m.unit * e.map.unit_sectors();
                let count = e.map.range(m.unit, m.to).count;
                let overwritten = e.writing.contains_key(&m.unit).then_some(TaskRange { lbn: begin, count });
                let copy = if overwritten.is_some() { (m.unit, TORN) } else { e.content(m.unit) };
                e.moving.insert(m.unit, Moving { copy, overwritten });
            }
        }
        self.register(false, core, now)
    }

    /// The batch is copied: it settles. Units with writes in flight, and those that were
    /// overwritten if they are too many, are tried again.
    fn settles(&mut self) {
        let mut e = self.export.borrow_mut();
        let mut settling = Settling { moves: Vec::new(), left: VecDeque::new() };
        let mut recopies = 0;
        for m in std::mem::take(&mut self.batch) {
            let Moving { copy, overwritten } = e.moving.remove(&m.unit).expect("it began");
            if e.writing.contains_key(&m.unit) || (overwritten.is_some() && recopies == MAX_RECOPIES) {
                self.again.push(m);
                e.in_vain += 1;
                continue;
            }
            e.copied(m, copy);
            if let Some(part) = overwritten {
                recopies += 1;
                e.recopied += 1;
                settling.left.push_back((Kind::Read, e.in_place(m.unit, part, e.map.place(m.unit))));
                settling.left.push_back((Kind::Write, e.in_place(m.unit, part, m.to)));
            }
            settling.moves.push(m);
        }
        if !settling.moves.is_empty() {
            settling.left.extend(e.maps().map(|copy| (Kind::Write, copy)));
            e.settling.push_back(settling);
        }
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
        self.done_at.is_some() && self.export.borrow().settling.is_empty()
    }

    fn progress(&self) -> Progress {
        Progress { done_at: self.done_at, ..Progress::default() }
    }
}
