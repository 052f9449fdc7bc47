//! Units that a sink has taken and not yet finished.

use std::collections::BTreeMap;

use headtime_sched::TaskRange;

use super::super::job::Stage;
use super::super::link::Link;
use super::Runner;

/// Units in the hands of a sink that finishes them later, each with the sectors that are to be
/// acknowledged when it is written: none if it came in an earlier session.
#[derive(Debug, Default)]
pub(super) struct Held(BTreeMap<u64, u64>);

impl Held {
    /// Notes that what was delivered so far need not be acknowledged any more.
    pub(super) fn session_begins(&mut self) {
        self.0.values_mut().for_each(|sectors| *sectors = 0);
    }
}

impl Runner<'_> {
    /// Returns whether a unit is done, or in the hands of the sink.
    pub(super) fn has(&self, index: u64) -> bool {
        self.progress.is_done(index) || self.held.0.contains_key(&index)
    }

    /// Returns whether the sink has every unit.
    pub(super) fn has_all(&self) -> bool {
        self.progress.done() + self.held.0.len() as u64 == self.progress.units().len()
    }

    /// Returns the first units from `from` on that the sink does not have, as first and end.
    pub(super) fn next_wanted(&self, mut from: u64) -> Option<(u64, u64)> {
        loop {
            let (first, end) = self.progress.next_left(from)?;
            let is_free = |index: &u64| !self.held.0.contains_key(index);
            match (first..end).find(is_free) {
                Some(first) => return Some((first, (first..end).find(|i| !is_free(i)).unwrap_or(end))),
                None => from = end,
            }
        }
    }

    /// Notes that the sink has taken a unit, of which this number of sectors is unacknowledged;
    /// returns how many of them are to be acknowledged later.
    pub(super) fn taken(&mut self, index: u64, range: TaskRange, unacknowledged: u64) -> u64 {
        match self.sink.stages() {
            None => {
                self.done(index, range);
                0
            }
            Some(_) => {
                self.held.0.insert(index, unacknowledged);
                unacknowledged
            }
        }
    }

    /// Takes a report of the sink.
    pub(super) fn handle_stage(&mut self, index: u64, stage: Stage, link: &mut Link) {
        match stage {
            Stage::Written => {
                let sectors = self.held.0.get_mut(&index).map_or(0, std::mem::take);
                link.acknowledge(sectors);
            }
            Stage::Counts(name, more) => *self.progress.notes.counts.entry(name.into()).or_default() += more,
            Stage::Durable => {
                if self.held.0.remove(&index).is_some() {
                    self.done(index, self.progress.units().range(index));
                }
            }
        }
    }
}
