//! The reference model: the requests of all applications, the data of every sector, and what is
//! allowed.
//!
//! Every foreground write and every write task has a number, ascending in order of submission. A
//! sector holds the number of the last write to it, which never decreases.

mod events;

use std::collections::BTreeMap;

use headtime_disk::{Command, Kind, Outcome, Time};
use headtime_sched::{Finished, Request, SessionId, TaskId, TaskLimits, TaskRange, TaskSpec};

use super::{Tally, names_own};

struct Session {
    suspended: bool,
    /// Whether its rate is limited: then it may not get what a command read.
    limited: bool,
    window: u64,
    untaken: u64,
}

struct Part {
    range: TaskRange,
    unit: u64,
    /// Whether each unit is still wanted.
    wanted: Vec<bool>,
}

struct Task {
    session: SessionId,
    kind: Kind,
    number: u64,
    parts: Vec<Part>,
}

struct Foreground {
    request: Request,
    number: u64,
    sent: bool,
    /// Of a read: minimum numbers of its sectors, from earlier submissions.
    expects: Vec<u64>,
}

/// A command at the drive.
struct Flying {
    command: Command,
    /// Free sectors at its front.
    free: u32,
    /// The foreground requests it carries, in LBN order.
    parts: Vec<u64>,
}

pub(super) struct Shadow {
    pub tally: Tally,
    limits: TaskLimits,
    sessions: BTreeMap<SessionId, Session>,
    tasks: BTreeMap<TaskId, Task>,
    foreground: BTreeMap<u64, Foreground>,
    /// Requests in order of arrival.
    arrived: Vec<u64>,
    /// Requests of failed merged commands that were not dispatched again.
    again: usize,
    at_drive: BTreeMap<u64, Flying>,
    /// Data ready to be written: the task's number and the sectors.
    ready: Vec<(u64, TaskRange)>,
    /// The number held by each sector of the area.
    holds: Vec<u64>,
    /// The highest number of foreground writes submitted to each sector.
    submitted: Vec<u64>,
    /// The highest number of any request submitted or task registered for each sector.
    newest: Vec<u64>,
    next_number: u64,
    /// Numbers of write tasks.
    of_tasks: Vec<u64>,
    /// The last command that ended at the drive, with its outcome.
    last: Option<(Flying, Outcome)>,
    events: usize,
}

impl Part {
    /// Returns the units that overlap `range`.
    fn touching(&self, range: &TaskRange) -> std::ops::Range<usize> {
        let lo = range.lbn.max(self.range.lbn) - self.range.lbn;
        let hi = range.end().min(self.range.end()).saturating_sub(self.range.lbn);
        (lo / self.unit) as usize..hi.div_ceil(self.unit).max(lo / self.unit) as usize
    }

    fn span(&self, unit: usize) -> TaskRange {
        let lbn = self.range.lbn + unit as u64 * self.unit;
        TaskRange { lbn, count: self.unit.min(self.range.end() - lbn) }
    }

    /// Whether `range` consists of whole units.
    fn is_whole(&self, range: &TaskRange) -> bool {
        let whole = |lbn: u64| (lbn - self.range.lbn).is_multiple_of(self.unit) || lbn == self.range.end();
        range.lbn >= self.range.lbn && range.end() <= self.range.end() && whole(range.lbn) && whole(range.end())
    }

    fn left(&self) -> u64 {
        (0..self.wanted.len()).filter(|&u| self.wanted[u]).map(|u| self.span(u).count).sum()
    }
}

fn inside(inner: &TaskRange, outer: &TaskRange) -> bool {
    inner.lbn >= outer.lbn && inner.end() <= outer.end()
}

fn range(lbn: u64, count: u32) -> TaskRange {
    TaskRange { lbn, count: u64::from(count) }
}

fn conflict(a: (Kind, &TaskRange), b: (Kind, &TaskRange)) -> bool {
    let data = a.0 != Kind::Flush && b.0 != Kind::Flush;
    data && (a.0 == Kind::Write || b.0 == Kind::Write) && a.1.overlaps(b.1)
}

impl Shadow {
    pub(crate) fn new(area: u64, limits: TaskLimits) -> Shadow {
        Shadow {
            tally: Tally::default(),
            limits,
            sessions: BTreeMap::new(),
            tasks: BTreeMap::new(),
            foreground: BTreeMap::new(),
            arrived: vec![],
            again: 0,
            at_drive: BTreeMap::new(),
            ready: vec![],
            holds: vec![0; area as usize],
            submitted: vec![0; area as usize],
            newest: vec![0; area as usize],
            next_number: 0,
            of_tasks: vec![],
            last: None,
            events: 0,
        }
    }

    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    pub(crate) fn sessions(&self) -> Vec<SessionId> {
        self.sessions.keys().copied().collect()
    }

    pub(crate) fn tasks(&self) -> Vec<TaskId> {
        self.tasks.keys().copied().collect()
    }

    pub(crate) fn is_open(&self, session: SessionId) -> bool {
        self.sessions.contains_key(&session)
    }

    pub(crate) fn exists(&self, task: TaskId) -> bool {
        self.tasks.contains_key(&task)
    }

    pub(crate) fn unfinished(&self) -> usize {
        self.foreground.len()
    }

    pub(crate) fn is_anything_wanted(&self) -> bool {
        !self.tasks.is_empty()
    }

    /// Describes what is still wanted.
    pub(crate) fn left(&self) -> String {
        let sectors: u64 = self.tasks.values().flat_map(|t| &t.parts).map(Part::left).sum();
        format!("{sectors} sectors of {} tasks", self.tasks.len())
    }

    pub(crate) fn opened(&mut self, id: SessionId) {
        let new = Session { suspended: false, limited: false, window: u64::MAX, untaken: 0 };
        if self.sessions.insert(id, new).is_some() {
            self.tally.complain(format!("{id:?} was given twice"));
        }
    }

    pub(crate) fn suspended(&mut self, id: SessionId, suspended: bool) {
        if let Some(s) = self.sessions.get_mut(&id) {
            s.suspended = suspended;
        }
    }

    pub(crate) fn limited(&mut self, id: SessionId, limited: bool) {
        if let Some(s) = self.sessions.get_mut(&id) {
            s.limited = limited;
        }
    }

    pub(crate) fn window(&mut self, id: SessionId, sectors: u64) {
        if let Some(s) = self.sessions.get_mut(&id) {
            s.window = sectors;
        }
    }

    pub(crate) fn taken(&mut self, id: SessionId, sectors: u64) {
        if let Some(s) = self.sessions.get_mut(&id) {
            s.untaken = s.untaken.saturating_sub(sectors);
        }
    }

    pub(crate) fn registered(&mut self, session: SessionId, id: TaskId, spec: &TaskSpec) {
        let number = self.number();
        if spec.kind == Kind::Write {
            self.of_tasks.push(number);
            for r in &spec.ranges {
                let at = self.sectors(r);
                self.newest[at].fill(number);
            }
        }
        let part = |r: &TaskRange| {
            let unit = u64::from(spec.min_pickup);
            Part { range: *r, unit, wanted: vec![true; r.count.div_ceil(unit) as usize] }
        };
        self.tally.wanted += spec.ranges.iter().map(|r| r.count).sum::<u64>();
        let task = Task { session, kind: spec.kind, number, parts: spec.ranges.iter().map(part).collect() };
        if self.tasks.insert(id, task).is_some() {
            self.tally.complain(format!("{id:?} was given twice"));
        }
    }

    pub(crate) fn aborted(&mut self, id: TaskId) {
        if let Some(gone) = self.tasks.remove(&id) {
            self.tally.aborted += gone.parts.iter().map(Part::left).sum::<u64>();
            // Commands at the drive complete; no other data of the task may be sent, because it is
            // gone.
            let flies =
                |r: &TaskRange| self.at_drive.values().any(|f| inside(r, &range(f.command.lbn, f.command.count)));
            self.ready.retain(|(number, r)| *number != gone.number || flies(r));
        }
    }

    pub(crate) fn closed(&mut self, id: SessionId) {
        self.sessions.remove(&id);
        let of = self.tasks.iter().filter(|(_, t)| t.session == id).map(|(id, _)| *id);
        for task in of.collect::<Vec<_>>() {
            self.aborted(task);
        }
    }

    /// Returns the sectors of the area in a range.
    fn sectors(&self, r: &TaskRange) -> std::ops::Range<usize> {
        let most = self.holds.len() as u64;
        r.lbn.min(most) as usize..r.end().min(most) as usize
    }

    pub(crate) fn submitted(&mut self, request: &Request) {
        let at = self.sectors(&range(request.lbn, request.count));
        let (mut number, mut expects) = (0, vec![]);
        match request.kind {
            Kind::Write => {
                number = self.number();
                self.submitted[at.clone()].fill(number);
                self.newest[at].fill(number);
            }
            Kind::Read => expects = self.submitted[at].to_vec(),
            Kind::Flush => {}
        }
        self.arrived.push(request.id);
        self.foreground.insert(request.id, Foreground { request: *request, number, sent: false, expects });
    }

    /// Checks a dispatched command. `parts`: its requests according to the core. Of two identical
    /// requests of two applications, either may be first.
    pub(crate) fn issued(&mut self, command: &Command, free: u32, promoted: bool, parts: Vec<u64>) {
        self.tally.commands += 1;
        let all = range(command.lbn, command.count);
        if self.at_drive.len() >= 2 {
            self.tally.complain(format!("{command:?} is the third at the drive"));
        }
        for other in self.at_drive.values() {
            let there = range(other.command.lbn, other.command.count);
            if conflict((command.kind, &all), (other.command.kind, &there)) {
                self.tally.complain(format!("{command:?} is sent while {:?} is at the drive", other.command));
            }
        }
        let own = range(command.lbn + u64::from(free), command.count - free);
        // The command must consist of undispatched requests.
        let mut end = own.lbn;
        let are_it = parts.iter().all(|id| {
            let Some(f) = self.foreground.get(id) else { return false };
            let r = &f.request;
            let is_next = r.kind == command.kind && (r.kind == Kind::Flush || r.lbn == end && r.count > 0);
            end += u64::from(r.count);
            !f.sent && is_next
        });
        let all_of_it = parts.is_empty() || command.kind == Kind::Flush || end == own.end();
        if promoted != (parts.is_empty() && own.count > 0) && command.kind != Kind::Flush || !are_it || !all_of_it {
            self.tally.complain(format!("{command:?}, {free} of it free, is not requests {parts:?}"));
        }
        let there = |f: &Foreground| range(f.request.lbn, f.request.count);
        for part in parts.iter().filter_map(|id| self.foreground.get(id)) {
            let older = self.arrived.iter().take_while(|f| **f < part.request.id).map(|f| &self.foreground[f]);
            let overtaken = older.clone().find(|f| conflict((command.kind, &there(part)), (f.request.kind, &there(f))));
            if let Some(f) = overtaken {
                self.tally.complain(format!("{command:?}, {free} of it free, overtakes {:?}", f.request));
            }
        }
        // Free sectors have not waited, so they must not pass requests that have.
        let front = range(command.lbn, free);
        let unsent = |f: &&Foreground| !f.sent && !parts.contains(&f.request.id);
        let passed = self
            .foreground
            .values()
            .filter(unsent)
            .find(|f| free > 0 && conflict((command.kind, &front), (f.request.kind, &there(f))));
        if let Some(f) = passed {
            self.tally.complain(format!("{free} free sectors of {command:?} are sent before {:?}", f.request));
        }
        for id in &parts {
            if let Some(f) = self.foreground.get_mut(id) {
                f.sent = true;
            }
        }
        if parts.len() == 1 {
            self.again = self.again.saturating_sub(1);
        }
        self.tally.together += u64::from(parts.len() > 1);
        let needs = if parts.is_empty() { all } else { front };
        if command.kind == Kind::Write && self.has_ready(&needs) < needs.count {
            self.tally.complain(format!("{command:?}, {free} of it free, is written without data"));
        }
        self.at_drive.insert(command.id, Flying { command: *command, free, parts });
    }

    /// Returns a command at the drive.
    pub(crate) fn command(&self, id: u64) -> Option<Command> {
        self.at_drive.get(&id).map(|f| f.command)
    }

    /// Returns the number of foreground requests at the drive behind others in the same command,
    /// and those of a failed one to be dispatched again, which are first.
    pub(crate) fn behind(&self) -> usize {
        // While these occupy the drive, the request selected before them is held back.
        let held = usize::from(self.tally.together_failed > 0);
        held + self.again + self.at_drive.values().map(|f| f.parts.len().saturating_sub(1)).sum::<usize>()
    }

    /// Returns the number of sectors of a range for which applications have data.
    fn has_ready(&self, range: &TaskRange) -> u64 {
        self.ready.iter().filter(|(_, r)| inside(r, range)).map(|(_, r)| r.count).sum()
    }

    /// Returns the numbers that a write stores in its sectors, using up applications' data.
    fn data_of(&mut self, flying: &Flying) -> Vec<(u64, TaskRange)> {
        let c = &flying.command;
        let (front, own) = (range(c.lbn, flying.free), range(c.lbn + u64::from(flying.free), c.count - flying.free));
        let ready = |of: &TaskRange| self.ready.iter().filter(|(_, r)| inside(r, of)).copied().collect::<Vec<_>>();
        let mut data = ready(&front);
        if flying.parts.is_empty() {
            data.extend(ready(&own));
        }
        let parts = flying.parts.iter().filter_map(|id| self.foreground.get(id));
        data.extend(parts.map(|f| (f.number, range(f.request.lbn, f.request.count))));
        self.ready.retain(|r| !data.contains(r));
        data
    }

    pub(crate) fn completed(&mut self, id: u64, outcome: Outcome) {
        let Some(flying) = self.at_drive.remove(&id) else {
            self.tally.complain(format!("command {id} was not at the drive"));
            return;
        };
        self.events = 0;
        if let Outcome::MediaError { lbn } = outcome
            && (lbn < flying.command.lbn + u64::from(flying.free) || flying.parts.len() > 1)
        {
            self.tally.together_failed += u64::from(flying.parts.len() > 1);
            // The request after the front is dispatched again, and each of several.
            for id in &flying.parts {
                if let Some(f) = self.foreground.get_mut(id) {
                    f.sent = false;
                    self.again += usize::from(flying.parts.len() > 1);
                }
            }
        }
        if flying.command.kind == Kind::Write && outcome == Outcome::Ok {
            for (number, r) in self.data_of(&flying) {
                let at = self.sectors(&r);
                if let Some(newer) = self.holds[at.clone()].iter().find(|h| **h > number) {
                    self.tally.complain(format!("{:?} puts {number} over {newer}", flying.command));
                }
                self.holds[at].fill(number);
            }
        }
        self.last = Some((flying, outcome));
    }

    pub(crate) fn finished(&mut self, f: &Finished, now: Time) {
        let Some(gone) = self.foreground.remove(&f.request) else {
            self.tally.complain(format!("{f:?} finished twice or never began"));
            return;
        };
        self.arrived.retain(|id| *id != f.request);
        self.tally.finished += 1;
        self.tally.failed += u64::from(f.outcome != Outcome::Ok);
        let r = &gone.request;
        let own = range(r.lbn, r.count);
        if r.kind == Kind::Write && f.outcome != Outcome::Ok {
            // The contents are unknown now; nothing older than this may be read.
            let at = self.sectors(&own);
            self.holds[at].iter_mut().for_each(|held| *held = gone.number.max(*held));
        }
        let by = self.last.as_ref().is_some_and(|(l, outcome)| {
            let c = &l.command;
            c.kind == r.kind
                && *outcome == f.outcome
                && l.parts.contains(&f.request)
                && (r.kind == Kind::Flush || inside(&own, &range(c.lbn, c.count)))
        });
        if f.done != now || !gone.sent || !by || !names_own(f.outcome, r.lbn, r.count) {
            let last = self.last.as_ref().map(|(l, o)| (l.command, *o));
            self.tally.complain(format!("{r:?} finished as {f:?} by {last:?}"));
        }
        if r.kind == Kind::Read && f.outcome == Outcome::Ok {
            let found = &self.holds[self.sectors(&own)];
            for (held, expected) in found.iter().zip(&gone.expects) {
                if held < expected || (held > expected && self.of_tasks.binary_search(held).is_err()) {
                    self.tally.complain(format!("{r:?} found {held}, not {expected}"));
                    break;
                }
            }
        }
    }

    /// Checks a dropped request: it must be an undispatched read.
    pub(crate) fn given_up(&mut self, request: u64) {
        match self.foreground.remove(&request) {
            Some(gone) if !gone.sent && gone.request.kind == Kind::Read => self.tally.given_up += 1,
            gone => self.tally.complain(format!("{request} was given up: {:?}", gone.map(|g| (g.request, g.sent)))),
        }
        self.arrived.retain(|id| *id != request);
    }
}
