//! The workload that a scenario is about, for a disk.

use super::super::das;
use super::super::streams::Streams;
use super::super::suite::named::{self, Named};
use super::super::{Beyond, Population, Replay, Target, Workload, WorkloadError, by_name};
use super::{Scenario, StreamTable, TaskTable};
use crate::traces::{self, ReadOptions, TraceError, TraceFormat};

impl Scenario {
    /// Builds the workload for a disk; `oltp` when nothing was said, and nothing beside streams. Opens the trace, if it is one.
    pub fn workload(&self, target: &Target, seed: u64) -> Result<Box<dyn Workload>, WorkloadError> {
        self.check()?;
        let mut streams = Vec::new();
        let mut best_effort = None;
        match self.workload.as_deref().filter(|w| das::is_das(w)) {
            Some(name) => {
                let setup = das::by_name(name)?;
                streams.extend(setup.streams);
                best_effort = Some(Box::new(Population::of(&setup.best_effort, target, seed)?) as Box<dyn Workload>);
            }
            None if self.stream.is_empty()
                || self.workload.is_some()
                || self.trace.is_some()
                || !self.task.is_empty() =>
            {
                best_effort = Some(self.best_effort(target, seed)?);
            }
            None => {}
        }
        let own = self.stream.iter().map(StreamTable::spec).collect::<Result<Vec<_>, _>>()?;
        streams.extend(own);
        if streams.is_empty() {
            return best_effort.ok_or_else(|| WorkloadError::Conflict("expected a workload, found none".into()));
        }
        let all = Streams::new(&streams, best_effort, target, seed);
        Ok(Box::new(all.map_err(|e| {
            let alone = self.stream.iter().zip(streams.iter().skip(streams.len() - self.stream.len()));
            let whose = alone.filter(|(_, s)| Streams::new(std::slice::from_ref(s), None, target, seed).is_err());
            let whose = whose.map(|(table, _)| table).next();
            match whose {
                Some(table) => table.fault(e),
                None => WorkloadError::Conflict(self.fault_at("stream", e)),
            }
        })?))
    }

    /// What is beside streams, or alone.
    fn best_effort(&self, target: &Target, seed: u64) -> Result<Box<dyn Workload>, WorkloadError> {
        if let (Some(path), Some(format)) = (&self.trace, &self.trace_format) {
            let options = ReadOptions { device: self.device, ..ReadOptions::default() };
            let reader = traces::open(path, TraceFormat::from_name(format)?, options);
            let reader = reader.map_err(|e| match (e, self.source.place("trace")) {
                (e @ TraceError::Io { .. }, Some(place)) => WorkloadError::Scenario { place, message: e.to_string() },
                (e, _) => e.into(),
            })?;
            return Ok(Box::new(Replay::new(reader, target, self.mode()?, Beyond::Refuse)?));
        }
        if let Some(name) = self.workload.as_deref().filter(|w| named::is_suite(w)) {
            return Ok(Box::new(Named::parse(name)?.suite(target, seed)));
        }
        let groups = if self.task.is_empty() {
            vec![by_name(self.workload.as_deref().unwrap_or("oltp"))?]
        } else {
            self.task.iter().map(TaskTable::group).collect::<Result<_, _>>()?
        };
        let population = Population::new(&groups, target, seed);
        Ok(Box::new(population.map_err(|e| {
            // Whose fault it is shows when each task is tried alone.
            let alone = self.task.iter().zip(&groups);
            let whose = alone.filter(|(_, g)| Population::of(g, target, seed).is_err()).map(|(t, _)| t).next();
            let e = WorkloadError::Conflict(e.to_string());
            match whose {
                Some(t) => t.fault(e),
                None => WorkloadError::Conflict(self.fault_at("workload", e)),
            }
        })?))
    }
}
