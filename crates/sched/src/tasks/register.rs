//! Registration and removal of tasks.

use super::bits::Bits;
use super::manager::{Change, TaskManager};
use super::table::{Extent, MAX_SERIAL, SLOT_BITS, Task, WRITE, side};
use super::{SessionId, TaskError, TaskId, TaskRange, TaskSpec};
use crate::list::NONE;

/// Largest unit, in sectors: a unit is picked up by one command.
pub const MAX_PICKUP: u32 = 1 << 16;

impl TaskManager {
    /// Registers a task. If it writes, older write tasks lose the units that it overlaps.
    ///
    /// It is rejected if its bits, at their upper bound, do not fit into the remaining memory, so
    /// an accepted task never fails later.
    ///
    /// # Errors
    /// The session is not open, the spec is invalid, or a limit is reached. Nothing has changed
    /// then.
    pub fn register(&mut self, session: SessionId, spec: &TaskSpec) -> Result<TaskId, TaskError> {
        let owner = self.sessions.need(session)?;
        let side = side(spec.kind).ok_or(TaskError::Kind)?;
        let order = self.check_spec(spec)?;
        let bits_at_most = self.check_room(spec)?;
        let ranges = || (0..spec.ranges.len()).map(|n| spec.ranges[order.as_ref().map_or(n, |o| o[n] as usize)]);
        if side == WRITE {
            let runs: usize = ranges().map(|r| self.supersedes(&r)).sum();
            if runs > self.limits.events.saturating_sub(self.events.len()) {
                return Err(TaskError::Full { what: "events", limit: self.limits.events });
            }
            ranges().for_each(|r| self.supersede(&r));
        }

        let at = self.tasks.insert(Task::default());
        let id = TaskId(self.serial << SLOT_BITS | u64::from(at));
        self.serial += 1;
        self.index.reserve(spec.ranges.len(), &mut self.extents);
        let (mut first, mut last, mut total) = (NONE, NONE, 0);
        for TaskRange { lbn, count } in ranges() {
            let mut e = Extent {
                lbn,
                count,
                task: at,
                unit: spec.min_pickup,
                session: owner,
                side: side as u8,
                ..Extent::default()
            };
            e.left = e.units();
            e.bits = Bits::new(e.left);
            self.bits += e.bits.bytes();
            let here = self.extents.insert(e);
            self.index.insert(here, &mut self.extents);
            match last {
                NONE => first = here,
                _ => self.extents[last].sibling = here,
            }
            last = here;
            total += count;
        }
        self.bits_at_most += bits_at_most;
        let before = self.sessions.change(owner, |s| {
            s.left[side] += total;
            s.tasks += 1;
            if s.first_task == NONE {
                s.first_task = at;
            }
            std::mem::replace(&mut s.last_task, at)
        });
        if before != NONE {
            self.tasks[before].after = at;
        }
        self.tasks[at] = Task {
            id,
            total,
            left: total,
            blksize: spec.blksize,
            unit: spec.min_pickup,
            first,
            before,
            session: owner,
            kind: spec.kind,
            ..Task::default()
        };
        Ok(id)
    }

    /// Returns the order of the ranges by LBN, unless they are already in order.
    fn check_spec(&self, spec: &TaskSpec) -> Result<Option<Vec<u32>>, TaskError> {
        let TaskSpec { ranges, blksize, min_pickup, .. } = spec;
        if *blksize == 0 || *min_pickup == 0 || min_pickup % blksize != 0 || *min_pickup > MAX_PICKUP {
            return Err(TaskError::Unit { blksize: *blksize, min_pickup: *min_pickup, most: MAX_PICKUP });
        }
        if ranges.is_empty() {
            return Err(TaskError::Empty { index: 0 });
        }
        for (index, r) in ranges.iter().enumerate() {
            if r.count == 0 {
                return Err(TaskError::Empty { index });
            }
            let end = r.lbn.saturating_add(r.count);
            if end > self.capacity {
                return Err(TaskError::OutOfRange { index, end, capacity: self.capacity });
            }
        }
        let limit = self.limits.ranges.min(u32::MAX as usize - 1);
        if ranges.len() > limit - self.extents.len().min(limit) {
            return Err(TaskError::Full { what: "ranges", limit });
        }
        let apart = |a: &TaskRange, b: &TaskRange| match a.end() <= b.lbn {
            true => Ok(()),
            false => Err(TaskError::Overlap { first: a.lbn, second: b.lbn }),
        };
        if ranges.is_sorted_by_key(|r| r.lbn) {
            ranges.windows(2).try_for_each(|w| apart(&w[0], &w[1]))?;
            return Ok(None);
        }
        let mut order: Vec<u32> = (0..ranges.len() as u32).collect();
        order.sort_unstable_by_key(|&n| (ranges[n as usize].lbn, n));
        order.windows(2).try_for_each(|w| apart(&ranges[w[0] as usize], &ranges[w[1] as usize]))?;
        Ok(Some(order))
    }

    /// Returns the upper bound of the task's bits in bytes, if there is room for them and the rest
    /// of the task.
    fn check_room(&self, spec: &TaskSpec) -> Result<usize, TaskError> {
        let limit = self.limits.tasks.min(1 << SLOT_BITS);
        if self.tasks.len() >= limit {
            return Err(TaskError::Full { what: "tasks", limit });
        }
        if self.serial >= MAX_SERIAL {
            return Err(TaskError::Full { what: "names of tasks", limit: MAX_SERIAL as usize });
        }
        let worst = |r: &TaskRange| Bits::worst(r.count.div_ceil(u64::from(spec.min_pickup)));
        // A disk has fewer than 2^64 bits of units in total, and ranges do not overlap, so this
        // cannot overflow.
        let bits: u64 = spec.ranges.iter().map(worst).sum();
        let ranges = spec.ranges.len();
        let tables = self.tasks.bytes_for(1) + self.extents.bytes_for(ranges) + self.index.bytes_for(ranges);
        self.check_bytes(bits + tables as u64)?;
        Ok(bits as usize)
    }

    /// Removes a task from all structures and its session, after an abort or its end. `tell`:
    /// whether the scheduling layer is notified of its ranges that are no longer wanted.
    pub(super) fn drop_task(&mut self, at: u32, tell: bool) {
        let task = &self.tasks[at];
        let (id, owner, kind, left) = (task.id, task.session, task.kind, task.left);
        let (before, after, mut e) = (task.before, task.after, task.first);
        let promoted = task.promoted;
        let session = self.sessions.get(owner).id;
        while e != NONE {
            if self.extents[e].left > 0 {
                self.index.remove(e, &mut self.extents);
                if tell {
                    let range = TaskRange { lbn: self.extents[e].lbn, count: self.extents[e].count };
                    self.changes.push(Change { session, kind, range });
                }
            }
            let gone = self.extents.remove(e);
            self.bits -= gone.bits.bytes();
            self.bits_at_most -= Bits::worst(gone.units()) as usize;
            e = gone.sibling;
        }
        self.marks.forget(id);
        if promoted {
            self.unlink_promoted(at);
        }
        if before != NONE {
            self.tasks[before].after = after;
        }
        if after != NONE {
            self.tasks[after].before = before;
        }
        let side = side(kind).expect("a task reads or writes");
        self.sessions.change(owner, |s| {
            s.left[side] -= left;
            s.tasks -= 1;
            if s.first_task == at {
                s.first_task = after;
            }
            if s.last_task == at {
                s.last_task = before;
            }
        });
        self.tasks.remove(at);
    }
}
