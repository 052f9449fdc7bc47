//! X by the number of requests to choose from: the family used by admission
//! ([`headtime_sched::streams::Family`]), measured on a virtual drive.
//!
//! A stream has all its requests at the start of a period, and ever fewer until its end. So batches
//! of requests at random positions on the whole drive are given to an idle drive, and each
//! command's time counts for the number of requests that it was chosen from. The last requests of a
//! batch are those far from the head, so the size of the batch matters as well: batches have 1, 2,
//! 4 requests and so on up to the largest, and for each number of candidates the longest times
//! count, taken one by one in the order of their lengths. Times of loads with a constant number
//! waiting ([`super::measure`]) represent the usual case.

use headtime_disk::profile::{Profile, Run, ServiceLoad, ServiceTimes};
use headtime_disk::{Command, Completion, Dur, Kind, Time};
use headtime_sched::internals::at_drive::AtDrive;
use headtime_sched::streams::Distribution;

use super::{Load, MeasureError, Measured, count, measure, words, worst_of};
use crate::observe::Observer;
use crate::run::Limits;
use crate::simulate::{Setup, Simulation};
use crate::workload::variates::{Share, Variates};
use crate::workload::{Ask, Workload, WorkloadError};

/// Bin width of a family: each of its many histograms has fewer commands than a single one.
const BIN: Dur = Dur::from_us(50);
/// Shares of reads measured for all kinds of streams, in parts per million: reads, both, writes.
const KINDS: [u32; 3] = [1_000_000, 500_000, 0];
/// Numbers of candidates with separate times, below the number kept waiting.
const NUMBERS: [u32; 15] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192];
/// Measured commands per batch, for each size up to [`SMALL`] and for each larger size.
const COMMANDS_PER_BATCH: (u64, u64) = (50, 200);
const SMALL: u32 = 8;
/// Numbers of candidates also measured with a constant number waiting, with one in [`STEADY_PART`]
/// of the commands.
const STEADY_CANDIDATES: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
const STEADY_PART: u64 = 10;
/// The largest batch, unless more are kept waiting. More candidates reduce times only slightly: on
/// the two drives of the paper's table 1 by a tenth for twice as many.
const MAX_BATCH: u32 = 64;

/// Measures a family, by ascending numbers of candidates, with the usual case of each first.
///
/// # Errors
/// As of [`measure`].
pub fn family(profile: &Profile, load: &Load) -> Result<Vec<Measured>, MeasureError> {
    let closed = measure(profile, load)?;
    let largest = load.waiting.max(MAX_BATCH);
    let numbers: Vec<u32> = NUMBERS.into_iter().filter(|n| *n <= largest).collect();
    let mut longest: Vec<Vec<Dur>> = vec![Vec::new(); numbers.len()];
    let sizes = std::iter::successors(Some(1), |n| Some(n * 2)).take_while(|n| *n < largest).chain([largest]);
    for size in sizes {
        for (mut times, longest) in batches(profile, load, size, &numbers)?.into_iter().zip(&mut longest) {
            times.sort_unstable();
            if longest.is_empty() {
                *longest = times;
            } else if !times.is_empty() {
                let of = longest.len();
                // With fewer batches of a size, each stands for several.
                longest.iter_mut().enumerate().for_each(|(i, l)| *l = times[i * times.len() / of].max(*l));
            }
        }
    }
    let measured = numbers.iter().zip(&longest).filter(|of| !of.1.is_empty());
    let mut all: Vec<Measured> = measured.map(|(&n, times)| of(load, &closed, n, largest, times)).collect();
    for waiting in STEADY_CANDIDATES.map(|n| n + load.outstanding - 1).into_iter().filter(|n| *n != load.waiting) {
        let requests = (load.requests / STEADY_PART).max(1);
        all.push(measure(profile, &Load { waiting, requests, ..*load })?);
    }
    all.push(closed);
    all.sort_by_key(|m| (m.times.load.candidates, m.times.load.waiting));
    Ok(all)
}

/// Measures the families of all kinds of requests, in the order of profiles, in bins of `BIN`.
///
/// # Errors
/// As of [`measure`].
pub fn families(profile: &Profile, load: &Load) -> Result<Vec<Measured>, MeasureError> {
    let each = KINDS.map(|reads_ppm| family(profile, &Load { reads_ppm, ..*load }));
    let all = each.into_iter().collect::<Result<Vec<_>, _>>()?;
    let merged = (BIN.0 / Distribution::BIN.0) as u32;
    Ok(all.into_iter().flatten().map(|m| Measured { times: m.times.merged(merged), ..m }).collect())
}

/// Makes the distribution of commands chosen from one number of candidates.
fn of(load: &Load, closed: &Measured, candidates: u32, largest: u32, times: &[Dur]) -> Measured {
    let mut counts = Vec::new();
    times.iter().for_each(|&time| count(&mut counts, time));
    let sum: Dur = times.iter().copied().sum();
    Measured {
        times: ServiceTimes {
            sectors: closed.times.sectors,
            load: ServiceLoad {
                words: format!("{}, in batches of 1 to {largest}", words(load)),
                reads_ppm: load.reads_ppm,
                waiting: largest,
                candidates,
                order: load.order.to_string(),
                outstanding: load.outstanding,
            },
            samples: times.len() as u64,
            bin: Distribution::BIN,
            runs: Run::of(&counts),
        },
        worst: closed.worst,
        span: sum,
        mean: Dur(sum.0 / times.len().max(1) as u64),
        longest: times.iter().copied().max().unwrap_or(Dur::ZERO),
    }
}

/// Measures batches of `size` requests; returns for each of `numbers` the times of commands chosen
/// from that number of candidates.
fn batches(profile: &Profile, load: &Load, size: u32, numbers: &[u32]) -> Result<Vec<Vec<Dur>>, MeasureError> {
    let setup = Setup { depth: Some(load.outstanding), ..Setup::new(profile, load.order, load.seed) };
    let simulation = Simulation::new(&setup)?;
    let sectors = (load.bytes / u64::from(profile.sector_bytes)) as u32;
    let worst = worst_of(profile, sectors)?.total();
    let commands = if size > SMALL { COMMANDS_PER_BATCH.1 } else { COMMANDS_PER_BATCH.0 };
    let batches = (load.requests / commands).max(1);
    let mut workload = Batches {
        size,
        reads: Share::new(load.reads_ppm, 1_000_000).ok_or(MeasureError::Reads { found: load.reads_ppm })?,
        sectors,
        places: (simulation.target().capacity / u64::from(sectors)).max(1),
        rng: Variates::new(load.seed, 1 << 52 | u64::from(size)),
        due: size,
        unfinished: size,
        now: Time::ZERO,
    };
    let mut seen = Seen {
        size,
        left: size,
        drive: AtDrive::default(),
        sent: Vec::new(),
        worst,
        beyond: None,
        numbers,
        times: vec![Vec::new(); numbers.len()],
    };
    let limits = Limits { requests: Some(batches * u64::from(size)), ..Limits::default() };
    simulation.run(&mut workload, limits, None, &mut seen)?;
    match seen.beyond {
        Some(found) => Err(MeasureError::Beyond { sectors, worst, found }),
        None => Ok(seen.times),
    }
}

/// Batches of requests, each starting when the previous one is finished.
struct Batches {
    size: u32,
    reads: Share,
    sectors: u32,
    places: u64,
    rng: Variates,
    due: u32,
    unfinished: u32,
    now: Time,
}

impl Workload for Batches {
    fn next_due(&self) -> Option<Time> {
        (self.due > 0).then_some(self.now)
    }

    fn take(&mut self) -> Result<Ask, WorkloadError> {
        self.due -= 1;
        let lbn = self.rng.below(self.places) * u64::from(self.sectors);
        let kind = if self.rng.chance(self.reads) { Kind::Read } else { Kind::Write };
        Ok(Ask { due: self.now, kind, lbn, count: self.sectors, fua: false, sync: true, owner: 0, class: 0 })
    }

    fn finished(&mut self, _owner: u32, now: Time) {
        self.unfinished -= 1;
        if self.unfinished == 0 {
            (self.now, self.due, self.unfinished) = (now, self.size, self.size);
        }
    }

    fn endless(&self) -> bool {
        true
    }
}

/// Counter of commands' times by their number of candidates.
struct Seen<'a> {
    size: u32,
    /// Requests of the batch that were not dispatched.
    left: u32,
    drive: AtDrive<()>,
    sent: Vec<(u64, u32)>,
    worst: Dur,
    beyond: Option<Dur>,
    numbers: &'a [u32],
    times: Vec<Vec<Dur>>,
}

impl Observer for Seen<'_> {
    fn issued(&mut self, command: &Command, now: Time) {
        self.drive.sent(command.id, (), (self.worst, self.worst), now);
        self.sent.push((command.id, self.left));
        self.left = if self.left == 1 { self.size } else { self.left - 1 };
    }

    fn completed(&mut self, command: &Command, _free: u32, completion: &Completion) {
        let took = self.drive.done(command.id, Dur::ZERO, completion.at).took;
        let at = self.sent.iter().position(|s| s.0 == command.id).expect("it was sent");
        let candidates = self.sent.swap_remove(at).1;
        if took > self.worst {
            self.beyond = self.beyond.or(Some(took));
        }
        if let Ok(number) = self.numbers.binary_search(&candidates) {
            self.times[number].push(took);
        }
    }
}

#[cfg(test)]
mod tests {
    use headtime_disk::profile::builtin;

    use super::super::BYTES;
    use super::*;

    fn load(waiting: u32) -> Load {
        Load { waiting, requests: 20_000, ..Load::reads(BYTES, 1) }
    }

    #[test]
    fn the_fewer_there_are_to_choose_from_the_longer_a_command_takes() {
        let profile = builtin("ultrastar36z15").expect("a built-in drive");
        let all = family(&profile, &load(32)).expect("measured");
        let (steady, batches): (Vec<_>, Vec<_>) = all.iter().partition(|m| m.times.load.is_steady());
        let candidates = |of: &[&Measured]| of.iter().map(|m| m.times.load.candidates).collect::<Vec<_>>();
        assert_eq!(candidates(&batches), [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]);
        assert_eq!(candidates(&steady), [1, 2, 4, 8, 16, 31, 32, 64]);
        // The last numbers of a batch size are the first commands of their batches, before which
        // the head may be anywhere.
        for of in [&steady, &batches[..9].to_vec()] {
            assert!(of.windows(2).all(|pair| pair[0].mean.0 > pair[1].mean.0 * 97 / 100), "{of:?}");
        }
        assert!(all.iter().all(|m| m.longest <= m.worst.total()));
        // One batch of each small size for 50 commands.
        assert!(batches[..6].iter().all(|m| m.times.samples == 400));
        assert!(batches[0].mean.0 > 2 * batches[11].mean.0 * 9 / 10, "{} and {}", batches[0].mean, batches[11].mean);
    }

    #[test]
    fn all_kinds_are_measured_in_the_order_of_profiles() {
        let profile = builtin("barracuda36es2").expect("a built-in drive");
        let all = families(&profile, &load(4)).expect("measured");
        let of: Vec<(u32, u32)> = all.iter().map(|m| (m.times.load.reads_ppm, m.times.load.candidates)).collect();
        assert!(of.windows(2).all(|p| p[0].0 > p[1].0 || p[0].0 == p[1].0 && p[0].1 <= p[1].1), "{of:?}");
        assert_eq!((of.len(), of[0], of[of.len() - 1]), (60, (1_000_000, 1), (0, 64)));
        let profile = Profile { service_times: all.into_iter().map(|m| m.times).collect(), ..profile };
        let text = headtime_disk::profile::write(&profile);
        let files = |_: &str| Ok(text.clone());
        assert_eq!(headtime_disk::profile::load("drive.toml", &files).map(|l| l.profile), Ok(profile));
    }
}
