//! The faults of a drive: each waits for its time or its command, is active, or is over.
//!
//! Times here are those of the clock on the wall, also for a drive that is faster than the real
//! one.

use std::collections::BTreeMap;

use headtime_disk::{Dur, Fault as Planted, Time};
use serde::{Deserialize, Serialize};

use super::table::DriveSize;
use super::worn::defects;

/// Most faults in a plan, including those that are over.
pub const MAX_FAULTS: usize = 1000;
/// Most unreadable and slow ranges of all faults. The drive looks at all of them for each command.
pub const MAX_RANGES: u64 = 10_000;

/// A range of sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First LBN.
    pub lbn: u64,
    /// Number of sectors.
    pub count: u64,
}

/// What a power failure loses of the contents of the volatile write cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// Any sectors, chosen at random: the drive has written the others in an order of its own.
    Some,
    /// All.
    All,
}

/// What happens to a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Reads of these sectors fail until they are written.
    Unreadable(Range),
    /// Accesses to these sectors take additional revolutions.
    Slow {
        /// The sectors.
        range: Range,
        /// Additional revolutions.
        revolutions: u32,
    },
    /// The next command, and all behind it, wait.
    Hang {
        /// How long.
        lasts: Dur,
    },
    /// Every command fails.
    Failure,
    /// Random sectors are unreadable or slow.
    Worn {
        /// Unreadable sectors.
        unreadable: u64,
        /// Slow sectors.
        slow: u64,
        /// Additional revolutions of the slow ones.
        revolutions: u32,
        /// Seed of their places.
        seed: u64,
    },
    /// The power fails.
    PowerOff {
        /// After what time it returns; `None`: with [`What::PowerOn`].
        lasts: Option<Dur>,
        /// What is lost.
        lost: Lost,
    },
    /// The power returns.
    PowerOn,
    /// The write cache is switched.
    WriteCache {
        /// Whether it is on.
        on: bool,
    },
}

impl What {
    /// Returns the name of its kind.
    pub fn kind(&self) -> &'static str {
        match self {
            What::Unreadable(_) => "unreadable",
            What::Slow { .. } => "slow",
            What::Hang { .. } => "hang",
            What::Failure => "failure",
            What::Worn { .. } => "worn",
            What::PowerOff { .. } => "power-off",
            What::PowerOn => "power-on",
            What::WriteCache { .. } => "write-cache",
        }
    }

    /// Returns the number of ranges in the drive's list.
    fn ranges(&self) -> u64 {
        match self {
            What::Unreadable(_) | What::Slow { .. } => 1,
            What::Worn { unreadable, slow, .. } => unreadable.saturating_add(*slow),
            _ => 0,
        }
    }

    /// Describes its figures; `sector`: bytes of a sector.
    fn figures(&self, sector: u64) -> String {
        let bytes = |r: &Range| format!("start {} size {}", r.lbn * sector, r.count * sector);
        let seconds = |d: Dur| format!("for {} s", d.0 as f64 / 1e9);
        match self {
            What::Unreadable(range) => bytes(range),
            What::Slow { range, revolutions } => format!("{} revolutions {revolutions}", bytes(range)),
            What::Hang { lasts } => seconds(*lasts),
            What::Worn { unreadable, slow, revolutions, seed } => {
                format!("{unreadable} unreadable, {slow} slow sectors, revolutions {revolutions} seed {seed}")
            }
            What::PowerOff { lasts, lost } => {
                let lost = if *lost == Lost::All { "lost all" } else { "lost some" };
                lasts.map_or(lost.into(), |d| format!("{} {lost}", seconds(d)))
            }
            What::WriteCache { on } => String::from(if *on { "on" } else { "off" }),
            What::Failure | What::PowerOn => String::new(),
        }
    }
}

/// When something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At once.
    Now,
    /// This time after the start of the drive, or after it was added.
    After(Dur),
    /// After this number of commands since then.
    AfterCommands(u64),
}

/// A fault, and when it happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What happens.
    pub what: What,
    /// When.
    pub when: When,
}

/// What the drive has to do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Have these faults, too. Times of hangs are those of the clock on the wall.
    Plant(Vec<Planted>),
    /// Lose its power.
    PowerOff {
        /// After what time it returns.
        lasts: Option<Dur>,
        /// What is lost.
        lost: Lost,
    },
    /// Have power again.
    PowerOn,
    /// Switch its write cache.
    WriteCache(bool),
}

/// Why a fault is not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// There are too many.
    #[error("expected at most {MAX_FAULTS} faults, including those that are over: clear some")]
    Faults,
    /// There are too many ranges.
    #[error("expected at most {MAX_RANGES} unreadable and slow ranges of all faults, found {0}")]
    Ranges(u64),
    /// There is none with this number.
    #[error("expected the number of a fault, found {0}")]
    Number(u32),
}

/// A fault's state.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    /// Since a time; with what was planted.
    Active(Time, Vec<Planted>),
}

#[derive(Clone, Debug)]
struct Entry {
    number: u32,
    fault: Fault,
    /// When it was added, and the number of commands before.
    added: (Time, u64),
    state: State,
}

/// A fault as `list` shows it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Listed {
    /// Its number.
    pub number: u32,
    /// Name of its kind.
    pub kind: String,
    /// Its figures.
    pub figures: String,
    /// `waiting`, `active` or `over`.
    pub state: String,
    /// When it happens, or when it began.
    pub when: String,
    /// Sectors that are still unreadable, if it has made some so.
    pub unreadable_sectors: Option<u64>,
}

/// The faults of a drive.
#[derive(Clone, Debug)]
pub struct Plan {
    drive: DriveSize,
    entries: Vec<Entry>,
    last_number: u32,
    commands: u64,
}

impl Plan {
    /// Creates a plan without faults.
    pub fn new(drive: DriveSize) -> Plan {
        Plan { drive, entries: Vec::new(), last_number: 0, commands: 0 }
    }

    /// Returns the size of the drive.
    pub fn drive(&self) -> DriveSize {
        self.drive
    }

    /// Returns the number of commands so far.
    pub fn commands(&self) -> u64 {
        self.commands
    }

    /// Counts a command. To be called before [`Plan::due`].
    pub fn count_command(&mut self) {
        self.commands += 1;
    }

    /// Adds a fault; returns its number.
    ///
    /// # Errors
    /// There are too many.
    pub fn add(&mut self, fault: Fault, now: Time) -> Result<u32, PlanError> {
        if self.entries.len() >= MAX_FAULTS {
            return Err(PlanError::Faults);
        }
        let before: u64 = self.entries.iter().map(|e| e.fault.what.ranges()).sum();
        let ranges = before.saturating_add(fault.what.ranges());
        if ranges > MAX_RANGES {
            return Err(PlanError::Ranges(ranges));
        }
        self.last_number += 1;
        let added = (now, self.commands);
        self.entries.push(Entry { number: self.last_number, fault, added, state: State::Waiting });
        Ok(self.last_number)
    }

    /// Returns the next action that is due, in order of their times, then of their numbers; `None`
    /// if there is none. A fault after n commands is due with the command after them.
    pub fn due(&mut self, now: Time) -> Option<Action> {
        let commands = self.commands;
        let due = |e: &Entry| match (&e.state, e.fault.when) {
            (State::Active(..), _) => None,
            (State::Waiting, When::Now) => Some(e.added.0),
            (State::Waiting, When::After(time)) => Some(e.added.0 + time).filter(|t| *t <= now),
            (State::Waiting, When::AfterCommands(n)) => (commands - e.added.1 > n).then_some(now),
        };
        let next = self.entries.iter_mut().filter_map(|e| Some((due(e)?, e))).min_by_key(|(at, e)| (*at, e.number));
        let entry = next?.1;
        let (planted, action) = match &entry.fault.what {
            What::PowerOff { lasts, lost } => (Vec::new(), Action::PowerOff { lasts: *lasts, lost: *lost }),
            What::PowerOn => (Vec::new(), Action::PowerOn),
            What::WriteCache { on } => (Vec::new(), Action::WriteCache(*on)),
            what => {
                let planted = plant(what, self.drive.sectors);
                (planted.clone(), Action::Plant(planted))
            }
        };
        entry.state = State::Active(now, planted);
        Some(action)
    }

    /// Returns the time of the next action that waits for one.
    pub fn next_time(&self) -> Option<Time> {
        let at = |e: &Entry| match (&e.state, e.fault.when) {
            (State::Waiting, When::Now) => Some(e.added.0),
            (State::Waiting, When::After(time)) => Some(e.added.0 + time),
            _ => None,
        };
        self.entries.iter().filter_map(at).min()
    }

    /// Removes a fault, or all of them; returns what they have planted, and whether one of them has
    /// changed the power, or the write cache.
    ///
    /// # Errors
    /// There is none with this number.
    pub fn clear(&mut self, number: Option<u32>) -> Result<Cleared, PlanError> {
        if let Some(number) = number.filter(|n| self.entries.iter().all(|e| e.number != *n)) {
            return Err(PlanError::Number(number));
        }
        let is_meant = |e: &mut Entry| number.is_none_or(|n| n == e.number);
        let mut cleared = Cleared::default();
        for entry in self.entries.extract_if(.., is_meant) {
            cleared.faults += 1;
            if let State::Active(_, planted) = entry.state {
                cleared.planted.extend(planted);
                cleared.power |= matches!(entry.fault.what, What::PowerOff { .. });
                cleared.write_cache |= matches!(entry.fault.what, What::WriteCache { .. });
            }
        }
        Ok(cleared)
    }

    /// Lists all faults of a drive whose own list of faults is this.
    pub fn list(&self, planted: &[Planted]) -> Vec<Listed> {
        let unreadable = merged(planted);
        self.entries.iter().map(|e| self.listed(e, planted, &unreadable)).collect()
    }

    fn listed(&self, e: &Entry, planted: &[Planted], unreadable: &BTreeMap<u64, u64>) -> Listed {
        let when = match (&e.state, e.fault.when) {
            (State::Active(since, _), _) => format!("since {:.3} s", since.0 as f64 / 1e9),
            (State::Waiting, When::Now) => "now".into(),
            (State::Waiting, When::After(time)) => format!("at {:.3} s", (e.added.0 + time).0 as f64 / 1e9),
            (State::Waiting, When::AfterCommands(n)) => format!("after {} commands", e.added.1 + n),
        };
        let is_over = match (&e.state, &e.fault.what) {
            (State::Active(_, own), What::Hang { .. }) => !own.iter().all(|f| planted.contains(f)),
            (State::Active(..), What::PowerOn | What::PowerOff { .. } | What::WriteCache { .. }) => true,
            _ => false,
        };
        let state = match &e.state {
            State::Waiting => "waiting",
            State::Active(..) if is_over => "over",
            State::Active(..) => "active",
        };
        let left = match &e.state {
            State::Active(_, own) => left(own, unreadable),
            State::Waiting => None,
        };
        Listed {
            number: e.number,
            kind: e.fault.what.kind().into(),
            figures: e.fault.what.figures(self.drive.sector_bytes.into()),
            state: state.into(),
            when,
            unreadable_sectors: left,
        }
    }
}

/// What was cleared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleared {
    /// Number of faults.
    pub faults: usize,
    /// The drive's faults that are to be removed.
    pub planted: Vec<Planted>,
    /// Whether one was a power failure.
    pub power: bool,
    /// Whether one has switched the write cache.
    pub write_cache: bool,
}

/// Returns the faults of the drive's model for one of a plan.
fn plant(what: &What, sectors: u64) -> Vec<Planted> {
    match *what {
        What::Unreadable(Range { lbn, count }) => vec![Planted::Unreadable { lbn, count }],
        What::Slow { range: Range { lbn, count }, revolutions } => {
            vec![Planted::Slow { lbn, count, turns: revolutions }]
        }
        What::Hang { lasts } => vec![Planted::Hang { at: Time::ZERO, takes: lasts }],
        What::Failure => vec![Planted::Death { at: Time::ZERO }],
        What::Worn { unreadable, slow, revolutions, seed } => defects(sectors, unreadable, slow, revolutions, seed),
        What::PowerOff { .. } | What::PowerOn | What::WriteCache { .. } => Vec::new(),
    }
}

/// Returns the unreadable ranges: ends by first LBN, none overlapping another.
fn merged(planted: &[Planted]) -> BTreeMap<u64, u64> {
    let range = |f: &Planted| match *f {
        Planted::Unreadable { lbn, count } => Some((lbn, lbn + count)),
        _ => None,
    };
    let mut ranges: Vec<(u64, u64)> = planted.iter().filter_map(range).collect();
    ranges.sort_unstable();
    let mut merged = BTreeMap::new();
    for (first, end) in ranges {
        match merged.last_entry() {
            Some(mut last) if *last.get() >= first => {
                let longest = end.max(*last.get());
                last.insert(longest);
            }
            _ => _ = merged.insert(first, end),
        }
    }
    merged
}

/// Returns the parts of `first..end` that are in these ranges.
fn within(first: u64, end: u64, ranges: &BTreeMap<u64, u64>) -> impl Iterator<Item = (u64, u64)> {
    let before = ranges.range(..=first).next_back();
    let after = ranges.range(first + 1..).take_while(move |r| *r.0 < end);
    before.into_iter().chain(after).map(move |(a, b)| (first.max(*a), end.min(*b))).filter(|(a, b)| a < b)
}

/// Returns the number of sectors that these faults have made unreadable and that still are; `None`
/// if they have made none unreadable.
fn left(own: &[Planted], unreadable: &BTreeMap<u64, u64>) -> Option<u64> {
    let own = merged(own);
    let sectors = |(first, end): (&u64, &u64)| within(*first, *end, unreadable).map(|(a, b)| b - a).sum::<u64>();
    (!own.is_empty()).then(|| own.iter().map(sectors).sum())
}

/// Returns a drive's faults without those that were cleared: their sectors are readable, even where
/// another fault has made them unreadable, too.
pub fn without(planted: &[Planted], cleared: &[Planted]) -> Vec<Planted> {
    let readable = merged(cleared);
    let mut others: Vec<&Planted> = cleared.iter().filter(|f| !matches!(f, Planted::Unreadable { .. })).collect();
    let mut left = Vec::with_capacity(planted.len());
    for fault in planted {
        match *fault {
            Planted::Unreadable { lbn, count } => {
                let (mut from, end) = (lbn, lbn + count);
                for (a, b) in within(lbn, end, &readable).chain([(end, end)]) {
                    if from < a {
                        left.push(Planted::Unreadable { lbn: from, count: a - from });
                    }
                    from = b;
                }
            }
            _ => match others.iter().position(|f| *f == fault) {
                Some(at) => _ = others.swap_remove(at),
                None => left.push(fault.clone()),
            },
        }
    }
    left
}

#[cfg(test)]
mod tests;
