//! D15: what admission says that best effort gets beside streams, against what it gets.
//!
//! Sets of streams from next to nothing to nearly all of a drive's time, among them those of which a share of the
//! time says nothing: periods hardly longer than a worst case, in which best effort may rarely go though the drive is
//! idle. Beside each are as many best-effort tasks as the forecast assumes. An optional stream must not cost best
//! effort more than a mandatory one that asks for the same.

use headtime_disk::time::Dur;
use headtime_sched::admit::das::admission::{Disk, admit};
use headtime_sched::admit::das::forecast::{BestEffort, forecast};
use headtime_sched::admit::das::stream::{Quality, Stream};
use headtime_sched::admit::das::subset::Exhausted;
use headtime_sim::stats::Stats;
use headtime_sim::workload::StreamSpec;
use headtime_sim::workload::das::BYTES;

use crate::das::{Bench, DRIVES, best_effort_sectors, drive, known};
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Run, RunError, Spec, Table, Test};
use crate::filled::failed;

/// The experiment.
pub struct D15;

static SPEC: Spec = Spec {
    id: "D15",
    title: "What best effort gets, as admission says",
    source: "headtime's own",
    drive: "ultrastar36z15 and barracuda36es2",
    workload: "streams of random reads of 64 KiB from one request in 35 ms to most of the drive's time, and 8 \
               best-effort requests that always wait",
    claims: &[Claim {
        id: "D15",
        claim: "`admit`'s words on best effort against what best effort gets; an optional stream never costs more than \
                a mandatory one",
        paper: "-",
        rule: "within 10% of what it gets, or of a hundredth of what it gets alone where that is more; and beside an \
               optional stream at least 99% of what it gets beside a mandatory one of the same size and period",
        checks: &[
            Check { what: "largest difference", unit: "%", test: Test::AtMost(10.0) },
            Check {
                what: "least that best effort has beside an optional stream, of that beside a mandatory one",
                unit: "%",
                test: Test::AtLeast(99.0),
            },
        ],
        quick: true,
        note: "A mandatory stream keeps a worst case free before each of its deadlines, so that with a period hardly \
               longer than that best effort has next to nothing while the drive is idle; both figures say so.",
    }],
    alone: false,
};

/// Requests, period in ms and quality in percent of each stream of a set.
const SETS: [&[(u32, u64, u32)]; 12] = [
    &[],
    &[(1, 35, 50)],
    &[(1, 45, 50)],
    &[(1, 65, 50)],
    &[(1, 100, 100)],
    &[(5, 500, 99), (20, 500, 95), (10, 500, 90), (5, 500, 85), (10, 500, 60)],
    &[(5, 500, 100), (30, 500, 95)],
    &[(10, 500, 100)],
    &[(3, 200, 100), (7, 300, 95)],
    &[(48, 500, 95)],
    &[(20, 500, 95), (20, 501, 95)],
    &[(2, 300, 100), (1, 700, 100), (8, 400, 80)],
];
/// Periods of one request, ms, for an optional stream of half and a mandatory one.
const PAIRS: [u64; 6] = [35, 45, 55, 60, 65, 100];

impl Experiment for D15 {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn steps(&self) -> u64 {
        (DRIVES.len() * (SETS.len() + 2 * PAIRS.len())) as u64
    }

    fn run(&self, run: &Run) -> Result<Findings, RunError> {
        let (mut apart, mut cost) = (0.0f64, f64::INFINITY);
        let mut rows = Vec::new();
        for name in DRIVES {
            let profile = drive(&SPEC, name)?;
            let disk = known(&SPEC, &profile)?;
            let mut one = |set: &[(u32, u64, u32)]| -> Result<(f64, f64), RunError> {
                let streams = streams(&disk, set)?;
                let admitted = admit(&disk, &streams).map_err(|e| failed(&SPEC, e))?;
                let beside = BestEffort::usual(&disk);
                let told = forecast(&disk, &streams, &admitted, Exhausted::Skip, beside);
                let told =
                    told.ok_or_else(|| failed(&SPEC, "nothing is known of best effort"))?.per_1000_s as f64 / 1e3;
                let spec =
                    |(i, s): (usize, &Stream)| StreamSpec::new(format!("{}", i + 1), s.requests, s.period, s.quality);
                let specs = streams.iter().enumerate().map(spec).collect();
                let length = Dur::from_secs(run.length(300, 60));
                let bench = Bench { length, seed: run.seed, ..Bench::new(&profile, &disk, specs, beside.waiting) };
                let got = rate(&bench.run(&SPEC, &mut ())?);
                run.progress.advance(1);
                let words = set.iter().map(|(c, t, q)| format!("{c} in {t} ms, {q}%"));
                let figures = [told, got].map(Cell::from);
                rows.push(
                    [Cell::from(name), Cell::from(&*words.collect::<Vec<_>>().join("; "))]
                        .into_iter()
                        .chain(figures)
                        .collect(),
                );
                Ok((told, got))
            };
            let mut alone = 0.0;
            for (i, set) in SETS.into_iter().enumerate() {
                let (told, got) = one(set)?;
                alone = if i == 0 { got } else { alone };
                apart = apart.max(100.0 * (told - got).abs() / got.max(alone / 100.0));
            }
            for ms in PAIRS {
                let ((_, optional), (_, mandatory)) = (one(&[(1, ms, 50)])?, one(&[(1, ms, 100)])?);
                if mandatory > alone / 100.0 {
                    cost = cost.min(100.0 * optional / mandatory);
                }
            }
        }
        let mut f = Findings::default();
        f.figure("D15", &[apart, cost]);
        let columns = &["drive", "streams", "best_effort_per_second_told", "best_effort_per_second"];
        f.tables.push(Table { name: "best_effort", columns, rows });
        Ok(f)
    }
}

fn streams(disk: &Disk, set: &[(u32, u64, u32)]) -> Result<Vec<Stream>, RunError> {
    let sectors = (BYTES / 512) as u32;
    assert!(disk.service(sectors).is_some(), "64 KiB were measured");
    let one = |&(requests, ms, percent): &(u32, u64, u32)| {
        let quality = Quality::from_ppm(percent * 10_000).map_err(|e| failed(&SPEC, e))?;
        Stream::new(requests, Dur::from_ms(ms), quality, sectors).map_err(|e| failed(&SPEC, e))
    };
    set.iter().map(one).collect()
}

/// Best-effort requests a second.
fn rate(stats: &Stats) -> f64 {
    best_effort_sectors(stats) as f64 / (BYTES / 512) as f64 / stats.ended_at.as_secs_f64()
}
