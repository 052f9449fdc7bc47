//! Units that a sink has taken and not yet finished.

use std::collections::BTreeMap;

use headtime_sched::TaskRange;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::super::error::AppError;
use super::super::job::{Stage, State};
use super::{Runner, TICK, next_stage, stopped};

/// A unit in the hands of a sink that finishes it later.
#[derive(Debug)]
struct HeldUnit {
    /// Sectors to be acknowledged when it is written: none if it came in an earlier session.
    unacknowledged: u64,
    /// Sectors of data that the sink keeps: none once it is written.
    kept: u64,
}

/// Units in the hands of a sink that finishes them later.
#[derive(Debug, Default)]
pub(super) struct Held {
    units: BTreeMap<u64, HeldUnit>,
    /// Sectors of data that the sink keeps.
    kept: u64,
    /// Sectors that are kept and not in the server's window: they were acknowledged as they came,
    /// one by one, or never came.
    uncounted: u64,
}

impl Held {
    /// Notes that what was delivered so far need not be acknowledged any more.
    fn session_begins(&mut self) {
        self.units.values_mut().for_each(|unit| unit.unacknowledged = 0);
        self.uncounted = 0;
    }

    /// Returns how many of these sectors, which are no longer kept, are acknowledged: the others
    /// take the place of uncounted ones in the server's window.
    pub(super) fn acknowledged(&mut self, sectors: u64) -> u64 {
        let instead = sectors.min(self.uncounted);
        self.uncounted -= instead;
        sectors - instead
    }
}

impl Runner<'_> {
    /// Returns whether a unit is done, or in the hands of the sink.
    pub(super) fn has(&self, index: u64) -> bool {
        self.progress.is_done(index) || self.held.units.contains_key(&index)
    }

    /// Returns whether the sink has every unit.
    pub(super) fn has_all(&self) -> bool {
        self.progress.done() + self.held.units.len() as u64 == self.progress.units().len()
    }

    /// Returns the first units from `from` on that the sink does not have, as first and end.
    pub(super) fn next_wanted(&self, mut from: u64) -> Option<(u64, u64)> {
        loop {
            let (first, end) = self.progress.next_left(from)?;
            let is_free = |index: &u64| !self.held.units.contains_key(index);
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
                self.held.units.insert(index, HeldUnit { unacknowledged, kept: range.count });
                self.held.kept += range.count;
                unacknowledged
            }
        }
    }

    /// Notes that the sink has taken a unit that was read sector by sector, or not at all. All of
    /// it counts in the window, since all of it is kept.
    pub(super) fn taken_uncounted(&mut self, index: u64, range: TaskRange) {
        self.held.uncounted += self.taken(index, range, range.count);
    }

    /// Takes a report of the sink; returns the number of sectors to be acknowledged now.
    pub(super) fn handle_stage(&mut self, index: u64, stage: Stage) -> u64 {
        let mut acknowledged = 0;
        match stage {
            Stage::Written => {
                if let Some(unit) = self.held.units.get_mut(&index) {
                    self.held.kept -= std::mem::take(&mut unit.kept);
                    acknowledged = std::mem::take(&mut unit.unacknowledged);
                }
            }
            Stage::Counts(name, more) => *self.progress.notes.counts.entry(name.into()).or_default() += more,
            Stage::Durable => {
                if let Some(unit) = self.held.units.remove(&index) {
                    self.held.kept -= unit.kept;
                    self.done(index, self.progress.units().range(index));
                }
            }
        }
        self.held.acknowledged(acknowledged)
    }

    /// Returns the bytes of data that the sink keeps.
    fn kept(&self) -> u64 {
        self.held.kept * self.progress.sector_bytes()
    }

    /// Returns whether the sink is what the job waits for: it has every unit, or its data takes up
    /// three quarters of the window. The server may have no more room even then, since a quarter
    /// can be unacknowledged ([`super::super::link::Link::new`]).
    pub(super) fn waits_for_sink(&self) -> bool {
        !self.held.units.is_empty() && (self.has_all() || self.kept() >= self.sink.window() / 4 * 3)
    }

    /// Waits until the sink keeps no more than a quarter of its window, and returns the window of
    /// the next session, in bytes: what is left of the sink's. The server of a new session does not
    /// know what an earlier one delivered, and would send a whole window in addition. Returns
    /// `None` if the job was stopped.
    pub(super) async fn next_window(&mut self, stop: &mut watch::Receiver<bool>) -> Result<Option<u64>, AppError> {
        self.held.session_begins();
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while self.kept() > self.sink.window() / 4 {
            tokio::select! {
                biased;
                () = stopped(stop) => return Ok(None),
                _ = tick.tick() => {
                    let now = Instant::now();
                    self.work(now, false);
                    self.save_if_due(now)?;
                    self.tell(State::AwaitsDestination);
                }
                // Nothing is to be acknowledged: no session has delivered it.
                (index, stage) = next_stage(self.sink) => {
                    self.handle_stage(index, stage);
                }
            }
        }
        Ok(Some(self.sink.window() - self.kept()))
    }
}
