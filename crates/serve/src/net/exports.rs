//! Exports: named ranges of the disk.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use headtime_disk::Dur;
use headtime_nbd::{BlockSizes, Export};
use headtime_sched::{MAX_WEIGHT, RateLimit, Share};

/// A named range of the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportSpec {
    /// Name that clients ask for; "" is the default export.
    pub name: String,
    /// Description for users.
    pub description: String,
    /// First sector.
    pub first: u64,
    /// Number of sectors.
    pub sectors: u64,
    /// Writes are rejected.
    pub read_only: bool,
    /// Weight of its clients when exports compete: the initial value ([`Exports::settings`]).
    pub weight: u32,
}

/// The settings of an export that may change while it is served.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ExportSettings {
    /// Its share when exports compete.
    pub share: Share,
    /// The limit of its clients' rate.
    pub limit: RateLimit,
    /// Its latency target; `None`: none.
    pub latency_target: Option<Dur>,
}

impl ExportSettings {
    /// Returns settings with this weight, at most [`MAX_WEIGHT`], without a limit or a target.
    pub fn weighing(weight: u32) -> ExportSettings {
        let share = Share { weight: weight.clamp(1, MAX_WEIGHT), ..Share::default() };
        ExportSettings { share, ..ExportSettings::default() }
    }
}

/// The longest request, bytes.
pub const MAX_BYTES: u32 = 32 << 20;

/// Why exports are rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// No export is given.
    #[error("expected one export at least")]
    None,
    /// Two exports have the same name.
    #[error("two exports are called \"{0}\"")]
    Twice(String),
    /// The export is empty or not within the disk.
    #[error("export \"{name}\": sectors {first} to {end} are not on a disk of {sectors}, or there are none")]
    OutOfRange {
        /// The export.
        name: String,
        /// First sector.
        first: u64,
        /// One past the last.
        end: u64,
        /// Sectors of the disk.
        sectors: u64,
    },
    /// Two exports overlap and one is writable: their clients would overwrite each other's data.
    #[error("exports \"{0}\" and \"{1}\" overlap, and not both are read-only")]
    Overlap(String, String),
    /// Too many exports for each to have a part of the budget.
    #[error("expected at most {MAX_EXPORTS} exports, found {0}")]
    Many(usize),
    /// A name that the protocol cannot carry.
    #[error("export \"{name}\": expected a name of at most {most} bytes, found {found}")]
    Name {
        /// The beginning of the name.
        name: String,
        /// The longest name, bytes.
        most: usize,
        /// Its length, bytes.
        found: usize,
    },
}

/// Exports of a server.
pub const MAX_EXPORTS: usize = 1024;

/// The longest name that the protocol allows, bytes.
const LONGEST_NAME: usize = 4096;

/// All exports of a disk, for the protocol and the engine.
#[derive(Clone, Debug)]
pub struct Exports {
    /// The exports' ranges.
    pub specs: Arc<[ExportSpec]>,
    /// The protocol's descriptions, in the same order, without the current longest request.
    all: Arc<[Export]>,
    /// Bytes per sector of the disk.
    pub sector_bytes: u32,
    /// Current settings, in the same order.
    settings: Arc<Mutex<Vec<ExportSettings>>>,
    /// The current longest request of each in bytes, in the same order.
    most: Arc<[AtomicU32]>,
    /// The longest request of exports that are not streams.
    most_of_others: u32,
}

/// Returns the block sizes of an export whose longest request is `most` bytes, whole sectors.
fn blocks(sector_bytes: u32, most: u32) -> BlockSizes {
    // The preferred size must be a power of two and no longer than the longest request.
    let fits = if most.is_power_of_two() { most } else { most.next_power_of_two() / 2 };
    let preferred = sector_bytes.max(4096).min(fits.max(sector_bytes));
    BlockSizes::new(sector_bytes, preferred, most).expect("a sector is a power of two, and a request one at least")
}

impl Exports {
    /// Creates exports of a disk with the given number of sectors.
    pub fn new(specs: Vec<ExportSpec>, sectors: u64, sector_bytes: u32) -> Result<Exports, ExportError> {
        if specs.is_empty() {
            return Err(ExportError::None);
        }
        if specs.len() > MAX_EXPORTS {
            return Err(ExportError::Many(specs.len()));
        }
        for (i, s) in specs.iter().enumerate() {
            let end = s.first.saturating_add(s.sectors);
            if s.sectors == 0 || end > sectors {
                return Err(ExportError::OutOfRange { name: s.name.clone(), first: s.first, end, sectors });
            }
            let found = s.name.len();
            if found > LONGEST_NAME {
                let name = s.name.chars().take(20).collect();
                return Err(ExportError::Name { name, most: LONGEST_NAME, found });
            }
            for t in &specs[..i] {
                if s.name == t.name {
                    return Err(ExportError::Twice(s.name.clone()));
                }
                let apart = end <= t.first || t.first + t.sectors <= s.first;
                let harmless = apart || (s.read_only && t.read_only);
                if !harmless {
                    return Err(ExportError::Overlap(t.name.clone(), s.name.clone()));
                }
            }
        }
        let blocks = blocks(sector_bytes, MAX_BYTES);
        let all = specs.iter().map(|s| Export {
            name: s.name.clone(),
            description: s.description.clone(),
            size: s.sectors * u64::from(sector_bytes),
            read_only: s.read_only,
            rotational: true,
            trim: false,
            write_zeroes: false,
            // All connections see the same disk, and a flush on one covers writes acknowledged on
            // any.
            multi_conn: true,
            blocks,
        });
        let settings = specs.iter().map(|s| ExportSettings::weighing(s.weight)).collect();
        let settings = Arc::new(Mutex::new(settings));
        let most = specs.iter().map(|_| AtomicU32::new(MAX_BYTES)).collect();
        let all = all.collect();
        Ok(Exports { all, specs: specs.into(), sector_bytes, settings, most, most_of_others: MAX_BYTES })
    }

    /// Limits the requests of exports that are not streams to `most` bytes, rounded down to whole
    /// sectors, and to [`MAX_BYTES`].
    #[must_use]
    pub fn with_requests_up_to(mut self, most: u32) -> Exports {
        let most = most.min(MAX_BYTES);
        self.most_of_others = (most - most % self.sector_bytes).max(self.sector_bytes);
        self.most = self.specs.iter().map(|_| AtomicU32::new(self.most_of_others)).collect();
        self
    }

    /// Returns the current descriptions of the exports, in order.
    pub fn offered(&self) -> Arc<[Export]> {
        let most = self.most.iter().map(|m| m.load(Ordering::Relaxed));
        let now = |(e, most): (&Export, u32)| Export { blocks: blocks(self.sector_bytes, most), ..e.clone() };
        self.all.iter().zip(most).map(now).collect()
    }

    /// Sets the longest request of an export in sectors, or resets it to that of other exports.
    /// Connected clients keep the size they negotiated; the engine rejects longer requests.
    pub fn set_most_sectors(&self, export: usize, most: Option<u32>) {
        let bytes = most.map(|sectors| sectors.saturating_mul(self.sector_bytes).min(MAX_BYTES));
        self.most[export].store(bytes.unwrap_or(self.most_of_others), Ordering::Relaxed);
    }

    /// Returns the number of the named export.
    pub fn number(&self, name: &str) -> Option<u32> {
        self.specs.iter().position(|s| s.name == name).map(|at| at as u32)
    }

    fn all_settings(&self) -> MutexGuard<'_, Vec<ExportSettings>> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the current settings of the exports, in order. They are in force once the engine has
    /// been told ([`EngineMessage::Settings`](crate::engine::messages::EngineMessage::Settings)).
    pub fn settings(&self) -> Vec<ExportSettings> {
        self.all_settings().clone()
    }

    /// Changes an export's settings; returns the previous ones, or `None` if there is no such
    /// export.
    pub fn set(&self, name: &str, settings: ExportSettings) -> Option<ExportSettings> {
        let at = self.number(name)? as usize;
        Some(std::mem::replace(&mut self.all_settings()[at], settings))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(name: &str, first: u64, sectors: u64, read_only: bool) -> ExportSpec {
        ExportSpec { name: name.into(), description: String::new(), first, sectors, read_only, weight: 100 }
    }

    #[test]
    fn settings_are_in_the_order_of_exports_and_follow_changes() {
        let specs = vec![spec("a", 0, 100, false), spec("b", 100, 100, false), spec("c", 200, 100, false)];
        let exports = Exports::new(specs, 1000, 512).unwrap();
        let first = ExportSettings::weighing(100);
        let limit = RateLimit { requests: headtime_sched::Rate::per_second(5.0), ..RateLimit::default() };
        let slow = ExportSettings { limit, latency_target: Some(Dur::from_ms(20)), ..ExportSettings::weighing(300) };
        assert_eq!((exports.set("b", slow), exports.set("d", slow)), (Some(first), None));
        assert_eq!(exports.set("c", ExportSettings::weighing(1_000_000)), Some(first));
        // Clones share their settings.
        for exports in [exports.clone(), exports] {
            assert_eq!(exports.settings(), [first, slow, ExportSettings::weighing(MAX_WEIGHT)]);
        }
    }

    #[test]
    fn exports_that_cannot_be_are_refused_with_what_is_wrong() {
        let of = |specs| Exports::new(specs, 1000, 512).map(|_| ()).unwrap_err();
        assert_eq!(of(vec![]), ExportError::None);
        let many = (0..1025).map(|i| spec(&i.to_string(), i, 1, false)).collect();
        assert_eq!(of(many), ExportError::Many(1025));
        assert_eq!(of(vec![spec("a", 0, 5, false), spec("a", 5, 5, false)]), ExportError::Twice("a".into()));
        assert!(matches!(of(vec![spec("a", 996, 5, false)]), ExportError::OutOfRange { end: 1001, .. }));
        assert!(matches!(of(vec![spec("a", u64::MAX, 5, false)]), ExportError::OutOfRange { .. }));
        assert!(matches!(of(vec![spec("a", 0, 0, false)]), ExportError::OutOfRange { .. }));
        let overlap = of(vec![spec("a", 0, 6, true), spec("b", 5, 5, false)]);
        assert_eq!(overlap, ExportError::Overlap("a".into(), "b".into()));
        assert!(matches!(of(vec![spec(&"n".repeat(5000), 0, 5, false)]), ExportError::Name { found: 5000, .. }));
    }

    #[test]
    fn clients_learn_the_current_maximum_request_size() {
        let e = Exports::new(vec![spec("a", 0, 500, false), spec("b", 500, 500, false)], 1000, 512).unwrap();
        let most = |e: &Exports| e.offered().iter().map(|o| o.blocks.maximum).collect::<Vec<_>>();
        assert_eq!(most(&e), [MAX_BYTES; 2]);
        let e = e.with_requests_up_to((1 << 20) + 5);
        assert_eq!((most(&e), e.offered()[0].blocks.preferred), (vec![1 << 20; 2], 4096));
        e.set_most_sectors(1, Some(6));
        // A preferred size that is not a power of two or exceeds the longest request is invalid.
        assert_eq!((most(&e.clone()), e.offered()[1].blocks.preferred), (vec![1 << 20, 3072], 2048));
        e.set_most_sectors(1, None);
        assert_eq!(most(&e), [1 << 20; 2]);
        assert_eq!((e.number("b"), e.number("c")), (Some(1), None));
    }

    #[test]
    fn ranges_beside_each_other_and_read_only_ones_anywhere_are_fine() {
        let e = Exports::new(vec![spec("a", 0, 5, true), spec("b", 0, 1000, true)], 1000, 512).unwrap();
        assert_eq!((e.offered()[0].size, e.offered()[1].size), (2560, 512_000));
        let e = Exports::new(vec![spec("a", 0, 5, false), spec("b", 5, 995, false)], 1000, 512).unwrap();
        assert_eq!(e.offered()[1].size, 509_440);
    }
}
