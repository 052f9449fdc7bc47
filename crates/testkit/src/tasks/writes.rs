//! Writes: data requested, granted, in flight, completed.

use std::collections::BTreeSet;

use headtime_disk::{Kind, Time};
use headtime_sched::{TaskEvent, TaskId, TaskRange};

use super::{Ask, End, Flight, NaiveTasks, is_inside, runs_of, sectors, span};

impl NaiveTasks {
    pub(super) fn land(&mut self, flight: Flight, written: bool, bad: Option<u64>) {
        for (id, range) in flight.pieces {
            let Some(task) = self.tasks.get(&id).cloned() else { continue };
            if written {
                self.end(id, range.lbn, range.end(), End::Written);
                continue;
            }
            let fate = |u: &(u64, u64, usize)| {
                if bad.is_some_and(|bad| (u.0..u.1).contains(&bad)) {
                    Some(End::Failed)
                } else if flight.stale.contains(&(id, u.0)) {
                    Some(End::Superseded)
                } else {
                    None
                }
            };
            let mine: Vec<_> = task.units.iter().filter(|u| u.0 >= range.lbn && u.1 <= range.end()).copied().collect();
            let mut at = 0;
            while at < mine.len() {
                let how = fate(&mine[at]);
                let alike = mine[at..].iter().take_while(|u| fate(u) == how).count();
                if let Some(how) = how {
                    self.end(id, mine[at].0, mine[at + alike - 1].1, how);
                }
                at += alike;
            }
        }
    }

    pub(super) fn busy(&self, l: u64) -> bool {
        self.asks.iter().any(|a| sectors(&a.range).contains(&l))
            || self.flights.iter().any(|f| sectors(&f.range).contains(&l))
            || self.refused.keys().any(|(_, r)| *r == l)
    }

    /// Requests data.
    pub fn ask(&mut self, range: TaskRange) -> bool {
        if self.asks.len() + self.flights.len() >= 64 || sectors(&range).any(|l| self.busy(l)) {
            return false;
        }
        let mut pieces = vec![];
        for (&id, t) in self.tasks.iter().filter(|(_, t)| t.kind == Kind::Write && self.may(t.session, Kind::Write)) {
            for run in runs_of(t, |u| u.0 >= range.lbn && u.1 <= range.end() && t.wanted.contains(&u.0)) {
                pieces.push((id, span(run[0].0, run[run.len() - 1].1), None));
            }
        }
        pieces.sort_by_key(|p| p.1.lbn);
        let covered = sectors(&range).all(|l| pieces.iter().any(|p| sectors(&p.1).contains(&l)));
        if !covered || pieces.len() > self.room() {
            return false;
        }
        for (id, r, _) in &pieces {
            self.events.push_back(TaskEvent::GetBuffer { session: self.tasks[id].session, task: *id, range: *r });
        }
        self.asks.push(Ask { range, pieces });
        true
    }

    /// Answers a request for data.
    pub fn answer(&mut self, task: TaskId, range: TaskRange, yes: bool) -> bool {
        for p in self.asks.iter_mut().flat_map(|a| &mut a.pieces) {
            if p.0 == task && p.1 == range && p.2.is_none() {
                p.2 = Some(yes);
                return true;
            }
        }
        false
    }

    /// Returns whether all data was granted.
    pub fn granted(&self, range: TaskRange) -> bool {
        self.asks.iter().any(|a| a.range == range && a.pieces.iter().all(|p| p.2 == Some(true)))
    }

    /// The write is dispatched.
    pub fn picked(&mut self, range: TaskRange) {
        let n = self.asks.iter().position(|a| a.range == range).expect("asked for");
        let ask = self.asks.remove(n);
        let pieces = ask.pieces.into_iter().map(|p| (p.0, p.1)).collect();
        self.flights.push(Flight { range, pieces, stale: BTreeSet::new() });
    }

    /// The command is not carried out after all.
    pub fn release(&mut self, kind: Kind, range: TaskRange, now: Time) {
        self.advance(now);
        self.carried.retain(|c| c.1 != kind || !is_inside(&c.2, &range));
        if kind != Kind::Write {
            return;
        }
        if let Some(n) = self.asks.iter().position(|a| a.range == range) {
            for (id, r, answer) in self.asks.remove(n).pieces {
                if answer != Some(true) {
                    self.refused.extend(sectors(&r).map(|l| ((id, l), self.now + self.backoff)));
                }
            }
        }
        if let Some(n) = self.flights.iter().position(|f| f.range == range) {
            let flight = self.flights.remove(n);
            self.land(flight, false, None);
        }
    }
}
