//! Builds a scenario's workload for a disk.

use super::{Scenario, TaskTable, values};
use crate::traces::{self, RECORDING, ReadOptions, Recording, TraceError, TraceFormat};
use crate::workload::suite::named::{self, Named};
use crate::workload::{
    Beyond, GroupSpec, Playback, Population, Replay, StreamSpec, Streams, Target, Workload, WorkloadError, by_name, das,
};

impl Scenario {
    /// Returns the streams: those of a named workload, then the file's own.
    pub fn streams(&self) -> Result<Vec<StreamSpec>, WorkloadError> {
        let mut streams = match self.workload.as_deref().filter(|w| das::is_das(w)) {
            Some(name) => das::by_name(name)?.streams,
            None => Vec::new(),
        };
        for table in &self.stream {
            streams.push(table.spec().map_err(|e| table.fault(e))?);
        }
        Ok(streams)
    }

    /// Builds the workload for a disk; by default `oltp`, or none beside streams. Opens the trace
    /// if there is one.
    pub fn workload(&self, target: &Target, seed: u64) -> Result<Box<dyn Workload>, WorkloadError> {
        self.check()?;
        let streams = self.streams()?;
        if streams.is_empty() {
            return self.best_effort(target, seed);
        }
        let alone = self.workload.is_none() && self.trace.is_none() && self.task.is_empty();
        let beside = if alone { None } else { Some(self.best_effort(target, seed)?) };
        let all = Streams::new(&streams, beside, target, seed);
        Ok(Box::new(all.map_err(|e| {
            // Tries each stream alone to find the invalid one.
            let own = streams.iter().skip(streams.len() - self.stream.len()).zip(&self.stream);
            let faulty = |s: &StreamSpec| Streams::new(std::slice::from_ref(s), None, target, seed).is_err();
            match own.filter(|(s, _)| faulty(s)).map(|(_, table)| table).next() {
                Some(table) => table.fault(e),
                None => WorkloadError::Conflict(self.fault_at("stream", e)),
            }
        })?))
    }

    /// Returns the workload beside streams, or the only one.
    fn best_effort(&self, target: &Target, seed: u64) -> Result<Box<dyn Workload>, WorkloadError> {
        let host = self.host()?;
        if let Some(name) = self.workload.as_deref().filter(|w| das::is_das(w)) {
            let group = GroupSpec { host, ..das::by_name(name)?.best_effort };
            return Ok(Box::new(Population::of(&group, target, seed)?));
        }
        if let (Some(path), Some(format)) = (&self.trace, &self.trace_format) {
            let unreadable = |e| match (e, self.source.place("trace")) {
                (e @ TraceError::Io { .. }, Some(place)) => WorkloadError::Scenario { place, message: e.to_string() },
                (e, _) => e.into(),
            };
            if format == RECORDING {
                let recording = Recording::open(path).map_err(unreadable)?;
                return Ok(Box::new(Playback::new(recording, target, self.mode()?)?));
            }
            let options = ReadOptions { device: self.device, ..ReadOptions::default() };
            let format = TraceFormat::from_name(format)?;
            let beyond = match &self.beyond {
                Some(how) => values::beyond(how)?,
                None if format.is_folded() => Beyond::Wrap,
                None => Beyond::Refuse,
            };
            let reader = traces::open(path, format, options).map_err(unreadable)?;
            return Ok(Box::new(Replay::new(reader, target, self.mode()?, beyond)?));
        }
        if let Some(name) = self.workload.as_deref().filter(|w| named::is_suite(w)) {
            return Ok(Box::new(Named::parse(name)?.suite(target, seed).with_host(host, seed)));
        }
        let mut groups: Vec<GroupSpec> = if self.task.is_empty() {
            vec![by_name(self.workload.as_deref().unwrap_or("oltp"))?]
        } else {
            self.task.iter().map(TaskTable::group).collect::<Result<_, _>>()?
        };
        groups.iter_mut().for_each(|g| g.host = host);
        let population = Population::new(&groups, target, seed);
        Ok(Box::new(population.map_err(|e| {
            // Tries each task alone to find the invalid one.
            let alone = self.task.iter().zip(&groups);
            let whose = alone.filter(|(_, g)| Population::of(g, target, seed).is_err()).map(|(t, _)| t).next();
            match whose {
                Some(t) => t.fault(e),
                None => WorkloadError::Conflict(self.fault_at("workload", e)),
            }
        })?))
    }
}
