//! Checks of a scenario that do not depend on the disk: conflicts and ranges.

use headtime_sched::Policy;

use super::{Scenario, unknown};
use crate::filling;
use crate::simulate::Scheduling;
use crate::traces::{RECORDING, TraceFormat};
use crate::workload::suite::named::{self, Named};
use crate::workload::{Arrivals, NAMES, WorkloadError, by_name, das};

impl Scenario {
    /// Checks every name and figure that does not depend on a disk.
    pub(super) fn check_all(&self) -> Result<(), WorkloadError> {
        self.policy()?;
        let filled = self.fill(0)?.is_some();
        let background = self.background.as_deref().unwrap_or("none");
        filling::check_background(background)?;
        // With an explicit `none`, the other settings describe the run to compare with.
        let none = self.fill.as_deref() == Some("none");
        let inside = self.placement.as_deref().is_some_and(|p| p != "host");
        for (given, what) in [(self.conservatism_us.is_some(), "conservatism_us"), (inside, "a placement")] {
            if given && !filled && !none {
                return Err(WorkloadError::Conflict(format!("{what} was given, but no fill")));
            }
        }
        let das = self.guarantees()?.is_some();
        if self.exhausted.is_some() && !das {
            return Err(WorkloadError::Conflict("exhausted was given, but not admit das".into()));
        }
        if (das || self.policy()? != Policy::None) && self.scheduling()? == Scheduling::Drive {
            return Err(WorkloadError::Conflict(
                "order drive leaves the choice to the drive, which knows no applications to admit".into(),
            ));
        }
        if filled && self.scheduling()? == Scheduling::Drive {
            return Err(WorkloadError::Conflict(
                "order drive leaves the choice to the drive, which fills no gaps".into(),
            ));
        }
        if self.until_scanned == Some(true) && none {
            return Err(WorkloadError::Conflict(
                "until_scanned: a run until the disk is scanned needs a fill that scans it, found \"none\"".into(),
            ));
        }
        if self.until_scanned == Some(true) && !background.starts_with("scan") {
            return Err(WorkloadError::Conflict(format!(
                "until_scanned: a run until the disk is scanned needs background work that ends: scan or scan:KIB, \
                 found \"{background}\""
            )));
        }
        self.scheduling()?;
        self.limits()?;
        if self.write_cache()?.is_some() && das {
            return Err(WorkloadError::Conflict(
                "write_cache was given, and admit das: what a stream's writes are promised is that the drive has them"
                    .into(),
            ));
        }
        if self.write_cache.is_some() && !self.stream.is_empty() {
            return Err(WorkloadError::Conflict(
                "write_cache was given, and streams: their periods are the disk's, and not the cache's".into(),
            ));
        }
        self.host()?;
        if self.host_us.is_some() && self.trace.is_some() {
            return Err(WorkloadError::Conflict("host_us was given, but a trace has its own pauses".into()));
        }
        let choices = [
            (self.workload.is_some(), "a workload"),
            (self.trace.is_some(), "a trace"),
            (!self.task.is_empty(), "tasks"),
        ];
        let found: Vec<&str> = choices.iter().filter(|(given, _)| *given).map(|(_, what)| *what).collect();
        if found.len() > 1 {
            return Err(WorkloadError::Conflict(format!(
                "give one of a workload, a trace and tasks, not several: found {}",
                found.join(" and ")
            )));
        }
        if self.trace.is_none() {
            for (given, what) in [
                (self.trace_format.is_some(), "a trace format"),
                (self.device.is_some(), "a device"),
                (self.replay.is_some(), "a way of replaying"),
            ] {
                if given {
                    return Err(WorkloadError::Conflict(format!("{what} was given, but no trace")));
                }
            }
        } else if self.trace_format.is_none() {
            return Err(WorkloadError::Conflict(format!("a trace needs its format; known: {}", TraceFormat::known())));
        }
        match self.trace_format.as_deref() {
            Some(RECORDING) if self.device.is_some() => {
                let why = "a device was given: a recording is of one disk, and its clients cannot be replayed alone";
                return Err(WorkloadError::Conflict(why.into()));
            }
            Some(RECORDING) | None => {}
            Some(f) => _ = TraceFormat::from_name(f)?,
        }
        self.mode()?;
        if let Some(w) = &self.workload {
            match named::is_suite(w) {
                true => _ = Named::parse(w)?,
                false if das::is_das(w) => _ = das::by_name(w)?,
                false => {
                    let group = by_name(w).map_err(|e| match e {
                        WorkloadError::Unknown { what, name, .. } => unknown(what, &name, &NAMES),
                        other => other,
                    })?;
                    if self.host_us.is_some() && matches!(group.arrivals, Arrivals::Open { .. }) {
                        return Err(WorkloadError::Conflict(format!(
                            "host_us was given, but requests of \"{w}\" do not wait for answers"
                        )));
                    }
                }
            }
        }
        for (i, t) in self.task.iter().enumerate() {
            t.group().map_err(|e| t.fault(e))?;
            if self.task[..i].iter().any(|before| before.name == t.name) {
                return Err(t.fault(WorkloadError::Conflict(format!("two tasks have the name \"{}\"", t.name))));
            }
        }
        for (i, s) in self.stream.iter().enumerate() {
            s.spec().map_err(|e| s.fault(e))?;
            let taken = self.stream[..i].iter().map(|s| &s.name).chain(self.task.iter().map(|t| &t.name));
            if taken.into_iter().any(|name| *name == s.name) {
                return Err(s.fault(WorkloadError::Conflict(format!("two have the name \"{}\"", s.name))));
            }
        }
        if self.depth == Some(0) {
            return Err(WorkloadError::range("depth", 0, 1, u32::MAX));
        }
        Ok(())
    }
}
