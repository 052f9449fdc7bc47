//! Tasks that generate requests: closed ones wait for completions and think, open ones do not.

use std::collections::VecDeque;

use headtime_disk::{Dur, Time};

use super::generator::{Pattern, PatternSpec};
use super::host_time::HostTime;
use super::variates::Variates;
use super::{Ask, Target, Workload, WorkloadError};

/// Maximum number of tasks in a group.
pub(super) const MOST_TASKS: u32 = 100_000;

/// Think time of a task between a completion and its next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Think {
    /// None: the next request is due after the host time.
    None,
    /// Constant.
    Fixed(Dur),
    /// Exponentially distributed with this mean.
    Exponential(Dur),
}

impl Think {
    fn mean(self) -> Dur {
        match self {
            Think::None => Dur::ZERO,
            Think::Fixed(d) | Think::Exponential(d) => d,
        }
    }

    fn draw(self, rng: &mut Variates) -> Dur {
        match self {
            Think::None => Dur::ZERO,
            Think::Fixed(d) => d,
            Think::Exponential(d) => Dur(rng.exponential(d.0)),
        }
    }
}

/// Arrivals of a group's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Each of the tasks has one request outstanding or thinks. The first request of a thinking
    /// task is at a random time within its first pause, so that tasks do not all start at once.
    Closed {
        /// Number of tasks: the multiprogramming level.
        tasks: u32,
        /// Think time between a completion and the next request, besides the host time.
        think: Think,
    },
    /// Arrivals do not depend on completions.
    Open {
        /// Mean interarrival time.
        mean_gap: Dur,
        /// Distribution of interarrival times.
        gaps: Gaps,
    },
}

/// Distribution of the interarrival times of an open group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gaps {
    /// Exponentially: a Poisson process.
    #[default]
    Exponential,
    /// Uniform between 0 and twice the mean (Thereska 2003 section 4.1).
    Uniform,
}

impl Gaps {
    fn draw(self, mean: Dur, rng: &mut Variates) -> Dur {
        match self {
            Gaps::Exponential => Dur(rng.exponential(mean.0)),
            Gaps::Uniform => Dur(rng.below(mean.0.saturating_mul(2).saturating_add(1))),
        }
    }
}

/// A group of identical tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupSpec {
    /// Name in statistics.
    pub name: String,
    /// Arrivals.
    pub arrivals: Arrivals,
    /// Request pattern.
    pub pattern: PatternSpec,
    /// Start time.
    pub start: Time,
    /// Closed: host time from a completion to the next request, without think time.
    pub host: HostTime,
}

struct Group {
    arrivals: Arrivals,
    host: HostTime,
    pattern: Pattern,
}

struct Task {
    group: u16,
    rng: Variates,
    position: Option<u64>,
}

/// Groups of tasks, compiled for one disk.
pub struct Population {
    groups: Vec<Group>,
    tasks: Vec<Task>,
    /// Due times of tasks, soonest first; ties in order of insertion.
    due: VecDeque<(Time, u32)>,
    names: Vec<String>,
}

impl Population {
    /// Compiles groups for a disk. The same specification and seed give the same requests.
    pub fn new(specs: &[GroupSpec], target: &Target, seed: u64) -> Result<Population, WorkloadError> {
        if specs.is_empty() {
            return Err(WorkloadError::Conflict("a workload needs at least one task".to_owned()));
        }
        let mut p = Population { groups: Vec::new(), tasks: Vec::new(), due: VecDeque::new(), names: Vec::new() };
        for (g, spec) in specs.iter().enumerate() {
            let group =
                u16::try_from(g).map_err(|_| WorkloadError::range("groups of tasks", specs.len(), 1, u16::MAX))?;
            let mut rng = Variates::new(seed, (1 << 48) + g as u64);
            let pattern = Pattern::new(&spec.pattern, target, &mut rng)?;
            p.groups.push(Group { arrivals: spec.arrivals, host: spec.host, pattern });
            let tasks = match spec.arrivals {
                Arrivals::Closed { tasks, .. } if !(1..=MOST_TASKS).contains(&tasks) => {
                    let what = format!("tasks of task \"{}\"", spec.name);
                    return Err(WorkloadError::range(what, tasks, 1, MOST_TASKS).about(&["tasks"]).named());
                }
                Arrivals::Closed { tasks, .. } => tasks,
                Arrivals::Open { .. } => 1,
            };
            for i in 0..tasks {
                // A task's random stream depends only on its group and its number there, so adding
                // a group does not change the others.
                let mut rng = Variates::new(seed, ((g as u64) << 24) + u64::from(i));
                let first = match spec.arrivals {
                    Arrivals::Closed { think, .. } => Dur(rng.below(think.mean().0)),
                    Arrivals::Open { mean_gap, gaps } => gaps.draw(mean_gap, &mut rng),
                };
                let owner = p.tasks.len() as u32;
                p.tasks.push(Task { group, rng, position: None });
                p.due.push_back((spec.start + first, owner));
            }
            p.names.push(spec.name.clone());
        }
        p.due.make_contiguous().sort_by_key(|(at, _)| *at);
        if p.names.len() == 1 {
            p.names.clear();
        }
        Ok(p)
    }

    /// Creates a population of one group.
    pub fn of(spec: &GroupSpec, target: &Target, seed: u64) -> Result<Population, WorkloadError> {
        Population::new(std::slice::from_ref(spec), target, seed)
    }

    /// Returns the number of tasks in all groups.
    pub fn tasks(&self) -> usize {
        self.tasks.len()
    }

    fn wake(&mut self, at: Time, owner: u32) {
        // Later than most others, so the search from the back is short; a heap would cost more and
        // would not preserve the order of ties.
        let mut i = self.due.len();
        while i > 0 && self.due[i - 1].0 > at {
            i -= 1;
        }
        if i == self.due.len() {
            self.due.push_back((at, owner));
        } else {
            self.due.insert(i, (at, owner));
        }
    }
}

impl Workload for Population {
    fn next_due(&self) -> Option<Time> {
        self.due.front().map(|(at, _)| *at)
    }

    fn take(&mut self) -> Result<Ask, WorkloadError> {
        let (due, owner) = self.due.pop_front().expect("a request was taken while none was due");
        let task = &mut self.tasks[owner as usize];
        let group = &mut self.groups[task.group as usize];
        let drawn = group.pattern.next(&mut task.rng, &mut task.position);
        let class = task.group;
        if let Arrivals::Open { mean_gap, gaps } = group.arrivals {
            let gap = gaps.draw(mean_gap, &mut task.rng);
            self.wake(due + gap, owner);
        }
        Ok(Ask { due, kind: drawn.kind, lbn: drawn.lbn, count: drawn.count, fua: drawn.fua, sync: true, owner, class })
    }

    fn finished(&mut self, owner: u32, now: Time) {
        let task = &mut self.tasks[owner as usize];
        let group = &self.groups[task.group as usize];
        if let Arrivals::Closed { think, .. } = group.arrivals {
            let pause = think.draw(&mut task.rng) + group.host.draw(&mut task.rng);
            self.wake(now + pause, owner);
        }
    }

    fn endless(&self) -> bool {
        true
    }

    fn classes(&self) -> &[String] {
        &self.names
    }
}

#[cfg(test)]
mod tests {
    use super::super::{closed, oltp, open};
    use super::*;

    fn target() -> Target {
        Target { capacity: 17_000_000, sector_bytes: 512, geometry: None }
    }

    #[test]
    fn a_closed_task_asks_again_after_it_thought() {
        let spec =
            GroupSpec { arrivals: Arrivals::Closed { tasks: 2, think: Think::Fixed(Dur::from_ms(30)) }, ..closed(1) };
        let mut p = Population::of(&spec, &target(), 1).unwrap();
        let a = p.take().unwrap();
        let b = p.take().unwrap();
        assert!(a.due <= b.due && b.due < Time(30_000_000));
        assert_eq!(p.next_due(), None);
        p.finished(b.owner, Time(50_000_000));
        p.finished(a.owner, Time(50_000_000));
        // Ties: first come, first served.
        assert_eq!(p.take().unwrap().owner, b.owner);
        assert_eq!(p.take().unwrap().due, Time(80_020_000));
    }

    #[test]
    fn an_exponential_host_time_is_drawn_for_each_request() {
        let mean = 300_000.0;
        let host = HostTime::Exponential(Dur(mean as u64));
        let mut p = Population::of(&GroupSpec { host, ..closed(1) }, &target(), 1).unwrap();
        let n = 10_000;
        let mut sum = 0;
        for _ in 0..n {
            let a = p.take().unwrap();
            p.finished(a.owner, a.due);
            sum += p.next_due().unwrap().since(a.due).0;
        }
        assert!((sum as f64 / f64::from(n) / mean - 1.0).abs() < 0.05, "{sum}");
    }

    #[test]
    fn what_a_task_asks_for_does_not_depend_on_the_others() {
        let mut alone = Population::of(&oltp(), &target(), 5).unwrap();
        let mut mixed = Population::new(&[oltp(), closed(3)], &target(), 5).unwrap();
        let first = |p: &mut Population, owner: u32| loop {
            let a = p.take().unwrap();
            p.finished(a.owner, Time(a.due.0 + 1_000_000));
            if a.owner == owner {
                return (a.lbn, a.count, a.kind);
            }
        };
        for owner in [0, 4, 9, 4, 0] {
            assert_eq!(first(&mut alone, owner), first(&mut mixed, owner));
        }
    }

    #[test]
    fn an_open_group_keeps_its_rate_whatever_the_disk_does() {
        let mut p = Population::of(&open(200.0).unwrap(), &target(), 9).unwrap();
        let mut last = Time::ZERO;
        let n = 50_000;
        for _ in 0..n {
            let a = p.take().unwrap();
            assert!(a.due >= last);
            last = a.due;
        }
        let rate = f64::from(n) / last.as_secs_f64();
        assert!((rate - 200.0).abs() < 3.0, "{rate}");
    }

    #[test]
    fn even_gaps_lie_between_nothing_and_twice_their_mean() {
        let mean_gap = Dur::from_ms(20);
        let spec = GroupSpec { arrivals: Arrivals::Open { mean_gap, gaps: Gaps::Uniform }, ..closed(1) };
        let mut p = Population::of(&spec, &target(), 9).unwrap();
        let n = 40_000;
        let (mut last, mut quarters) = (Time::ZERO, [0u32; 4]);
        for _ in 0..n {
            let due = p.take().unwrap().due;
            let gap = due.since(last);
            assert!(gap <= mean_gap + mean_gap);
            quarters[((gap.0 * 2 / mean_gap.0).min(3)) as usize] += 1;
            last = due;
        }
        let mean = last.as_secs_f64() * 1e3 / f64::from(n);
        assert!((mean - 20.0).abs() < 0.2, "{mean}");
        assert!(quarters.iter().all(|&q| q.abs_diff(n / 4) < n / 80), "{quarters:?}");
    }

    #[test]
    fn waking_keeps_the_order_of_times() {
        let mut p = Population::of(&closed(1), &target(), 1).unwrap();
        p.due.clear();
        for (at, owner) in [(5, 0), (3, 1), (9, 2), (3, 3), (5, 4), (1, 5)] {
            p.wake(Time(at), owner);
        }
        let order: Vec<u32> = p.due.iter().map(|(_, o)| *o).collect();
        assert_eq!(order, [5, 1, 3, 0, 4, 2]);
    }

    #[test]
    fn no_task_and_too_many_tasks_are_refused() {
        assert!(Population::new(&[], &target(), 1).is_err());
        let e = Population::of(&closed(100_001), &target(), 1).err().unwrap().to_string();
        assert!(e.contains("expected 1 to 100000"), "{e}");
    }
}
