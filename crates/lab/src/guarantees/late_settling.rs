//! Drives with occasional late settling, by figures unknown to the measurement: the basis of D1 and
//! D13.
//!
//! A profile is the scheduler's belief. The drive itself, the truth, is another profile, drawn by
//! seed: its head needs up to [`MOST_EXTRA`] more revolutions, its failures occur together, and its
//! seeks vary by more than the belief's limit. n is found from response times alone, with the
//! believed terms of equation 5 (Reuther and Pohlack 2003), and then compared with the truth.

use headtime_disk::profile::Profile;
use headtime_disk::{Dur, Kind, Model, Time};
use headtime_probe::settling::Settling;
use headtime_sched::Order;
use headtime_sched::streams::WorstCase;
use headtime_sim::run::Limits;
use headtime_sim::simulate::{Setup, Simulation};
use headtime_sim::workload::variates::Variates;
use headtime_sim::workload::{Ask, Workload, WorkloadError};

use crate::experiment::{RunError, Spec, failed};

/// Most extra revolutions of a drawn drive: n is 1 to 8, where the paper's two drives have 2 and 5.
pub(crate) const MOST_EXTRA: u64 = 7;
/// Failures of a drawn head in a million moves, as powers of ten: from the built-in profiles' 10 to
/// 10%.
const FAILS_FROM: u32 = 1;
const FAILS_POWERS: u64 = 5;
/// Largest variation of a drawn drive's seeks, as a multiple of the believed limit.
const SEEKS_DIFFER: u64 = 4;
/// Random sequence of drawn drives; other parts of an experiment have their own.
const SEQUENCE: u64 = 1 << 52;

/// Requests of the paper's search for n (section 4.1: "at least 100 000").
pub(crate) const REQUESTS: u64 = 100_000;

/// The true settling behaviour of a drive.
#[derive(Clone, Debug)]
pub(crate) struct Truth {
    /// The drive.
    pub profile: Profile,
}

impl Truth {
    /// Drive `number` of this seed: as `belief` except for settling and the variation of seeks.
    pub(crate) fn drawn(belief: &Profile, seed: u64, number: u64) -> Truth {
        let mut rng = Variates::new(seed, SEQUENCE + number);
        let mut profile = belief.clone();
        let noise = &mut profile.noise;
        noise.settle_retry_turns = rng.below(MOST_EXTRA + 1) as u32;
        (noise.settle_retry_ppm, noise.settle_retry_again_ppm) = match noise.settle_retry_turns {
            0 => (0, None),
            _ => (10u32.pow(FAILS_FROM + rng.below(FAILS_POWERS) as u32), Some(100_000 * rng.below(10) as u32)),
        };
        let times = 1 + rng.below(SEEKS_DIFFER);
        (noise.seek_sd, noise.seek_max) = (Dur(noise.seek_sd.0 * times), Dur(noise.seek_max.0 * times));
        Truth { profile }
    }

    /// The same drive with correlated failures: after one the next has this probability, in parts
    /// per million.
    pub(crate) fn together(profile: &Profile, again_ppm: u32) -> Truth {
        let mut profile = profile.clone();
        profile.noise.settle_retry_again_ppm = Some(again_ppm);
        Truth { profile }
    }

    /// The same drive with independent failures.
    pub(crate) fn independent(profile: &Profile) -> Truth {
        Truth::together(profile, profile.noise.settle_retry_ppm)
    }

    /// The same drive without settling failures.
    pub(crate) fn settled(profile: &Profile) -> Truth {
        let mut profile = profile.clone();
        let noise = &mut profile.noise;
        (noise.settle_retry_ppm, noise.settle_retry_again_ppm, noise.settle_retry_turns) = (0, None, 0);
        Truth { profile }
    }

    /// The longest rotational latency, in revolutions: n.
    pub(crate) fn turns(&self) -> u32 {
        1 + self.profile.noise.settle_retry_turns
    }

    /// Moves in a million that are followed by a rotational latency of more than `turns`
    /// revolutions.
    pub(crate) fn later_ppm(&self, turns: u32) -> f64 {
        let noise = &self.profile.noise;
        let first = f64::from(noise.settle_retry_ppm);
        let again = f64::from(noise.settle_retry_again_ppm.unwrap_or(noise.settle_retry_ppm)) / 1e6;
        match turns {
            0 => 1e6,
            n if n >= self.turns() => 0.0,
            n => first * again.powi(n as i32 - 1),
        }
    }
}

/// The probability, in parts per million, with which a head that failed to settle must fail again,
/// so that `requests` of them show `extra` extra revolutions with even odds if `first_ppm` in a
/// million fail at first: requests x first x again^(extra - 1) = ln 2.
pub(crate) fn implied_again_ppm(requests: u64, first_ppm: u32, extra: u32) -> u32 {
    let runs = requests as f64 * f64::from(first_ppm) / 1e6;
    let again = (std::f64::consts::LN_2 / runs).powf(1.0 / f64::from(extra.saturating_sub(1).max(1)));
    (1e6 * again.min(1.0)).ceil() as u32
}

/// The requests of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SearchLoad {
    /// Reads of one sector, which end on their first track: only settling counts.
    Sectors,
    /// Reads and writes of this number of sectors in turn: losses at the ends of tracks count as
    /// revolutions, too.
    Requests(u32),
}

impl SearchLoad {
    fn sectors(self) -> u32 {
        match self {
            SearchLoad::Sectors => 1,
            SearchLoad::Requests(sectors) => sectors,
        }
    }

    /// The kind of request `number`; each edge of the disk gets every second one.
    fn kind(self, number: u64) -> Kind {
        match self {
            SearchLoad::Requests(_) if number / 2 % 2 == 1 => Kind::Write,
            _ => Kind::Read,
        }
    }
}

/// A load of consecutive requests, two of them at the drive, that measures their durations.
struct Provoking {
    asked: SearchLoad,
    number: u64,
    settling: Settling,
    /// Number of requests that are due, at the time of the last completion.
    due: u32,
    done: Option<Time>,
}

impl Workload for Provoking {
    fn next_due(&self) -> Option<Time> {
        (self.due > 0).then_some(self.done.unwrap_or(Time::ZERO))
    }

    fn take(&mut self) -> Result<Ask, WorkloadError> {
        let due = self.next_due().expect("a request was taken while none was due");
        self.due -= 1;
        let (lbn, kind, count) = (self.settling.ask(), self.asked.kind(self.number), self.asked.sectors());
        self.number += 1;
        Ok(Ask { due, kind, lbn, count, fua: false, sync: true, owner: 0, class: 0 })
    }

    fn finished(&mut self, _owner: u32, now: Time) {
        if let Some(before) = self.done.replace(now) {
            self.settling.observe(now.saturating_since(before));
        }
        self.due += 1;
    }

    fn endless(&self) -> bool {
        true
    }
}

impl Provoking {
    /// `worst` is the worst case of these requests: all terms of equation 5 except the revolutions
    /// are known; no read-ahead is met.
    fn new(asked: SearchLoad, worst: &WorstCase, capacity: u64) -> Provoking {
        let rest = WorstCase { turns: 0, stop: Dur::ZERO, ..*worst }.total();
        // The last request ends with the disk.
        let capacity = capacity.saturating_sub(u64::from(asked.sectors() - 1));
        Provoking { asked, number: 0, settling: Settling::new(rest, worst.turn, capacity), due: 2, done: None }
    }
}

/// w of requests of `sectors` sectors by `belief`.
pub(crate) fn believed(spec: &Spec, belief: &Profile, sectors: u32) -> Result<WorstCase, RunError> {
    let model = Model::new(belief).map_err(|e| failed(spec, e))?;
    WorstCase::of(belief, &model, sectors).map_err(|e| failed(spec, e))
}

/// Searches for n of `truth` with this number of requests. The other terms are `belief`'s.
pub(crate) fn found(
    spec: &Spec,
    belief: &Profile,
    truth: &Truth,
    (asked, requests): (SearchLoad, u64),
    seed: u64,
) -> Result<Settling, RunError> {
    let worst = believed(spec, belief, asked.sectors())?;
    let setup = Setup { belief: Some(belief), ..Setup::new(&truth.profile, Order::Fcfs, seed) };
    let simulation = Simulation::new(&setup).map_err(|e| failed(spec, e))?;
    let mut load = Provoking::new(asked, &worst, simulation.target().capacity);
    let limits = Limits { requests: Some(requests), ..Limits::default() };
    simulation.run(&mut load, limits, None, &mut ()).map_err(|e| failed(spec, e))?;
    Ok(load.settling)
}

/// The largest number of events that chance explains with a confidence of 99% if `mean` are
/// expected (Poisson).
pub(crate) fn by_chance(mean: f64) -> u64 {
    let (mut term, mut sum, mut most) = ((-mean).exp(), 0.0, 0);
    loop {
        sum += term;
        // Beyond a mean of 700 the first term is zero and the sum never grows: such events are not
        // rare.
        if sum >= 0.99 || term <= 0.0 {
            return most;
        }
        most += 1;
        term *= mean / most as f64;
    }
}

#[cfg(test)]
mod tests {
    use headtime_disk::profile::builtin;

    use super::*;

    #[test]
    fn two_are_at_the_drive_and_each_takes_from_the_end_of_the_one_before() {
        let profile = builtin("ultrastar36z15").unwrap();
        let worst = WorstCase::of(&profile, &Model::new(&profile).unwrap(), 1).unwrap();
        let mut load = Provoking::new(SearchLoad::Sectors, &worst, 36_000_000);
        let asks = [load.take().unwrap(), load.take().unwrap()];
        assert_eq!(load.next_due(), None);
        assert!(asks[0].lbn < 180_000 && asks[1].lbn >= 35_820_000, "{asks:?}");
        // The start of the first one is unknown.
        let heard = Time::ZERO + Dur::from_secs(1);
        load.finished(0, heard);
        assert_eq!((load.settling.requests(), load.next_due()), (0, Some(heard)));
        assert_eq!(load.take().unwrap().due, heard);
        // Sent long before, but the drive was busy.
        load.finished(0, heard + worst.total().saturating_sub(worst.stop));
        assert_eq!((load.settling.requests(), load.settling.turns()), (1, worst.turns));
    }

    #[test]
    fn requests_are_read_and_written_at_either_edge_and_end_with_the_disk() {
        let profile = builtin("ultrastar36z15").unwrap();
        let worst = WorstCase::of(&profile, &Model::new(&profile).unwrap(), 128).unwrap();
        let mut load = Provoking { due: 4_000, ..Provoking::new(SearchLoad::Requests(128), &worst, 36_000_000) };
        let asks: Vec<Ask> = (0..4_000).map(|_| load.take().unwrap()).collect();
        let of = |edge: usize| asks.iter().skip(edge).step_by(2).map(|a| a.kind.is_read()).collect::<Vec<_>>();
        assert!([0, 1].iter().all(|edge| of(*edge).chunks(2).all(|c| c == [true, false])));
        assert!(asks.iter().all(|a| a.count == 128 && a.lbn + 128 <= 36_000_000));
        assert!(asks.iter().any(|a| a.lbn > 35_999_000));
    }

    #[test]
    fn drawn_drives_differ_from_what_is_believed_of_them_in_both_directions() {
        let belief = builtin("ultrastar36z15").unwrap();
        let n = 1 + belief.noise.settle_retry_turns;
        let all: Vec<Truth> = (0..40).map(|i| Truth::drawn(&belief, 1, i)).collect();
        assert!(all.iter().any(|t| t.turns() > n) && all.iter().any(|t| t.turns() < n));
        assert!(all.iter().any(|t| t.profile.noise.seek_max > belief.noise.seek_max));
        assert!(all.iter().all(|t| headtime_disk::profile::check(&t.profile).is_ok()));
    }

    #[test]
    fn chances_of_runs_of_failures() {
        let mut truth = Truth::together(&builtin("ultrastar36z15").unwrap(), 500_000);
        (truth.profile.noise.settle_retry_ppm, truth.profile.noise.settle_retry_turns) = (80, 3);
        assert_eq!([0, 1, 2, 3, 4, 9].map(|n| truth.later_ppm(n)), [1e6, 80.0, 40.0, 20.0, 0.0, 0.0]);
        // One failure in 100,000 requests is followed by three more with even odds if each has
        // 0.885.
        assert_eq!(implied_again_ppm(100_000, 10, 4), 884_998);
        assert_eq!(implied_again_ppm(10, 10, 4), 1_000_000);
        // Poisson: with 1 expected, 4 or fewer have 0.9963, 3 or fewer 0.9810.
        assert_eq!([0.0, 0.001, 1.0].map(by_chance), [0, 0, 4]);
        assert!(by_chance(1e6) < 1_000_000_000);
    }
}
