//! Service times of a drive, by kinds and size of requests: the parameters of admission control
//! (the D of definition 4 in Reuther and Pohlack 2003).

use headtime_disk::Dur;

use super::distribution::Distribution;
use super::family::Family;
use super::stream::{Kinds, Stream};

/// A request is started only if its probability to complete before its period ends is at least
/// this, in parts per million: this quantile of X is the minimum of x in [`super::reserve`].
pub(crate) const LIKELY: u32 = 900_000;

/// Maximum number of commands in flight: one in service and one waiting (section 3.3.3). Among more
/// the drive could choose, and the guarantee of a waiting one would depend on its choice.
pub(crate) const MAX_OUTSTANDING: u32 = 2;

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
#[non_exhaustive]
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
    #[error("outstanding commands: expected 1 to {MAX_OUTSTANDING}, found {found}")]
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
        if !(1..=MAX_OUTSTANDING).contains(&outstanding) {
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
    pub fn service_of(&self, stream: &Stream) -> Result<&Service, NotMeasured> {
        self.service_for(stream.kinds, stream.sectors)
    }

    /// Returns the service times for requests of these kinds and this size.
    ///
    /// # Errors
    /// As of [`Disk::service_of`].
    pub fn service_for(&self, kinds: Kinds, sectors: u32) -> Result<&Service, NotMeasured> {
        let of = &self.services[kinds as usize];
        let most = of.last().ok_or(NotMeasured::Kinds)?.sectors;
        of.iter().find(|s| s.sectors >= sectors).ok_or(NotMeasured::Size { most })
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
pub enum NotMeasured {
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
