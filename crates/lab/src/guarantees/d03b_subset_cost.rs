//! D3b: the cost of building the active subset, by the number of requests.
//!
//! Reuther and Pohlack (2003), section 4.2: 30,000 cycles of a 1 GHz processor per decision. Two
//! things are timed: building the subset, as there, and all calls for one request: arrival,
//! building the subset, dispatch, completion.
//!
//! With one period for all, and a worst case that never matters, a subset has a single deadline. So
//! there are also set-ups with a different period for each stream, in which every deadline has work
//! and the worst case and the mean time are those of the paper's Ultrastar: the remaining demand of
//! the streams is then summed up for each deadline.

use std::hint::black_box;
use std::time::{Duration, Instant};

use headtime_disk::{Dur, Time};
use headtime_plot::{Axis, Chart, Series, Style, XyChart};
use headtime_sched::internals::subset::{Member, Rules, Sent, Subset};
use headtime_sched::streams::{Distribution, Exhausted, MAX_REQUESTS, Quality, Service, Stream};

use crate::common::stream_run::{drive, known};
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test, failed};

/// The experiment.
pub(crate) const D3B: Experiment = Experiment { spec: &SPEC, steps: REPETITIONS as u64 * SETUPS.len() as u64, run };

const fn under(what: &'static str) -> Check {
    Check { what, unit: "us", test: Test::Below(5.0) }
}

static SPEC: Spec = Spec {
    id: "D3b",
    title: "The cost of the active subset",
    source: "Reuther, Pohlack, Rotational-Position-Aware Real-Time Disk Scheduling Using a Dynamic Active Subset \
            (2003), section 4.2",
    drive: "none: the subset alone, with w and X of ultrastar36z15 where periods differ",
    workload: "10, 100 and 1,000 requests waiting, in two streams and in as many streams as there are tens of \
               requests; every other stream mandatory; and as many in 1, 10 and 100 streams with a period for each",
    claims: &[Claim {
        id: "D3b",
        claim: "cost of building the active subset",
        paper: "30 us",
        rule: "under 5 us",
        checks: &[
            under("10 requests, two streams"),
            under("100 requests, two streams"),
            under("1,000 requests, two streams"),
            under("100 requests, ten streams"),
            under("1,000 requests, a hundred streams"),
            under("10 requests, one stream on the Ultrastar"),
            under("100 requests, one stream on the Ultrastar"),
            under("1,000 requests, one stream on the Ultrastar"),
            under("10 requests, ten streams with periods of their own"),
            under("100 requests, ten streams with periods of their own"),
            under("1,000 requests, ten streams with periods of their own"),
            under("10 requests, a hundred streams with periods of their own"),
            under("100 requests, a hundred streams with periods of their own"),
            under("1,000 requests, a hundred streams with periods of their own"),
        ],
        quick: true,
        note: "The subset alone, built after an arrival, a dispatch and a completion have changed everything that it \
               is built from. Requests are counted and not looked at, so that what it costs depends on how many \
               streams there are. The paper has two of them. The least of several repetitions: what else the processor \
               did at the same time is not the scheduler's.",
    }],
    length: Length::Seconds,
    alone: true,
};

/// A number of pending requests and streams.
#[derive(Clone, Copy)]
struct Setup {
    /// Pending requests.
    requests: u32,
    /// Streams that they belong to.
    streams: u32,
    /// Whether each stream has a different period.
    apart: bool,
}

const fn together(requests: u32, streams: u32) -> Setup {
    Setup { requests, streams, apart: false }
}

const fn apart(requests: u32, streams: u32) -> Setup {
    Setup { requests, streams, apart: true }
}

const SETUPS: [Setup; 14] = [
    together(10, 2),
    together(100, 2),
    together(1_000, 2),
    together(100, 10),
    together(1_000, 100),
    apart(10, 1),
    apart(100, 1),
    apart(1_000, 1),
    apart(10, 10),
    apart(100, 10),
    apart(1_000, 10),
    apart(10, 100),
    apart(100, 100),
    apart(1_000, 100),
];
const REPETITIONS: u32 = 5;
/// The worst case. All requests are always eligible, so every subset contains all of them.
const WORST_CASE: Dur = Dur::from_us(1);

fn run(run: &Run) -> Result<Findings, RunError> {
    let decisions = run.length(200_000, 20_000);
    let profile = drive(&SPEC, "ultrastar36z15")?;
    let disk = known(&SPEC, &profile)?;
    let mut least = SETUPS.map(|_| Took { subset: f64::INFINITY, whole: f64::INFINITY });
    // Set-ups alternate: other load on the processor then spoils one repetition, and not all of
    // a set-up.
    for _ in 0..REPETITIONS {
        for (Setup { requests, streams, apart }, least) in SETUPS.into_iter().zip(&mut least) {
            let took = match apart {
                true => periods_apart(disk.largest(), requests, streams, decisions)?,
                false => one_period(requests, streams, decisions)?,
            };
            *least = Took { subset: least.subset.min(took.subset), whole: least.whole.min(took.whole) };
            run.progress.advance(1);
        }
    }
    let us: Vec<f64> = least.iter().map(|took| took.subset).collect();
    let row = |(Setup { requests, streams, apart }, took): (Setup, &Took)| {
        let counts = [requests, streams, if apart { streams } else { 1 }].map(f64::from);
        counts.into_iter().chain([took.subset, took.whole]).map(Cell::from).collect()
    };
    let rows = SETUPS.into_iter().zip(&least).map(row).collect();
    let mut f = Findings::default();
    f.figure("D3b", &us);
    let columns = &["requests", "streams", "periods", "us_for_the_subset", "us_for_a_request"];
    f.tables.push(Table { name: "us", columns, rows });
    let points = |of: &[usize]| of.iter().map(|&i| (f64::from(SETUPS[i].requests), us[i])).collect();
    f.charts.push(Chart::Xy(XyChart {
        title: "What it costs to build the active subset".into(),
        subtitle: "Once for each decision; 30 us in the paper.".into(),
        x: Axis::log("requests that wait"),
        y: Axis::from_zero("us"),
        series: vec![
            Series { name: "two streams".into(), style: Style::Marked, points: points(&[0, 1, 2]) },
            Series { name: "ten requests in each stream".into(), style: Style::Marked, points: points(&[0, 3, 4]) },
        ],
    }));
    Ok(f)
}

/// Microseconds of one decision.
struct Took {
    /// Building the subset.
    subset: f64,
    /// Everything from a request's arrival to its completion.
    whole: f64,
}

/// Times a decision with `requests` pending in `streams`.
fn one_period(requests: u32, streams: u32, decisions: u64) -> Result<Took, RunError> {
    let times = Distribution::from_samples(&[WORST_CASE], WORST_CASE, WORST_CASE).map_err(|e| failed(&SPEC, e))?;
    let service = Service::new(1, WORST_CASE, times);
    let rules = Rules {
        outstanding: 2,
        best_effort: WORST_CASE,
        blocker: WORST_CASE,
        exhausted: Exhausted::Skip,
        compensates: true,
        crossing: Dur::ZERO,
        crossing_likely: Dur::ZERO,
        moves_on: Dur::ZERO,
    };
    let mut subset = Subset::new(rules);
    // In one long period all of them are pending, and each that completes is followed by another of
    // the same stream.
    let period = Dur::from_secs(10);
    let optional = Quality::from_ppm(950_000).map_err(|e| failed(&SPEC, e))?;
    let most = MAX_REQUESTS;
    for number in 0..streams {
        let mandatory = number % 2 == 0;
        let quality = if mandatory { Quality::MANDATORY } else { optional };
        let stream = Stream::new(most, period, quality, 1).map_err(|e| failed(&SPEC, e))?;
        let reservation = (!mandatory).then_some(period);
        subset.open(number, stream, &service, reservation, Time::ZERO).map_err(|e| failed(&SPEC, e))?;
    }
    // All have begun when the second period does.
    let mut now = Time::ZERO + period;
    for i in 0..requests {
        let member = subset.submit(i % streams, now);
        subset.ready(member);
    }
    let mut command = 0;
    // No stream exceeds its declared number of requests, because excess requests would be deferred.
    let in_a_period = u64::from(most - requests.div_ceil(streams)) * u64::from(streams);
    let mut one = |subset: &mut Subset, turn: u64, timed: &mut Duration| {
        let number = (turn % u64::from(streams)) as u32;
        let began = Instant::now();
        let active = black_box(subset.decide(now));
        *timed += began.elapsed();
        let member: Option<Member> = active.members.iter().copied().find(|m| m.stream == number);
        let what = member.map_or(Sent::BestEffort, Sent::Stream);
        command += 1;
        subset.sent(command, what, WORST_CASE, now);
        now += Dur(100);
        subset.completed(command, now);
        let next = subset.submit(number, now);
        subset.ready(next);
        member.is_some()
    };
    let decisions = decisions.min(in_a_period);
    let warm = decisions / 10;
    let mut building = Duration::ZERO;
    (0..warm).for_each(|turn| _ = one(&mut subset, turn, &mut building));
    building = Duration::ZERO;
    let timed = decisions - warm;
    let began = Instant::now();
    let served: u64 = (warm..decisions).map(|turn| u64::from(one(&mut subset, turn, &mut building))).sum();
    let whole = began.elapsed();
    // An empty subset costs less.
    if served != timed {
        return Err(failed(&SPEC, format!("expected {timed} decisions for a stream that waits, found {served}")));
    }
    let each = |all: Duration| all.as_nanos() as f64 / 1e3 / timed as f64;
    Ok(Took { subset: each(building), whole: each(whole) })
}

/// Different periods of streams: evenly from this to twice as long.
const MIN_PERIOD: Dur = Dur::from_secs(5);
/// Share of all mandatory streams in the drive's time by the worst case, and of all optional ones
/// by the mean.
const ASKED_PERCENT: u64 = 50;
/// A reservation as a multiple of the mean time of its requests, in tenths.
const RESERVED_TENTHS: u64 = 12;

/// Streams must be served at least once in this number of decisions: one mandatory stream alone
/// requests half of the time in the worst case, which is 6% of the decisions.
const SERVED_IN: u64 = 20;

/// Times a decision with `requests` pending in `streams` with different periods, on a drive with
/// these times.
fn periods_apart(service: &Service, requests: u32, streams: u32, decisions: u64) -> Result<Took, RunError> {
    let rules = Rules {
        outstanding: 2,
        best_effort: service.worst,
        blocker: service.worst,
        exhausted: Exhausted::Skip,
        compensates: true,
        crossing: Dur::ZERO,
        crossing_likely: Dur::ZERO,
        moves_on: Dur::ZERO,
    };
    let mut subset = Subset::new(rules);
    let mean = service.times.most().mean();
    let optional = Quality::from_ppm(950_000).map_err(|e| failed(&SPEC, e))?;
    for number in 0..streams {
        let period = MIN_PERIOD + Dur(MIN_PERIOD.0 * u64::from(number) / u64::from(streams));
        let mandatory = number % 2 == 0;
        let takes = if mandatory { service.worst } else { mean };
        let asked = (period.0 * ASKED_PERCENT / 100 / u64::from(streams.div_ceil(2)) / takes.0).max(1);
        let quality = if mandatory { Quality::MANDATORY } else { optional };
        let stream = Stream::new(asked as u32, period, quality, service.sectors).map_err(|e| failed(&SPEC, e))?;
        let reservation = (!mandatory).then_some(Dur(mean.0 * asked * RESERVED_TENTHS / 10));
        subset.open(number, stream, service, reservation, Time::ZERO).map_err(|e| failed(&SPEC, e))?;
    }
    // All have begun.
    let mut now = Time::ZERO + Dur(2 * MIN_PERIOD.0);
    for i in 0..requests {
        let member = subset.submit(i % streams, now);
        subset.ready(member);
    }
    let (mut building, mut asked, mut served) = (Duration::ZERO, 0u32, 0u64);
    let began = Instant::now();
    for command in 0..decisions {
        let begun = Instant::now();
        let active = black_box(subset.decide(now));
        building += begun.elapsed();
        let (member, best_effort) = (active.members.first().copied(), active.best_effort);
        match member {
            Some(member) => {
                served += 1;
                asked = member.stream;
                subset.sent(command, Sent::Stream(member), service.worst, now);
            }
            None if best_effort => subset.sent(command, Sent::BestEffort, service.worst, now),
            None => {}
        }
        now += mean;
        if member.is_some() || best_effort {
            subset.completed(command, now);
        }
        if member.is_some() {
            let next = subset.submit(asked, now);
            subset.ready(next);
        }
    }
    let whole = began.elapsed();
    // Without pending streams there is no demand to sum up.
    if served < decisions / SERVED_IN {
        return Err(failed(
            &SPEC,
            format!("expected a stream in {} decisions or more, found {served}", decisions / SERVED_IN),
        ));
    }
    let each = |all: Duration| all.as_nanos() as f64 / 1e3 / decisions as f64;
    Ok(Took { subset: each(building), whole: each(whole) })
}
