//! Reorganised exports: where the sectors of their requests are, moves of units in progress, and
//! writes that wait for the end of one.
//!
//! A move has four steps. It *begins*: from now on a write to the unit is noticed. Its client
//! copies the data with background tasks. It *settles*: its writes wait while what was overwritten
//! meanwhile is copied again, and then the new map is written to the disk. It *ends*: the unit is
//! in its new place, the waiting writes go there. If a write to the unit is in progress when it
//! settles, or too many others were overwritten, nothing has happened, and the client begins anew.
//! At no time does the map on the disk name a place that has not the data.

use std::collections::BTreeMap;
use std::sync::Arc;

use headtime_disk::Kind;
use headtime_sched::layout::{BlockMap, Heat, Move, Place};
use headtime_sched::{SessionId, TaskRange};

use super::layout_call::{Begun, LayoutCall, LayoutView, MAX_COPIES, MAX_MOVES, Settling, Stored};
use super::messages::Submission;

/// A move in progress.
#[derive(Clone, Copy, Debug)]
struct Moving {
    session: SessionId,
    to: Place,
    /// What was or may be overwritten of its unit since it began, counted from the unit's
    /// beginning.
    overwritten: Option<TaskRange>,
    /// Writes to its unit wait.
    settles: bool,
    /// It cannot be said in which place the unit will be when the server starts again.
    unknown: bool,
}

impl Moving {
    /// Notes that these sectors of the unit are overwritten.
    fn overwrites(&mut self, part: TaskRange) {
        let spanned = |all: TaskRange| {
            let lbn = all.lbn.min(part.lbn);
            TaskRange { lbn, count: all.end().max(part.end()) - lbn }
        };
        self.overwritten = Some(self.overwritten.map_or(part, spanned));
    }
}

/// Returns what a range has of another one, counted from the beginning of that.
fn part_of(whole: TaskRange, range: TaskRange) -> TaskRange {
    let (from, to) = (range.lbn.max(whole.lbn), range.end().min(whole.end()));
    TaskRange { lbn: from - whole.lbn, count: to - from }
}

/// A reorganised export.
#[derive(Debug)]
struct Layout {
    map: Arc<BlockMap>,
    heat: Heat,
    moving: BTreeMap<u64, Moving>,
    held: Vec<Submission>,
}

/// What becomes of a request that arrives.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// It is submitted, at these places.
    Submit(Submission, Vec<TaskRange>),
    /// It waits for the end of a move.
    Held,
    /// It fails: it cannot be said in which place its unit will be.
    Refused(Submission),
}

/// All reorganised exports, by number.
#[derive(Debug, Default)]
pub(crate) struct Layouts {
    all: BTreeMap<u32, Layout>,
}

impl Layouts {
    /// Returns the number of writes that wait for the end of a move.
    pub(crate) fn held(&self) -> usize {
        self.all.values().map(|layout| layout.held.len()).sum()
    }

    /// Removes the writes that wait.
    pub(crate) fn drain_held(&mut self) -> Vec<Submission> {
        self.all.values_mut().flat_map(|layout| layout.held.drain(..)).collect()
    }

    /// Handles a request of an export, in the sectors that its client knows.
    pub(crate) fn arrived(&mut self, submission: Submission) -> Arrival {
        let range = TaskRange { lbn: submission.lbn, count: u64::from(submission.count) };
        let Some(layout) = self.all.get_mut(&submission.owner).filter(|_| range.count > 0) else {
            return Arrival::Submit(submission, vec![range]);
        };
        let units = layout.map.unit_of(range.lbn)..=layout.map.unit_of(range.end() - 1);
        if submission.kind == Kind::Write {
            let mut holds = false;
            let (first, sectors) = (layout.map.part().lbn, layout.map.unit_sectors());
            for (unit, moving) in layout.moving.range_mut(units.clone()) {
                if moving.unknown {
                    return Arrival::Refused(submission);
                }
                holds |= moving.settles;
                // One that waits is carried out after the move.
                if !moving.settles {
                    let unit = TaskRange { lbn: first + unit * sectors, count: sectors };
                    moving.overwrites(part_of(unit, range));
                }
            }
            if holds {
                layout.held.push(submission);
                return Arrival::Held;
            }
        }
        layout.heat.accessed(units);
        Arrival::Submit(submission, layout.map.runs(range))
    }

    /// Carries out a call. `in_flight`: the requests that were submitted, and the commands at the
    /// drive, as kinds and places. Returns the writes that wait no longer.
    pub(crate) fn call(&mut self, call: LayoutCall, in_flight: impl Fn() -> Vec<(Kind, TaskRange)>) -> Vec<Submission> {
        // The caller may have gone.
        match call {
            LayoutCall::Load { export, map } => {
                let (map, heat) = (Arc::new(map), Heat::new());
                let new = Layout { map, heat, moving: BTreeMap::new(), held: Vec::new() };
                // Once, before the first request; a second one would be that of a second server.
                self.all.entry(export).or_insert(new);
            }
            LayoutCall::View { export, reply } => {
                // Sorting takes milliseconds, and is left to the caller.
                let view = |l: &Layout| LayoutView {
                    map: Arc::clone(&l.map),
                    hot: l.heat.units().collect(),
                    accesses: l.heat.accesses(),
                };
                _ = reply.send(self.all.get(&export).map(view));
            }
            LayoutCall::Begin { export, session, moves, reply } => {
                let begun = match self.all.get_mut(&export) {
                    Some(layout) => {
                        let in_flight = in_flight();
                        moves.iter().map(|m| layout.begin(*m, session, &in_flight)).collect()
                    }
                    None => moves.iter().map(|_| Err("the export is not reorganised".into())).collect(),
                };
                _ = reply.send(begun);
            }
            LayoutCall::Settle { export, session, units, reply } => {
                // Without an answer there is no such export.
                let Some(layout) = self.all.get_mut(&export) else { return Vec::new() };
                let settling = layout.settle(session, &units, &in_flight());
                if let Err(settling) = reply.send(settling) {
                    // No caller is left that would write the new map.
                    let units: Vec<u64> = settling.moves.iter().map(|m| m.unit).collect();
                    return self.end(export, &units, Stored::Old);
                }
            }
            LayoutCall::End { export, units, stored, reply } => {
                _ = reply.send(());
                return self.end(export, &units, stored);
            }
        }
        Vec::new()
    }

    /// Cancels the moves of a session that has closed; those that settle end by themselves.
    pub(crate) fn closed(&mut self, session: SessionId) {
        for layout in self.all.values_mut() {
            layout.moving.retain(|_, m| m.session != session || m.settles || m.unknown);
        }
    }

    fn end(&mut self, export: u32, units: &[u64], stored: Stored) -> Vec<Submission> {
        let Some(layout) = self.all.get_mut(&export) else { return Vec::new() };
        for &unit in units {
            let Some(moving) = layout.moving.get_mut(&unit).filter(|m| m.settles || m.unknown) else { continue };
            match stored {
                Stored::New => {
                    Arc::make_mut(&mut layout.map).set(unit, moving.to).expect("the place was reserved for this unit");
                    layout.moving.remove(&unit);
                }
                Stored::Old => _ = layout.moving.remove(&unit),
                Stored::Unknown => (moving.settles, moving.unknown) = (false, true),
            }
        }
        std::mem::take(&mut layout.held)
    }
}

impl Layout {
    /// Begins a move.
    fn begin(&mut self, m: Move, session: SessionId, in_flight: &[(Kind, TaskRange)]) -> Result<Begun, String> {
        self.map.check(m.unit, m.to).map_err(|e| e.to_string())?;
        let unit = m.unit;
        let place = self.map.place(unit);
        if place == m.to {
            return Err(format!("unit {unit}: it is there already"));
        }
        if self.moving.len() >= MAX_MOVES {
            return Err(format!("unit {unit}: expected at most {MAX_MOVES} moves at a time"));
        }
        if self.moving.contains_key(&unit) {
            return Err(format!("unit {unit}: it is being moved"));
        }
        if m.to != Place::Home && self.moving.values().any(|other| other.to == m.to) {
            return Err(format!("unit {unit}: another unit is being moved there"));
        }
        let (from, to) = (self.map.range(unit, place), self.map.range(unit, m.to));
        if in_flight.iter().any(|(_, at)| at.overlaps(&to)) {
            // A request for the unit that was there before.
            return Err(format!("unit {unit}: its new place is in use still"));
        }
        let mut moving = Moving { session, to: m.to, overwritten: None, settles: false, unknown: false };
        writes(in_flight, from).for_each(|at| moving.overwrites(part_of(from, at)));
        self.moving.insert(unit, moving);
        Ok(Begun { unit, from, to })
    }

    /// Holds back the writes to units, and returns what is to be copied again. Cancels the moves of
    /// those to which writes are in flight, and of those that were overwritten if they are too
    /// many.
    fn settle(&mut self, session: SessionId, units: &[u64], in_flight: &[(Kind, TaskRange)]) -> Settling {
        let (mut moves, mut copies) = (Vec::new(), Vec::new());
        for &unit in units {
            let own = |m: &&mut Moving| m.session == session && !m.settles && !m.unknown;
            let Some(moving) = self.moving.get_mut(&unit).filter(own) else { continue };
            let (from, to) = (self.map.range(unit, self.map.place(unit)), self.map.range(unit, moving.to));
            if let Some(part) = moving.overwritten {
                // A write that is not done yet may reach the disk after it was read.
                if copies.len() == MAX_COPIES || writes(in_flight, from).next().is_some() {
                    self.moving.remove(&unit);
                    continue;
                }
                let at = |place: TaskRange| TaskRange { lbn: place.lbn + part.lbn, count: part.count };
                copies.push(Begun { unit, from: at(from), to: at(to) });
            }
            moving.settles = true;
            moves.push(Move { unit, to: moving.to });
        }
        Settling { moves, copies, map: Arc::clone(&self.map) }
    }
}

/// Returns the writes in flight to a place.
fn writes(in_flight: &[(Kind, TaskRange)], place: TaskRange) -> impl Iterator<Item = TaskRange> {
    in_flight.iter().filter(move |(kind, at)| *kind == Kind::Write && at.overlaps(&place)).map(|&(_, at)| at)
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    /// An export of 4 units of 8 sectors from sector 100, with a reserve of 2 slots from 1,000.
    fn layouts() -> Layouts {
        let mut layouts = Layouts::default();
        let map = BlockMap::new(TaskRange { lbn: 100, count: 32 }, TaskRange { lbn: 1_000, count: 16 }, 8).unwrap();
        layouts.call(LayoutCall::Load { export: 3, map }, Vec::new);
        layouts
    }

    fn request(kind: Kind, lbn: u64) -> Submission {
        Submission { kind, lbn, count: 1, owner: 3, ..Submission::flush() }
    }

    fn place(layouts: &mut Layouts, kind: Kind, lbn: u64) -> Option<u64> {
        match layouts.arrived(request(kind, lbn)) {
            Arrival::Submit(_, at) => Some(at[0].lbn),
            Arrival::Held => None,
            Arrival::Refused(_) => panic!("refused"),
        }
    }

    fn begin(layouts: &mut Layouts, unit: u64, slot: u32, in_flight: &[(Kind, TaskRange)]) -> Result<Begun, String> {
        let (reply, mut answer) = oneshot::channel();
        let moves = vec![Move { unit, to: Place::Slot(slot) }];
        layouts.call(LayoutCall::Begin { export: 3, session: SessionId(1), moves, reply }, || in_flight.to_vec());
        answer.try_recv().unwrap().remove(0)
    }

    fn settle(layouts: &mut Layouts, unit: u64) -> Settling {
        settle_all(layouts, vec![unit], &[])
    }

    fn settle_all(layouts: &mut Layouts, units: Vec<u64>, in_flight: &[(Kind, TaskRange)]) -> Settling {
        let (reply, mut answer) = oneshot::channel();
        let call = LayoutCall::Settle { export: 3, session: SessionId(1), units, reply };
        layouts.call(call, || in_flight.to_vec());
        answer.try_recv().unwrap()
    }

    fn end(layouts: &mut Layouts, unit: u64, stored: Stored) -> usize {
        let (reply, mut answer) = oneshot::channel();
        let released = layouts.call(LayoutCall::End { export: 3, units: vec![unit], stored, reply }, Vec::new);
        answer.try_recv().unwrap();
        released.len()
    }

    #[test]
    fn a_unit_is_in_its_new_place_once_the_map_is_stored_and_writes_wait_for_that() {
        let mut l = layouts();
        let begun = begin(&mut l, 1, 0, &[]).unwrap();
        assert_eq!((begun.from, begun.to), (TaskRange { lbn: 108, count: 8 }, TaskRange { lbn: 1_000, count: 8 }));
        assert_eq!(place(&mut l, Kind::Read, 109), Some(109));
        assert_eq!(place(&mut l, Kind::Write, 107), Some(107), "another unit");
        let settling = settle(&mut l, 1);
        assert_eq!((settling.moves, settling.map.moved().len()), (vec![Move { unit: 1, to: Place::Slot(0) }], 0));
        assert_eq!(place(&mut l, Kind::Write, 109), None);
        assert_eq!((place(&mut l, Kind::Read, 109), l.held()), (Some(109), 1));
        assert_eq!(end(&mut l, 1, Stored::New), 1);
        assert_eq!((place(&mut l, Kind::Write, 109), place(&mut l, Kind::Read, 109)), (Some(1_001), Some(1_001)));
    }

    #[test]
    fn what_is_overwritten_is_copied_again_and_while_it_is_written_the_unit_stays() {
        let mut l = layouts();
        begin(&mut l, 1, 0, &[]).unwrap();
        assert_eq!((place(&mut l, Kind::Write, 112), place(&mut l, Kind::Write, 114)), (Some(112), Some(114)));
        let copies = settle(&mut l, 1).copies;
        let (from, to) = (TaskRange { lbn: 112, count: 3 }, TaskRange { lbn: 1_004, count: 3 });
        assert_eq!(copies, [Begun { unit: 1, from, to }]);
        assert_eq!(place(&mut l, Kind::Write, 112), None);
        end(&mut l, 1, Stored::Old);
        // A write that was submitted before, and may not be done when the unit is read.
        let write = (Kind::Write, TaskRange { lbn: 115, count: 2 });
        begin(&mut l, 1, 0, &[write]).unwrap();
        assert_eq!(settle_all(&mut l, vec![1], &[write]).moves, []);
        begin(&mut l, 1, 0, &[write]).unwrap();
        assert_eq!(settle(&mut l, 1).copies[0].from, TaskRange { lbn: 115, count: 1 }, "what is the unit's");
        end(&mut l, 1, Stored::Old);
        begin(&mut l, 1, 0, &[(Kind::Read, TaskRange { lbn: 115, count: 1 })]).unwrap();
        assert_eq!(settle(&mut l, 1).copies, []);
    }

    #[test]
    fn a_few_units_are_copied_again_at_a_time() {
        let mut l = Layouts::default();
        let map = BlockMap::new(TaskRange { lbn: 100, count: 80 }, TaskRange { lbn: 1_000, count: 80 }, 8).unwrap();
        l.call(LayoutCall::Load { export: 3, map }, Vec::new);
        for unit in 0..8 {
            begin(&mut l, unit, unit as u32, &[]).unwrap();
            if unit != 2 {
                place(&mut l, Kind::Write, 100 + 8 * unit).unwrap();
            }
        }
        let settling = settle_all(&mut l, (0..8).collect(), &[]);
        let units: Vec<u64> = settling.moves.iter().map(|m| m.unit).collect();
        assert_eq!((units, settling.copies.len()), (vec![0, 1, 2, 3, 4], MAX_COPIES));
        assert!(place(&mut l, Kind::Write, 100 + 8 * 7).is_some());
    }

    #[test]
    fn when_the_old_map_is_stored_nothing_has_moved_and_when_that_is_unknown_writes_fail() {
        let mut l = layouts();
        begin(&mut l, 1, 0, &[]).unwrap();
        settle(&mut l, 1);
        assert_eq!(place(&mut l, Kind::Write, 108), None);
        assert_eq!(end(&mut l, 1, Stored::Old), 1);
        assert_eq!(place(&mut l, Kind::Write, 108), Some(108));
        begin(&mut l, 1, 0, &[]).unwrap();
        settle(&mut l, 1);
        assert_eq!(end(&mut l, 1, Stored::Unknown), 0);
        assert_eq!(place(&mut l, Kind::Read, 108), Some(108));
        assert!(matches!(l.arrived(request(Kind::Write, 108)), Arrival::Refused(_)));
        l.closed(SessionId(1));
        assert!(begin(&mut l, 1, 0, &[]).is_err());
        assert!(begin(&mut l, 2, 0, &[]).is_err(), "the slot may be that of unit 1");
        // Later the old map could be written.
        assert_eq!(end(&mut l, 1, Stored::Old), 0);
        assert_eq!(place(&mut l, Kind::Write, 108), Some(108));
        begin(&mut l, 2, 0, &[]).unwrap();
    }

    #[test]
    fn a_place_in_use_is_not_given_to_another_unit() {
        let mut l = layouts();
        let used = [(Kind::Read, TaskRange { lbn: 1_007, count: 1 })];
        assert!(begin(&mut l, 1, 0, &used).is_err());
        begin(&mut l, 1, 1, &used).unwrap();
        assert!(begin(&mut l, 2, 1, &[]).is_err());
        // The session closes: its move is cancelled.
        l.closed(SessionId(1));
        begin(&mut l, 2, 1, &[]).unwrap();
        settle(&mut l, 2);
        // One that settles goes on.
        l.closed(SessionId(1));
        end(&mut l, 2, Stored::New);
        assert_eq!(place(&mut l, Kind::Read, 116), Some(1_008));
        assert!(begin(&mut l, 1, 1, &[]).is_err());
    }

    #[test]
    fn if_nobody_waits_for_the_answer_the_old_map_stays() {
        let mut l = layouts();
        begin(&mut l, 1, 0, &[]).unwrap();
        let (reply, answer) = oneshot::channel();
        drop(answer);
        l.call(LayoutCall::Settle { export: 3, session: SessionId(1), units: vec![1], reply }, Vec::new);
        assert_eq!(place(&mut l, Kind::Write, 109), Some(109));
    }
}
