//! D15: the forecast of best effort by admission, compared with its actual rate.
//!
//! Sets of streams from almost none to nearly all of a drive's time, including those for which a
//! share of the time is meaningless: periods barely longer than a worst case, in which best effort
//! is rarely eligible although the drive is idle. Each runs with as many best-effort tasks as the
//! forecast assumes. An optional stream must not cost best effort more than a mandatory one with
//! the same parameters, alone and next to random others.

use headtime_disk::Dur;
use headtime_sched::streams::{BestEffort, Disk, Exhausted, Kinds, Ledger, Quality, Stream, admit_under, forecast};
use headtime_sim::stats::Stats;
use headtime_sim::workload::das::BYTES;
use headtime_sim::workload::variates::Variates;
use headtime_sim::workload::{PatternSpec, StreamSpec};

use crate::common::guarantee_check::{self, GuaranteeCheck};
use crate::common::stream_run::{DRIVES, StreamRun, WAITING, best_effort_sectors, drive, known, measured};
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test, failed};

/// The experiment.
pub(crate) const D15: Experiment = Experiment {
    spec: &SPEC,
    steps: (DRIVES.len() * (2 * (SETS.len() + SMALL.len()) + 2 * PAIRS.len())) as u64
        + DRIVES.len() as u64 * 2 * RANDOM_PAIRS.1,
    run,
};

static SPEC: Spec = Spec {
    id: "D15",
    title: "What best effort gets, as admission says",
    source: "headtime's own",
    drive: "ultrastar36z15 and barracuda36es2",
    workload: "streams of random reads of 8 and 64 KiB from one request in 35 ms to most of the drive's time, and 8 \
               best-effort requests of 64 KiB that always wait",
    claims: &[Claim {
        id: "D15",
        claim: "`admit`'s words on best effort against what best effort gets; an optional stream never costs more than \
                a mandatory one",
        paper: "-",
        rule: "within 10% of what it gets, or of a hundredth of what it gets alone where that is more; and beside an \
               optional stream, alone or beside random others, at least 99% of what it gets beside a mandatory one of \
               the same size and period; streams have what they were promised",
        checks: &[
            Check { what: "largest difference", unit: "%", test: Test::AtMost(10.0) },
            Check {
                what: "least that best effort has beside an optional stream, of that beside a mandatory one",
                unit: "%",
                test: Test::AtLeast(MIN_RATE_PERCENT),
            },
            guarantee_check::CHECKS[0],
            guarantee_check::CHECKS[1],
        ],
        quick: true,
        note: "A mandatory stream keeps a worst case free before each of its deadlines, so that with a period hardly \
               longer than that best effort has next to nothing while the drive is idle; both figures say so. What \
               differs most is what little best effort has beside 80 requests of 8 KiB in 500 ms on the Barracuda. A \
               pair with less than 99% is run again for five times as long, and that counts.",
    }],
    length: Length::Seconds,
    alone: false,
};

/// Requests, period in ms and quality in percent of a stream.
type Asked = (u32, u64, u32);
/// The streams of a set.
type Set<'a> = &'a [Asked];
/// Sets of streams of 64 KiB.
const SETS: [Set<'static>; 12] = [
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
/// Sets of streams of 8 KiB: more of them fit, so more requests are pending than during the
/// measurement of X.
const SMALL: [Set<'static>; 6] = [
    &[(20, 500, 95)],
    &[(80, 500, 95)],
    &[(90, 500, 95)],
    &[(20, 100, 60)],
    &[(35, 200, 80)],
    &[(10, 500, 100), (80, 500, 90)],
];
/// Requests per measurement of X.
const SAMPLES: u64 = 100_000;
/// Request size of the small sets, bytes.
const SMALL_BYTES: u64 = 8 << 10;
/// Smallest rate of best effort next to an optional stream, in percent of that next to a mandatory
/// one.
const MIN_RATE_PERCENT: f64 = 99.0;
/// How much longer the repeated run of two sets is.
const LONGER_TIMES: u64 = 5;
/// Periods of one request, ms, for an optional stream of half and a mandatory one.
const PAIRS: [u64; 6] = [35, 45, 55, 60, 65, 100];
/// Number of pairs per drive in which one stream, at any position among random others, is optional
/// and mandatory; and for a short run.
const RANDOM_PAIRS: (u64, u64) = (40, 12);
/// Parameters of random streams: most requests, periods in ms, qualities in percent.
const MOST_REQUESTS: u64 = 8;
const PERIODS: [u64; 6] = [60, 100, 150, 200, 300, 500];
const QUALITIES: [u32; 6] = [50, 60, 80, 90, 95, 99];

fn run(run: &Run) -> Result<Findings, RunError> {
    let (mut apart, mut cost, mut kept) = (0.0f64, f64::INFINITY, GuaranteeCheck::none());
    let seconds = run.length(300, 60);
    let mut rows = Vec::new();
    for name in DRIVES {
        // As many as `headtime profiles measure` takes, in a short run too: with fewer samples
        // all times are longer, because the longest of several distributions for one number of
        // candidates counts.
        let samples = (SAMPLES, run.seed);
        let profile = measured(&SPEC, &drive(&SPEC, name)?, &[SMALL_BYTES, BYTES], WAITING, 1, samples)?;
        let disk = known(&SPEC, &profile)?;
        let mut one = |(set, bytes): (Set<'_>, u64), exhausted: Exhausted, seconds: u64| -> Result<_, RunError> {
            let streams = streams(&disk, set, bytes)?;
            let admitted = admit_under(&disk, exhausted, &streams).map_err(|e| failed(&SPEC, e))?;
            let beside = BestEffort::usual(&disk);
            let told = forecast(&disk, &streams, &admitted, exhausted, beside);
            let told = told.ok_or_else(|| failed(&SPEC, "nothing is known of best effort"))?.per_1000_s as f64 / 1e3;
            let spec = |(i, s): (usize, &Stream)| StreamSpec {
                pattern: PatternSpec::random_reads(bytes),
                ..StreamSpec::new(format!("{}", i + 1), s.requests, s.period, s.quality)
            };
            let specs = streams.iter().enumerate().map(spec).collect();
            let length = Dur::from_secs(seconds);
            let bench = StreamRun {
                exhausted,
                length,
                seed: run.seed,
                ..StreamRun::new(&profile, &disk, specs, beside.waiting)
            };
            let stats = bench.run(&SPEC, &mut ())?;
            kept.count(&stats);
            let got = rate(&stats);
            run.progress.advance(1);
            let words = set.iter().map(|(c, t, q)| format!("{c} in {t} ms, {q}%"));
            let words = [name, &words.collect::<Vec<_>>().join("; "), exhausted.name()].map(Cell::from);
            rows.push(words.into_iter().chain([bytes as f64, told, got].map(Cell::from)).collect());
            Ok((told, got))
        };
        let mut alone = 0.0;
        let sets = SETS.map(|set| (set, BYTES)).into_iter().chain(SMALL.map(|set| (set, SMALL_BYTES)));
        for (i, set) in sets.enumerate() {
            for exhausted in [Exhausted::Skip, Exhausted::AsBestEffort] {
                let (told, got) = one(set, exhausted, seconds)?;
                alone = if i == 0 { got } else { alone };
                apart = apart.max(100.0 * (told - got).abs() / got.max(alone / 100.0));
            }
        }
        let mut got = |set: Set<'_>, seconds| Ok(one((set, BYTES), Exhausted::Skip, seconds)?.1);
        for ms in PAIRS {
            let (optional, mandatory) = ([(1, ms, 50)], [(1, ms, 100)]);
            cost = cost.min(cost_of((&optional, &mandatory), (seconds, alone / 100.0), &mut got)?);
        }
        let mut rng = Variates::new(run.seed, 1 << 52);
        let pairs = run.length(RANDOM_PAIRS.0, RANDOM_PAIRS.1);
        let mut left = pairs;
        while left > 0 {
            let (mut set, (at, percent)) = some(&mut rng);
            if !had(&disk, &set)? {
                continue;
            }
            left -= 1;
            let mandatory = set.clone();
            set[at].2 = percent;
            // A rejected optional stream would leave best effort nothing.
            if admit_under(&disk, Exhausted::Skip, &streams(&disk, &set, BYTES)?).is_err() {
                cost = 0.0;
                continue;
            }
            cost = cost.min(cost_of((&set, &mandatory), (seconds, alone / 100.0), &mut got)?);
        }
    }
    let mut f = Findings::default();
    let [below, late] = kept.figures();
    f.figure("D15", &[apart, cost, below, late]);
    f.notes.push(("D15", kept.words()));
    let columns = &["drive", "streams", "exhausted", "bytes", "best_effort_per_second_told", "best_effort_per_second"];
    f.tables.push(Table { name: "best_effort", columns, rows });
    Ok(f)
}

/// The rate of best effort next to the first of two sets, in percent of that next to the second, in
/// runs of `seconds`; infinite if that is below `little` per second. A ratio that is too small may
/// be chance, so a longer run decides.
fn cost_of(
    (optional, mandatory): (Set<'_>, Set<'_>),
    (seconds, little): (u64, f64),
    got: &mut dyn FnMut(Set<'_>, u64) -> Result<f64, RunError>,
) -> Result<f64, RunError> {
    let mut ratio = |seconds: u64| {
        let (optional, mandatory) = (got(optional, seconds)?, got(mandatory, seconds)?);
        Ok::<_, RunError>(if mandatory > little { 100.0 * optional / mandatory } else { f64::INFINITY })
    };
    let found = ratio(seconds)?;
    if found >= MIN_RATE_PERCENT { Ok(found) } else { ratio(LONGER_TIMES * seconds) }
}

/// Returns whether a set is admitted, without the search for the nearest alternative, which takes
/// most of the time.
fn had(disk: &Disk, set: Set<'_>) -> Result<bool, RunError> {
    let streams = streams(disk, set, BYTES)?;
    let mut ledger = Ledger::new(disk.clone()).under(Exhausted::Skip);
    let fits = streams.iter().all(|&stream| ledger.try_add(stream).is_ok());
    Ok(fits && admit_under(disk, Exhausted::Skip, &streams).is_ok())
}

/// Up to seven streams, some of them mandatory, including one mandatory stream; its position, and
/// an alternative quality for it.
fn some(rng: &mut Variates) -> (Vec<Asked>, (usize, u32)) {
    let quality = |rng: &mut Variates| QUALITIES[rng.below(QUALITIES.len() as u64) as usize];
    let one = |rng: &mut Variates, most: u64| {
        let requests = 1 + rng.below(most) as u32;
        let period = PERIODS[rng.below(PERIODS.len() as u64) as usize];
        (requests, period, if rng.below(4) == 0 { 100 } else { quality(rng) })
    };
    let mut set: Vec<_> = (0..rng.below(8)).map(|_| one(rng, MOST_REQUESTS)).collect();
    let (requests, period, _) = one(rng, MOST_REQUESTS / 2);
    let at = rng.below(set.len() as u64 + 1) as usize;
    set.insert(at, (requests, period, 100));
    (set, (at, quality(rng)))
}

fn streams(disk: &Disk, set: Set<'_>, bytes: u64) -> Result<Vec<Stream>, RunError> {
    let sectors = (bytes / 512) as u32;
    assert!(disk.service(sectors).is_some(), "both sizes were measured");
    let one = |&(requests, ms, percent): &(u32, u64, u32)| {
        let quality = Quality::from_ppm(percent * 10_000).map_err(|e| failed(&SPEC, e))?;
        let stream = Stream::new(requests, Dur::from_ms(ms), quality, sectors).map_err(|e| failed(&SPEC, e))?;
        Ok(stream.only(Kinds::Reads))
    };
    set.iter().map(one).collect()
}

/// Best-effort requests per second.
fn rate(stats: &Stats) -> f64 {
    best_effort_sectors(stats) as f64 / (BYTES / 512) as f64 / stats.ended_at.as_secs_f64()
}
