//! What is known of the figures that a worst case rests on: whether each was measured, is bounded,
//! or is not known at all.
//!
//! A figure that a profile does not give acts as zero, which is right for a virtual drive and wrong
//! for a promise: a drive whose head was never seen to settle late is not a drive whose head
//! settles always. So each figure of the worst case (Reuther and Pohlack 2003, equation 5) that
//! reads at random do not show has a statement beside it, in `[known]`. A profile file without
//! statements still says something: a figure that stands in it is stated by its author, one that
//! does not is unknown, and what an older `headtime characterize` wrote is recognised by its
//! sources.

use std::fmt;

use super::Profile;
use super::check::Places;
use super::fault::{ProfileError, Reason};
use super::keys;
use super::table::{Item, Table};

/// A figure of the worst case that must be measured, bounded or stated before anything mandatory is
/// promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Figure {
    /// n of equation 5: turns until the head has settled, `noise.settle_retry_turns` and one.
    SettleTurns,
    /// How long a recalibration takes, `noise.recalibrate_takes_ms`.
    Recalibration,
    /// By how much a seek exceeds its table at most, `noise.seek_max_us`.
    SeekSpread,
    /// By how much the overlap of bus and media varies at most, `noise.overlap_jitter_per_4k_us`.
    Overlap,
    /// Whether a read-ahead stops at once, `electronics.cache.stop_in_sector`. Where it is unknown,
    /// a worst case has the turn that it takes otherwise; so this is no reason to refuse anything.
    ReadAheadStop,
    /// What a move before a write takes longer than one before a read, `mechanics.write_settle_ms`,
    /// or `write_seek_ms`.
    WriteSettle,
    /// What the electronics add before writes and behind them, `write_miss_us` and `queued_us`.
    WriteOverheads,
}

impl Figure {
    /// All of them, in the order in which they are named.
    pub const ALL: [Figure; 7] = [
        Figure::SettleTurns,
        Figure::Recalibration,
        Figure::SeekSpread,
        Figure::Overlap,
        Figure::ReadAheadStop,
        Figure::WriteSettle,
        Figure::WriteOverheads,
    ];

    /// Its key in `[known]`.
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

    /// Its name in a list of bounds ([`super::bounds`]).
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

    /// The command that finds it, by measurement or from what is known of other drives; `None`:
    /// only its maker can say.
    pub fn found_by(self) -> Option<&'static str> {
        match self {
            Figure::SettleTurns | Figure::Recalibration => Some("headtime characterize DEVICE --thorough"),
            Figure::SeekSpread | Figure::Overlap => Some("headtime characterize DEVICE"),
            Figure::WriteSettle | Figure::WriteOverheads => Some("headtime characterize DEVICE --destructive"),
            Figure::ReadAheadStop => None,
        }
    }

    /// Whether a worst case can be made only where it is known. Of the others the worst there is
    /// stands in it.
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
    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether it is one of them.
    pub fn contains(self, figure: Figure) -> bool {
        self.0 & figure.bit() != 0
    }

    /// Those of them, in their order.
    pub fn iter(self) -> impl Iterator<Item = Figure> {
        Figure::ALL.into_iter().filter(move |f| self.contains(*f))
    }
}

impl FromIterator<Figure> for Figures {
    fn from_iter<T: IntoIterator<Item = Figure>>(figures: T) -> Figures {
        Figures(figures.into_iter().fold(0, |set, f| set | f.bit()))
    }
}

/// What is known of a figure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Knowledge {
    /// The author of the profile states it; `[sources]` may say from where.
    #[default]
    Stated,
    /// It was measured on the drive, in this way.
    Measured(String),
    /// The drive was not asked, but the figure is at most this, for this reason.
    Bounded(String),
    /// Nothing is known. The figure acts as zero in a virtual drive, and no worst case may rest on
    /// it.
    Unknown,
}

/// What a statement may look like.
const FORM: &str = "\"measured: HOW\", \"bounded: WHY\", \"stated\" or \"unknown\"";
/// Characters of a reason.
const LONGEST: usize = 300;

impl Knowledge {
    /// The statement as it stands in a file; `None`: no such statement.
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

    /// The first word of the statement.
    pub fn word(&self) -> &'static str {
        match self {
            Knowledge::Stated => "stated",
            Knowledge::Measured(_) => "measured",
            Knowledge::Bounded(_) => "bounded",
            Knowledge::Unknown => "unknown",
        }
    }

    /// How it was measured, or why it is bounded.
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

/// Turns by which a read may be later than predicted and still counts by them.
pub const LATE_TURNS: usize = 8;

/// Random reads of the drive that were held against the profile, and how many came turns later than
/// it predicts: what is known of delays that are in no figure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Late {
    /// All reads that were compared.
    pub reads: u32,
    /// Of them, those that came one turn later, two, and so on; of the first without as many as
    /// came a turn earlier, which are those for which the head arrived in the last instant, or just
    /// not.
    pub by_turns: Vec<u32>,
}

/// What is known of each figure. By default, all of a profile that a program made is as the program
/// says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    figures: [Knowledge; Figure::ALL.len()],
    /// How late reads came; `None`: none were compared.
    pub late: Option<Late>,
}

impl Known {
    /// What is known of a figure.
    pub fn of(&self, figure: Figure) -> &Knowledge {
        &self.figures[figure as usize]
    }

    /// Changes what is known of a figure.
    pub fn set(&mut self, figure: Figure, knowledge: Knowledge) {
        self.figures[figure as usize] = knowledge;
    }

    /// The figures of which nothing is known.
    pub fn unknown(&self) -> Figures {
        Figure::ALL.into_iter().filter(|f| *self.of(*f) == Knowledge::Unknown).collect()
    }
}

/// What an older `headtime characterize`, which wrote no statements, said of electronics when it
/// had timed no writes.
const UNTIMED_WRITES: &str = "measured with reads; what concerns writes is taken from them";
/// What it said when it had.
const TIMED_WRITES: &str = "measured with reads and writes";
/// What it said of noise when it had looked for turns to settle and recalibrations.
const LOOKED_FOR: &str = "measured: completion jitter, by how much seeks differ, settling, recalibrations";

/// The statements of a file, and what follows where it has none: a figure that stands in the file
/// is stated, one that does not is unknown.
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

/// What a file says of reads that were late.
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

/// What a file without a statement says of a figure.
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
        // It takes a turn where nothing is said; the older program said that it takes none, and had
        // not looked.
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
        // An older file left out what was looked for and not met.
        (_, true) => Knowledge::Measured("requests from edge to edge".into()),
        (true, _) => Knowledge::Stated,
        (false, _) => Knowledge::Unknown,
    })
}

/// A figure that is said to be unknown must not be given all the same.
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
            // What is not known of writes is taken from reads, so figures that stand there say
            // nothing.
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
