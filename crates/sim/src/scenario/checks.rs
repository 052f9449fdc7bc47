//! Checks of a scenario that do not depend on the disk: conflicts and ranges.
//!
//! Each error has the keys that it is about, so that it gets the line of one that is in the file.

use headtime_sched::Policy;

use super::source::Source;
use super::{Scenario, filling, values};
use crate::simulate::Scheduling;
use crate::traces::{RECORDING, TraceFormat};
use crate::workload::suite::named::{self, Named};
use crate::workload::{About, Arrivals, NAMES, WorkloadError, by_name, das, unknown};

type Check = Result<(), WorkloadError>;

/// Refuses settings that contradict each other.
fn conflict(keys: &'static [&'static str], why: impl Into<String>) -> Check {
    Err(WorkloadError::Conflict(why.into()).about(keys))
}

impl Scenario {
    /// Checks each setting in a file, with errors at its line. Combinations are not checked here,
    /// because flags may complete them.
    pub(super) fn check_settings(&self, own: &Source) -> Check {
        let nothing = Scenario::default;
        // Settings that need FILL are checked with one: whether the file has one is checked when
        // the flags are known.
        let filled = || Scenario { fill: Some("headtime".into()), ..nothing() };
        let trace = || Scenario { trace: Some("t".into()), trace_format: Some("mqsim".into()), ..nothing() };
        for (key, alone) in [
            ("admit", Scenario { admit: self.admit.clone(), ..nothing() }),
            ("exhausted", Scenario { admit: Some("das".into()), exhausted: self.exhausted.clone(), ..nothing() }),
            ("order", Scenario { order: self.order.clone(), ..nothing() }),
            ("fill", Scenario { fill: self.fill.clone(), ..nothing() }),
            ("placement", Scenario { placement: self.placement.clone(), ..filled() }),
            ("background", Scenario { background: self.background.clone(), ..filled() }),
            ("conservatism_us", Scenario { conservatism_us: self.conservatism_us.clone(), ..filled() }),
            ("host_us", Scenario { host_us: self.host_us.clone(), ..nothing() }),
            ("seconds", Scenario { seconds: self.seconds, ..nothing() }),
            ("requests", Scenario { requests: self.requests, ..nothing() }),
            ("write_cache", Scenario { write_cache: self.write_cache, ..nothing() }),
            ("depth", Scenario { depth: self.depth, ..nothing() }),
            ("workload", Scenario { workload: self.workload.clone(), ..nothing() }),
            ("replay", Scenario { replay: self.replay.clone(), ..trace() }),
            ("beyond", Scenario { beyond: self.beyond.clone(), ..trace() }),
            ("trace_format", Scenario { trace_format: self.trace_format.clone().or(trace().trace_format), ..trace() }),
            ("task", Scenario { task: self.task.clone(), ..nothing() }),
            ("stream", Scenario { stream: self.stream.clone(), ..nothing() }),
        ] {
            alone.check().map_err(|e| match e {
                e @ WorkloadError::Scenario { .. } => e,
                e => own.fault_at(key, &e),
            })?;
        }
        Ok(())
    }

    /// Checks every name and figure that does not depend on a disk.
    pub(super) fn check_all(&self) -> Check {
        self.policy().about(&["admit"])?;
        self.check_filling()?;
        self.noise().about(&["noise"])?;
        self.check_scheduling()?;
        self.check_end()?;
        self.check_write_cache()?;
        self.check_host()?;
        self.check_source()?;
        self.check_trace()?;
        self.check_workload()?;
        self.check_tables()?;
        if self.depth == Some(0) {
            return Err(WorkloadError::range("depth", 0, 1, u32::MAX).about(&["depth"]));
        }
        Ok(())
    }

    /// Returns whether FILL is a setting or follows from one.
    fn is_filled(&self) -> Result<bool, WorkloadError> {
        Ok(self.fill(0)?.is_some())
    }

    /// Returns whether FILL is switched off: the other settings then describe the run to compare
    /// with.
    fn is_unfilled(&self) -> bool {
        self.fill.as_deref() == Some("none")
    }

    fn check_filling(&self) -> Check {
        let filled = self.is_filled()?;
        filling::check_background(self.background.as_deref().unwrap_or("none")).about(&["background"])?;
        let inside = self.placement.as_deref().is_some_and(|p| p != "host");
        let settings: [(bool, &[&str], &str); 2] = [
            (self.conservatism_us.is_some(), &["conservatism_us"], "conservatism_us"),
            (inside, &["placement"], "a placement"),
        ];
        for (given, keys, what) in settings {
            if given && !filled && !self.is_unfilled() {
                return conflict(keys, format!("{what} was given, but no fill"));
            }
        }
        Ok(())
    }

    fn check_scheduling(&self) -> Check {
        let das = self.guarantees().about(&["exhausted"])?.is_some();
        if self.exhausted.is_some() && !das {
            return conflict(&["exhausted", "admit"], "exhausted was given, but not admit das");
        }
        let by_drive = self.scheduling().about(&["order"])? == Scheduling::Drive;
        if by_drive && (das || self.policy()? != Policy::None) {
            let why = "order drive leaves the choice to the drive, which knows no applications to admit";
            return conflict(&["order", "admit"], why);
        }
        if by_drive && self.is_filled()? {
            return conflict(&["order"], "order drive leaves the choice to the drive, which fills no gaps");
        }
        Ok(())
    }

    fn check_end(&self) -> Check {
        let background = self.background.as_deref().unwrap_or("none");
        if self.until_scanned == Some(true) && self.is_unfilled() {
            let why = "until_scanned: a run until the disk is scanned needs a fill that scans it, found \"none\"";
            return conflict(&["until_scanned", "fill"], why);
        }
        if self.until_scanned == Some(true) && !background.starts_with("scan") {
            let why = format!(
                "until_scanned: a run until the disk is scanned needs background work that ends: scan or scan:KIB, \
                 found \"{background}\""
            );
            return conflict(&["until_scanned", "background"], why);
        }
        self.limits().map(|_| ())
    }

    fn check_write_cache(&self) -> Check {
        let cache = self.write_cache().about(&["write_cache"])?;
        if cache.is_some() && self.guarantees()?.is_some() {
            let why = "write_cache was given, and admit das: what a stream's writes are promised is that the drive has \
                       them";
            return conflict(&["write_cache", "admit", "stream"], why);
        }
        if cache.is_some() && !self.stream.is_empty() {
            let why = "write_cache was given, and streams: their periods are the disk's, and not the cache's";
            return conflict(&["write_cache"], why);
        }
        Ok(())
    }

    fn check_host(&self) -> Check {
        self.host().about(&["host_us"])?;
        if self.host_us.is_some() && self.trace.is_some() {
            return conflict(&["host_us", "trace"], "host_us was given, but a trace has its own pauses");
        }
        Ok(())
    }

    fn check_source(&self) -> Check {
        let choices = [
            (self.workload.is_some(), "a workload"),
            (self.trace.is_some(), "a trace"),
            (!self.task.is_empty(), "tasks"),
        ];
        let found: Vec<&str> = choices.iter().filter(|(given, _)| *given).map(|(_, what)| *what).collect();
        if found.len() > 1 {
            let found = found.join(" and ");
            let why = format!("give one of a workload, a trace and tasks, not several: found {found}");
            return conflict(&["workload", "trace"], why);
        }
        Ok(())
    }

    fn check_trace(&self) -> Check {
        if self.trace.is_none() {
            let settings: [(bool, &[&str], &str); 4] = [
                (self.trace_format.is_some(), &[], "a trace format"),
                (self.device.is_some(), &["device"], "a device"),
                (self.replay.is_some(), &[], "a way of replaying"),
                (self.beyond.is_some(), &["beyond"], "beyond"),
            ];
            for (given, keys, what) in settings {
                if given {
                    return conflict(keys, format!("{what} was given, but no trace"));
                }
            }
        } else if self.trace_format.is_none() {
            return conflict(&["trace"], format!("a trace needs its format; known: {}", TraceFormat::known()));
        }
        match self.trace_format.as_deref() {
            Some(RECORDING) if self.device.is_some() => {
                let why = "a device was given: a recording is of one disk, and its clients cannot be replayed alone";
                return conflict(&["device"], why);
            }
            Some(RECORDING) | None => {}
            Some(f) => _ = TraceFormat::from_name(f)?,
        }
        if let Some(beyond) = &self.beyond {
            values::beyond(beyond).about(&["beyond"])?;
            if self.trace_format.as_deref() == Some(RECORDING) {
                return conflict(&["beyond"], "beyond was given: a recording has the size of its disk");
            }
        }
        self.mode().map(|_| ())
    }

    fn check_workload(&self) -> Check {
        let Some(w) = &self.workload else { return Ok(()) };
        if named::is_suite(w) {
            return Named::parse(w).about(&["workload"]).map(|_| ());
        }
        if das::is_das(w) {
            return das::by_name(w).about(&["workload"]).map(|_| ());
        }
        let group = by_name(w).map_err(|e| match e {
            WorkloadError::Unknown { what, name, .. } => unknown(what, &name, &NAMES),
            other => other,
        });
        let is_open = matches!(group.about(&["workload"])?.arrivals, Arrivals::Open { .. });
        if self.host_us.is_some() && is_open {
            let why = format!("host_us was given, but requests of \"{w}\" do not wait for answers");
            return conflict(&["host_us"], why);
        }
        Ok(())
    }

    fn check_tables(&self) -> Check {
        let double = |why: String| WorkloadError::Conflict(why).about(&["name"]);
        for (i, t) in self.task.iter().enumerate() {
            t.group().map_err(|e| t.fault(e))?;
            if self.task[..i].iter().any(|before| before.name == t.name) {
                return Err(t.fault(double(format!("two tasks have the name \"{}\"", t.name))));
            }
        }
        for (i, s) in self.stream.iter().enumerate() {
            s.spec().map_err(|e| s.fault(e))?;
            let taken = self.stream[..i].iter().map(|s| &s.name).chain(self.task.iter().map(|t| &t.name));
            if taken.into_iter().any(|name| *name == s.name) {
                return Err(s.fault(double(format!("two have the name \"{}\"", s.name))));
            }
        }
        Ok(())
    }
}
