//! S8: work in short idle time does not evict the drive's read-ahead.
//!
//! Thereska et al. (CMU-PDL-03-107), section 4.6, figure 9: two sequential foreground reads make
//! the drive read the whole track, then no request comes for 60 ms, then eight requests on that
//! track. In between there is (a) nothing, (b) three freeblock reads, (c) three freeblock writes on
//! the track: "the service time of the next 8 requests is not affected".
//!
//! Whether a drive drops its read-ahead when a part of it is written depends on the drive, and only
//! figure 9(c) shows it for this one, which keeps it. So the same is also done on a drive with the
//! other behaviour, to show its effect; no claim depends on that.

use headtime_disk::{Dur, Kind, Time, Track};
use headtime_plot::{Axis, Chart, Series, Style, XyChart};
use headtime_sched::{Conservatism, Core, SessionId, TaskError, TaskEvent, TaskId, TaskRange, TaskSpec};
use headtime_sim::background::Background;
use headtime_sim::observe::Observer;
use headtime_sim::stats::Done;
use headtime_sim::workload::variates::Variates;
use headtime_sim::workload::{Ask, Workload, WorkloadError};

use super::background_run::BackgroundRun;
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test};

/// The experiment.
pub(crate) const S8: Experiment = Experiment { spec: &SPEC, steps: Between::ALL.len() as u64, run };

static SPEC: Spec = Spec {
    id: "S8",
    title: "Short idle work and what the drive has read ahead",
    source: "Thereska et al., Design and Implementation of a Freeblock Subsystem (CMU-PDL-03-107, 2003), section 4.6, \
            figure 9",
    drive: "cheetah36es",
    workload: "two sequential reads at the beginning of a track, 60 ms of nothing, eight reads on the same track; many \
            tracks, all over the disk",
    claims: &[Claim {
        id: "S8",
        claim: "short idle work after a prefetch, next 8 requests on the track",
        paper: "not delayed",
        rule: "mean change under 1%",
        checks: &[
            Check { what: "change by three freeblock reads in between", unit: "%", test: Test::Below(1.0) },
            Check { what: "change by three freeblock writes in between", unit: "%", test: Test::Below(1.0) },
            Check {
                what: "tracks on which not all three were done in the idle time",
                unit: "cases",
                test: Test::Never,
            },
        ],
        quick: true,
        note: "Figure 9 shows one track; here the mean is taken over many. All ten requests and the freeblock blocks \
               lie on the track, but not at its very end: a reader of it makes the drive read on, on the next \
               track. Figure 9c is the only measurement of this drive with writes, and the profile follows it: the \
               drive keeps the rest of the track. Seagate's manuals of later drives (Cheetah 15K.6 FC, section 4.5.1) \
               say that a write empties the segments of the cache that it overlaps; on such a drive the eight go to \
               the media (table, last column).",
    }],
    length: Length::Minutes,
    alone: false,
};

/// Sectors of a request and of a freeblock block: 8 KiB.
const BLOCK: u64 = 16;
/// Requests after the idle time.
const REQUESTS_AFTER_IDLE: usize = 8;
/// Freeblock blocks.
const FREEBLOCK_BLOCKS: usize = 3;
/// Length of the idle time.
const PAUSE: Dur = Dur::from_ms(60);

/// Fewest sectors of the examined tracks: spares shorten some.
const MIN_TRACK_SECTORS: u32 = 500;

/// The work in the idle time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Between {
    Nothing,
    Three(Kind),
    /// Three writes, to a drive that drops its read-ahead of a track when a part of that is
    /// written.
    WritesThatDrop,
}

impl Between {
    const ALL: [Between; 4] =
        [Between::Nothing, Between::Three(Kind::Read), Between::Three(Kind::Write), Between::WritesThatDrop];

    fn kind(self) -> Option<Kind> {
        match self {
            Between::Nothing => None,
            Between::Three(kind) => Some(kind),
            Between::WritesThatDrop => Some(Kind::Write),
        }
    }
}

fn run(run: &Run) -> Result<Findings, RunError> {
    let mut means = vec![];
    let mut undone = 0;
    for between in Between::ALL {
        let (mean, not_done) = trials(run, between)?;
        means.push(mean);
        undone += if between == Between::WritesThatDrop { 0 } else { not_done };
        run.progress.advance(1);
    }
    let total = |m: &[f64; REQUESTS_AFTER_IDLE]| m.iter().sum::<f64>();
    let change = |of: usize| (100.0 * (total(&means[of]) - total(&means[0])) / total(&means[0])).abs();
    let mut f = Findings::default();
    f.figure("S8", &[change(1), change(2), undone as f64]);
    let names = ["nothing", "three freeblock reads", "three freeblock writes"];
    let row = |n: usize| means.iter().map(|m| Cell::from(m[n])).collect::<Vec<_>>();
    f.tables.push(Table {
        name: "service_times",
        columns: &["request", "nothing_ms", "reads_ms", "writes_ms", "writes_that_drop_ms"],
        rows: (0..REQUESTS_AFTER_IDLE)
            .map(|n| std::iter::once(Cell::from((n + 1) as f64)).chain(row(n)).collect())
            .collect(),
    });
    let series = |(i, name): (usize, &&str)| Series {
        name: (*name).into(),
        style: Style::Marked,
        points: means[i].iter().enumerate().map(|(n, v)| ((n + 1) as f64, *v)).collect(),
    };
    f.charts.push(Chart::Xy(XyChart {
        title: "Eight requests on a track that the drive has read ahead, Cheetah 36ES".into(),
        subtitle: "What was done in the idle time before them makes no difference.".into(),
        x: Axis::linear("request behind the idle time"),
        y: Axis::from_zero("mean service time, ms"),
        series: names.iter().enumerate().map(series).collect(),
    }));
    Ok(f)
}

/// Mean service times of the eight in ms, and the number of tracks on which the freeblock work was
/// not completed before them.
fn trials(run: &Run, between: Between) -> Result<([f64; REQUESTS_AFTER_IDLE], usize), RunError> {
    let trials = run.length(1_000, 200);
    let mut setup = BackgroundRun::new(&SPEC, run.seed)?;
    setup.profile.electronics.cache.writes_update_segments &= between != Between::WritesThatDrop;
    // No gap is filled, so that the blocks are read in idle time.
    if let Some(fill) = &mut setup.fill {
        fill.conservatism = Conservatism::Fixed(Dur::from_ms(100));
    }
    let target = setup.target(&SPEC)?;
    let geometry = target.geometry.clone().expect("a simulated disk has one");
    let mut rng = Variates::new(run.seed, 8);
    let (mut sums, mut undone, mut measured) = ([0.0; REQUESTS_AFTER_IDLE], 0, 0);
    for _ in 0..trials {
        let cylinder = rng.below(u64::from(geometry.cylinders())) as u32;
        let Some(track) = geometry.track(cylinder, rng.below(2) as u16).filter(|t| t.lbns >= MIN_TRACK_SECTORS) else {
            continue;
        };
        let mut script = Script::new(&track, &mut rng);
        let mut blocks = Blocks { between, script: script.clone(), session: None, left: 0, done_at: None };
        let mut seen = Seen::default();
        let fresh = BackgroundRun { seed: rng.bits(), ..setup.clone() };
        fresh.run_load(&SPEC, &mut script, &mut blocks, &mut seen)?;
        let behind = &seen.0[2..];
        for (sum, done) in sums.iter_mut().zip(behind) {
            *sum += done.service().as_ms_f64();
        }
        measured += 1;
        let in_time = blocks.done_at.is_some_and(|t| t < behind[0].due);
        undone += usize::from(between != Between::Nothing && !in_time);
    }
    assert!(measured > 0, "no track was long enough");
    Ok((sums.map(|sum| sum / f64::from(measured)), undone))
}

/// Requests in order of completion.
#[derive(Default)]
struct Seen(Vec<Done>);

impl Observer for Seen {
    fn finished(&mut self, done: &Done) {
        self.0.push(*done);
    }
}

/// The ten requests of one track, each due when its predecessor completes, the third after the
/// pause.
#[derive(Clone, Debug)]
struct Script {
    lbns: Vec<u64>,
    next: usize,
    due: Option<Time>,
    blocks: Vec<u64>,
}

impl Script {
    fn new(track: &Track, rng: &mut Variates) -> Script {
        let first = track.first_lbn;
        // Not the very end of the track: reading that makes the drive read ahead on the next track.
        let slots = u64::from(track.lbns - 1) / BLOCK;
        let mut free: Vec<u64> = (2..slots).collect();
        let mut draw = || first + free.swap_remove(rng.below(free.len() as u64) as usize) * BLOCK;
        let behind: Vec<u64> = (0..REQUESTS_AFTER_IDLE).map(|_| draw()).collect();
        let blocks: Vec<u64> = (0..FREEBLOCK_BLOCKS).map(|_| draw()).collect();
        let begin = Time::ZERO + Dur(rng.below(Dur::from_ms(20).0));
        let lbns = [first, first + BLOCK].into_iter().chain(behind).collect();
        Script { lbns, next: 0, due: Some(begin), blocks }
    }
}

impl Workload for Script {
    fn next_due(&self) -> Option<Time> {
        self.due
    }

    fn take(&mut self) -> Result<Ask, WorkloadError> {
        let due = self.due.take().expect("a request was taken while none was due");
        let lbn = self.lbns[self.next];
        self.next += 1;
        Ok(Ask { due, kind: Kind::Read, lbn, count: BLOCK as u32, fua: false, sync: true, owner: 0, class: 0 })
    }

    fn finished(&mut self, _: u32, now: Time) {
        self.due = match self.next {
            2 => Some(now + PAUSE),
            n if n < self.lbns.len() => Some(now),
            _ => None,
        };
    }

    fn endless(&self) -> bool {
        false
    }
}

/// The freeblock blocks, registered when the second request completes: the application is notified
/// by a task that wants the sectors of that request.
struct Blocks {
    between: Between,
    script: Script,
    session: Option<SessionId>,
    left: usize,
    done_at: Option<Time>,
}

impl Blocks {
    fn register(&self, core: &mut Core, kind: Kind, lbn: u64, now: Time) -> Result<Option<TaskId>, TaskError> {
        let Some(session) = self.session else { return Ok(None) };
        let ranges = vec![TaskRange { lbn, count: BLOCK }];
        let spec = TaskSpec { kind, ranges, blksize: BLOCK as u32, min_pickup: BLOCK as u32 };
        core.register(session, &spec, now).map(Some)
    }
}

impl Background for Blocks {
    fn start(&mut self, core: &mut Core, now: Time) -> Result<(), TaskError> {
        if self.between != Between::Nothing {
            self.session = Some(core.open(1, now)?);
            self.register(core, Kind::Read, self.script.lbns[1], now)?;
        }
        Ok(())
    }

    fn event(&mut self, event: &TaskEvent, core: &mut Core, now: Time) -> Result<(), TaskError> {
        match (*event, self.between) {
            (TaskEvent::GetBuffer { task, range, .. }, _) => {
                core.buffer(task, range, true, now)?;
            }
            (TaskEvent::Done { .. }, between) if self.left == 0 && self.done_at.is_none() => {
                let Some(kind) = between.kind() else { return Ok(()) };
                self.left = self.script.blocks.len();
                for lbn in self.script.blocks.clone() {
                    self.register(core, kind, lbn, now)?;
                }
            }
            (TaskEvent::Done { .. }, _) => {
                self.left = self.left.saturating_sub(1);
                if self.left == 0 {
                    self.done_at = Some(now);
                }
            }
            _ => {}
        }
        Ok(())
    }
}
