//! A drive's service times from its profile, for admission control: w from its figures
//! ([`super::worst`]), X from its measurements ([`headtime_disk::profile::service`]).

use headtime_disk::profile::{Figure, Knowledge, Overheads, Profile, ServiceTimes};
use headtime_disk::{Dur, Model};

use super::disk::{Disk, DiskError, Service};
use super::distribution::{Distribution, DistributionError};
use super::family::{Family, FamilyError};
use super::rests;
use super::stream::Stream;
use super::streams::LARGEST_BYTES;
use super::verdict::RefusalReason;
use super::worst::{WorstCase, WorstError, moves_on};
use super::worsts::WorstCaseTable;

/// Why a profile does not suffice to admit streams.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KnownError {
    /// It has no measured service times.
    #[error("disk {name}: expected service times of one request size or more in its profile, found none")]
    NoTimes {
        /// The profile's name.
        name: String,
    },
    /// Its worst case is unbounded.
    #[error("disk {name}, requests of {sectors} sectors: {source}")]
    Worst {
        /// The profile's name.
        name: String,
        /// Size of the requests.
        sectors: u32,
        /// The reason.
        source: WorstError,
    },
    /// They were measured with more commands in flight: with fewer, the overheads between two of
    /// them are not hidden.
    #[error(
        "disk {name}, service times for {sectors} sectors: expected them measured with at most {asked} commands at the \
         drive, found {measured}"
    )]
    Outstanding {
        /// The profile's name.
        name: String,
        /// Size of the requests.
        sectors: u32,
        /// Commands in flight during the measurement.
        measured: u32,
        /// Commands in flight requested.
        asked: u32,
    },
    /// They do not form a distribution; usually one exceeds the worst case.
    #[error("disk {name}, service times for {sectors} sectors: {source}")]
    Times {
        /// The profile's name.
        name: String,
        /// Size of the requests.
        sectors: u32,
        /// The reason.
        source: DistributionError,
    },
    /// Those of different numbers of candidates do not form a family.
    #[error("disk {name}, {sectors} sectors: {source}")]
    Family {
        /// The profile's name.
        name: String,
        /// Size of the requests.
        sectors: u32,
        /// The reason.
        source: FamilyError,
    },
    /// They are inconsistent.
    #[error("disk {name}: {source}")]
    Disk {
        /// The profile's name.
        name: String,
        /// The reason.
        source: DiskError,
    },
}

impl Disk {
    /// Returns the drive of `profile`, from which `model` was compiled, with up to `outstanding`
    /// commands in flight: X for each measured size, and w for the same sizes.
    ///
    /// # Errors
    /// No service times in the profile; an unbounded worst case (a write-back cache); times beyond
    /// it; times measured with more commands in flight.
    pub fn of(profile: &Profile, model: &Model, outstanding: u32) -> Result<Disk, KnownError> {
        let name = || profile.name.clone();
        if profile.service_times.is_empty() {
            return Err(KnownError::NoTimes { name: name() });
        }
        let mut sizes: Vec<u32> = profile.service_times.iter().map(|x| x.sectors).collect();
        sizes.dedup();
        let mut services = [Vec::new(), Vec::new(), Vec::new()];
        let delays = Delays::of(profile, model);
        for sectors in sizes {
            let worst = WorstCase::of(profile, model, sectors);
            let worst = worst.map_err(|source| KnownError::Worst { name: name(), sectors, source })?.total();
            let of_size: Vec<&ServiceTimes> = profile.service_times.iter().filter(|x| x.sectors == sectors).collect();
            if let Some(x) = of_size.iter().find(|x| x.load.outstanding > outstanding) {
                let measured = x.load.outstanding;
                return Err(KnownError::Outstanding { name: name(), sectors, measured, asked: outstanding });
            }
            let writes = write_takes_more(profile);
            let always: Vec<&ServiceTimes> = of_size.iter().copied().filter(|x| x.load.is_steady()).collect();
            let steady = by_kinds(&name(), &always, worst, writes, &delays)?;
            let longest = by_kinds(&name(), &of_size, worst, writes, &delays)?;
            let samples = Some(fewest_samples(&of_size));
            for ((times, steady), services) in longest.into_iter().zip(steady).zip(&mut services) {
                let Some(mut times) = times else { continue };
                // A larger request is never faster.
                if let Some(smaller) = services.last() {
                    let smaller: &Service = smaller;
                    if smaller.times.bin() == times.bin() {
                        times = times.longer_of(&smaller.times);
                    }
                }
                let worst = delays.worst(worst, &times);
                services.push(Service { sectors, worst, times, steady, samples });
            }
        }
        let disk = Disk::by_kinds(services, outstanding);
        let mut disk = disk.map_err(|source| KnownError::Disk { name: name(), source })?;
        disk.moves_on = moves_on(profile, model);
        disk.worst_is_known = rests::unknown_figures(profile, rests::Traffic::Any).is_empty();
        // Any other command may block a stream's request.
        let most = LARGEST_BYTES / model.sector_bytes;
        let worsts = WorstCaseTable::of(profile, model, most);
        let worsts = worsts.map_err(|source| KnownError::Worst { name: name(), sectors: most, source })?;
        Ok(disk.with_others(worsts.get(most)))
    }
}

/// The natural logarithm of 100, in millionths.
const LN_100_MILLIONTHS: u64 = 4_605_171;

impl Service {
    /// Returns the finest quality below 100% for an optional stream, in parts per million: none of
    /// n samples exceeded the longest, so up to ln 100 / n of all requests may, at a confidence of
    /// 99%.
    pub fn finest_ppm(&self) -> u32 {
        let beyond = self.samples.map_or(0, |n| LN_100_MILLIONTHS.div_ceil(n.max(1)));
        1_000_000 - beyond.min(1_000_000) as u32
    }

    /// Checks whether its samples suffice for the requested quality of stream number `stream`.
    pub(super) fn shows(&self, asks: &Stream, stream: usize) -> Result<(), RefusalReason> {
        match (self.samples, self.finest_ppm()) {
            (Some(samples), finest_ppm) if !asks.is_mandatory() && asks.quality.ppm() > finest_ppm => {
                Err(RefusalReason::Samples { stream, asked: asks.quality, finest_ppm, samples })
            }
            _ => Ok(()),
        }
    }
}

/// Delays that are in no figure of a profile, so that X of its virtual drive does not include them:
/// revolutions until the head has settled, and recalibrations, that were not measured. What is
/// known is how many of the reads compared with the profile were late. The same fraction of X is
/// delayed by that number of revolutions, at the upper confidence bound, and the fraction that may
/// have been missed never completes. By default, there are none.
#[derive(Default)]
struct Delays {
    turn: Dur,
    /// Parts per million that are one revolution late, two, and so on.
    by_turns: Vec<u64>,
    /// Parts per million that are later than any observed.
    never: u64,
}

impl Delays {
    /// Returns the delays; none if the figures are known, or no reads were compared.
    fn of(profile: &Profile, model: &Model) -> Delays {
        let found = |figure| matches!(profile.known.of(figure), Knowledge::Measured(_) | Knowledge::Stated);
        let late = match &profile.known.late {
            Some(late) if !found(Figure::SettleTurns) || !found(Figure::Recalibration) => late,
            _ => return Delays::default(),
        };
        // Upper bounds at 99%: for a count of n, n + 2.33 sqrt(n) + 1, or ln 100 if n is zero.
        let ppm = |thousandths: u64| (1_000 * thousandths).div_ceil(u64::from(late.reads.max(1)));
        let most = |n: u64| if n > 0 { 1_000 * n + 10 * (n * 54_289).isqrt() + 1_000 } else { 0 };
        Delays {
            turn: model.mechanics.rotation.period(),
            by_turns: late.by_turns.iter().map(|&n| ppm(most(n.into()))).collect(),
            never: ppm(4_606),
        }
    }

    /// Returns times with these delays.
    fn of_times(&self, times: Distribution) -> Distribution {
        match self.never {
            0 => times,
            never => times.delayed(self.turn, &self.by_turns, never),
        }
    }

    /// Returns the longest of these times if it exceeds a worst case based on unknown figures.
    fn worst(&self, worst: Dur, times: &Family) -> Dur {
        match self.never {
            0 => worst,
            _ => worst.max(Dur(times.bin().0 * times.end().saturating_sub(1) as u64)),
        }
    }
}

/// Returns X of one request size for any kind, for reads and for writes; `None`: not measured.
///
/// A stream that may have both gets the longest of all measured times, if these include reads and
/// writes, or only a mix of both. If only reads were measured, and a write is known to take at most
/// `longer` more before its sectors pass, writes take that much longer: the rotational latency
/// until then is uniform over a revolution in either case.
fn by_kinds(
    name: &str,
    all: &[&ServiceTimes],
    worst: Dur,
    longer: Option<Dur>,
    delays: &Delays,
) -> Result<[Option<Family>; 3], KnownError> {
    let (mut reads, mut writes, mut mixed) = (None, None, None);
    for of_share in all.chunk_by(|a, b| a.load.reads_ppm == b.load.reads_ppm) {
        let family = family(name, of_share, worst, delays)?;
        match of_share[0].load.reads_ppm {
            1_000_000 => reads = Some(family),
            0 => writes = Some(family),
            _ => mixed = Some(mixed.map_or(family.clone(), |m: Family| m.longer_of(&family))),
        }
    }
    if let (Some(reads), None, None, Some(longer)) = (&reads, &writes, &mixed, longer) {
        writes = Some(reads.later(longer, delays.worst(worst, reads)));
    }
    let any = match (&reads, &writes, &mixed) {
        (Some(r), Some(w), None) => Some(r.longer_of(w)),
        (Some(r), Some(w), Some(m)) => Some(r.longer_of(w).longer_of(m)),
        (None, None, Some(m)) => Some(m.clone()),
        _ => None,
    };
    Ok([any, reads, writes])
}

/// Returns the samples with the fewest candidates, for the share of reads that has the fewest.
fn fewest_samples(all: &[&ServiceTimes]) -> u64 {
    let of_share = |all: &[&ServiceTimes]| {
        let fewest = all.iter().map(|x| x.load.candidates).min();
        all.iter().filter(|x| Some(x.load.candidates) == fewest).map(|x| x.samples).sum()
    };
    all.chunk_by(|a, b| a.load.reads_ppm == b.load.reads_ppm).map(of_share).min().unwrap_or(0)
}

/// Returns the maximum additional time of a write until its sectors pass; `None`: not known.
fn write_takes_more(profile: &Profile) -> Option<Dur> {
    let unknown = profile.known.unknown();
    if unknown.contains(Figure::WriteSettle) || unknown.contains(Figure::WriteOverheads) {
        return None;
    }
    // If writes have their own seek times, only measuring gives it.
    if profile.mechanics.write_seek.is_some() {
        return None;
    }
    let settles = Dur(u64::try_from(profile.mechanics.write_settle_ns).unwrap_or(0));
    let Overheads { write_miss, queued, .. } = &profile.electronics.overheads;
    let before = write_miss.after_read.max(write_miss.after_write);
    let between = queued.read_write.max(queued.write_read).max(queued.write_write);
    Some(settles + before.max(between))
}

/// Returns X of requests of one size and share of reads. For fewer candidates than were measured
/// the worst case counts.
fn family(name: &str, all: &[&ServiceTimes], worst: Dur, delays: &Delays) -> Result<Family, KnownError> {
    let sectors = all[0].sectors;
    let mut members: Vec<(u32, Distribution)> = Vec::with_capacity(all.len() + 1);
    for x in all {
        let times = Distribution::from_counts(x.counts(), x.bin, worst);
        let times = times.map_err(|source| KnownError::Times { name: name.into(), sectors, source })?;
        let times = delays.of_times(times);
        match members.last_mut() {
            Some((candidates, last)) if *candidates == x.load.candidates => *last = last.longer_of(&times),
            _ => members.push((x.load.candidates, times)),
        }
    }
    if members[0].0 > 1 {
        let bin = members[0].1.bin();
        members.insert(0, (1, Distribution::certain(bin, worst.0.div_ceil(bin.0) as usize)));
    }
    Family::new(members).map_err(|source| KnownError::Family { name: name.into(), sectors, source })
}

#[cfg(test)]
mod tests {
    use super::super::admission::admit;
    use super::super::ledger::Ledger;
    use super::super::stream::{Kinds, Quality};
    use super::*;
    use headtime_disk::profile::{Known, Late, Run, ServiceLoad, builtin};

    /// Ten commands of this number of sectors, of 3 ms and 9 ms.
    fn times(sectors: u32) -> ServiceTimes {
        ServiceTimes {
            sectors,
            load: ServiceLoad {
                words: "made up".into(),
                reads_ppm: 500_000,
                waiting: 8,
                candidates: 7,
                order: "sptf".into(),
                outstanding: 2,
            },
            samples: 10,
            bin: Dur::from_us(10),
            runs: vec![Run { first: 300, counts: vec![6] }, Run { first: 900, counts: vec![4] }],
        }
    }

    fn drive(service_times: Vec<ServiceTimes>) -> (Profile, Model) {
        let profile = Profile { service_times, ..builtin("atlas10k").expect("a built-in drive") };
        let model = Model::new(&profile).expect("a drive that works");
        (profile, model)
    }

    #[test]
    fn each_size_has_the_times_of_the_profile_and_its_own_worst_case() {
        let (profile, model) = drive(vec![times(8), times(128)]);
        let disk = Disk::of(&profile, &model, 2).expect("a disk");
        let small = disk.service(1).expect("a size");
        assert_eq!((small.sectors, small.times.most().mean(), disk.largest().sectors), (8, Dur(5_400_001), 128));
        for size in [8, 128] {
            let worst = WorstCase::of(&profile, &model, size).expect("it writes through").total();
            assert_eq!(disk.service(size).expect("a size").worst, worst);
        }
        assert!(disk.service(129).is_none());
    }

    /// Ten samples: two in ten may exceed all of them, and nearly half by the upper bound.
    #[test]
    fn an_optional_stream_has_no_finer_quality_than_the_samples_show() {
        let mut few = times(8);
        few.load.candidates = 1;
        few.load.reads_ppm = 1_000_000;
        let (profile, model) = drive(vec![few]);
        let mut disk = Disk::of(&profile, &model, 2).expect("a disk");
        assert_eq!(disk.service(8).map(|s| (s.samples, s.finest_ppm())), Some((Some(10), 539_482)));
        let stream = |ppm| {
            let quality = Quality::from_ppm(ppm).expect("a quality");
            Stream::new(1, Dur::from_ms(500), quality, 8).expect("a stream").only(Kinds::Reads)
        };
        let idle = Ledger::new(disk.clone());
        let as_asked = |ppm| idle.clone().extend(&[stream(ppm)]);
        assert_eq!(as_asked(539_482), Ok(()));
        let why = as_asked(539_483).expect_err("too fine");
        assert!(matches!(why, RefusalReason::Samples { stream: 0, finest_ppm: 539_482, samples: 10, .. }), "{why}");
        // A quality of 100% rests on w instead, and a stream may be served so.
        assert_eq!(as_asked(1_000_000), Ok(()));
        let served = admit(&disk, &[stream(900_000)]).expect("as a mandatory one");
        assert_eq!(served.reservations, [None]);
        // If w is not known it may not, and the finest quality shown by the samples is nearest.
        disk.worst_is_known = false;
        let refusal = admit(&disk, &[stream(900_000)]).expect_err("too fine");
        assert_eq!(refusal.nearest.quality, Quality::from_ppm(539_482).ok());
    }

    /// Of 1,000 reads 20 were a revolution late, up to 32 at 99%, and fewer than five were later
    /// than any observed.
    #[test]
    fn x_has_delays_that_were_met_but_are_in_no_figure() {
        let (mut profile, model) = drive(vec![times(8)]);
        profile.known = Known::default();
        let x = |profile: &Profile| {
            let disk = Disk::of(profile, &model, 2).expect("times");
            let times = disk.service(8).expect("a size").times.most().clone();
            [3_000, 3_000 + 5_990, 9_000 + 5_990]
                .map(|us| ((u128::from(times.at_most(Dur::from_us(us))) * 1_000_000) >> 62) as u64)
        };
        let known = x(&profile);
        assert_eq!(known.map(|ppm| ppm / 1_000), [599, 599, 999], "{known:?}");
        profile.known.late = Some(Late { reads: 1_000, by_turns: vec![20] });
        assert_eq!(x(&profile), known, "what may delay them is stated");
        profile.known.set(Figure::SettleTurns, Knowledge::Unknown);
        // Of six in ten those without delay; those a revolution late, too; and all but those that
        // never complete.
        let late = x(&profile);
        assert_eq!(late.map(|ppm| ppm / 1_000), [578, 597, 995], "{late:?}");
    }

    #[test]
    fn what_a_profile_lacks_is_said() {
        let of = |profile: &Profile, model: &Model, outstanding| {
            Disk::of(profile, model, outstanding).expect_err("a fault").to_string()
        };
        let (profile, model) = drive(vec![]);
        assert!(of(&profile, &model, 2).contains("expected service times of one request size or more"));
        let (profile, model) = drive(vec![times(8)]);
        assert!(of(&profile, &model, 1).contains("with at most 1 commands at the drive, found 2"));
        let back = {
            let mut p = profile.clone();
            p.electronics.cache.write_back = true;
            p
        };
        assert!(of(&back, &model, 2).contains("8 sectors: expected a drive that writes through"));
        let mut late = times(8);
        late.runs[1].first = 90_000;
        let (profile, model) = drive(vec![late]);
        let said = of(&profile, &model, 2);
        assert!(
            said.contains("service time 6: expected at most the worst case of") && said.contains("found 900.0"),
            "{said}"
        );
        let (profile, model) = drive(vec![times(128), times(8)]);
        assert!(of(&profile, &model, 2).contains("expected sizes and worst cases that ascend"));
    }
}
