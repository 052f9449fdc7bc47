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

use super::Profile;
use super::fault::{ProfileError, Reason};
use super::keys;
use super::places::Places;
use super::table::{Item, Table};

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

    /// Returns its name in a list of bounds ([`super::bounds`]).
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
const FORM: &str = "\"measured: HOW\", \"bounded: WHY\", \"stated\" or \"unknown\"";
/// Maximum length of a reason in characters.
const LONGEST: usize = 300;

impl Knowledge {
    /// Parses a statement in a file; `None` when it is invalid.
    fn parse(text: &str) -> Option<Knowledge> {
        let (word, how) = text.split_once(':').map_or((text, None), |(word, how)| (word, Some(how.trim())));
        let how = how.map(|how| (!how.is_empty() && how.chars().count() <= LONGEST).then(|| how.to_string()));
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
    /// Reads that were one revolution late, two, and so on. The first count is reduced by the reads
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

/// Source that an older `headtime characterize`, which wrote no statements, gave for electronics
/// when it had not timed writes.
const UNTIMED_WRITES: &str = "measured with reads; what concerns writes is taken from them";
/// The source that it gave when it had.
const TIMED_WRITES: &str = "measured with reads and writes";
/// The source that it gave for noise when it had measured settling and recalibrations.
const LOOKED_FOR: &str = "measured: completion jitter, by how much seeks differ, settling, recalibrations";

/// Reads the statements of a file. Without one, a figure in the file is stated and a missing one is
/// unknown.
pub(super) fn read(top: &Table, places: &mut Places) -> Result<Known, ProfileError> {
    let table = top.get("known").map(|v| v.table(keys::KNOWN)).transpose()?;
    let mut known = Known::default();
    for figure in Figure::ALL {
        let item = table.as_ref().and_then(|t| t.get(figure.key()));
        places.remember(&place(figure), item.clone());
        let knowledge = match item {
            Some(item) => statement(&item)?,
            None => implied(top, figure)?,
        };
        known.set(figure, knowledge);
    }
    known.late = table.as_ref().map(late).transpose()?.flatten();
    Ok(known)
}

/// Reads the lateness of reads from a file.
fn late(table: &Table) -> Result<Option<Late>, ProfileError> {
    let most = i64::from(u32::MAX);
    let Some(reads) = table.get("verified_reads") else {
        return match table.get("late_reads") {
            Some(item) => item.refuse("`verified_reads` beside it"),
            None => Ok(None),
        };
    };
    let reads = reads.int(1, most)? as u32;
    let Some(item) = table.get("late_reads") else { return Ok(Some(Late { reads, by_turns: Vec::new() })) };
    let by_turns = item.list()?.iter().map(|n| n.int(0, most).map(|n| n as u32)).collect::<Result<Vec<_>, _>>()?;
    let all = by_turns.iter().map(|n| u64::from(*n)).sum::<u64>();
    if by_turns.len() > LATE_TURNS || all > u64::from(reads) {
        return item.refuse(&format!("up to {LATE_TURNS} numbers of reads, at most {reads} in all"));
    }
    Ok(Some(Late { reads, by_turns }))
}

fn place(figure: Figure) -> String {
    format!("known.{}", figure.key())
}

fn statement(item: &Item) -> Result<Knowledge, ProfileError> {
    Knowledge::parse(item.text()?).map_or_else(|| item.refuse(FORM), Ok)
}

/// Infers the knowledge of a figure without a statement.
fn implied(top: &Table, figure: Figure) -> Result<Knowledge, ProfileError> {
    let said = |table: &str| -> Result<Option<String>, ProfileError> {
        let all = top.need("sources")?.texts()?;
        Ok(all.into_iter().find(|s| s.0 == table).map(|s| s.1))
    };
    let stands = |key: &str, of: keys::TableKeys, name: &str| -> Result<bool, ProfileError> {
        Ok(top.get(key).map(|v| v.table(of)).transpose()?.is_some_and(|t| t.get(name).is_some()))
    };
    let is_given = match figure {
        Figure::SettleTurns => stands("noise", keys::NOISE, "settle_retry_turns")?,
        Figure::Recalibration => stands("noise", keys::NOISE, "recalibrate_takes_ms")?,
        Figure::SeekSpread => stands("noise", keys::NOISE, "seek_max_us")?,
        Figure::Overlap => stands("noise", keys::NOISE, "overlap_jitter_per_4k_us")?,
        // The default is that it takes a revolution; the older program wrote that it takes none
        // without having measured it.
        Figure::ReadAheadStop => {
            !said("electronics")?.is_some_and(|s| [UNTIMED_WRITES, TIMED_WRITES].contains(&s.as_str()))
        }
        Figure::WriteSettle => {
            stands("mechanics", keys::MECHANICS, "write_settle_ms")?
                || stands("mechanics", keys::MECHANICS, "write_seek_ms")?
        }
        Figure::WriteOverheads => {
            let overheads = top.need("electronics")?.table(keys::ELECTRONICS)?.get("overheads");
            let table = overheads.map(|v| v.table(keys::OVERHEADS)).transpose()?;
            table.is_some_and(|t| t.get("write_miss_us").is_some())
                && said("electronics")?.as_deref() != Some(UNTIMED_WRITES)
        }
    };
    let looked_for =
        matches!(figure, Figure::SettleTurns | Figure::Recalibration) && said("noise")?.as_deref() == Some(LOOKED_FOR);
    Ok(match (is_given, looked_for) {
        // An older file omitted effects that were looked for and not observed.
        (_, true) => Knowledge::Measured("requests from edge to edge".into()),
        (true, _) => Knowledge::Stated,
        (false, _) => Knowledge::Unknown,
    })
}

/// Checks that no figure stated to be unknown has a value.
pub(super) fn check(p: &Profile, places: &Places) -> Result<(), ProfileError> {
    for figure in p.known.unknown().iter() {
        let (noise, mechanics) = (&p.noise, &p.mechanics);
        let given = match figure {
            Figure::SettleTurns if noise.settle_retry_turns > 0 => {
                format!("settle_retry_turns = {}", noise.settle_retry_turns)
            }
            Figure::Recalibration if noise.recalibrate_takes.0 > 0 => {
                format!("recalibrate_takes_ms = {}", noise.recalibrate_takes.as_ms_f64())
            }
            Figure::SeekSpread if noise.seek_max.0 > 0 => format!("seek_max_us = {}", noise.seek_max.0 as f64 / 1e3),
            Figure::Overlap if noise.overlap_jitter_per_4k.0 > 0 => {
                format!("overlap_jitter_per_4k_us = {}", noise.overlap_jitter_per_4k.0 as f64 / 1e3)
            }
            Figure::WriteSettle if mechanics.write_seek.is_some() => "write_seek_ms".into(),
            Figure::WriteSettle if mechanics.write_settle_ns != 0 => {
                format!("write_settle_ms = {}", mechanics.write_settle_ns as f64 / 1e6)
            }
            // Unknown write figures are derived from reads, so their presence means nothing.
            _ => continue,
        };
        let reason = Reason::Expected {
            expected: format!("no figure beside `{} = \"unknown\"` in [known]", figure.key()),
            found: given,
        };
        return Err(ProfileError { at: places.key(&place(figure)).clone(), reason });
    }
    Ok(())
}
