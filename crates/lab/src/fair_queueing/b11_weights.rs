//! B11: service in proportion to weights.
//!
//! Valente (2014), sections 1 and 3.1.

use headtime_disk::{Kind, Time};
use headtime_sched::{BfqRules, Policy, Share};
use headtime_sim::observe::Observer;
use headtime_sim::stats::Done;
use headtime_sim::workload::suite::Actor;
use headtime_sim::workload::suite::files::{FILES, FileActor};

use crate::common::policy_run::{DRIVE_3, PolicyRun};
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test};

/// The experiment.
pub(crate) const B11: Experiment = Experiment { spec: &SPEC, steps: 2, run };

static SPEC: Spec = Spec {
    id: "B11",
    title: "Service in proportion to weights",
    source: "Valente, New version of BFQ, benchmark suite and experimental results (2014), sections 1 and 3.1",
    drive: DRIVE_3,
    workload: "ten greedy readers with weights 1 to 10; all in order, or every other one at random places",
    claims: &[Claim {
        id: "B11",
        claim: "service in proportion to weights, ten backlogged applications, weights 1 to 10, seeky and sequential \
                mixed",
        paper: "-",
        rule: "within 3% over any 10 s",
        checks: &[
            Check {
                what: "all in order: largest difference of an application's sectors from what is due, in all",
                unit: "% of what is due",
                test: Test::AtMost(3.0),
            },
            Check {
                what: "all in order: the same in any 10 s, one slice aside",
                unit: "% of what is due",
                test: Test::AtMost(3.0),
            },
            Check {
                what: "mixed: largest difference of an application's time from what is due, in all",
                unit: "% of what is due",
                test: Test::AtMost(3.0),
            },
            Check {
                what: "mixed: the same in any 10 s, one slice aside",
                unit: "% of what is due",
                test: Test::AtMost(3.0),
            },
        ],
        quick: true,
        note: "In 10 s the application of weight 1 is due one slice and a half: whether one slice more falls into them \
               is no matter of fairness. Who reads at random places is served by time and not by sectors (section \
               3.5), so that with such applications the disk's time is what is shared. Without low_latency, which \
               takes from some what is due to them.",
    }],
    length: Length::Seconds,
    alone: false,
};

fn run(run: &Run) -> Result<Findings, RunError> {
    let (sectors, time) = (shares(run, false)?, shares(run, true)?);
    // The largest relative deviation of an application from its share over all windows; a
    // deviation of `aside` of the total is tolerated.
    let worst = |windows: &[Vec<f64>], aside: f64| {
        let off = |w: &Vec<f64>| {
            let all: f64 = w.iter().sum();
            let one = |i| 100.0 * ((w[i] / all - due(i)).abs() - aside).max(0.0) / due(i);
            (0..APPLICATIONS).map(one).fold(0.0, f64::max)
        };
        windows.iter().map(off).fold(0.0, f64::max)
    };
    let whole = |windows: &[Vec<f64>]| {
        let all = (0..APPLICATIONS).map(|i| windows.iter().step_by(WINDOW).map(|w| w[i]).sum()).collect();
        worst(&[all], 0.0)
    };
    let slice = BfqRules::plus().slice.as_secs_f64() / WINDOW as f64;
    let mut f = Findings::default();
    let figures = [whole(&sectors.0), worst(&sectors.0, slice), whole(&time.1), worst(&time.1, slice)];
    f.figure("B11", &figures);
    run.progress.advance(2);
    let mean = |windows: &[Vec<f64>], i: usize| {
        let all: f64 = windows.iter().flatten().sum();
        100.0 * windows.iter().map(|w| w[i]).sum::<f64>() / all
    };
    let row = |i| [(i + 1) as f64, 100.0 * due(i), mean(&sectors.0, i), mean(&time.1, i)].map(Cell::from).to_vec();
    let columns = &["weight", "due_percent", "in_order_percent_of_sectors", "mixed_percent_of_time"];
    f.tables.push(Table { name: "shares", columns, rows: (0..APPLICATIONS).map(row).collect() });
    Ok(f)
}

const APPLICATIONS: usize = 10;
const WINDOW: usize = 10;

/// The share of application `i`; its weight is one more than its number.
fn due(i: usize) -> f64 {
    (i + 1) as f64 / (APPLICATIONS * (APPLICATIONS + 1) / 2) as f64
}

/// Sectors, or nanoseconds of the disk's time, of each application.
type Each = [f64; APPLICATIONS];
/// The same for every ten consecutive seconds.
type Windows = Vec<Vec<f64>>;

/// Sectors, and nanoseconds of the disk's time, of each application in each second.
#[derive(Debug, Default)]
struct Watch {
    seconds: Vec<(Each, Each)>,
    last: Time,
}

impl Observer for Watch {
    fn finished(&mut self, done: &Done) {
        let second = (done.done.0 / 1_000_000_000) as usize;
        if self.seconds.len() <= second {
            self.seconds.resize(second + 1, Default::default());
        }
        let (bytes, time) = &mut self.seconds[second];
        bytes[done.owner as usize] += f64::from(done.count);
        time[done.owner as usize] += done.done.since(self.last.max(done.dispatched)).0 as f64;
        self.last = done.done;
    }
}

/// The sectors, and the time, of each application in every ten consecutive seconds.
fn shares(run: &Run, mixed: bool) -> Result<(Windows, Windows), RunError> {
    let policy = Policy::Bfq(BfqRules { low_latency: None, ..BfqRules::plus() });
    let share = |i: usize| (i as u32, Share { weight: i as u32 + 1, ..Share::default() });
    let seconds = run.length(120, 40);
    let bench = PolicyRun {
        shares: (0..APPLICATIONS).map(share).collect(),
        ..PolicyRun::new(DRIVE_3, policy, seconds, run.seed)
    };
    let mut watch = Watch::default();
    bench.watched(
        &SPEC,
        |disk| {
            let reader = |i: u64| {
                let random = mixed && i.is_multiple_of(2);
                Box::new(FileActor::new(disk, Kind::Read, random, (i, FILES), run.seed)) as Box<dyn Actor>
            };
            (0..APPLICATIONS as u64).map(reader).collect()
        },
        &mut watch,
    )?;
    // Budgets adapt in the first seconds.
    let steady = &watch.seconds[5..seconds as usize - 1];
    let sum = |of: fn(&(Each, Each)) -> &Each| {
        let windows = steady.windows(WINDOW);
        windows.map(|w| (0..APPLICATIONS).map(|i| w.iter().map(|s| of(s)[i]).sum()).collect()).collect()
    };
    Ok((sum(|s| &s.0), sum(|s| &s.1)))
}
