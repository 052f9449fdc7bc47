//! Admission control: whether a set of streams is feasible, with the figures (Reuther and Pohlack
//! 2003, sections 2 and 3.1).
//!
//! The drive's parameters, the request, and the answer. `demand` has condition 2, for
//! mandatory streams, and [`super::ledger`] condition 3, for optional ones.

use headtime_disk::time::Dur;

use super::distribution::Distribution;
use super::family::Family;
use super::ledger::{Ledger, TRIED_ALONE, TRIED_BESIDE};
use super::stream::{Kinds, Quality, Stream};
use super::subset::Exhausted;

/// A request is started only if its probability to complete before its period ends is at least
/// this, in parts per million: this quantile of X is the minimum of x in [`super::reserve`].
pub const LIKELY: u32 = 900_000;

/// Maximum number of commands in flight: one in service and one waiting (section 3.3.3). Among more
/// the drive could choose, and the guarantee of a waiting one would depend on its choice.
pub const MOST_OUTSTANDING: u32 = 2;

/// Service times of a drive for requests of up to some size (the D of definition 4).
#[derive(Clone, Debug)]
pub struct Service {
    /// Sectors of the largest request for which it holds.
    pub sectors: u32,
    /// w.
    pub worst: Dur,
    /// X by number of candidates, in this drive's bin: the longest measured.
    pub times: Family,
    /// The same under a load that keeps that number waiting, if measured: typical times.
    pub steady: Option<Family>,
    /// Number of samples of X with the fewest candidates; `None`: it is known exactly.
    pub samples: Option<u64>,
}

/// Service times of a drive.
#[derive(Clone, Debug)]
pub struct Disk {
    /// By kinds ([`Kinds::ALL`]), then by ascending size; empty if not measured.
    services: [Vec<Service>; 3],
    outstanding: u32,
    /// How long after the start of a command the drive may move its arm on its own, though the
    /// command has completed.
    pub(super) moves_on: Dur,
    /// w of the largest request that may block a stream's request.
    blocker: Dur,
    /// Whether everything that w rests on was measured or stated.
    pub(super) worst_is_known: bool,
}

/// Inconsistent parameters of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiskError {
    /// No size is known.
    #[error("service times: expected those of one request size or more, found none")]
    NoSizes,
    /// Sizes do not ascend.
    #[error("service times: expected sizes and worst cases that ascend, found {found} sectors behind {after}")]
    Order {
        /// The size.
        found: u32,
        /// The previous size.
        after: u32,
    },
    /// Bins differ.
    #[error("service times for {sectors} sectors: expected bins of {expected}, found {found}")]
    Bins {
        /// The size.
        sectors: u32,
        /// The bin of the first size.
        expected: Dur,
        /// Its bin.
        found: Dur,
    },
    /// A distribution exceeds the worst case.
    #[error("service times for {sectors} sectors: expected none beyond the worst case of {worst}, found {found}")]
    Beyond {
        /// The size.
        sectors: u32,
        /// Its worst case.
        worst: Dur,
        /// Its longest time, rounded up to a bin.
        found: Dur,
    },
    /// No command could be sent, or a drive with its own order could leave a command waiting behind
    /// later ones.
    #[error("outstanding commands: expected 1 to {MOST_OUTSTANDING}, found {found}")]
    Outstanding {
        /// Number of commands in flight.
        found: u32,
    },
}

impl Disk {
    /// Creates a drive with up to `outstanding` commands in flight; `services` by ascending size,
    /// for reads and writes alike.
    ///
    /// # Errors
    /// No sizes, sizes out of order, bins that differ, times beyond the worst case.
    pub fn new(services: Vec<Service>, outstanding: u32) -> Result<Disk, DiskError> {
        Disk::by_kinds([services.clone(), services.clone(), services], outstanding)
    }

    /// The same with services by kinds ([`Kinds::ALL`]); at least one of the lists is not empty.
    ///
    /// # Errors
    /// As of [`Disk::new`].
    pub fn by_kinds(services: [Vec<Service>; 3], outstanding: u32) -> Result<Disk, DiskError> {
        let first = services.iter().flatten().next().ok_or(DiskError::NoSizes)?;
        if !(1..=MOST_OUTSTANDING).contains(&outstanding) {
            return Err(DiskError::Outstanding { found: outstanding });
        }
        let expected = first.times.bin();
        for pair in services.iter().flat_map(|of| of.windows(2)) {
            let (after, s) = (&pair[0], &pair[1]);
            if s.sectors <= after.sectors || s.worst < after.worst {
                return Err(DiskError::Order { found: s.sectors, after: after.sectors });
            }
        }
        for s in services.iter().flatten() {
            let (found, longest) = (s.times.bin(), s.times.end().saturating_sub(1) as u64);
            if found != expected {
                return Err(DiskError::Bins { sectors: s.sectors, expected, found });
            }
            if longest > s.worst.0.div_ceil(expected.0) {
                let found = Dur(longest * expected.0);
                return Err(DiskError::Beyond { sectors: s.sectors, worst: s.worst, found });
            }
        }
        let blocker = services.iter().flatten().map(|s| s.worst).max().unwrap_or(Dur::ZERO);
        Ok(Disk { services, outstanding, moves_on: Dur::ZERO, blocker, worst_is_known: true })
    }

    /// Returns the same drive, whose requests without a stream take at most `worst`.
    #[must_use]
    pub fn with_others(self, worst: Dur) -> Disk {
        Disk { blocker: self.blocker.max(worst), ..self }
    }

    /// Returns the blocking time: worst case of the older requests that may block one of this
    /// stream's.
    pub fn blocking_of(&self, stream: &Stream) -> Dur {
        stream.blocking(self.blocker)
    }

    /// Returns the worst case of the longest older request that may block a stream's request.
    pub fn blocker(&self) -> Dur {
        self.blocker
    }

    /// Returns the longest worst case that counts for a stream with requests of `service`: of one
    /// of its requests, or of an older one that may block it.
    pub(super) fn longest_of(&self, stream: &Stream, service: &Service) -> Dur {
        if stream.blocked_by > 0 { service.worst.max(self.blocker) } else { service.worst }
    }

    /// Returns x of an older request that may block this stream's; zero if there is none.
    pub(super) fn likely_blocker_of(&self, stream: &Stream) -> Dur {
        let largest = self.largest();
        let likely = likely_of(self.blocker, (largest.worst, largest.likely()));
        if stream.blocked_by > 0 { likely } else { Dur::ZERO }
    }

    /// Returns how much longer than a command's service time the drive counts as busy, at most:
    /// after the shortest one, whose data may have been read ahead, the arm may move on its own.
    pub(super) fn moves_longer(&self) -> Dur {
        let families = self.services.iter().flatten().flat_map(|s| [Some(&s.times), s.steady.as_ref()]).flatten();
        let shortest = families.flat_map(|family| family.members()).map(|(_, times)| times.bins().0).min().unwrap_or(0);
        self.moves_on.saturating_sub(Dur(self.bin().0 * shortest.saturating_sub(1) as u64))
    }

    /// Returns the maximum number of commands in flight.
    pub fn outstanding(&self) -> u32 {
        self.outstanding
    }

    /// Returns the bin width of its service times.
    pub fn bin(&self) -> Dur {
        self.largest().times.bin()
    }

    /// Returns the service times for the requests of a stream.
    ///
    /// # Errors
    /// The requests are larger than the largest measured size, or their kinds were not measured.
    pub fn service_of(&self, stream: &Stream) -> Result<&Service, NotKnown> {
        self.service_for(stream.kinds, stream.sectors)
    }

    /// Returns the service times for requests of these kinds and this size.
    ///
    /// # Errors
    /// As of [`Disk::service_of`].
    pub fn service_for(&self, kinds: Kinds, sectors: u32) -> Result<&Service, NotKnown> {
        let of = &self.services[kinds as usize];
        let most = of.last().ok_or(NotKnown::Kinds)?.sectors;
        of.iter().find(|s| s.sectors >= sectors).ok_or(NotKnown::Size { most })
    }

    /// Returns the service times for requests of this size, of any measured kind; `None`: they are
    /// larger than any known.
    pub fn service(&self, sectors: u32) -> Option<&Service> {
        let known = self.services.iter().flatten().filter(|s| s.sectors >= sectors);
        known.min_by_key(|s| s.sectors)
    }

    /// Returns the service times for the largest measured requests: of the first of [`Kinds::ALL`],
    /// if several are equally large.
    pub fn largest(&self) -> &Service {
        let last = self.services.iter().rev().filter_map(|of| of.last());
        last.max_by_key(|s| s.sectors).expect("one at least")
    }
}

/// Why the service times of a stream's requests are unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotKnown {
    /// Their kinds were not measured.
    Kinds,
    /// They are larger than the largest measured size.
    Size {
        /// Sectors of the largest size.
        most: u32,
    },
}

impl Service {
    /// Creates the service times of one size.
    pub fn new(sectors: u32, worst: Dur, times: impl Into<Family>) -> Service {
        Service { sectors, worst, times: times.into(), steady: None, samples: None }
    }

    /// Returns x: the remaining time in which a request is likely to complete.
    pub fn likely(&self) -> Dur {
        self.times.fewest().quantile(LIKELY).min(self.worst)
    }

    /// Returns by how much a request exceeds its likely time.
    pub(super) fn late(&self) -> Distribution {
        let times = self.times.fewest();
        times.beyond((self.likely().0 / times.bin().0) as usize)
    }
}

/// Returns an upper bound on the likely service time of a request whose worst case is `worst`;
/// `largest`: w and x of the largest measured size. Seeks and rotation do not depend on the size,
/// so a larger request takes longer by at most the difference of worst cases.
pub(super) fn likely_of(worst: Dur, largest: (Dur, Dur)) -> Dur {
    worst.min(largest.1 + worst.saturating_sub(largest.0))
}

/// A feasible set of streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// r of each stream, in the given order; `None` for one served as mandatory
    /// ([`super::ledger`]).
    pub reservations: Vec<Option<Dur>>,
    /// Load of the drive.
    pub load: Load,
    /// Number of commands, of best effort or others, in flight at the start of a period for which
    /// periods of optional streams have room.
    pub crossing: u32,
}

/// Load of a drive by a set of streams, in parts per million of its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// The left side of condition 2: mandatory requests at their worst case.
    pub worst_ppm: u64,
    /// All requests expected to complete, at their mean times.
    pub expected_ppm: u64,
}

/// Why a set is infeasible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// No service times for requests of this size.
    #[error("stream {stream}: expected requests of at most {most} sectors, found {found}")]
    Size {
        /// Which stream.
        stream: usize,
        /// The largest known size.
        most: u32,
        /// The requested size.
        found: u32,
    },
    /// No service times for requests of these kinds.
    #[error(
        "stream {stream}: expected service times of its requests ({}) in the drive's profile, found those of others \
         only",
        kinds.name()
    )]
    Kinds {
        /// Which stream.
        stream: usize,
        /// Its kinds.
        kinds: Kinds,
    },
    /// Condition 2 does not hold.
    #[error("mandatory streams would take {} of the time at their worst, expected at most 100%", percent(*needed_ppm))]
    Worst {
        /// The left side of the condition, in parts per million.
        needed_ppm: u64,
    },
    /// No room for a request of a longer period between mandatory streams with short periods.
    #[error("stream {stream}: expected room for {worst} beside mandatory streams with shorter periods, found {free}")]
    Between {
        /// The stream with the longer period.
        stream: usize,
        /// The worst case of its longest single command, which may be an older request that blocks
        /// one of its own.
        worst: Dur,
        /// The least time that the others leave free from a release to a deadline before its own.
        free: Dur,
    },
    /// X has too few samples for the rare requests that the stream may miss.
    #[error(
        "stream {stream}: expected a quality of at most {}, the finest below 100% that {samples} samples of X can \
         show, found {}",
        percent((*finest_ppm).into()), percent(u64::from(asked.ppm()))
    )]
    Samples {
        /// Which stream.
        stream: usize,
        /// The requested quality.
        asked: Quality,
        /// The finest quality that can be guaranteed.
        finest_ppm: u32,
        /// Number of samples of X.
        samples: u64,
    },
    /// Condition 3 does not hold: this stream, the new one or another beside it, would not reach
    /// its quality.
    #[error("stream {stream}: expected a quality of {}, found at most \
            {}", percent(u64::from(asked.ppm())), percent(*reached_ppm))]
    Quality {
        /// Which stream.
        stream: usize,
        /// The requested quality.
        asked: Quality,
        /// The quality it could reach.
        reached_ppm: u64,
    },
}

impl Why {
    /// Returns the reason; `name` maps a stream's place to its name.
    pub fn with_names(&self, name: impl Fn(usize) -> String) -> String {
        let text = self.to_string();
        let stream = match *self {
            Why::Worst { .. } => return text,
            Why::Size { stream, .. }
            | Why::Kinds { stream, .. }
            | Why::Between { stream, .. }
            | Why::Samples { stream, .. }
            | Why::Quality { stream, .. } => stream,
        };
        text.replacen(&format!("stream {stream}"), &name(stream), 1)
    }
}

/// Returns a percentage with two decimals, or up to four if significant, so that the requested and
/// the found value never look alike.
fn percent(ppm: u64) -> String {
    let all = format!("{}.{:04}", ppm / 10_000, ppm % 10_000);
    let few = all.strip_suffix("00").or(all.strip_suffix('0')).unwrap_or(&all);
    format!("{few}%")
}

/// A refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}{}", said(nearest))]
pub struct Refusal {
    /// The place of the first stream that is infeasible beside the previous ones.
    pub stream: usize,
    /// The reason; it may name one of the previous ones, whose guarantee would not hold.
    pub why: Why,
    /// The nearest feasible alternatives for that stream.
    pub nearest: Nearest,
}

impl Refusal {
    /// Returns the same without a nearest quality, for orders under which no optional stream is
    /// admitted.
    #[must_use]
    pub fn without_quality(self) -> Refusal {
        Refusal { nearest: Nearest { quality: None, ..self.nearest }, ..self }
    }

    /// Returns the reason and the nearest alternatives; `name` maps a stream's place to its name.
    pub fn with_names(&self, name: impl Fn(usize) -> String) -> String {
        format!("{}{}", self.why.with_names(name), said(&self.nearest))
    }
}

/// The nearest feasible alternatives to a refused stream; `None`: none of that kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nearest {
    /// The same stream with this number of requests per period.
    pub requests: Option<u32>,
    /// The same stream at this quality.
    pub quality: Option<Quality>,
    /// The same stream with this period; searched for only if neither of the others exists.
    pub period: Option<Dur>,
}

fn said(nearest: &Nearest) -> String {
    let requests = nearest.requests.map(|n| format!("{n} requests in a period"));
    let quality = nearest.quality.map(|q| format!("a quality of {}", percent(u64::from(q.ppm()))));
    let period = nearest.period.map(|t| format!("a period of {} ms", t.as_ms_f64()));
    let either: Vec<String> = [requests, quality, period].into_iter().flatten().collect();
    if either.is_empty() { String::new() } else { format!("; possible: {}", either.join(", or ")) }
}

/// Admits these streams if all are feasible. A refusal names the nearest alternatives for the first
/// that is infeasible beside the previous ones.
///
/// # Errors
/// The reason.
pub fn admit(disk: &Disk, streams: &[Stream]) -> Result<Admitted, Refusal> {
    admit_under(disk, Exhausted::default(), streams)
}

/// The same with this handling of used-up reservations.
///
/// # Errors
/// As of [`admit`].
pub fn admit_under(disk: &Disk, exhausted: Exhausted, streams: &[Stream]) -> Result<Admitted, Refusal> {
    let mut ledger = Ledger::new(disk.clone()).under(exhausted);
    let (few, rest) = streams.split_at(streams.len().min(TRIED_BESIDE));
    match ledger.with_all(few) {
        Ok(all) if !all.asks_little() => ledger = all,
        // A stream may be feasible only as a mandatory one, or leave more so, or be the refused
        // one.
        _ => few.iter().try_for_each(|&stream| ledger.add(stream))?,
    }
    // The same may hold for some more of them.
    let (some, mut rest) = rest.split_at(rest.len().min(TRIED_ALONE - TRIED_BESIDE));
    some.iter().try_for_each(|&stream| ledger.add(stream))?;
    // The others at once: all of them, or the largest feasible number, found by bisection.
    loop {
        let (mut good, mut bad) = (0, rest.len() + 1);
        let mut with = rest.len();
        while good < with {
            let mut more = ledger.clone();
            match more.extend(&rest[good..with]) {
                Ok(()) => (ledger, good) = (more, with),
                Err(_) => bad = with,
            }
            with = good + (bad - good) / 2;
        }
        let Some(&next) = rest.get(good) else { break };
        ledger.add(next)?;
        rest = &rest[good + 1..];
    }
    Ok(ledger.admitted())
}
