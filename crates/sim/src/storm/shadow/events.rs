//! Events of tasks: every wanted unit ends exactly once, by an event that its command explains.

use headtime_disk::{Kind, Outcome};
use headtime_sched::{TaskEvent, TaskId, TaskRange};

use super::{Shadow, inside, range};

impl Shadow {
    /// Checks that an application may be asked for data.
    pub(crate) fn asked(&mut self, event: &TaskEvent) {
        let TaskEvent::GetBuffer { session, task, range } = *event else { return };
        let fine = self.tasks.get(&task).is_some_and(|t| {
            let whole = t.parts.iter().any(|p| p.is_whole(&range) && p.touching(&range).all(|u| p.wanted[u]));
            t.session == session && t.kind == Kind::Write && whole
        });
        if !fine || self.sessions.get(&session).is_none_or(|s| s.suspended) {
            self.tally.complain(format!("{event:?} asks for a buffer that no task has"));
        }
    }

    /// Notes that an application has its data ready.
    pub(crate) fn granted(&mut self, task: TaskId, range: TaskRange) {
        let Some(number) = self.tasks.get(&task).map(|t| t.number) else { return };
        self.ready.retain(|(_, r)| !r.overlaps(&range));
        self.ready.push((number, range));
    }

    pub(crate) fn event(&mut self, event: &TaskEvent) {
        self.events += 1;
        if let Err(what) = self.take(event) {
            let last = self.last.as_ref().map(|(l, o)| (l.command, *o));
            self.tally.complain(format!("{event:?} {what}; last was {last:?}"));
        }
    }

    fn take(&mut self, event: &TaskEvent) -> Result<(), &'static str> {
        let session = self.sessions.get_mut(&event.session()).ok_or("comes after its session was closed")?;
        let task = self.tasks.get_mut(&event.task()).ok_or("comes after its task has ended")?;
        if task.session != event.session() {
            return Err("is not its session's");
        }
        let covers = |kind: Kind, r: &TaskRange| {
            self.last
                .as_ref()
                .filter(|(l, _)| l.command.kind == kind && inside(r, &range(l.command.lbn, l.command.count)))
        };
        let (range, kind, sum) = match *event {
            TaskEvent::Delivered { range, .. } => {
                if covers(Kind::Read, &range).is_none_or(|l| l.1 != Outcome::Ok) {
                    return Err("was not read");
                }
                if session.suspended {
                    return Err("comes to a suspended session");
                }
                let unit = task.parts.iter().find(|p| inside(&range, &p.range)).map_or(0, |p| p.unit);
                if session.untaken + range.count.saturating_sub(unit) > session.window {
                    return Err("is more than the window allows");
                }
                session.untaken += range.count;
                (range, Kind::Read, &mut self.tally.delivered)
            }
            TaskEvent::Written { range, .. } => {
                if covers(Kind::Write, &range).is_none_or(|l| l.1 != Outcome::Ok) {
                    return Err("was not written");
                }
                (range, Kind::Write, &mut self.tally.written)
            }
            // By a submitted request, a registered task, or the end of a failed write, each newer
            // than the task.
            TaskEvent::Superseded { range, .. } => {
                let most = self.newest.len() as u64;
                let newer = |r: &TaskRange| {
                    let sectors = r.lbn.min(most) as usize..r.end().min(most) as usize;
                    self.newest[sectors].iter().any(|n| *n > task.number)
                };
                let part = task.parts.iter().find(|p| inside(&range, &p.range)).ok_or("is in no range of its task")?;
                if !part.touching(&range).all(|u| newer(&part.span(u))) {
                    return Err("has no newer data over each of its units");
                }
                (range, Kind::Write, &mut self.tally.superseded)
            }
            TaskEvent::Failed { range, .. } => {
                let Some((l, Outcome::MediaError { lbn })) = &self.last else { return Err("and nothing failed") };
                if l.command.kind != task.kind || !(range.lbn..range.end()).contains(lbn) {
                    return Err("does not hold what failed");
                }
                (range, task.kind, &mut self.tally.unreadable)
            }
            TaskEvent::Done { .. } => {
                if task.parts.iter().any(|p| p.wanted.contains(&true)) {
                    return Err("and something is wanted still");
                }
                self.tasks.remove(&event.task());
                return Ok(());
            }
            TaskEvent::GetBuffer { .. } => return Err("is no end"),
        };
        if task.kind != kind {
            return Err("is the wrong kind");
        }
        let part = task.parts.iter_mut().find(|p| p.is_whole(&range)).ok_or("is not whole units of a range")?;
        let units = part.touching(&range);
        if !part.wanted[units.clone()].iter().all(|w| *w) {
            return Err("comes twice");
        }
        part.wanted[units].fill(false);
        *sum += range.count;
        Ok(())
    }

    /// Checks, after all events of a completion, that every task that could use the read data has
    /// received it.
    pub(crate) fn all_events_seen(&mut self) {
        let Some((flying, Outcome::Ok)) = &self.last else { return };
        if flying.command.kind != Kind::Read || self.events + 1 >= self.limits.events {
            return;
        }
        let read = range(flying.command.lbn, flying.command.count);
        let missed = self.tasks.iter().find(|(_, t)| {
            let s = &self.sessions[&t.session];
            let may = t.kind == Kind::Read && !s.suspended && !s.limited && s.window == u64::MAX;
            may && t.parts.iter().any(|p| p.touching(&read).any(|u| p.wanted[u] && inside(&p.span(u), &read)))
        });
        if let Some((id, _)) = missed {
            self.tally.complain(format!("{id:?} did not get what {:?} read", flying.command));
        }
    }
}
