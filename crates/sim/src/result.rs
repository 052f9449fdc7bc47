//! What `simulate --json` prints: one object, always with the same keys in the same order.
//!
//! The same run gives the same bytes, except `wall_seconds` and the keys that begin with `ns_per_`.
//! Times are milliseconds rounded to the nanosecond, shares are rounded to six decimals.

mod background;
pub mod streams;

use std::collections::BTreeMap;

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
    /// How long the run was in virtual time.
    pub virtual_seconds: f64,
    /// How long it took; `null` when nobody measured.
    pub wall_seconds: Option<f64>,
    /// What applications saw.
    pub foreground: Foreground,
    /// What each stream asked for and had, by name; empty where there is none.
    pub streams: BTreeMap<String, StreamResult>,
    /// What they were promised; `null` where nobody is promised anything.
    pub guarantees: Option<Guarantees>,
    /// What was done for free.
    pub freeblock: Freeblock,
    /// What the host's write cache did; `null` where there is none. The drive's own cache is off
    /// where there is one.
    pub write_cache: Option<WriteCache>,
    /// How good predictions were.
    pub prediction: PredictionResult,
    /// Shares of the head's time; they sum to 1.
    pub head_time: HeadTimeResult,
    /// What scheduling cost.
    pub cost: Cost,
}

/// What applications saw.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Foreground {
    /// Requests finished.
    pub requests: u64,
    /// Of these, in error.
    pub errors: u64,
    /// Requests of a trace that the disk has no sectors for; they were not run.
    pub refused: u64,
    /// Requests per second of virtual time.
    pub per_second: f64,
    /// Megabytes (10^6) per second of virtual time.
    pub mb_s: f64,
    /// From due to done.
    pub response_ms: ResponseMs,
    /// The same for reads, writes, flushes, and the tasks of a scenario.
    pub by_class: BTreeMap<String, Class>,
    /// What the workload itself measured: starts of a program and their seconds, frames, steps;
    /// empty where there is nothing.
    pub measures: BTreeMap<String, f64>,
}

/// One class of requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Class {
    /// Requests finished.
    pub requests: u64,
    /// From due to done.
    pub response_ms: ResponseMs,
}

/// A distribution of response times; all `null` when there was no request.
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
    /// Half the width of the mean's 95% confidence interval (batch means); for all requests
    /// together only, and only when there are enough.
    pub mean_plus_minus: Option<f64>,
}

/// How good predictions were: shares of all samples, `null` when there was none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PredictionResult {
    /// Requests whose head time was foreseen and observed.
    pub samples: u64,
    /// Observed within 50 us of it.
    pub within_50us: Option<f64>,
    /// Observed within 150 us of it.
    pub within_150us: Option<f64>,
    /// About one or more turns late.
    pub extra_turn: Option<f64>,
    /// About one turn early.
    pub early_turn: Option<f64>,
}

/// Shares of the head's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct HeadTimeResult {
    /// Moving and settling.
    pub seek: f64,
    /// Rotational latency.
    pub rotate: f64,
    /// Foreground transfers.
    pub transfer: f64,
    /// Background transfers in gaps.
    pub free: f64,
    /// Nothing.
    pub idle: f64,
}

/// What scheduling cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Cost {
    /// Commands chosen.
    pub decisions: u64,
    /// Wall time of one decision; `null` when nobody measured.
    pub ns_per_decision: Option<f64>,
    /// Searches for freeblock work.
    pub fill_searches: u64,
    /// Wall time of a decision with its searches, ORDER's choice included; `null` when nothing was
    /// searched or nobody measured.
    pub ns_per_fill_search: Option<f64>,
    /// Bytes of the model that the scheduler keeps of the drive.
    pub model_bytes: u64,
    /// Bytes that freeblock tasks take, with what is kept to find their blocks.
    pub task_bytes: u64,
}

/// What a result needs beside the statistics.
#[derive(Clone, Debug, PartialEq)]
pub struct About {
    /// Name of the disk's profile.
    pub disk: String,
    /// Seed of the run.
    pub seed: u64,
    /// Bytes a sector of the disk holds.
    pub sector_bytes: u32,
    /// How long the run took, if measured.
    pub wall_seconds: Option<f64>,
    /// Commands at the drive at most.
    pub depth: u32,
    /// Bytes that the scheduler's model takes.
    pub model_bytes: usize,
    /// Bytes per second that pass under the head while it stays on a track, the mean over all
    /// tracks.
    pub media_bytes_per_second: f64,
}

impl SimResult {
    /// From what was counted.
    pub fn new(about: &About, stats: &Stats) -> SimResult {
        let p = &stats.prediction;
        let of_samples = |count: u64| (p.samples > 0).then(|| round6(count as f64 / p.samples as f64));
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
            prediction: PredictionResult {
                samples: p.samples,
                within_50us: of_samples(p.within_50us),
                within_150us: of_samples(p.within_150us),
                extra_turn: of_samples(p.extra_turn),
                early_turn: of_samples(p.early_turn),
            },
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

    /// As one line of JSON. Cannot fail: there are only numbers, strings and maps with string keys
    /// in it.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a result has nothing that JSON cannot say")
    }
}

fn head_time(stats: &Stats) -> HeadTimeResult {
    let s = stats.head.shares(stats.ended_at);
    let (seek, rotate, transfer, free) = (round6(s.seek), round6(s.rotate), round6(s.transfer), round6(s.free));
    // What rounding leaves over goes to idle, so that the sum stays 1.
    let idle = round6((1.0 - seek - rotate - transfer - free).max(0.0));
    HeadTimeResult { seek, rotate, transfer, free, idle }
}

fn response_ms(h: &Histogram) -> ResponseMs {
    let ms = |d: Option<headtime_disk::time::Dur>| d.map(|d| d.as_ms_f64());
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
    use headtime_disk::time::Dur;
    use headtime_sched::fill::report::Report;
    use headtime_sched::scheduler::Firmware;

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
            freeblock: Some(Report { commands, times_shut, shut: times_shut > 0, ..Report::default() }),
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
