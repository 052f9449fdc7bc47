//! What can be wrong with a profile file, and where.

use std::fmt;
use std::sync::Arc;

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct At {
    /// The file's path as it was asked for.
    pub file: Arc<str>,
    /// The line, counted from 1; 0 means the file as a whole.
    pub line: u32,
}

impl At {
    /// The file as a whole.
    pub fn file(path: &str) -> At {
        At { file: path.into(), line: 0 }
    }

    /// Another line of the same file.
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

/// A text from a file, short enough for a message.
pub fn excerpt(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        None => text.to_string(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

/// A message in which nothing from a file can move a terminal's cursor: control characters are
/// written out.
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
    /// Where.
    pub at: At,
    /// Why.
    pub reason: Reason,
}

impl ProfileError {
    /// `expected X, found Y` at a place.
    pub fn expected(at: &At, expected: impl Into<String>, found: impl Into<String>) -> ProfileError {
        ProfileError { at: at.clone(), reason: Reason::Expected { expected: expected.into(), found: found.into() } }
    }

    /// A key that must be there and is not.
    pub fn missing(at: &At, table: &str, key: &str) -> ProfileError {
        ProfileError { at: at.clone(), reason: Reason::Missing { table: table.into(), key: key.into() } }
    }

    /// A figure outside the range that makes sense.
    pub fn range(at: &At, what: impl Into<String>, found: impl fmt::Display, range: impl Into<String>) -> ProfileError {
        ProfileError {
            at: at.clone(),
            reason: Reason::Range { what: what.into(), found: found.to_string(), range: range.into() },
        }
    }

    /// Figures that contradict each other or physics.
    pub fn impossible(at: &At, what: impl Into<String>) -> ProfileError {
        ProfileError { at: at.clone(), reason: Reason::Impossible(what.into()) }
    }
}

/// The kinds of fault that stop a profile from loading.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Reason {
    /// The file's text could not be had.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// Not in the form it should have.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// What should stand here.
        expected: String,
        /// What stands here.
        found: String,
    },
    /// A key that must be there and is not.
    #[error("{table} lacks the key `{key}`")]
    Missing {
        /// The table or block.
        table: String,
        /// The key.
        key: String,
    },
    /// A key that nothing reads.
    #[error("unknown key `{key}` in {table}; known are: {known}")]
    UnknownKey {
        /// The table.
        table: String,
        /// The key found.
        key: String,
        /// The keys that may stand there.
        known: String,
    },
    /// A name that does not exist.
    #[error("unknown {what} `{found}`; known are: {known}")]
    UnknownName {
        /// What kind of thing was named.
        what: String,
        /// The name.
        found: String,
        /// The names there are.
        known: String,
    },
    /// A figure outside the range that makes sense.
    #[error("{what} is {found}; it must be {range}")]
    Range {
        /// The quantity.
        what: String,
        /// Its figure.
        found: String,
        /// Where it must lie.
        range: String,
    },
    /// A file that sources itself, at once or through others.
    #[error("{file} sources itself{}", if *through == 0 { String::new() } else { format!(", through {through} other \
            file(s)") })]
    SourcesItself {
        /// The file.
        file: String,
        /// Files between its two appearances.
        through: usize,
    },
    /// Too many files.
    #[error("`source` leads to more than {max} files")]
    TooDeep {
        /// Files taken at most.
        max: usize,
    },
    /// Figures that contradict each other or physics.
    #[error("{0}")]
    Impossible(String),
}

/// Something odd in a file that could still be loaded.
#[derive(Clone, Debug, PartialEq)]
pub struct Warning {
    /// Where.
    pub at: At,
    /// What.
    pub kind: WarningKind,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, printable(&self.kind))
    }
}

/// The kinds of oddity that are told of.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum WarningKind {
    /// A longer seek that is quicker than a shorter one. The table is kept as it stands.
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
    /// The same distance twice; the first was kept.
    #[error("a second seek time for distance {0}; the first was kept")]
    SeekRepeated(u32),
    /// The count line states fewer points than the table has.
    #[error("the table says it has {stated} points and has {found}; all were taken")]
    SeekCount {
        /// As stated.
        stated: u64,
        /// As found.
        found: u64,
    },
    /// A slip list that is not sorted; it was sorted.
    #[error("slip {found} follows {after}; the list was sorted")]
    UnsortedSlips {
        /// The first slip out of order.
        found: u64,
        /// The one before it.
        after: u64,
    },
    /// The same slip twice: the next sector is skipped too, as DiskSim's walk does.
    #[error("slip {0} stands twice; the sector after it is skipped too")]
    RepeatedSlip(u64),
    /// A slip beyond the zone: it is never reached, but schemes that count slips lose a sector for
    /// it.
    #[error("slip {found} is beyond the zone's last index, {last}")]
    SlipBeyondZone {
        /// The index.
        found: u64,
        /// The last index there is.
        last: u64,
    },
    /// The same slip twice in a profile file: it is one defect.
    #[error("slip {0} stands twice; it counts once")]
    SlipTwice(String),
    /// A defect that is replaced by itself; it was dropped.
    #[error("defect {0} is replaced by itself; it was dropped")]
    DefectToItself(u64),
    /// A skew or offset of a whole turn or more.
    #[error("{what} of {found} is a turn or more ({turn} sectors)")]
    SkewBeyondTurn {
        /// Which skew.
        what: &'static str,
        /// Its figure, in the file's unit.
        found: String,
        /// Sectors of a turn.
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
    /// More cylinders in the zones than stated.
    #[error("zones reach cylinder {last}, but only {stated} cylinders are stated; the zones were believed")]
    MoreCylinders {
        /// Last cylinder of a zone.
        last: u32,
        /// Cylinders as stated.
        stated: u32,
    },
    /// The stated number of sectors is not what the layout gives.
    #[error("{stated} sectors are stated, the layout gives {computed}; the layout was believed")]
    Capacity {
        /// As stated.
        stated: u64,
        /// As the layout gives.
        computed: u64,
    },
    /// A parameter that this program does not know; it was ignored.
    #[error("unknown parameter `{key}` in {block}; it was ignored")]
    UnknownParameter {
        /// The parameter.
        key: String,
        /// The block it stands in.
        block: String,
    },
    /// A parameter that is not there; a default was taken.
    #[error("{block} lacks `{key}`; {default} was taken")]
    DefaultTaken {
        /// The parameter.
        key: String,
        /// The block that lacks it.
        block: String,
        /// The default.
        default: String,
    },
    /// A parameter given twice; the last one counts.
    #[error("`{key}` stands twice in {block}; the last one counts")]
    RepeatedParameter {
        /// The parameter.
        key: String,
        /// The block.
        block: String,
    },
    /// A parameter whose value has no effect here.
    #[error("`{key} = {value}` has no effect: {why}")]
    NoEffect {
        /// The parameter.
        key: String,
        /// Its value.
        value: String,
        /// Why it has none.
        why: &'static str,
    },
    /// A default that had to be guessed.
    #[error("{0}")]
    Assumed(String),
}

/// The warnings of one load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Warnings(pub Vec<Warning>);

impl Warnings {
    /// Notes one.
    pub fn note(&mut self, at: &At, kind: WarningKind) {
        self.0.push(Warning { at: at.clone(), kind });
    }
}
