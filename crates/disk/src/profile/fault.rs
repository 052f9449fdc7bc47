//! Errors and warnings of profile files, with locations.

use std::fmt;
use std::sync::Arc;

/// A location in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct At {
    /// The file's path as requested.
    pub file: Arc<str>,
    /// The line, from 1; 0 means the whole file.
    pub line: u32,
}

impl At {
    /// Returns the location of a whole file.
    pub fn file(path: &str) -> At {
        At { file: path.into(), line: 0 }
    }

    /// Returns another line of the same file.
    pub fn with_line(&self, line: u32) -> At {
        At { file: self.file.clone(), line }
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}", self.file),
            n => write!(f, "{}:{n}", self.file),
        }
    }
}

/// Truncates a text from a file for a message.
#[cfg(feature = "disksim")]
pub(super) fn excerpt(text: &str) -> String {
    const MAX_CHARACTERS: usize = 60;
    match text.char_indices().nth(MAX_CHARACTERS) {
        None => text.to_string(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

/// Formats a message with control characters escaped, so that a file cannot control the terminal.
fn printable(message: &impl fmt::Display) -> String {
    let mut out = String::new();
    for c in message.to_string().chars() {
        match c {
            '\n' => out.push(c),
            c if c.is_control() => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

/// Why a profile cannot be used, with file and line.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{at}: {}", printable(reason))]
pub struct ProfileError {
    /// Location.
    pub at: At,
    /// Reason.
    pub reason: Reason,
}

impl ProfileError {
    /// Makes an error `expected X, found Y`.
    pub fn expected(at: &At, expected: impl Into<String>, found: impl Into<String>) -> ProfileError {
        ProfileError { at: at.clone(), reason: Reason::Expected { expected: expected.into(), found: found.into() } }
    }

    /// Makes the error of a missing key.
    pub fn missing(at: &At, table: &str, key: &str) -> ProfileError {
        ProfileError { at: at.clone(), reason: Reason::Missing { table: table.into(), key: key.into() } }
    }

    /// Makes the error of a figure out of range.
    pub fn range(at: &At, what: impl Into<String>, found: impl fmt::Display, range: impl Into<String>) -> ProfileError {
        ProfileError {
            at: at.clone(),
            reason: Reason::Range { what: what.into(), found: found.to_string(), range: range.into() },
        }
    }

    /// Makes the error of figures that contradict each other or physics.
    pub fn impossible(at: &At, what: impl Into<String>) -> ProfileError {
        ProfileError { at: at.clone(), reason: Reason::Impossible(what.into()) }
    }
}

/// Reasons why a profile cannot be loaded.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// A value is malformed.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// What was expected.
        expected: String,
        /// What was found.
        found: String,
    },
    /// A required key is missing.
    #[error("{table} lacks the key `{key}`")]
    Missing {
        /// The table or block.
        table: String,
        /// The key.
        key: String,
    },
    /// An unknown key.
    #[error("unknown key `{key}` in {table}; known are: {known}")]
    UnknownKey {
        /// The table.
        table: String,
        /// The key found.
        key: String,
        /// The known keys.
        known: String,
    },
    /// An unknown name.
    #[error("unknown {what} `{found}`; known are: {known}")]
    UnknownName {
        /// The kind of object.
        what: String,
        /// The name.
        found: String,
        /// The known names.
        known: String,
    },
    /// A figure out of range.
    #[error("{what} is {found}; it must be {range}")]
    Range {
        /// The quantity.
        what: String,
        /// Its figure.
        found: String,
        /// The valid range.
        range: String,
    },
    /// A file that sources itself, directly or through others.
    #[error("{file} sources itself{}", if *through == 0 { String::new() } else { format!(", through {through} other \
            file(s)") })]
    SourcesItself {
        /// The file.
        file: String,
        /// Files between its two appearances.
        through: usize,
    },
    /// Too many source files.
    #[error("`source` leads to more than {max} files")]
    TooDeep {
        /// Maximum number of files.
        max: usize,
    },
    /// Figures that contradict each other or physics.
    #[error("{0}")]
    Impossible(String),
}

/// An oddity in a file that could be loaded.
#[derive(Clone, Debug, PartialEq)]
pub struct Warning {
    /// Location.
    pub at: At,
    /// Kind.
    pub kind: WarningKind,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, printable(&self.kind))
    }
}

/// Kinds of warnings.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WarningKind {
    /// A longer seek that takes less time than a shorter one. The table is kept.
    #[error(
        "a seek over {distance} cylinders takes {ms} ms, less than the {before_ms} ms over {before_distance} cylinders"
    )]
    SeekFalls {
        /// Distance of the point.
        distance: u32,
        /// Its time in ms.
        ms: f64,
        /// The shorter distance.
        before_distance: u32,
        /// Its time in ms.
        before_ms: f64,
    },
    /// A seek table whose distances do not ascend; it was sorted.
    #[error("seek distance {found} does not follow {after}; the table was sorted")]
    SeekOrder {
        /// The distance.
        found: u32,
        /// The distance on the line before.
        after: u32,
    },
    /// The same distance twice; the first is kept.
    #[error("a second seek time for distance {0}; the first was kept")]
    SeekRepeated(u32),
    /// The count line states fewer points than the table has.
    #[error("the table says it has {stated} points and has {found}; all were taken")]
    SeekCount {
        /// Points stated.
        stated: u64,
        /// Points found.
        found: u64,
    },
    /// An unsorted slip list; it was sorted.
    #[error("slip {found} follows {after}; the list was sorted")]
    UnsortedSlips {
        /// The first slip out of order.
        found: u64,
        /// The one before it.
        after: u64,
    },
    /// A repeated slip: the next sector is slipped too, as in DiskSim's walk.
    #[error("slip {0} stands twice; the sector after it is skipped too")]
    RepeatedSlip(u64),
    /// A slip beyond the zone: it is never reached, but schemes that count slips lose a sector for
    /// it.
    #[error("slip {found} is beyond the zone's last index, {last}")]
    SlipBeyondZone {
        /// The index.
        found: u64,
        /// The zone's last index.
        last: u64,
    },
    /// A repeated slip in a profile file, which counts once.
    #[error("slip {0} stands twice; it counts once")]
    SlipTwice(String),
    /// A defect replaced by itself; it was dropped.
    #[error("defect {0} is replaced by itself; it was dropped")]
    DefectToItself(u64),
    /// A skew or offset of a whole revolution or more.
    #[error("{what} of {found} is a turn or more ({turn} sectors)")]
    SkewBeyondTurn {
        /// Which skew.
        what: &'static str,
        /// Its figure, in the file's unit.
        found: String,
        /// Sectors per revolution.
        turn: u32,
    },
    /// Cylinders that belong to no zone.
    #[error("cylinders {first} to {last} belong to no zone and hold no data")]
    UnzonedCylinders {
        /// First.
        first: u32,
        /// Last.
        last: u32,
    },
    /// The zones have more cylinders than stated.
    #[error("zones reach cylinder {last}, but only {stated} cylinders are stated; the zones were believed")]
    MoreCylinders {
        /// Last cylinder of a zone.
        last: u32,
        /// Cylinders as stated.
        stated: u32,
    },
    /// The stated number of sectors differs from the layout's.
    #[error("{stated} sectors are stated, the layout gives {computed}; the layout was believed")]
    Capacity {
        /// Sectors stated.
        stated: u64,
        /// Sectors of the layout.
        computed: u64,
    },
    /// An unknown parameter, which was ignored.
    #[error("unknown parameter `{key}` in {block}; it was ignored")]
    UnknownParameter {
        /// The parameter.
        key: String,
        /// Its block.
        block: String,
    },
    /// A missing parameter; its default was used.
    #[error("{block} lacks `{key}`; {default} was taken")]
    DefaultTaken {
        /// The parameter.
        key: String,
        /// Its block.
        block: String,
        /// The default.
        default: String,
    },
    /// A repeated parameter; the last value is used.
    #[error("`{key}` stands twice in {block}; the last one counts")]
    RepeatedParameter {
        /// The parameter.
        key: String,
        /// The block.
        block: String,
    },
    /// A parameter whose value has no effect.
    #[error("`{key} = {value}` has no effect: {why}")]
    NoEffect {
        /// The parameter.
        key: String,
        /// Its value.
        value: String,
        /// Why it has none.
        why: &'static str,
    },
    /// An assumed default.
    #[error("{0}")]
    Assumed(String),
}

/// The warnings of one load.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Warnings(pub Vec<Warning>);

impl Warnings {
    /// Adds a warning.
    pub(super) fn note(&mut self, at: &At, kind: WarningKind) {
        self.0.push(Warning { at: at.clone(), kind });
    }
}
