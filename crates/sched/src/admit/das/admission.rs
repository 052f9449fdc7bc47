//! Admission: whether a set of streams can be had, with the numbers (Reuther and Pohlack 2003,
//! sections 2 and 3.1).
//!
//! What is known of a drive, the question, and the answer. [`super::demand`] has condition 2, for
//! mandatory streams, and [`super::ledger`] condition 3, for optional ones.

use headtime_disk::time::Dur;

use super::distribution::Distribution;
use super::family::Family;
use super::ledger::{Ledger, TRIED_ALONE, TRIED_BESIDE};
use super::stream::{Kinds, Quality, Stream};
use super::subset::Exhausted;

/// A request must have this chance to be done before its period ends, in parts per million, or it
/// is not begun: with this quantile of X the x of [`super::reserve`] begins.
pub const LIKELY: u32 = 900_000;

/// Commands at the drive at most: one in service and one that waits (section 3.3.3). Of more it
/// could choose, and what has been promised for one that waits there would be in its hands.
pub const MOST_OUTSTANDING: u32 = 2;

/// What is known of a drive's times for requests of up to some size (the D of definition 4).
#[derive(Clone, Debug)]
pub struct Service {
    /// Sectors of the largest request that it holds for.
    pub sectors: u32,
    /// w.
    pub worst: Dur,
    /// X by the number of requests that one is chosen from, in this drive's bin: the longest that
    /// was measured.
    pub times: Family,
    /// The same where as many wait at all times, if that was measured: what is usual.
    pub steady: Option<Family>,
    /// Of how many samples X of requests with the fewest to choose from was made; `None`: it is
    /// known exactly.
    pub samples: Option<u64>,
}

/// What is known of a drive's times.
#[derive(Clone, Debug)]
pub struct Disk {
    /// By kinds ([`Kinds::ALL`]), and there by ascending sizes; empty where nothing was measured.
    services: [Vec<Service>; 3],
    outstanding: u32,
    /// How long after it began with a command the drive may move its arm for itself, though the
    /// command is done.
    pub(super) moves_on: Dur,
    /// w of the largest request that one of a stream may have to wait for.
    blocker: Dur,
    /// Everything that w rests on was measured or stated.
    pub(super) worst_is_known: bool,
}

/// Figures of a drive that do not go together.
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
        /// The one before.
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
    /// A distribution reaches beyond the worst case.
    #[error("service times for {sectors} sectors: expected none beyond the worst case of {worst}, found {found}")]
    Beyond {
        /// The size.
        sectors: u32,
        /// Its worst case.
        worst: Dur,
        /// Its longest time, rounded up to a bin.
        found: Dur,
    },
    /// Nothing could ever be sent, or a drive with an order of its own could leave a command
    /// waiting behind others that came later.
    #[error("outstanding commands: expected 1 to {MOST_OUTSTANDING}, found {found}")]
    Outstanding {
        /// Commands at a time.
        found: u32,
    },
}

impl Disk {
    /// A drive that is given up to `outstanding` commands at a time; `services` by ascending sizes,
    /// for reads and writes alike.
    ///
    /// # Errors
    /// No sizes, sizes out of order, bins that differ, times beyond the worst case.
    pub fn new(services: Vec<Service>, outstanding: u32) -> Result<Disk, DiskError> {
        Disk::by_kinds([services.clone(), services.clone(), services], outstanding)
    }

    /// The same with services by kinds ([`Kinds::ALL`]); one of the lists at least is not empty.
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

    /// The same drive, whose other requests than streams' take `worst` at most.
    #[must_use]
    pub fn with_others(self, worst: Dur) -> Disk {
        Disk { blocker: self.blocker.max(worst), ..self }
    }

    /// Blocking time: what the older requests take at their worst for which one of this stream's
    /// may have to wait.
    pub fn blocking_of(&self, stream: &Stream) -> Dur {
        stream.blocking(self.blocker)
    }

    /// The longest older request that one of a stream may have to wait for, at its worst.
    pub fn blocker(&self) -> Dur {
        self.blocker
    }

    /// The longest service time at its worst that counts for a stream, whose requests `service`
    /// holds for: of a request of its own, or of an older one for which one of its own may have to
    /// wait.
    pub(super) fn longest_of(&self, stream: &Stream, service: &Service) -> Dur {
        if stream.blocked_by > 0 { service.worst.max(self.blocker) } else { service.worst }
    }

    /// x of an older request for which one of this stream's may have to wait; zero if there is
    /// none.
    pub(super) fn likely_blocker_of(&self, stream: &Stream) -> Dur {
        let largest = self.largest();
        let likely = likely_of(self.blocker, (largest.worst, largest.likely()));
        if stream.blocked_by > 0 { likely } else { Dur::ZERO }
    }

    /// How much longer the drive counts as busy behind a command than that took, at most: after the
    /// shortest one, whose data may have been read ahead, the arm may move for itself.
    pub(super) fn moves_longer(&self) -> Dur {
        let families = self.services.iter().flatten().flat_map(|s| [Some(&s.times), s.steady.as_ref()]).flatten();
        let shortest = families.flat_map(|family| family.members()).map(|(_, times)| times.bins().0).min().unwrap_or(0);
        self.moves_on.saturating_sub(Dur(self.bin().0 * shortest.saturating_sub(1) as u64))
    }

    /// Commands at the drive at most.
    pub fn outstanding(&self) -> u32 {
        self.outstanding
    }

    /// The width of a bin of its times.
    pub fn bin(&self) -> Dur {
        self.largest().times.bin()
    }

    /// What holds for the requests of a stream.
    ///
    /// # Errors
    /// They are larger than any that were measured, or of kinds that were not.
    pub fn service_of(&self, stream: &Stream) -> Result<&Service, NotKnown> {
        self.service_for(stream.kinds, stream.sectors)
    }

    /// What holds for requests of these kinds, of this size.
    ///
    /// # Errors
    /// As of [`Disk::service_of`].
    pub fn service_for(&self, kinds: Kinds, sectors: u32) -> Result<&Service, NotKnown> {
        let of = &self.services[kinds as usize];
        let most = of.last().ok_or(NotKnown::Kinds)?.sectors;
        of.iter().find(|s| s.sectors >= sectors).ok_or(NotKnown::Size { most })
    }

    /// What holds for requests of this size, of any kind for which it was measured; `None`: they
    /// are larger than any known.
    pub fn service(&self, sectors: u32) -> Option<&Service> {
        let known = self.services.iter().flatten().filter(|s| s.sectors >= sectors);
        known.min_by_key(|s| s.sectors)
    }

    /// What holds for the largest requests that were measured: of the first of [`Kinds::ALL`], if
    /// several are as large.
    pub fn largest(&self) -> &Service {
        let last = self.services.iter().rev().filter_map(|of| of.last());
        last.max_by_key(|s| s.sectors).expect("one at least")
    }
}

/// Why nothing is known of a stream's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotKnown {
    /// Their kinds were not measured.
    Kinds,
    /// They are larger than any that were.
    Size {
        /// Sectors of the largest.
        most: u32,
    },
}

impl Service {
    /// Of requests with these times.
    pub fn new(sectors: u32, worst: Dur, times: impl Into<Family>) -> Service {
        Service { sectors, worst, times: times.into(), steady: None, samples: None }
    }

    /// x: with so much time left a request is likely to be done.
    pub fn likely(&self) -> Dur {
        self.times.fewest().quantile(LIKELY).min(self.worst)
    }

    /// How much longer than it was likely to one takes.
    pub(super) fn late(&self) -> Distribution {
        let times = self.times.fewest();
        times.beyond((self.likely().0 / times.bin().0) as usize)
    }
}

/// The likely service time at most of a request whose worst case is `worst`; `largest`: w and x of
/// the largest size that was measured. Seeks and rotation do not depend on the size, so a larger
/// request takes at most as much longer as its worst case is longer.
pub(super) fn likely_of(worst: Dur, largest: (Dur, Dur)) -> Dur {
    worst.min(largest.1 + worst.saturating_sub(largest.0))
}

/// A set of streams that is had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// r of each stream, in the order in which they were given; `None` of one that is served as
    /// mandatory ([`super::ledger`]).
    pub reservations: Vec<Option<Dur>>,
    /// How much of the drive is taken.
    pub load: Load,
    /// For how many commands, of best effort or others, that are at the drive when a period of an
    /// optional stream begins it has room.
    pub crossing: u32,
}

/// How much of a drive a set of streams takes, in parts per million of its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// The left side of condition 2: mandatory requests at their worst.
    pub worst_ppm: u64,
    /// All requests that are expected to be done, at their mean times.
    pub expected_ppm: u64,
}

/// Why a set cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// Nothing is known of requests of this size.
    #[error("stream {stream}: expected requests of at most {most} sectors, found {found}")]
    Size {
        /// Which stream.
        stream: usize,
        /// The largest size that is known.
        most: u32,
        /// What it asks for.
        found: u32,
    },
    /// Nothing is known of requests of these kinds.
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
    /// Between mandatory streams with short periods there is no room for a request of another with
    /// a longer one.
    #[error("stream {stream}: expected room for {worst} beside mandatory streams with shorter periods, found {free}")]
    Between {
        /// The stream with the longer period.
        stream: usize,
        /// The worst case of its longest single command, which may be an older request that one of
        /// its waits for.
        worst: Dur,
        /// The least that the others leave free from a release to a deadline before its own.
        free: Dur,
    },
    /// X says nothing of requests that are as rare as those that it may miss.
    #[error(
        "stream {stream}: expected a quality of at most {}, the finest below 100% that {samples} samples of X can \
         show, found {}",
        percent((*finest_ppm).into()), percent(u64::from(asked.ppm()))
    )]
    Samples {
        /// Which stream.
        stream: usize,
        /// What it asks for.
        asked: Quality,
        /// The finest quality that is promised.
        finest_ppm: u32,
        /// Samples that X was made of.
        samples: u64,
    },
    /// Condition 3 does not hold: this stream, the new one or another beside it, would not have its
    /// quality.
    #[error("stream {stream}: expected a quality of {}, found at most \
            {}", percent(u64::from(asked.ppm())), percent(*reached_ppm))]
    Quality {
        /// Which stream.
        stream: usize,
        /// What it asks for.
        asked: Quality,
        /// What it could have.
        reached_ppm: u64,
    },
}

impl Why {
    /// The reason; `name` gives what a stream is called, by its place.
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

/// With two decimals, and with up to four where these say more: what was asked and what was found
/// never look alike.
fn percent(ppm: u64) -> String {
    let all = format!("{}.{:04}", ppm / 10_000, ppm % 10_000);
    let few = all.strip_suffix("00").or(all.strip_suffix('0')).unwrap_or(&all);
    format!("{few}%")
}

/// The answer no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}{}", said(nearest))]
pub struct Refusal {
    /// The place of the first stream that cannot be had beside those before it.
    pub stream: usize,
    /// Why; it may name another, one of those before it that would not have what it was promised.
    pub why: Why,
    /// What that stream could have instead.
    pub nearest: Nearest,
}

impl Refusal {
    /// The same where no optional stream is had at any quality.
    #[must_use]
    pub fn without_quality(self) -> Refusal {
        Refusal { nearest: Nearest { quality: None, ..self.nearest }, ..self }
    }

    /// The reason and what would be nearest; `name` gives what a stream is called, by its place.
    pub fn with_names(&self, name: impl Fn(usize) -> String) -> String {
        format!("{}{}", self.why.with_names(name), said(&self.nearest))
    }
}

/// What is nearest to a stream that cannot be had; `None`: nothing of the kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nearest {
    /// The same stream with so many requests in a period.
    pub requests: Option<u32>,
    /// The same stream at this quality.
    pub quality: Option<Quality>,
    /// The same stream with this period, which is looked for only if there is none of the others.
    pub period: Option<Dur>,
}

fn said(nearest: &Nearest) -> String {
    let requests = nearest.requests.map(|n| format!("{n} requests in a period"));
    let quality = nearest.quality.map(|q| format!("a quality of {}", percent(u64::from(q.ppm()))));
    let period = nearest.period.map(|t| format!("a period of {} ms", t.as_ms_f64()));
    let either: Vec<String> = [requests, quality, period].into_iter().flatten().collect();
    if either.is_empty() { String::new() } else { format!("; possible: {}", either.join(", or ")) }
}

/// Whether all of these streams can be had. If not, what could be had of the first that cannot be
/// had beside those before it is said.
///
/// # Errors
/// Why not.
pub fn admit(disk: &Disk, streams: &[Stream]) -> Result<Admitted, Refusal> {
    admit_under(disk, Exhausted::default(), streams)
}

/// The same where streams fare so when their reservations are used up.
///
/// # Errors
/// As of [`admit`].
pub fn admit_under(disk: &Disk, exhausted: Exhausted, streams: &[Stream]) -> Result<Admitted, Refusal> {
    let mut ledger = Ledger::new(disk.clone()).under(exhausted);
    let (few, rest) = streams.split_at(streams.len().min(TRIED_BESIDE));
    match ledger.with_all(few) {
        Ok(all) if !all.asks_little() => ledger = all,
        // One may be had as a mandatory one alone, or leave more so, or is the one that is refused.
        _ => few.iter().try_for_each(|&stream| ledger.add(stream))?,
    }
    // So may some more of them.
    let (some, mut rest) = rest.split_at(rest.len().min(TRIED_ALONE - TRIED_BESIDE));
    some.iter().try_for_each(|&stream| ledger.add(stream))?;
    // The others at once, as far as they can be had: all of them, or the most, found by halves.
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
