//! Output of `simulate --json`: one object, always with the same keys in the same order.
//!
//! The same run gives the same bytes, except `wall_seconds` and keys that begin with `ns_per_`.
//! Times are milliseconds rounded to the nanosecond, shares are rounded to six decimals.

mod background;
pub mod streams;

use std::collections::BTreeMap;

use headtime_sched::PredictionStats;
use serde::Serialize;

pub use background::{Freeblock, NotFilled, Session, WriteCache};
use streams::{Guarantees, StreamResult};

use crate::stats::Stats;
use crate::stats::histogram::Histogram;

/// The result of a simulation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SimResult {
    /// Name of the disk's profile.
    pub disk: String,
    /// Seed of the run.
    pub seed: u64,
    /// Duration in virtual time.
    pub virtual_seconds: f64,
    /// Wall-clock duration; `null` if not measured.
    pub wall_seconds: Option<f64>,
    /// Results of the foreground.
    pub foreground: Foreground,
    /// Each stream's request and result, by name; empty without streams.
    pub streams: BTreeMap<String, StreamResult>,
    /// Guarantees to streams; `null` without guarantees.
    pub guarantees: Option<Guarantees>,
    /// Results of the background.
    pub freeblock: Freeblock,
    /// Results of the host's write cache; `null` without one. The drive's own cache is off when
    /// there is one.
    pub write_cache: Option<WriteCache>,
    /// Accuracy of predictions.
    pub prediction: PredictionResult,
    /// Shares of the head time; they sum to 1.
    pub head_time: HeadTimeResult,
    /// Cost of scheduling.
    pub cost: Cost,
}

/// Results of the foreground.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Foreground {
    /// Requests finished.
    pub requests: u64,
    /// Of these, failed ones.
    pub errors: u64,
    /// Requests of a trace beyond the disk's capacity; they were not run.
    pub refused: u64,
    /// Requests per second of virtual time.
    pub per_second: f64,
    /// Megabytes (10^6) per second of virtual time.
    pub mb_s: f64,
    /// Response times, from due to done.
    pub response_ms: ResponseMs,
    /// The same for reads, writes, flushes, and each task of a scenario.
    pub by_class: BTreeMap<String, Class>,
    /// Measurements of the workload itself: start-ups of a program and their seconds, frames,
    /// steps; empty if there are none.
    pub measures: BTreeMap<String, f64>,
}

/// A class of requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Class {
    /// Requests finished.
    pub requests: u64,
    /// Response times, from due to done.
    pub response_ms: ResponseMs,
}

/// A distribution of response times; all `null` without requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ResponseMs {
    /// Mean.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 95%.
    pub p95: Option<f64>,
    /// 99%.
    pub p99: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
    /// Half the width of the mean's 95% confidence interval (batch means); only for all requests
    /// together, and only if there are enough.
    pub mean_plus_minus: Option<f64>,
}

/// Accuracy of predictions, as shares of all samples; `null` without samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PredictionResult {
    /// Requests whose head time was predicted and observed.
    pub samples: u64,
    /// Observed within 50 us of the prediction.
    pub within_50us: Option<f64>,
    /// Observed within 150 us of the prediction.
    pub within_150us: Option<f64>,
    /// Late by about one or more revolutions.
    pub extra_turn: Option<f64>,
    /// Early by about one revolution.
    pub early_turn: Option<f64>,
}

impl PredictionResult {
    /// Returns the shares, to six decimals.
    pub fn of(p: &PredictionStats) -> PredictionResult {
        let share = |count: u64| (p.samples > 0).then(|| round6(count as f64 / p.samples as f64));
        PredictionResult {
            samples: p.samples,
            within_50us: share(p.within_50us),
            within_150us: share(p.within_150us),
            extra_turn: share(p.extra_turn),
            early_turn: share(p.early_turn),
        }
    }
}

/// Shares of the head time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct HeadTimeResult {
    /// Seeking and settling.
    pub seek: f64,
    /// Rotational latency.
    pub rotate: f64,
    /// Foreground transfers.
    pub transfer: f64,
    /// Background transfers in gaps.
    pub free: f64,
    /// Idle.
    pub idle: f64,
}

/// Cost of scheduling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Cost {
    /// Commands dispatched.
    pub decisions: u64,
    /// Wall time per decision; `null` if not measured.
    pub ns_per_decision: Option<f64>,
    /// Searches for freeblock work.
    pub fill_searches: u64,
    /// Wall time of a decision with its searches, including ORDER's choice; `null` without searches
    /// or measurement.
    pub ns_per_fill_search: Option<f64>,
    /// Size of the scheduler's model of the drive, in bytes.
    pub model_bytes: u64,
    /// Size of the freeblock tasks and their block indexes, in bytes.
    pub task_bytes: u64,
}

/// Parameters of a result besides the statistics.
#[derive(Clone, Debug, PartialEq)]
pub struct About {
    /// Name of the disk's profile.
    pub disk: String,
    /// Seed of the run.
    pub seed: u64,
    /// Bytes per sector.
    pub sector_bytes: u32,
    /// Wall-clock duration, if measured.
    pub wall_seconds: Option<f64>,
    /// Maximum number of commands at the drive.
    pub depth: u32,
    /// Size of the scheduler's model, in bytes.
    pub model_bytes: usize,
    /// Media rate in bytes per second while the head stays on a track, averaged over all tracks.
    pub media_bytes_per_second: f64,
}

impl SimResult {
    /// Computes the result from the statistics.
    pub fn new(about: &About, stats: &Stats) -> SimResult {
        let all = stats.responses();
        let mut by_class = BTreeMap::new();
        let kinds = [("read", &stats.reads), ("write", &stats.writes), ("flush", &stats.flushes)];
        let tasks = stats.classes.iter().map(|(name, h)| (name.as_str(), h));
        for (name, h) in kinds.into_iter().filter(|(_, h)| h.samples() > 0).chain(tasks) {
            by_class.insert(name.to_owned(), Class { requests: h.samples(), response_ms: response_ms(h) });
        }
        SimResult {
            disk: about.disk.clone(),
            seed: about.seed,
            virtual_seconds: stats.ended_at.as_secs_f64(),
            wall_seconds: about.wall_seconds,
            foreground: Foreground {
                requests: stats.requests,
                errors: stats.errors,
                refused: stats.refused.count,
                per_second: round6(stats.per_second()),
                mb_s: round6(stats.mb_per_second(about.sector_bytes)),
                response_ms: ResponseMs {
                    mean_plus_minus: stats.batches.half_width_ns().map(|ns| round6(ns / 1e6)),
                    ..response_ms(&all)
                },
                by_class,
                measures: BTreeMap::new(),
            },
            streams: streams::of(stats, about.sector_bytes),
            guarantees: streams::guarantees(stats),
            freeblock: background::freeblock(about, stats),
            write_cache: stats.write_cache.as_ref().map(background::write_cache),
            prediction: PredictionResult::of(&stats.prediction),
            head_time: head_time(stats),
            cost: Cost {
                decisions: stats.decisions,
                ns_per_decision: stats
                    .decision_ns
                    .filter(|_| stats.timed_decisions > 0)
                    .map(|ns| (ns as f64 / stats.timed_decisions as f64 * 10.0).round() / 10.0),
                fill_searches: stats.freeblock.as_ref().map_or(0, |f| f.searches),
                ns_per_fill_search: stats
                    .search_ns
                    .filter(|_| stats.timed_searches > 0)
                    .map(|ns| (ns as f64 / stats.timed_searches as f64 * 10.0).round() / 10.0),
                model_bytes: about.model_bytes as u64,
                task_bytes: stats.freeblock.as_ref().map_or(0, |f| f.bytes() as u64),
            },
        }
    }

    /// Formats one line of JSON. Cannot fail: it contains only numbers, strings and maps with
    /// string keys.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a result has nothing that JSON cannot say")
    }
}

fn head_time(stats: &Stats) -> HeadTimeResult {
    let s = stats.head.shares(stats.ended_at);
    let (seek, rotate, transfer, free) = (round6(s.seek), round6(s.rotate), round6(s.transfer), round6(s.free));
    // The rounding error goes to idle, so that the sum stays 1.
    let idle = round6((1.0 - seek - rotate - transfer - free).max(0.0));
    HeadTimeResult { seek, rotate, transfer, free, idle }
}

fn response_ms(h: &Histogram) -> ResponseMs {
    let ms = |d: Option<headtime_disk::Dur>| d.map(|d| d.as_ms_f64());
    ResponseMs {
        mean: ms(h.mean()),
        p50: ms(h.quantile(500)),
        p95: ms(h.quantile(950)),
        p99: ms(h.quantile(990)),
        max: ms(h.max()),
        mean_plus_minus: None,
    }
}

fn round6(x: f64) -> f64 {
    (x * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::background::{Progress, SessionProgress};
    use crate::device::fixed::Fixed;
    use crate::run::{Limits, run};
    use crate::workload::{Population, Target, closed, oltp};
    use headtime_disk::Dur;
    use headtime_sched::{FillReport, Firmware};

    fn result(seed: u64) -> SimResult {
        let target = Target { capacity: 1_000_000, sector_bytes: 512, geometry: None };
        let mut w = Population::new(&[oltp(), closed(2)], &target, seed).unwrap();
        let mut d = Fixed::new(Dur::from_us(3_100), 2);
        let mut f = Firmware::new(2, 100);
        let limits = Limits { requests: Some(5_000), ..Limits::default() };
        let stats = run(&mut d, &mut f, &mut w, limits, None, &mut ()).unwrap();
        let about = About {
            disk: "fixed".to_owned(),
            seed,
            sector_bytes: 512,
            wall_seconds: None,
            depth: 2,
            model_bytes: 12_345,
            media_bytes_per_second: 20e6,
        };
        SimResult::new(&about, &stats)
    }

    #[test]
    fn every_key_of_the_contract_is_there() {
        let v: serde_json::Value = serde_json::from_str(&result(1).to_json()).unwrap();
        let at = |path: &str| v.pointer(path).unwrap_or_else(|| panic!("{path}"));
        for path in [
            "/disk",
            "/seed",
            "/virtual_seconds",
            "/wall_seconds",
            "/foreground/requests",
            "/foreground/per_second",
            "/foreground/mb_s",
            "/foreground/response_ms/mean",
            "/foreground/response_ms/p50",
            "/foreground/response_ms/p95",
            "/foreground/response_ms/p99",
            "/foreground/response_ms/max",
            "/foreground/by_class/read/response_ms/p95",
            "/foreground/by_class/oltp/requests",
            "/foreground/by_class/closed:2/requests",
            "/streams",
            "/guarantees",
            "/freeblock/bytes",
            "/freeblock/mb_s",
            "/freeblock/share_of_media_bandwidth",
            "/freeblock/requests",
            "/freeblock/scanned_fraction",
            "/freeblock/scan_seconds",
            "/freeblock/times_stopped",
            "/freeblock/stopped",
            "/freeblock/not_filled",
            "/freeblock/by_session",
            "/prediction/samples",
            "/prediction/within_50us",
            "/prediction/within_150us",
            "/prediction/extra_turn",
            "/prediction/early_turn",
            "/cost/decisions",
            "/cost/ns_per_decision",
            "/cost/fill_searches",
            "/cost/ns_per_fill_search",
            "/cost/model_bytes",
            "/cost/task_bytes",
        ] {
            at(path);
        }
        let share = |key: &str| at(&format!("/head_time/{key}")).as_f64().unwrap();
        let sum: f64 = ["seek", "rotate", "transfer", "free", "idle"].map(share).iter().sum();
        assert!((sum - 1.0).abs() < 1e-9, "{sum}");
        assert_eq!(at("/foreground/requests"), 5_000);
    }

    #[test]
    fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
        assert_eq!(result(1).to_json(), result(1).to_json());
        assert_ne!(result(1).to_json(), result(2).to_json());
    }

    #[test]
    fn a_run_without_requests_has_nulls_instead_of_figures() {
        let about = About {
            disk: "d".into(),
            seed: 0,
            sector_bytes: 512,
            wall_seconds: None,
            depth: 2,
            model_bytes: 0,
            media_bytes_per_second: 20e6,
        };
        let r = SimResult::new(&about, &Stats::default());
        assert_eq!(r.foreground.response_ms, ResponseMs::default());
        assert_eq!(r.head_time.idle, 1.0);
        assert!(r.foreground.by_class.is_empty());
    }

    #[test]
    fn why_no_gap_was_filled_is_said() {
        let about = About {
            disk: "d".into(),
            seed: 0,
            sector_bytes: 512,
            wall_seconds: None,
            depth: 2,
            model_bytes: 0,
            media_bytes_per_second: 20e6,
        };
        let session = SessionProgress { name: "scan".into(), priority: 1, sectors: 0, fraction: 0.0, done_at: None };
        let wanted = Progress { by_session: vec![session], ..Progress::default() };
        let stats = |commands, times_shut| Stats {
            freeblock: Some(FillReport { commands, times_shut, shut: times_shut > 0, ..FillReport::default() }),
            background: wanted.clone(),
            ..Stats::default()
        };
        let said = |about: &About, stats: &Stats| {
            let f = SimResult::new(about, stats).freeblock;
            (f.times_stopped, f.stopped, f.not_filled)
        };
        assert_eq!(said(&about, &Stats::default()), (0, false, Some(NotFilled::NoFill)));
        let unwanted = Stats { background: Progress::default(), ..stats(0, 0) };
        assert_eq!(said(&about, &unwanted), (0, false, Some(NotFilled::NothingWanted)));
        assert_eq!(said(&about, &stats(0, 0)), (0, false, None));
        assert_eq!(said(&about, &stats(5, 1)), (1, true, None));
        assert_eq!(said(&about, &stats(0, 2)), (2, true, Some(NotFilled::DriveSurprises)));
        let single = About { depth: 1, ..about };
        assert_eq!(said(&single, &stats(0, 1)), (1, true, Some(NotFilled::OneCommandAtATime)));
        let json = SimResult::new(&single, &stats(0, 1)).to_json();
        assert!(json.contains("\"not_filled\":\"one-command-at-a-time\""), "{json}");
    }
}
