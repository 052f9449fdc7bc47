//! D16: the time of admission for many streams, and its loss of capacity with different periods.

use std::time::Instant;

use headtime_disk::Dur;
use headtime_sched::streams::{Ledger, Quality, Stream, admit};
use headtime_sim::workload::das::BYTES;

use crate::common::stream_run::{DRIVES, drive, known};
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test, failed};

/// The experiment.
pub(crate) const D16: Experiment = Experiment { spec: &SPEC, steps: 6, run };

static SPEC: Spec = Spec {
    id: "D16",
    title: "Admission of many streams and of periods that differ",
    source: "headtime's own",
    drive: "ultrastar36z15",
    workload: "none: sets of streams that are asked for",
    claims: &[
        Claim {
            id: "D16a",
            claim: "how long admission takes",
            paper: "-",
            rule: "1,000 streams under 1 s, 60 different periods under 1 s",
            checks: &[
                Check { what: "1,000 equal streams", unit: "s", test: Test::Below(1.0) },
                Check { what: "1,000 streams of different qualities", unit: "s", test: Test::Below(1.0) },
                Check { what: "60 streams of different periods", unit: "s", test: Test::Below(1.0) },
                Check { what: "the same one after the other", unit: "s", test: Test::Below(1.0) },
            ],
            quick: true,
            note: "One request of 64 KiB in each period of 10 s; the 60 have periods from 1 to 2 s.",
        },
        Claim {
            id: "D16b",
            claim: "what can be had where periods differ",
            paper: "-",
            rule: "periods of 500 and 501 ms admit at least 80% of what 500 and 500 do",
            checks: &[
                Check {
                    what: "requests of two streams of 95% in 500 and 501 ms",
                    unit: "%",
                    test: Test::AtLeast(80.0),
                },
                Check { what: "of two mandatory ones", unit: "%", test: Test::AtLeast(80.0) },
                Check {
                    what: "of one of 95% in 501 ms, beside 15 mandatory in 500",
                    unit: "%",
                    test: Test::AtLeast(80.0),
                },
            ],
            quick: true,
            note: "In parts of what there is if both have 500 ms.",
        },
    ],
    length: Length::Seconds,
    alone: true,
};

fn run(run: &Run) -> Result<Findings, RunError> {
    let disk = known(&SPEC, &drive(&SPEC, DRIVES[0])?)?;
    let sectors = (BYTES / 512) as u32;
    let stream = |requests: u32, ms: u64, ppm: u32| {
        let quality = Quality::from_ppm(ppm).map_err(|e| failed(&SPEC, e))?;
        Stream::new(requests, Dur::from_ms(ms), quality, sectors).map_err(|e| failed(&SPEC, e))
    };
    let all = |n: u64, of: &dyn Fn(u64) -> Result<Stream, RunError>| (0..n).map(of).collect::<Result<Vec<_>, _>>();
    let equal = |n| all(n, &|_| stream(1, 10_000, 900_000));
    let different = |n: u64| all(n, &|i| stream(1, 10_000, (500_000 + 490_000 * i / n) as u32));
    let periods = |n: u64| all(n, &|i| stream(1, 1_000 + 1_000 * i / n, 900_000));
    let mut rows = Vec::new();
    let mut took = |what: &'static str, streams: Vec<Stream>, singly: bool| -> Result<f64, RunError> {
        let began = Instant::now();
        if singly {
            let mut ledger = Ledger::new(disk.clone());
            streams.iter().try_for_each(|s| ledger.add(*s)).map_err(|e| failed(&SPEC, e))?;
        } else {
            admit(&disk, &streams).map_err(|e| failed(&SPEC, e))?;
        }
        let seconds = began.elapsed().as_secs_f64();
        run.progress.advance(1);
        rows.push(vec![Cell::from(what), Cell::from(streams.len() as f64), Cell::from(seconds)]);
        Ok(seconds)
    };
    for n in [100, 400] {
        took("equal", equal(n)?, false)?;
        took("different qualities", different(n)?, false)?;
    }
    let seconds = [
        took("equal", equal(1_000)?, false)?,
        took("different qualities", different(1_000)?, false)?,
        took("different periods", periods(60)?, false)?,
        took("different periods, one after the other", periods(60)?, true)?,
    ];
    let mut f = Findings::default();
    f.figure("D16a", &seconds);
    // The most requests of the last stream next to the first, which has the same number or its
    // own.
    let most = |first: Option<u32>, ms, ppm: (u32, u32)| -> Result<f64, RunError> {
        let fits = |n: u32| -> Result<bool, RunError> {
            let streams = [stream(first.unwrap_or(n), 500, ppm.0)?, stream(n, ms, ppm.1)?];
            Ok(Ledger::new(disk.clone()).extend(&streams).is_ok())
        };
        let (mut good, mut bad) = (0, 200);
        while bad - good > 1 {
            let mid = good + (bad - good) / 2;
            if fits(mid)? { good = mid } else { bad = mid }
        }
        Ok(f64::from(good))
    };
    let (all, most_of) = (1_000_000, 950_000);
    let sets = [
        ("both of 95%", None, (most_of, most_of)),
        ("both mandatory", None, (all, all)),
        ("95% beside 15 mandatory in 500 ms", Some(15), (all, most_of)),
    ];
    let (mut shares, mut requests) = (Vec::new(), Vec::new());
    for (what, first, ppm) in sets {
        let (same, other) = (most(first, 500, ppm)?, most(first, 501, ppm)?);
        shares.push(100.0 * other / same.max(1.0));
        requests.push(vec![Cell::from(what), Cell::from(same), Cell::from(other)]);
    }
    f.figure("D16b", &shares);
    f.tables.push(Table { name: "seconds", columns: &["streams", "number", "seconds"], rows });
    f.tables.push(Table { name: "requests", columns: &["streams", "in_500_ms", "in_501_ms"], rows: requests });
    Ok(f)
}
