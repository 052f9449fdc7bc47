//! Background work beside a workload: applications of the freeblock subsystem, in virtual time.

use std::collections::BTreeMap;

use headtime_disk::{Kind, Time};
use headtime_sched::{Core, SessionId, TaskError, TaskEvent, TaskId, TaskRange, TaskSpec};

/// An application of the freeblock subsystem.
pub trait Background {
    /// Starts the application; called once, before the first request.
    fn start(&mut self, core: &mut Core, now: Time) -> Result<(), TaskError>;

    /// Handles an event of one of its tasks.
    fn event(&mut self, event: &TaskEvent, core: &mut Core, now: Time) -> Result<(), TaskError>;

    /// Whether its work is finite.
    fn ends(&self) -> bool {
        false
    }

    /// Whether its work is complete.
    fn is_done(&self) -> bool {
        false
    }

    /// Returns its progress.
    fn progress(&self) -> Progress {
        Progress::default()
    }
}

/// Progress of background work.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// Sectors delivered or written.
    pub sectors: u64,
    /// Share of the wanted sectors that was delivered, 0 to 1.
    pub fraction: f64,
    /// When the work was complete.
    pub done_at: Option<Time>,
    /// Progress by session.
    pub by_session: Vec<SessionProgress>,
}

/// Progress of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionProgress {
    /// Its name.
    pub name: String,
    /// Its priority.
    pub priority: u32,
    /// Sectors delivered or written.
    pub sectors: u64,
    /// Share of the wanted sectors that was delivered.
    pub fraction: f64,
    /// When the work was complete.
    pub done_at: Option<Time>,
}

/// No background work.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl Background for Nothing {
    fn start(&mut self, _: &mut Core, _: Time) -> Result<(), TaskError> {
        Ok(())
    }
    fn event(&mut self, _: &TaskEvent, _: &mut Core, _: Time) -> Result<(), TaskError> {
        Ok(())
    }
}

/// An application: name, priority and tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Name in results.
    pub name: String,
    /// Priority (1 or more).
    pub priority: u32,
    /// Tasks registered at the start.
    pub tasks: Vec<TaskSpec>,
    /// Registers each block again as soon as it is delivered, so that the wanted amount stays
    /// constant (Thereska 2003 section 4.6, figure 10).
    pub again: bool,
}

impl Job {
    /// Makes a single read of the whole disk in units of `unit` sectors.
    pub fn scan(capacity: u64, unit: u32) -> Job {
        Job {
            name: "scan".into(),
            priority: 1,
            tasks: vec![TaskSpec {
                kind: Kind::Read,
                ranges: vec![TaskRange { lbn: 0, count: capacity }],
                blksize: unit,
                min_pickup: unit,
            }],
            again: false,
        }
    }

    fn wanted(&self) -> u64 {
        self.tasks.iter().flat_map(|t| &t.ranges).map(|r| r.count).sum()
    }
}

/// Returns the default unit of a scan: 4 KiB, or more where one bit per unit would take over 16
/// MiB.
pub fn scan_unit(capacity: u64, sector_bytes: u32) -> u32 {
    const MOST_BITS: u64 = 16 << 23;
    let mut unit = (4096 / sector_bytes).max(1);
    while capacity / u64::from(unit) > MOST_BITS {
        unit *= 2;
    }
    unit
}

/// A scan selected by name promotes the last 1/`PROMOTED_PART` of its sectors
/// ([`Jobs::promoting_last`]).
pub const PROMOTED_PART: u64 = 10_000;

/// Jobs that only count their blocks.
#[derive(Clone, Debug)]
pub struct Jobs {
    jobs: Vec<Job>,
    running: BTreeMap<SessionId, Running>,
    unfinished: usize,
    /// The rest of a job is promoted when it is at most this number of sectors.
    promote_last: u64,
    /// Sectors moved by all jobs.
    moved: u64,
    curve: Vec<(Time, u64)>,
}

/// Number of points of a progress curve.
const POINTS: u64 = 1_000;

#[derive(Clone, Debug)]
struct Running {
    job: usize,
    sectors: u64,
    tasks_left: usize,
    done_at: Option<Time>,
    /// Tasks registered at the start; empty once promoted.
    tasks: Vec<TaskId>,
}

impl Jobs {
    /// Creates these jobs, which start together.
    pub fn new(jobs: Vec<Job>) -> Jobs {
        Jobs { unfinished: jobs.len(), jobs, running: BTreeMap::new(), promote_last: 0, moved: 0, curve: Vec::new() }
    }

    /// Creates a single scan of the whole disk.
    pub fn scan(capacity: u64, unit: u32) -> Jobs {
        Jobs::new(vec![Job::scan(capacity, unit)])
    }

    /// Promotes the rest of a job to foreground requests when it is at most `sectors` (Thereska
    /// 2003 section 2.1, `fb_promote`). On a disk that is never idle a few blocks can stay
    /// undelivered for hours: those that span spare sectors take most of a revolution to read, and
    /// few gaps are that long.
    pub fn promoting_last(self, sectors: u64) -> Jobs {
        Jobs { promote_last: sectors, ..self }
    }

    fn promote(&mut self, session: SessionId, core: &mut Core, now: Time) -> Result<(), TaskError> {
        let Some(running) = self.running.get_mut(&session).filter(|r| !r.tasks.is_empty()) else { return Ok(()) };
        let job = &self.jobs[running.job];
        let left = job.wanted().saturating_sub(running.sectors);
        if self.promote_last == 0 || job.again || left == 0 || left > self.promote_last {
            return Ok(());
        }
        for task in running.tasks.drain(..) {
            match core.promote(task, now) {
                // The task may be finished already.
                Ok(()) | Err(TaskError::NoTask(_)) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Returns the sectors moved over time: a point per thousandth of the wanted amount.
    pub fn curve(&self) -> &[(Time, u64)] {
        &self.curve
    }

    fn wanted(&self) -> u64 {
        self.jobs.iter().map(Job::wanted).sum()
    }

    fn count(&mut self, session: SessionId, range: &TaskRange, now: Time) -> Option<(Kind, u32)> {
        let wanted = u128::from(self.wanted().max(1));
        let points = |moved: u64| u128::from(moved) * u128::from(POINTS) / wanted;
        let before = points(self.moved);
        self.moved += range.count;
        if points(self.moved) > before {
            self.curve.push((now, self.moved));
        }
        let running = self.running.get_mut(&session)?;
        running.sectors += range.count;
        let job = &self.jobs[running.job];
        let again = job.again.then(|| job.tasks.first()).flatten()?;
        Some((again.kind, again.blksize))
    }
}

impl Background for Jobs {
    fn start(&mut self, core: &mut Core, now: Time) -> Result<(), TaskError> {
        for (i, job) in self.jobs.iter().enumerate() {
            let session = core.open(job.priority, now)?;
            let tasks = job.tasks.iter().map(|t| core.register(session, t, now)).collect::<Result<Vec<_>, _>>()?;
            let running = Running { job: i, sectors: 0, tasks_left: tasks.len(), done_at: None, tasks };
            self.running.insert(session, running);
        }
        Ok(())
    }

    fn event(&mut self, event: &TaskEvent, core: &mut Core, now: Time) -> Result<(), TaskError> {
        match *event {
            TaskEvent::Delivered { session, range, .. } | TaskEvent::Written { session, range, .. } => {
                if let Some((kind, unit)) = self.count(session, &range, now) {
                    let running = self.running.get_mut(&session).expect("it was found above");
                    running.tasks_left += 1;
                    let spec = TaskSpec { kind, ranges: vec![range], blksize: unit, min_pickup: unit };
                    core.register(session, &spec, now)?;
                }
                self.promote(session, core, now)?;
            }
            TaskEvent::GetBuffer { task, range, .. } => {
                core.buffer(task, range, true, now)?;
            }
            TaskEvent::Done { session, .. } => {
                let running = self.running.get_mut(&session).expect("an event of a session that was not opened");
                running.tasks_left -= 1;
                if running.tasks_left == 0 {
                    running.done_at = Some(now);
                    self.unfinished -= 1;
                }
            }
            TaskEvent::Superseded { .. } | TaskEvent::Failed { .. } => {}
        }
        Ok(())
    }

    fn ends(&self) -> bool {
        !self.jobs.is_empty() && self.jobs.iter().all(|j| !j.again)
    }

    fn is_done(&self) -> bool {
        self.unfinished == 0
    }

    fn progress(&self) -> Progress {
        let share = |sectors: u64, wanted: u64| if wanted == 0 { 0.0 } else { sectors as f64 / wanted as f64 };
        let by_session: Vec<SessionProgress> = self
            .running
            .values()
            .map(|r| {
                let job = &self.jobs[r.job];
                SessionProgress {
                    name: job.name.clone(),
                    priority: job.priority,
                    sectors: r.sectors,
                    fraction: share(r.sectors, job.wanted()).min(1.0),
                    done_at: r.done_at,
                }
            })
            .collect();
        let sectors = by_session.iter().map(|s| s.sectors).sum();
        let wanted = self.wanted();
        let done_at = match self.is_done() {
            true => by_session.iter().filter_map(|s| s.done_at).max(),
            false => None,
        };
        Progress { sectors, fraction: share(sectors, wanted).min(1.0), done_at, by_session }
    }
}
