//! `[known]`: keys of what is known of the figures of a worst case.

use super::electronics::{ELECTRONICS, OVERHEADS};
use super::mechanics::MECHANICS;
use super::noise::NOISE;
use super::{Key, Presence, Schema, Written};
use crate::profile::fault::ProfileError;
use crate::profile::known::FORM;
use crate::profile::places::Places;
use crate::profile::table::{Item, Keys, Table};
use crate::profile::text::text;
use crate::profile::{Figure, Knowledge, Known, LATE_TURNS, Late};

/// A statement on a figure. It is read by [`read`], since a missing one follows from other tables.
macro_rules! statement {
    ($name:literal, $figure:ident, $doc:literal) => {
        Key {
            name: $name,
            presence: Presence::Kept,
            form: || "statement".into(),
            default: "see below",
            doc: $doc,
            read: |_, _| Ok(()),
            write: |known| Some(Written::Value(text(&known.of(Figure::$figure).to_string()))),
        }
    };
}

/// `[known]`.
pub(in super::super) static KNOWN: Schema<Known> = Schema {
    title: "[known]",
    written_first: &[],
    blank: Known::default,
    keys: &[
        statement! {
            "settle_retry_turns", SettleTurns,
            "`noise.settle_retry_turns`: n of the DAS paper less one"
        },
        statement! { "recalibration", Recalibration, "`noise.recalibrate_takes_ms`" },
        statement! { "seek_max", SeekSpread, "`noise.seek_max_us`" },
        statement! { "overlap_jitter", Overlap, "`noise.overlap_jitter_per_4k_us`" },
        statement! {
            "read_ahead_stop", ReadAheadStop,
            "`electronics.cache.stop_in_sector`. Where it is unknown, w includes the revolution \
             that a read-ahead takes at most to stop, and nothing is refused"
        },
        statement! {
            "write_settle", WriteSettle,
            "`mechanics.write_settle_ms`, or `write_seek_ms`"
        },
        statement! {
            "write_overheads", WriteOverheads,
            "the overheads of writes and of commands after writes: `write_miss_us`, `queued_us`. Where they \
                are unknown, the file may have the overheads of reads in their place"
        },
        Key {
            name: "verified_reads",
            presence: Presence::Optional,
            form: || format!("1 to {}", u32::MAX),
            default: "",
            doc: "random reads of the drive that `headtime characterize` compared with the profile",
            read: |_, _| Ok(()),
            write: |known| Some(Written::Value(known.late.as_ref()?.reads.to_string())),
        },
        Key {
            name: "late_reads",
            presence: Presence::Optional,
            form: || "list of numbers".into(),
            default: "",
            doc: "how many of these reads came one revolution later than predicted, how many two, and so on up to \
                eight. While n or recalibrations are not measured, the same part of X's times counts as late \
                ([guarantees.md](guarantees.md#what-is-known-of-the-drive))",
            read: |_, _| Ok(()),
            write: |known| Written::list(known.late.as_ref()?.by_turns.iter().map(u32::to_string).collect()),
        },
    ],
};

/// Source that an older `headtime characterize`, which wrote no statements, gave for electronics
/// when it had not timed writes.
const UNTIMED_WRITES: &str = "measured with reads; what concerns writes is taken from them";
/// The source that it gave when it had.
const TIMED_WRITES: &str = "measured with reads and writes";
/// The source that it gave for noise when it had measured settling and recalibrations.
const LOOKED_FOR: &str = "measured: completion jitter, by how much seeks differ, settling, recalibrations";

/// Reads the statements of a file. Without one, a figure in the file is stated and a missing one is
/// unknown.
pub(in super::super) fn read(top: &Table, places: &mut Places) -> Result<Known, ProfileError> {
    let table = top.get("known").map(|v| v.table(&KNOWN)).transpose()?;
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
    let stands = |key: &str, of: &'static dyn Keys, name: &str| -> Result<bool, ProfileError> {
        Ok(top.get(key).map(|v| v.table(of)).transpose()?.is_some_and(|t| t.get(name).is_some()))
    };
    let is_given = match figure {
        Figure::SettleTurns => stands("noise", &NOISE, "settle_retry_turns")?,
        Figure::Recalibration => stands("noise", &NOISE, "recalibrate_takes_ms")?,
        Figure::SeekSpread => stands("noise", &NOISE, "seek_max_us")?,
        Figure::Overlap => stands("noise", &NOISE, "overlap_jitter_per_4k_us")?,
        // The default is that it takes a revolution; the older program wrote that it takes none
        // without having measured it.
        Figure::ReadAheadStop => {
            !said("electronics")?.is_some_and(|s| [UNTIMED_WRITES, TIMED_WRITES].contains(&s.as_str()))
        }
        Figure::WriteSettle => {
            stands("mechanics", &MECHANICS, "write_settle_ms")? || stands("mechanics", &MECHANICS, "write_seek_ms")?
        }
        Figure::WriteOverheads => {
            let overheads = top.need("electronics")?.table(&ELECTRONICS)?.get("overheads");
            let table = overheads.map(|v| v.table(&OVERHEADS)).transpose()?;
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
