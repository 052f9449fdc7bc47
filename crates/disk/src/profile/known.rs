//! Knowledge of the figures that a worst case depends on: whether each was measured, is bounded, or
//! is unknown.
//!
//! A figure that a profile does not give acts as zero, which is right for a virtual drive and wrong
//! for a guarantee: a drive whose head was never observed to settle late may still do so. So each
//! figure of the worst case (Reuther and Pohlack 2003, equation 5) that random reads do not show
//! has a statement in `[known]`. Without statements, a figure in the file counts as stated by its
//! author and a missing one as unknown; files of an older `headtime characterize` are recognised by
//! their sources.

use std::fmt;

/// A figure of the worst case that must be measured, bounded or stated before mandatory requests
/// can be guaranteed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Figure {
    /// n of equation 5: revolutions until the head has settled, `noise.settle_retry_turns` plus
    /// one.
    SettleTurns,
    /// Duration of a recalibration, `noise.recalibrate_takes_ms`.
    Recalibration,
    /// Maximum by which a seek exceeds its table value, `noise.seek_max_us`.
    SeekSpread,
    /// Maximum variation of the overlap of bus and media, `noise.overlap_jitter_per_4k_us`.
    Overlap,
    /// Whether read-ahead stops at once, `electronics.cache.stop_in_sector`. If unknown, the worst
    /// case includes the revolution that it otherwise takes, so nothing is refused for it.
    ReadAheadStop,
    /// Additional time of a move before a write compared to one before a read,
    /// `mechanics.write_settle_ms`, or `write_seek_ms`.
    WriteSettle,
    /// Overheads before and after writes, `write_miss_us` and `queued_us`.
    WriteOverheads,
}

impl Figure {
    /// All figures in their usual order.
    pub const ALL: [Figure; 7] = [
        Figure::SettleTurns,
        Figure::Recalibration,
        Figure::SeekSpread,
        Figure::Overlap,
        Figure::ReadAheadStop,
        Figure::WriteSettle,
        Figure::WriteOverheads,
    ];

    /// Returns its key in `[known]`.
    pub fn key(self) -> &'static str {
        match self {
            Figure::SettleTurns => "settle_retry_turns",
            Figure::Recalibration => "recalibration",
            Figure::SeekSpread => "seek_max",
            Figure::Overlap => "overlap_jitter",
            Figure::ReadAheadStop => "read_ahead_stop",
            Figure::WriteSettle => "write_settle",
            Figure::WriteOverheads => "write_overheads",
        }
    }

    /// Returns its name in a list of bounds ([`super::Bounds`]).
    pub fn word(self) -> &'static str {
        match self {
            Figure::SettleTurns => "n",
            Figure::Recalibration => "recalibration",
            Figure::SeekSpread => "seek-max",
            Figure::Overlap => "overlap",
            Figure::ReadAheadStop => "read-ahead-stop",
            Figure::WriteSettle => "write-settle",
            Figure::WriteOverheads => "write-overhead",
        }
    }

    /// Returns the command that determines it, by measurement or from other drives; `None`: only
    /// the manufacturer knows it.
    pub fn found_by(self) -> Option<&'static str> {
        match self {
            Figure::SettleTurns | Figure::Recalibration => Some("headtime characterize DEVICE --thorough"),
            Figure::SeekSpread | Figure::Overlap => Some("headtime characterize DEVICE"),
            Figure::WriteSettle | Figure::WriteOverheads => Some("headtime characterize DEVICE --destructive"),
            Figure::ReadAheadStop => None,
        }
    }

    /// Whether a worst case requires it to be known. For the others, the worst case assumes the
    /// worst value.
    pub fn is_needed(self) -> bool {
        self != Figure::ReadAheadStop
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Figure::SettleTurns => "n, the turns until the head has settled",
            Figure::Recalibration => "the duration of a recalibration",
            Figure::SeekSpread => "the most by which a seek exceeds its table",
            Figure::Overlap => "the most by which the overlap of bus and media varies",
            Figure::ReadAheadStop => "whether a read-ahead stops at once",
            Figure::WriteSettle => "the write settle time",
            Figure::WriteOverheads => "the overheads of writes",
        })
    }
}

/// A set of figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures(u8);

impl Figures {
    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the set contains a figure.
    pub fn contains(self, figure: Figure) -> bool {
        self.0 & figure.bit() != 0
    }

    /// Iterates over the figures in order.
    pub fn iter(self) -> impl Iterator<Item = Figure> {
        Figure::ALL.into_iter().filter(move |f| self.contains(*f))
    }
}

impl FromIterator<Figure> for Figures {
    fn from_iter<T: IntoIterator<Item = Figure>>(figures: T) -> Figures {
        Figures(figures.into_iter().fold(0, |set, f| set | f.bit()))
    }
}

/// Knowledge of a figure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Knowledge {
    /// Stated by the profile's author; `[sources]` may give the source.
    #[default]
    Stated,
    /// Measured on the drive, by the given method.
    Measured(String),
    /// Not measured; bounded from above for the given reason.
    Bounded(String),
    /// Unknown. Acts as zero in a virtual drive, and must not be used in a worst case.
    Unknown,
}

/// Syntax of a statement.
#[cfg(feature = "toml")]
pub(super) const FORM: &str = "\"measured: HOW\", \"bounded: WHY\", \"stated\" or \"unknown\"";
/// Maximum length of a reason in characters.
#[cfg(feature = "toml")]
const MAX_REASON_CHARACTERS: usize = 300;

impl Knowledge {
    /// Parses a statement in a file; `None` when it is invalid.
    #[cfg(feature = "toml")]
    pub(super) fn parse(text: &str) -> Option<Knowledge> {
        let (word, how) = text.split_once(':').map_or((text, None), |(word, how)| (word, Some(how.trim())));
        let how =
            how.map(|how| (!how.is_empty() && how.chars().count() <= MAX_REASON_CHARACTERS).then(|| how.to_string()));
        let how = how.map(|how| how.filter(|how| !how.chars().any(char::is_control)));
        match (word.trim(), how) {
            ("stated", None) => Some(Knowledge::Stated),
            ("unknown", None) => Some(Knowledge::Unknown),
            ("measured", Some(how)) => how.map(Knowledge::Measured),
            ("bounded", Some(how)) => how.map(Knowledge::Bounded),
            _ => None,
        }
    }

    /// Returns the first word of the statement.
    pub fn word(&self) -> &'static str {
        match self {
            Knowledge::Stated => "stated",
            Knowledge::Measured(_) => "measured",
            Knowledge::Bounded(_) => "bounded",
            Knowledge::Unknown => "unknown",
        }
    }

    /// Returns the method of measurement, or the reason of a bound.
    pub fn how(&self) -> Option<&str> {
        match self {
            Knowledge::Measured(how) | Knowledge::Bounded(how) => Some(how),
            Knowledge::Stated | Knowledge::Unknown => None,
        }
    }
}

impl fmt::Display for Knowledge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.how() {
            Some(how) => write!(f, "{}: {how}", self.word()),
            None => f.write_str(self.word()),
        }
    }
}

/// Revolutions of lateness that are counted separately.
pub const LATE_TURNS: usize = 8;

/// Random reads of the drive compared with the profile's predictions, with counts of those that
/// were whole revolutions late: knowledge of delays that no figure contains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Late {
    /// Reads compared.
    pub reads: u32,
    /// Reads that were one revolution late, two, and so on; the [`LATE_TURNS`]th counts those that
    /// were later, too, and zeros at the end are left out. The first count is reduced by the reads
    /// that were one revolution early: for those the head arrived in the last instant or just
    /// missed it.
    pub by_turns: Vec<u32>,
}

/// Knowledge of each figure. By default, all figures are as stated by the program that made the
/// profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    figures: [Knowledge; Figure::ALL.len()],
    /// Lateness of reads; `None` if none were compared.
    pub late: Option<Late>,
}

impl Known {
    /// Returns the knowledge of a figure.
    pub fn of(&self, figure: Figure) -> &Knowledge {
        &self.figures[figure as usize]
    }

    /// Sets the knowledge of a figure.
    pub fn set(&mut self, figure: Figure, knowledge: Knowledge) {
        self.figures[figure as usize] = knowledge;
    }

    /// Returns the unknown figures.
    pub fn unknown(&self) -> Figures {
        Figure::ALL.into_iter().filter(|f| *self.of(*f) == Knowledge::Unknown).collect()
    }
}
