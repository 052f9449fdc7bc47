//! B15: the cost of a BFQ+ decision by the number of applications.
//!
//! Valente (2014), section 3.1: B-WF2Q+ in O(log N). Measured are ADMIT alone, as in the claim, and
//! the whole core with ADMIT, an order and the prediction, from a completion and a new request to
//! the decision, which is what a driver waits for.

use std::hint::black_box;
use std::time::Instant;

use headtime_disk::{Dur, Kind, Model, Outcome, Time, profile};
use headtime_plot::{Axis, Chart, Series, Style, XyChart};
use headtime_sched::internals::admit::{Admission, Turn};
use headtime_sched::internals::bfq::Bfq;
use headtime_sched::{Action, BfqRules, Config, Core, Order, Policy, Request};
use headtime_sim::workload::variates::Variates;

use crate::common::policy_run::{DRIVE_1, named};
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test, failed};

/// The experiment.
pub(crate) const B15: Experiment = Experiment { spec: &SPEC, steps: COUNTS.len() as u64 + 3, run };

static SPEC: Spec = Spec {
    id: "B15",
    title: "The cost of a decision",
    source: "Valente, New version of BFQ, benchmark suite and experimental results (2014), section 3.1",
    drive: "none: the scheduler alone; the core as a whole believes in maxtor-6l080l0",
    workload: "10 to 10,000 applications that are always backlogged, every decision another application's turn",
    claims: &[Claim {
        id: "B15",
        claim: "one dispatch decision, 10 to 10,000 applications",
        paper: "O(log N)",
        rule: "cost grows less than 4 times; the whole decision under 2 us at 10,000 applications",
        checks: &[
            Check { what: "10,000 applications over 10", unit: "times", test: Test::Below(4.0) },
            Check { what: "the same for the core as a whole, with C-LOOK", unit: "times", test: Test::Below(4.0) },
            Check { what: "the same for the core as a whole, with SPTF", unit: "times", test: Test::Below(4.0) },
            Check { what: "the core as a whole at 10,000, the slower one", unit: "us", test: Test::Below(2.0) },
        ],
        quick: true,
        note: "Arrival, choice, dispatch and completion of one request, each ending a turn. The least of several \
               repetitions: what else the processor did at the same time is not the scheduler's. On a virtual machine \
               at 10,000 1.6 to 1.9 us in nine runs, and up to 2.9 us in two others; why is not known. The second \
               table has the cost with switches and latency targets, which the claim does not include: with 10,000 \
               applications that are all overdue 52 to 55 us, since those ahead of their share are passed over one \
               by one. Service of scattered applications together ends above 256 of them.",
    }],
    length: Length::Seconds,
    alone: true,
};

fn run(run: &Run) -> Result<Findings, RunError> {
    let drive = profile::builtin(DRIVE_1).map_err(|e| failed(&SPEC, e))?;
    let model = Model::new(&drive).map_err(|e| failed(&SPEC, e))?;
    let n = run.length(200_000, 50_000);
    let mut points: [Vec<(f64, f64)>; 3] = Default::default();
    let mut rows = Vec::new();
    for count in COUNTS {
        let least = |of: &dyn Fn() -> f64| (0..REPETITIONS).map(|_| of()).fold(f64::INFINITY, f64::min);
        let ns = [
            least(&|| decision(count, n)),
            least(&|| whole(&model, Order::Clook, count, n / 4, &Settings::default())),
            least(&|| whole(&model, Order::Sptf, count, n / 4, &Settings::default())),
        ];
        let count = f64::from(count);
        points.iter_mut().zip(ns).for_each(|(points, ns)| points.push((count, ns)));
        rows.push([count, ns[0], ns[1], ns[2]].map(Cell::from).to_vec());
        run.progress.advance(1);
    }
    let grows = |points: &[(f64, f64)]| points[COUNTS.len() - 1].1 / points[0].1;
    let mut f = Findings::default();
    let us = points[1..].iter().map(|p| p[COUNTS.len() - 1].1 / 1e3).fold(0.0, f64::max);
    f.figure("B15", &[grows(&points[0]), grows(&points[1]), grows(&points[2]), us]);
    let columns = &["applications", "ns_a_decision", "ns_of_the_core_clook", "ns_of_the_core_sptf"];
    f.tables.push(Table { name: "ns", columns, rows });
    let mut rows = Vec::new();
    for (name, settings) in Settings::others() {
        let ns = |count| {
            let once = || whole(&model, Order::Clook, count, n / 4, &settings);
            (0..REPETITIONS).map(|_| once()).fold(f64::INFINITY, f64::min)
        };
        rows.push(vec![Cell::from(name), Cell::from(ns(10)), Cell::from(ns(10_000))]);
        run.progress.advance(1);
    }
    f.tables.push(Table { name: "ns_with_more", columns: &["bfq+ with", "ns_at_10", "ns_at_10000"], rows });
    let names = ["BFQ+ alone", "the core, C-LOOK", "the core, SPTF"];
    let series = names.into_iter().zip(points);
    f.charts.push(Chart::Xy(XyChart {
        title: "What a decision of BFQ+ costs".into(),
        subtitle: "Arrival, choice, dispatch and completion of a request, every one of another application.".into(),
        x: Axis::log("applications"),
        y: Axis::from_zero("ns"),
        series: series.map(|(name, points)| Series { name: name.into(), style: Style::Marked, points }).collect(),
    }));
    Ok(f)
}

const COUNTS: [u32; 4] = [10, 100, 1_000, 10_000];
const REPETITIONS: u32 = 10;

/// Returns nanoseconds per decision.
fn decision(count: u32, decisions: u64) -> f64 {
    let mut bfq = Bfq::new(BfqRules::plus(), 512);
    let request = |owner: u32, lbn: u64| Request {
        id: u64::from(owner),
        kind: Kind::Read,
        lbn,
        count: COUNT,
        fua: false,
        sync: true,
        owner,
    };
    let mut now = Time::ZERO;
    // Two each, so that BFQ+ never idles for one.
    for owner in 0..count {
        for _ in 0..2 {
            bfq.arrived(owner, &request(owner, u64::from(owner) * 1_000_000), now);
        }
    }
    let mut decide = |n: u64| {
        for _ in 0..n {
            let Turn::Queue(owner, _) = bfq.turn(now) else { panic!("all are backlogged") };
            let r = request(owner, u64::from(owner) * 1_000_000);
            bfq.sent(owner, &r, now);
            // The time slice is over.
            now += Dur::from_ms(126);
            bfq.completed(owner, &r, now);
            bfq.arrived(owner, &r, now);
            black_box(&bfq);
        }
    };
    decide(u64::from(count));
    let began = Instant::now();
    decide(decisions);
    began.elapsed().as_nanos() as f64 / decisions as f64
}

/// Sectors of a request.
const COUNT: u32 = 256;

/// What BFQ+ has beyond its default settings.
#[derive(Clone, Debug)]
struct Settings {
    policy: Policy,
    /// Each application has it.
    latency_target: Option<Dur>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { policy: Policy::Bfq(BfqRules::plus()), latency_target: None }
    }
}

impl Settings {
    /// Settings whose cost is reported beside the default's.
    fn others() -> [(&'static str, Settings); 3] {
        let switches = Settings { policy: named("bfq+:soft-rt,bursts,merging"), ..Settings::default() };
        // Most are overdue all the time.
        let short = Settings { latency_target: Some(Dur::from_ms(300)), ..Settings::default() };
        let long = Settings { latency_target: Some(Dur::from_secs(1_000_000)), ..Settings::default() };
        [
            ("soft-rt, bursts and merging", switches),
            ("a latency target each, overdue", short),
            ("a latency target each, never overdue", long),
        ]
    }
}

/// Returns the core's nanoseconds per request, from arrival to completion, with BFQ+ and two
/// pending requests of each application.
fn whole(model: &Model, order: Order, count: u32, decisions: u64, settings: &Settings) -> f64 {
    let capacity = 2 * count as usize + 2;
    let mut core = Core::new(Config::new(order).with_outstanding(1).with_capacity(capacity), model.clone())
        .admitting(&settings.policy);
    for owner in 0..count {
        core.set_latency_target(owner, settings.latency_target);
    }
    let places = core.model().geometry.capacity() / u64::from(COUNT);
    let mut rng = Variates::new(1, u64::from(count));
    let (mut now, mut next_id, mut at_drive) = (Time::ZERO, 0_u64, None);
    let mut take = |core: &mut Core| {
        let mut owner = None;
        while let Some(action) = core.poll() {
            match action {
                Action::Issue(command) => at_drive = Some(command.id),
                Action::Finish(finished) => owner = Some((finished.request % u64::from(count)) as u32),
                Action::Background(_) | Action::Expired(_) | Action::Overdue(_) => {}
            }
        }
        (owner, at_drive)
    };
    let mut submit = |core: &mut Core, owner: u32, now: Time| {
        next_id += 1;
        // The id encodes the owner.
        let id = next_id * u64::from(count) + u64::from(owner);
        let lbn = rng.below(places) * u64::from(COUNT);
        let (kind, fua, sync) = (Kind::Read, false, true);
        core.submit(Request { id, kind, lbn, count: COUNT, fua, sync, owner }, now).expect("there is room");
    };
    for owner in (0..count).chain(0..count) {
        submit(&mut core, owner, now);
        take(&mut core);
    }
    let mut turns = |n: u64| {
        for _ in 0..n {
            let (_, mut at_drive) = take(&mut core);
            // The disk may idle for an application.
            while core.outstanding() == 0 {
                now = core.next_wakeup().filter(|&at| at > now).expect("it waits for a time");
                core.tick(now);
                at_drive = take(&mut core).1;
            }
            // The time slice is over.
            now += Dur::from_ms(126);
            core.complete(at_drive.expect("a request is always in service"), Outcome::Ok, now);
            let (owner, _) = take(&mut core);
            submit(&mut core, owner.expect("it is finished"), now);
        }
    };
    turns(u64::from(count));
    let began = Instant::now();
    turns(decisions);
    began.elapsed().as_nanos() as f64 / decisions as f64
}
