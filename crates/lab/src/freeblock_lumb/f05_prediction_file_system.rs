//! F5: head times of the reads of a file system, which are partly local and partly cache hits.
//!
//! Lumb, Schindler and Ganger (FAST 2002), section 5.2 and figure 7c: one process under FreeBSD
//! reads 10,000 small files, one after another. [`headtime_sim::workload::Files`] describes the
//! resulting requests.
//!
//! It runs twice, with two schedulers in front of the same drive. The paper's had no model of the
//! drive's cache; neither does one whose profile has no cache, and its errors are figure 7c.
//! headtime's own models the cache. Both have one request at a time to dispatch, so neither has a
//! choice and both get the same requests.
//!
//! The paper had to infer the causes of errors from their sizes. The virtual drive records which
//! reads were cache hits, so here the cause is known.

use std::collections::BTreeMap;

use headtime_disk::{Command, Completion, DriveNoise, Dur, profile};
use headtime_sched::internals::classify::{CLOSE, OVERLAP};
use headtime_sched::{Order, Prediction, PredictionStats, Surprise};
use headtime_sim::observe::Observer;
use headtime_sim::run::Limits;
use headtime_sim::simulate::{Setup, Simulation};
use headtime_sim::stats::{Done, Stats};
use headtime_sim::workload::{Files, FilesSpec};

use crate::common::predictions;
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test};

/// The experiment.
pub(crate) const F5: Experiment = Experiment { spec: &SPEC, steps: 2 * CASES.len() as u64, run };

/// The host's cache in MiB, and the drive's noise.
const CASES: [(u64, DriveNoise); 6] = [
    (16, DriveNoise::Profile),
    (64, DriveNoise::Profile),
    (256, DriveNoise::Profile),
    (16, DriveNoise::Measured),
    (64, DriveNoise::Measured),
    (256, DriveNoise::Measured),
];
/// Those of the paper's figure: half of its host's memory, the first drive and the second.
const PAPERS: usize = 1;
const ERRS: usize = 4;

const DRIVE: &str = "atlas10k";

static SPEC: Spec = Spec {
    id: "F5",
    title: "Predicted head time of a file system's reads",
    source: "Lumb, Schindler, Ganger, Freeblock Scheduling Outside of Disk Firmware (FAST 2002), section 5.2, figure \
            7c",
    drive: DRIVE,
    workload: "one process reads 10,000 random files of 3 KB in 2,000 directories of 50, blocks of 4 KB, cold host \
            cache",
    claims: &[Claim {
        id: "F5",
        claim: "10,000 reads of random 3 KB files (2,000 directories of 50, 4 KB file-system blocks, metadata nearby) \
                within 150 us",
        paper: "76%",
        rule: "at least 76% with a host's cache of 16, 64 and 256 MiB; on a drive that errs, cache hits, overlap \
               errors and extra turns visible as separate modes",
        checks: &[
            Check { what: "within 150 us, least of the three caches", unit: "%", test: Test::AtLeast(76.0) },
            Check { what: "the same, drive that errs", unit: "%", test: Test::AtLeast(76.0) },
            Check {
                what: "within 150 us, the drive's cache not followed, 64 MiB",
                unit: "%",
                test: Test::AtLeast(76.0),
            },
            Check { what: "cache hits are no separate mode", unit: "cases", test: Test::Never },
            Check { what: "overlap errors are no separate mode", unit: "cases", test: Test::Never },
            Check { what: "extra turns are no separate mode", unit: "cases", test: Test::Never },
        ],
        quick: true,
        note: "The paper's scheduler knew nothing of the drive's cache; the run beside ours does not either, and the \
               modes are looked for in its errors. headtime's own foresees nearly all hits, which are counted for \
               themselves. A mode is visible when at least one request in a thousand is off for that reason, and the \
               histogram (classes of 0.2 ms) falls to half of the mode's peak or less between it and zero. Overlap \
               errors are not: this drive's bus and media overlap by 10 us more or less for each 4 KiB (the paper's \
               section 5.2 on 40 KB), and what is read here is no longer than that, so nothing is off by 800 us \
               because of it. Errors of that size there are, 0.5%, as many early as late as in the paper; but they are \
               reads answered from what the drive had read ahead, a little sooner or later than the media would have \
               brought them, and the reads after these. Judged by size alone, as the paper had to, they would pass for \
               overlap errors. No jitter was added to make the mode appear. On the drive that errs, \
               0.7% of completions are up to 2.4 ms late, evenly, as in the trace of a real Atlas 10K \
               (docs/validation.md), which makes no mode either: 0.1 to 0.25% are off by up to 1 ms for this reason.",
    }],
    length: Length::Seconds,
    alone: false,
};

fn run(run: &Run) -> Result<Findings, RunError> {
    let mut all = Vec::new();
    for case in CASES {
        all.push([measure(run, case, true)?, measure(run, case, false)?]);
    }
    let [(own, seen_own), (blind, seen_blind)] = &all[PAPERS];
    let [(own_errs, seen_own_errs), (blind_errs, seen_blind_errs)] = &all[ERRS];
    let within = |p: &PredictionStats| predictions::percent(p.within_150us, p.samples);
    let least =
        |of: &[[(Stats, Seen); 2]]| of.iter().map(|[(own, _), _]| within(&own.prediction)).fold(100.0, f64::min);
    let (clean, errs) = all.split_at(CASES.len() / 2);
    let hidden = |reason| f64::from(u8::from(!seen_blind_errs.shows(reason)));
    let mut f = Findings::default();
    f.figure(
        "F5",
        &[
            least(clean),
            least(errs),
            within(&blind.prediction),
            hidden(Reason::Hit),
            hidden(Reason::Overlap),
            hidden(Reason::ExtraTurn),
        ],
    );
    f.notes.push(("F5", note(run.seed, own, seen_own, seen_blind)));
    let runs = [
        ("headtime", &own.prediction),
        ("cache not followed", &blind.prediction),
        ("headtime, drive errs", &own_errs.prediction),
        ("cache not followed, drive errs", &blind_errs.prediction),
    ];
    f.tables.push(predictions::summary(&runs));
    f.tables.push(caches(&all));
    f.tables.push(modes(&[
        ("headtime", seen_own),
        ("cache not followed", seen_blind),
        ("headtime, drive errs", seen_own_errs),
        ("cache not followed, drive errs", seen_blind_errs),
    ]));
    f.tables.push(predictions::table(&runs));
    let what = "Prediction error, reads of small files, Atlas 10K";
    f.charts.push(predictions::chart(&format!("{what}, the drive's cache not followed"), &blind.prediction));
    f.charts.push(predictions::chart(what, &own.prediction));
    let what = format!("{what}, drive that errs, its cache not followed");
    f.charts.push(predictions::chart(&what, &blind_errs.prediction));
    Ok(f)
}

/// Shares by the host's cache.
fn caches(all: &[[(Stats, Seen); 2]]) -> Table {
    let row = |((mib, noise), runs): (&(u64, DriveNoise), &[(Stats, Seen); 2])| -> Vec<Cell> {
        let drive = if *noise == DriveNoise::Measured { "errs" } else { "clean" };
        let [own, blind] = runs
            .each_ref()
            .map(|(s, _)| Cell::from(predictions::percent(s.prediction.within_150us, s.prediction.samples)));
        vec![drive.into(), (*mib as f64).into(), (runs[0].0.requests as f64).into(), own, blind]
    };
    Table {
        name: "host_caches",
        columns: &["drive", "cache_mib", "requests", "within_150us_percent", "cache_not_followed_percent"],
        rows: CASES.iter().zip(all).map(row).collect(),
    }
}

/// One run, with a scheduler that models the drive's cache or one whose profile has none.
fn measure(run: &Run, (mib, noise): (u64, DriveNoise), follows: bool) -> Result<(Stats, Seen), RunError> {
    let fail = |reason: String| RunError { id: SPEC.id, reason };
    let truth = profile::builtin(DRIVE).map_err(|e| fail(e.to_string()))?;
    let mut belief = truth.clone();
    if !follows {
        belief.electronics.cache.segments = 0;
        belief.mechanics.keep_passing = false;
    }
    // The order has no effect: one request at a time is pending.
    let mut setup = Setup { belief: Some(&belief), ..Setup::new(&truth, Order::Sptf, run.seed) };
    setup.drive.noise = noise;
    let simulation = Simulation::new(&setup).map_err(|e| fail(e.to_string()))?;
    let spec = FilesSpec { cache_bytes: mib << 20, ..FilesSpec::default() };
    let mut files = Files::new(&spec, simulation.target(), run.seed).map_err(|e| fail(e.to_string()))?;
    let mut seen = Seen::default();
    let stats = simulation.run(&mut files, Limits::default(), None, &mut seen).map_err(|e| fail(e.to_string()))?;
    run.progress.advance(1);
    Ok((stats, seen))
}

/// The cause of an error of more than 150 us, if there was one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    /// No error.
    None,
    /// No error: a predicted cache hit.
    ForeseenHit,
    /// An unpredicted cache hit.
    Hit,
    /// Whole revolutions late.
    ExtraTurn,
    /// A whole revolution early.
    EarlyTurn,
    /// The head was elsewhere than predicted, because the previous request was off or a cache hit.
    After,
    /// 1 ms at most, none of the above: the overlap of bus and media deviated.
    Overlap,
    /// Any other cause.
    Other,
}

impl Reason {
    /// All of them, with their names and the paper's share and position.
    const ALL: [(Reason, &str, &str); 8] = [
        (Reason::None, "within 150 us, from the media", "76%"),
        (Reason::ForeseenHit, "cache hit, foreseen", "none"),
        (Reason::Hit, "cache hit, a surprise", "4% at -7.5 ms"),
        (Reason::ExtraTurn, "extra turn", "4% at +6 ms"),
        (Reason::EarlyTurn, "a turn less", "not named"),
        (Reason::After, "the request after a surprise", "8% about +-1.5 and +-4.5 ms"),
        (Reason::Overlap, "overlap of bus and media", "5% at +-800 us"),
        (Reason::Other, "other", "not named"),
    ];

    /// Classifies a prediction. `from_media` is the drive's record; `after_surprise`: the previous
    /// request was off or an unpredicted hit.
    fn of(p: &Prediction, from_media: bool, after_surprise: bool) -> Reason {
        let error = Dur(p.error_ns().unsigned_abs());
        match p.surprise {
            _ if !from_media && foreseen(p) => Reason::ForeseenHit,
            _ if error <= CLOSE => Reason::None,
            _ if !from_media => Reason::Hit,
            Surprise::ExtraTurn => Reason::ExtraTurn,
            Surprise::EarlyTurn => Reason::EarlyTurn,
            _ if after_surprise => Reason::After,
            _ if error <= OVERLAP => Reason::Overlap,
            _ => Reason::Other,
        }
    }
}

/// Returns whether a read was predicted to move nothing.
fn foreseen(p: &Prediction) -> bool {
    p.cached && p.seek + p.latency == Dur::ZERO
}

/// Errors by cause and size, in classes of 0.2 ms: class `k` has errors about `0.2 k` ms.
#[derive(Clone, Debug, Default)]
struct Seen {
    errors: BTreeMap<Reason, BTreeMap<i64, u64>>,
    samples: u64,
    from_media: bool,
    surprised: bool,
}

impl Observer for Seen {
    fn completed(&mut self, _: &Command, _: u32, completion: &Completion) {
        // One request at a time: this completion belongs to the next finished request.
        self.from_media = completion.media.is_some();
    }

    fn finished(&mut self, done: &Done) {
        let Some(p) = &done.prediction else {
            self.surprised = false;
            return;
        };
        let reason = Reason::of(p, self.from_media, self.surprised);
        self.add(reason, p.error_ns());
        let unseen_hit = !self.from_media && !foreseen(p);
        self.surprised = unseen_hit || !matches!(reason, Reason::None | Reason::ForeseenHit);
    }
}

impl Seen {
    /// Width of a class, ns.
    const CLASS: i64 = 200_000;

    fn add(&mut self, reason: Reason, error_ns: i64) {
        let class = (error_ns + Self::CLASS / 2).div_euclid(Self::CLASS);
        *self.errors.entry(reason).or_default().entry(class).or_insert(0) += 1;
        self.samples += 1;
    }

    fn count(&self, reason: Reason) -> u64 {
        self.errors.get(&reason).map_or(0, |classes| classes.values().sum())
    }

    /// All errors of a class, whatever the cause.
    fn height(&self, class: i64) -> u64 {
        self.errors.values().filter_map(|classes| classes.get(&class)).sum()
    }

    /// The class with most errors of this cause, the one nearest to zero among equals.
    fn peak(&self, reason: Reason) -> Option<i64> {
        let classes = self.errors.get(&reason)?;
        classes.iter().max_by_key(|&(class, n)| (*n, -class.abs())).map(|(class, _)| *class)
    }

    /// Whether the errors of this cause are a separate mode: at least one request in a thousand,
    /// and a valley between their peak and zero in the histogram of all errors, at most half as
    /// high as the peak.
    fn shows(&self, reason: Reason) -> bool {
        let Some(peak) = self.peak(reason) else {
            return false;
        };
        let mut between = (peak.min(0) + 1)..peak.max(0);
        1_000 * self.count(reason) >= self.samples && between.any(|class| 2 * self.height(class) <= self.height(peak))
    }

    /// The error, in ms, below which this share (in percent) of a cause's errors lies, to the
    /// class.
    fn quantile_ms(&self, reason: Reason, percent: u64) -> Option<f64> {
        let classes = self.errors.get(&reason)?;
        let (mut below, of) = (0, self.count(reason));
        let class = classes.iter().find(|(_, n)| {
            below += **n;
            100 * below >= percent * of
        });
        class.map(|(class, _)| (class * Self::CLASS) as f64 / 1e6)
    }
}

/// The modes of each run: share, position, and the paper's figures.
fn modes(runs: &[(&'static str, &Seen)]) -> Table {
    let row = |name: &'static str, seen: &Seen, (reason, what, paper): (Reason, &'static str, &'static str)| {
        let place = |percent| seen.quantile_ms(reason, percent).map_or(Cell::from("none"), Cell::from);
        let n = seen.count(reason);
        let visible = if seen.shows(reason) { "yes" } else { "no" };
        let share = predictions::percent(n, seen.samples);
        let [low, middle, high] = [10, 50, 90].map(place);
        vec![name.into(), what.into(), (n as f64).into(), share.into(), low, middle, high, visible.into(), paper.into()]
    };
    let rows = runs.iter().flat_map(|(name, seen)| Reason::ALL.map(|reason| row(name, seen, reason)));
    Table {
        name: "modes",
        columns: &[
            "run",
            "reason",
            "requests",
            "share_percent",
            "error_p10_ms",
            "error_p50_ms",
            "error_p90_ms",
            "separate_mode",
            "paper",
        ],
        rows: rows.collect(),
    }
}

fn note(seed: u64, own: &Stats, seen_own: &Seen, seen_blind: &Seen) -> String {
    let share = |seen: &Seen, reason| predictions::percent(seen.count(reason), seen.samples);
    let requests: Vec<String> = own.classes.iter().map(|(name, h)| format!("{} {name}", h.samples())).collect();
    format!(
        "Seed {seed}: {} requests ({}). headtime: {:.2}% hits foreseen, {:.2}% not, {:.2}% extra turns. Cache not \
         followed: {:.2}% hits, {:.2}% extra turns, {:.2}% after a surprise, {:.2}% overlap errors.",
        own.requests,
        requests.join(", "),
        share(seen_own, Reason::ForeseenHit),
        share(seen_own, Reason::Hit),
        share(seen_own, Reason::ExtraTurn),
        share(seen_blind, Reason::Hit),
        share(seen_blind, Reason::ExtraTurn),
        share(seen_blind, Reason::After),
        share(seen_blind, Reason::Overlap),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten thousand requests, all but `n` of them right, those off by `error_us` for this cause.
    fn with(reason: Reason, n: u64, error_us: i64) -> Seen {
        let mut seen = Seen::default();
        (n..10_000).for_each(|i| seen.add(Reason::None, (i as i64 % 200 - 100) * 1_000));
        (0..n).for_each(|_| seen.add(reason, error_us * 1_000));
        seen
    }

    #[test]
    fn a_mode_is_a_peak_apart_from_zero() {
        assert!(with(Reason::Overlap, 500, 800).shows(Reason::Overlap));
        assert!(with(Reason::Overlap, 500, -800).shows(Reason::Overlap));
        assert!(with(Reason::ExtraTurn, 10, 5_985).shows(Reason::ExtraTurn));
    }

    #[test]
    fn too_few_or_too_near_or_on_a_slope_are_no_mode() {
        assert!(!with(Reason::ExtraTurn, 9, 5_985).shows(Reason::ExtraTurn));
        assert!(!with(Reason::Overlap, 500, 200).shows(Reason::Overlap));
        assert!(!with(Reason::Overlap, 500, 800).shows(Reason::ExtraTurn));
        let mut slope = with(Reason::Overlap, 500, 800);
        [200, 400, 600].into_iter().for_each(|us| (0..260).for_each(|_| slope.add(Reason::Other, us * 1_000)));
        assert!(!slope.shows(Reason::Overlap));
    }

    #[test]
    fn quantiles_are_those_of_one_reason() {
        let mut seen = with(Reason::Hit, 80, -4_200);
        (0..20).for_each(|_| seen.add(Reason::Hit, -2_000_000));
        assert_eq!(seen.quantile_ms(Reason::Hit, 10), Some(-4.2));
        assert_eq!(seen.quantile_ms(Reason::Hit, 90), Some(-2.0));
        assert_eq!(seen.quantile_ms(Reason::Overlap, 50), None);
        assert_eq!((seen.count(Reason::Hit), seen.samples), (100, 10_020));
    }

    #[test]
    fn an_errors_reason_is_what_the_drive_did() {
        let p = |error_us: i64, cached: bool, surprise| Prediction {
            predicted: Dur::from_ms(10),
            observed: Dur((10_000_000 + error_us * 1_000) as u64),
            seek: if cached { Dur::ZERO } else { Dur::from_ms(5) },
            latency: Dur::ZERO,
            transfer: Dur::ZERO,
            cached,
            surprise,
        };
        let far = Surprise::Other;
        assert_eq!(Reason::of(&p(20, true, Surprise::None), false, false), Reason::ForeseenHit);
        assert_eq!(Reason::of(&p(4_000, true, far), true, false), Reason::Other);
        assert_eq!(Reason::of(&p(-4_000, false, Surprise::CacheHit), false, false), Reason::Hit);
        // About as fast as predicted, but not the media: its size alone would suggest overlap.
        assert_eq!(Reason::of(&p(-800, false, Surprise::Overlap), false, false), Reason::Hit);
        assert_eq!(Reason::of(&p(800, false, Surprise::Overlap), true, true), Reason::After);
        assert_eq!(Reason::of(&p(800, false, Surprise::Overlap), true, false), Reason::Overlap);
        assert_eq!(Reason::of(&p(6_000, false, Surprise::ExtraTurn), true, true), Reason::ExtraTurn);
        assert_eq!(Reason::of(&p(150, false, Surprise::None), true, true), Reason::None);
    }
}
