//! B15: what a decision of BFQ+ costs, by the number of applications.
//!
//! Valente (2014), section 3.1: B-WF2Q+ in O(log N).

use std::hint::black_box;
use std::time::Instant;

use headtime_disk::command::Kind;
use headtime_disk::time::{Dur, Time};
use headtime_sched::admit::bfq::{Bfq, Rules};
use headtime_sched::admit::{Admission, Turn};
use headtime_sched::request::Request;

use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Run, RunError, Spec, Table, Test};
use crate::svg::{Axis, Chart, Series, Style, XyChart};

/// The experiment.
pub struct B15;

static SPEC: Spec = Spec {
    id: "B15",
    title: "The cost of a decision",
    source: "Valente, New version of BFQ, benchmark suite and experimental results (2014), section 3.1",
    drive: "none: the scheduler alone",
    workload: "10 to 10,000 applications that are always backlogged, every decision another application's turn",
    claims: &[Claim {
        id: "B15",
        claim: "one dispatch decision, 10 to 10,000 applications",
        paper: "O(log N)",
        rule: "cost grows less than 4 times",
        checks: &[Check { what: "10,000 applications over 10", unit: "times", test: Test::Below(4.0) }],
        quick: true,
        note: "Arrival, choice, dispatch and completion of one request, each ending a turn. The least of several repetitions: what else the processor did meanwhile is not the scheduler's.",
    }],
    alone: true,
};

impl Experiment for B15 {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn steps(&self) -> u64 {
        COUNTS.len() as u64
    }

    fn run(&self, run: &Run) -> Result<Findings, RunError> {
        let mut points = Vec::new();
        for count in COUNTS {
            let ns =
                (0..REPETITIONS).map(|_| decision(count, run.length(200_000, 50_000))).fold(f64::INFINITY, f64::min);
            points.push((f64::from(count), ns));
            run.progress.advance(1);
        }
        let mut f = Findings::default();
        f.figure("B15", &[points[COUNTS.len() - 1].1 / points[0].1]);
        let rows = points.iter().map(|(n, ns)| [*n, *ns].map(Cell::from).to_vec()).collect();
        f.tables.push(Table { name: "ns", columns: &["applications", "ns_a_decision"], rows });
        f.charts.push(Chart::Xy(XyChart {
            title: "What a decision of BFQ+ costs".into(),
            subtitle: "Arrival, choice, dispatch and completion of a request, every one of another application.".into(),
            x: Axis::log("applications"),
            y: Axis::from_zero("ns"),
            series: vec![Series { name: "BFQ+".into(), style: Style::Marked, points }],
        }));
        Ok(f)
    }
}

const COUNTS: [u32; 4] = [10, 100, 1_000, 10_000];
const REPETITIONS: u32 = 5;

/// Nanoseconds of one decision.
fn decision(count: u32, decisions: u64) -> f64 {
    let mut bfq = Bfq::new(Rules::plus(), 512);
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
    // Two each, so that nobody is waited for.
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
            // A slice later the turn is over.
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
