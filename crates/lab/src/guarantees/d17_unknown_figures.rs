//! D17: admission with a profile that lacks n, settling before writes, or the overheads of writes.
//!
//! A figure that was never measured is zero in a profile. A guarantee that depends on it is
//! rejected, or based on a stated bound. The drive of the test has settling failures as frequent
//! and as long as allowed: of the mandatory requests admitted with n of one revolution some are
//! late on it, and of those admitted with a stated bound none are.

use headtime_disk::Dur;
use headtime_disk::profile::{Bounds, Figure, Knowledge, Profile};
use headtime_sched::streams::{Kinds, Quality, RefusalReason, Stream, Traffic, admit, check_figures, unknown_figures};
use headtime_sim::workload::StreamSpec;
use headtime_sim::workload::das::{BYTES, PERIOD};

use super::late_settling::Truth;
use crate::common::stream_run::{DRIVES, StreamRun, WAITING, drive, known, most};
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test, failed};

/// The experiment.
pub(crate) const D17: Experiment = Experiment { spec: &SPEC, steps: 2 * DRIVES.len() as u64, run };

static SPEC: Spec = Spec {
    id: "D17",
    title: "Profiles that do not know all that a guarantee rests on",
    source: "headtime's own",
    drive: "ultrastar36z15 and barracuda36es2, with one figure at a time unknown",
    workload: "as many mandatory reads of 64 KiB as admission lets in, beside 8 best-effort requests that always wait",
    claims: &[Claim {
        id: "D17",
        claim: "a profile that does not know n, write settle or X of writes: `admit` refuses what rests on it, or \
                takes a stated bound",
        paper: "-",
        rule: "refused for each figure, and only what rests on it; with stated bounds none late; where n that is not \
               known counts as one turn, at least 1 late",
        checks: &[
            Check {
                what: "figures of w that are unknown, of which a mandatory stream is not refused, or an optional one \
                       is",
                unit: "cases",
                test: Test::Never,
            },
            Check {
                what: "the same of figures of writes where nothing writes: refused",
                unit: "cases",
                test: Test::Never,
            },
            Check {
                what: "without X of writes: streams that write and are not refused, or read and are",
                unit: "cases",
                test: Test::Never,
            },
            Check { what: "mandatory requests late with n as a stated bound", unit: "requests", test: Test::Never },
            Check {
                what: "mandatory requests late where unknown counts as one turn",
                unit: "requests",
                test: Test::AtLeast(1.0),
            },
        ],
        quick: true,
        note: "`headtime characterize` leaves n and settling before writes unknown unless it is asked to look for \
               them.",
    }],
    length: Length::Seconds,
    alone: false,
};

/// Moves in a million after which settling fails, and fails again. With the first at a tenth no
/// request is late even with n of one revolution, because mean service times are far below the
/// worst case.
const SETTLING_FAILURES_PPM: (u32, u32) = (500_000, 900_000);

fn run(run: &Run) -> Result<Findings, RunError> {
    let (mut figures, mut of_writes, mut times) = (0u64, 0u64, 0u64);
    let mut late = [0u64; 2];
    let mut rows = Vec::new();
    for name in DRIVES {
        let real = drive(&SPEC, name)?;
        let [mandatory, optional] = [1_000_000, 900_000].map(|ppm| stream(ppm, Kinds::Reads));
        for figure in Figure::ALL.into_iter().filter(|f| f.is_needed()) {
            let mut profile = real.clone();
            profile.known.set(figure, Knowledge::Unknown);
            let had = |traffic, stream: &Stream| check_figures(unknown_figures(&profile, traffic), stream).is_ok();
            figures += u64::from(had(Traffic::Any, &mandatory) || !had(Traffic::Any, &optional));
            let writes = matches!(figure, Figure::WriteSettle | Figure::WriteOverheads);
            of_writes += u64::from(writes && !had(Traffic::Reads, &mandatory));
        }
        let mut reads = real.clone();
        reads.service_times.retain(|x| x.load.reads_ppm == 1_000_000);
        // With bounds of both, X of writes is derived from that of reads.
        for figure in [Figure::WriteSettle, Figure::WriteOverheads] {
            reads.known.set(figure, Knowledge::Unknown);
        }
        let disk = known(&SPEC, &reads)?;
        for (kinds, expected) in [(Kinds::Reads, true), (Kinds::Writes, false), (Kinds::Any, false)] {
            times += u64::from(match admit(&disk, &[stream(900_000, kinds)]) {
                Ok(_) => !expected,
                Err(refusal) => expected || !matches!(refusal.why, RefusalReason::Kinds { .. }),
            });
        }
        let unknown = Truth::settled(&real).profile;
        let mut bounded = unknown.clone();
        let bounds = Bounds::parse(&format!("n={}", 1 + real.noise.settle_retry_turns));
        let applied = bounds.and_then(|b| b.apply(&mut bounded, "stated here"));
        applied.map_err(|e| failed(&SPEC, format!("expected {}, found {}", e.expected, e.found)))?;
        for (at, (words, believed)) in [("bound", bounded), ("unknown", unknown)].into_iter().enumerate() {
            let (requests, missed) = missed(run, &real, &believed)?;
            late[at] += missed;
            rows.push(vec![Cell::from(name), Cell::from(words), f64::from(requests).into(), (missed as f64).into()]);
            run.progress.advance(1);
        }
    }
    let mut f = Findings::default();
    f.figure("D17", &[figures, of_writes, times, late[0], late[1]].map(|n| n as f64));
    let columns = &["drive", "n", "mandatory_requests_in_500_ms", "late"];
    f.tables.push(Table { name: "n", columns, rows });
    Ok(f)
}

fn stream(ppm: u32, kinds: Kinds) -> Stream {
    let quality = Quality::from_ppm(ppm).expect("a share");
    Stream::new(5, PERIOD, quality, (BYTES / 512) as u32).expect("a stream").only(kinds)
}

/// The number of mandatory requests admitted with a profile, and how many of them are late on the
/// real drive.
fn missed(run: &Run, real: &Profile, believed: &Profile) -> Result<(u32, u64), RunError> {
    let disk = known(&SPEC, believed)?;
    let found = most(&disk, Quality::MANDATORY, Kinds::Reads);
    let requests = found.ok_or_else(|| failed(&SPEC, "not one mandatory request fits"))?.0;
    let mut truth = real.clone();
    (truth.noise.settle_retry_ppm, truth.noise.settle_retry_again_ppm) =
        (SETTLING_FAILURES_PPM.0, Some(SETTLING_FAILURES_PPM.1));
    let bench = StreamRun {
        truth: Some(truth),
        length: Dur::from_secs(run.length(600, 60)),
        seed: run.seed,
        ..StreamRun::new(believed, &disk, vec![StreamSpec::new("reads", requests, PERIOD, Quality::MANDATORY)], WAITING)
    };
    let stats = bench.run(&SPEC, &mut ())?;
    Ok((requests, stats.streams.iter().map(|s| s.missed()).sum()))
}
