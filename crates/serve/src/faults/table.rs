//! A fault as it is written: `[[fault]]` in a file, or the flags of `headtime fault add`.

use std::path::Path;

use headtime_disk::Dur;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::closest::closest;
use super::plan::{Fault, Lost, Range, What, When};
use crate::config::bytes;

/// Kinds of faults, and the keys of each beside those of [`ALWAYS`].
const KINDS: [(&str, &[&str]); 8] = [
    ("unreadable", &["start", "size"]),
    ("slow", &["start", "size", "revolutions"]),
    ("hang", &["for"]),
    ("failure", &[]),
    ("worn", &["unreadable", "slow", "revolutions", "seed"]),
    ("power-off", &["for", "lost"]),
    ("power-on", &[]),
    ("write-cache", &["on"]),
];
/// Keys of each fault.
const ALWAYS: [&str; 3] = ["kind", "after", "after-commands"];

/// Most additional revolutions of a slow sector: a drive of 5400 rpm gives up within 12 seconds.
pub const MAX_REVOLUTIONS: u32 = 1000;
/// Additional revolutions of a slow sector by default: as many as before a drive gives up.
const REVOLUTIONS: u32 = 8;
/// The longest time of a fault, seconds: a year.
const LONGEST_S: u64 = 366 * 86_400;

/// A size as it is written: a number of bytes, or a number with a unit.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(untagged, expecting = "expected bytes, or in quotes a number and KiB, MiB, GiB, TiB, KB, MB, GB or TB")]
pub enum Size {
    /// Bytes.
    Bytes(u64),
    /// A number with a unit.
    Text(String),
}

/// A fault as it is written. All keys are here; which of them a kind has is checked by
/// [`FaultTable::fault`].
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct FaultTable {
    /// Name of the kind.
    pub kind: String,
    /// First byte of a range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Size>,
    /// Length of a range; by default one sector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// Additional revolutions of slow sectors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revolutions: Option<u32>,
    /// How long a hang or a power failure lasts.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasts: Option<String>,
    /// What a power failure loses of the write cache: `some` or `all`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
    /// Whether the write cache is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<bool>,
    /// Share of unreadable sectors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<f64>,
    /// Share of slow sectors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow: Option<f64>,
    /// Seed of the places of defects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Time from the start of the drive, or from the command that adds the fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Number of commands before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_commands: Option<u64>,
}

/// Why a fault is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {why}")]
pub struct TableError {
    /// The key.
    pub key: &'static str,
    /// What was expected, and what was found.
    pub why: String,
}

/// Why a file of faults is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {why}")]
pub struct FileError {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What was expected, and what was found.
    pub why: String,
}

/// The size of the drive that faults are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveSize {
    /// Sectors.
    pub sectors: u64,
    /// Bytes of a sector.
    pub sector_bytes: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tables {
    #[serde(default)]
    fault: Vec<Spanned<FaultTable>>,
}

/// Reads the text of a file of faults.
///
/// # Errors
/// The first thing that is wrong, with its line.
pub fn read(text: &str, file: &Path, drive: DriveSize) -> Result<Vec<Fault>, FileError> {
    let file = file.display().to_string();
    let wrong = |at: usize, why| FileError { file: file.clone(), line: 1 + text[..at].matches('\n').count(), why };
    let tables: Tables = toml::from_str(text).map_err(|e| {
        let at = e.span().map_or(0, |s| s.start).min(text.len());
        wrong(at, with_closest(e.message()))
    })?;
    let one = |table: &Spanned<FaultTable>| {
        let at = table.span().start.min(text.len());
        table.get_ref().fault(drive).map_err(|e| wrong(at + key_in(&text[at..], e.key), e.to_string()))
    };
    tables.fault.iter().map(one).collect()
}

/// Returns where a key of the table that begins with this text is; the beginning if it has none.
fn key_in(text: &str, key: &str) -> usize {
    let mut at = 0;
    for (n, line) in text.split_inclusive('\n').enumerate() {
        if n > 0 && line.trim_start().starts_with('[') {
            break;
        }
        let rest = line.trim_start().strip_prefix(key).map(str::trim_start);
        if rest.is_some_and(|rest| rest.starts_with('=')) {
            return at;
        }
        at += line.len();
    }
    0
}

/// Rewrites an error of the TOML library: one line, and an unknown key with the closest known one.
fn with_closest(why: &str) -> String {
    let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut quoted = why.split('`').skip(1).step_by(2);
    match (why.starts_with("unknown field"), quoted.next()) {
        (true, Some(unknown)) => unknown_word("key", unknown, quoted),
        _ => why,
    }
}

/// Says that a word is unknown, which one was probably meant, or else which ones are known.
fn unknown_word<'a>(what: &str, unknown: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let unknown: String = unknown.chars().take(40).flat_map(char::escape_default).collect();
    match closest(&unknown, known.clone()) {
        Some(meant) => format!("unknown {what} `{unknown}`; the closest is `{meant}`"),
        None => format!("unknown {what} `{unknown}`; known are {}", known.collect::<Vec<_>>().join(", ")),
    }
}

/// Reads a time: a whole number and `us`, `ms`, `s`, `m` or `h`.
pub fn time(text: &str) -> Option<Dur> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit = match text[digits..].trim_start() {
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let time = text[..digits].parse::<u64>().ok()?.checked_mul(unit)?;
    (time <= LONGEST_S * 1_000_000_000).then_some(Dur(time))
}

/// What [`time`] expects.
pub const TIME: &str = "a whole number and us, ms, s, m or h, at most 366 days";

fn wrong<T>(key: &'static str, expected: &str, found: impl std::fmt::Display) -> Result<T, TableError> {
    Err(TableError { key, why: format!("expected {expected}, found {found}") })
}

impl FaultTable {
    /// Returns the keys that are given.
    fn given(&self) -> impl Iterator<Item = &'static str> {
        let all = [
            ("start", self.start.is_some()),
            ("size", self.size.is_some()),
            ("revolutions", self.revolutions.is_some()),
            ("for", self.lasts.is_some()),
            ("lost", self.lost.is_some()),
            ("on", self.on.is_some()),
            ("unreadable", self.unreadable.is_some()),
            ("slow", self.slow.is_some()),
            ("seed", self.seed.is_some()),
        ];
        all.into_iter().filter(|(_, is_given)| *is_given).map(|(key, _)| key)
    }

    /// Checks the table for this drive.
    ///
    /// # Errors
    /// The first key that is wrong.
    pub fn fault(&self, drive: DriveSize) -> Result<Fault, TableError> {
        let names = KINDS.iter().map(|k| k.0);
        let Some((kind, keys)) = KINDS.iter().find(|k| k.0 == self.kind) else {
            let why = match self.kind.as_str() {
                "" => format!("expected one of {}, found none", names.collect::<Vec<_>>().join(", ")),
                unknown => unknown_word("kind", unknown, names),
            };
            return Err(TableError { key: "kind", why });
        };
        if let Some(key) = self.given().find(|key| !keys.contains(key)) {
            let has = [&ALWAYS[..], *keys].concat().join(", ");
            return Err(TableError { key, why: format!("a fault of kind {kind} has no such key; it has {has}") });
        }
        let what = match *kind {
            "unreadable" => What::Unreadable(self.range(drive)?),
            "slow" => What::Slow { range: self.range(drive)?, revolutions: self.revolutions()? },
            "hang" => match self.duration("for", self.lasts.as_ref())? {
                Some(lasts) => What::Hang { lasts },
                None => return wrong("for", &format!("how long it lasts: {TIME}"), "nothing"),
            },
            "failure" => What::Failure,
            "worn" => What::Worn {
                unreadable: share("unreadable", self.unreadable, drive)?,
                slow: share("slow", self.slow, drive)?,
                revolutions: self.revolutions()?,
                seed: self.seed.unwrap_or(1),
            },
            "power-off" => {
                let lost = match self.lost.as_deref() {
                    None | Some("some") => Lost::Some,
                    Some("all") => Lost::All,
                    Some(other) => return wrong("lost", "some or all", format!("{other:?}")),
                };
                What::PowerOff { lasts: self.duration("for", self.lasts.as_ref())?, lost }
            }
            "power-on" => What::PowerOn,
            "write-cache" => match self.on {
                Some(on) => What::WriteCache { on },
                None => return wrong("on", "true or false", "nothing"),
            },
            other => unreachable!("{other} is in the list of kinds"),
        };
        Ok(Fault { what, when: self.when()? })
    }

    fn when(&self) -> Result<When, TableError> {
        match (self.duration("after", self.after.as_ref())?, self.after_commands) {
            (None, None) => Ok(When::Now),
            (Some(time), None) => Ok(When::After(time)),
            (None, Some(commands)) => Ok(When::AfterCommands(commands)),
            (Some(_), Some(_)) => wrong("after", "after or after-commands", "both"),
        }
    }

    fn duration(&self, key: &'static str, text: Option<&String>) -> Result<Option<Dur>, TableError> {
        let Some(text) = text else { return Ok(None) };
        match time(text) {
            Some(time) => Ok(Some(time)),
            None => wrong(key, TIME, format!("{:?}", text.chars().take(40).collect::<String>())),
        }
    }

    fn revolutions(&self) -> Result<u32, TableError> {
        match self.revolutions.unwrap_or(REVOLUTIONS) {
            n if (1..=MAX_REVOLUTIONS).contains(&n) => Ok(n),
            n => wrong("revolutions", &format!("1 to {MAX_REVOLUTIONS}"), n),
        }
    }

    fn range(&self, drive: DriveSize) -> Result<Range, TableError> {
        let sector = u64::from(drive.sector_bytes);
        let sectors = |key: &'static str, size: &Size| {
            let parsed = match size {
                Size::Bytes(n) => Some(*n),
                Size::Text(text) => bytes(text),
            };
            match parsed {
                Some(n) if n.is_multiple_of(sector) => Ok(n / sector),
                Some(n) => wrong(key, &format!("whole sectors of {sector} bytes"), format!("{n} bytes")),
                None => wrong(key, "bytes, or a number and KiB, MiB, GiB, TiB, KB, MB, GB or TB", format!("{size:?}")),
            }
        };
        let Some(start) = &self.start else { return wrong("start", "the range's first byte", "nothing") };
        let lbn = sectors("start", start)?;
        let count = self.size.as_ref().map_or(Ok(1), |size| sectors("size", size))?;
        if lbn >= drive.sectors {
            return wrong("start", &format!("less than the drive's {} bytes", drive.sectors * sector), lbn * sector);
        }
        if count == 0 || count > drive.sectors - lbn {
            let most = (drive.sectors - lbn) * sector;
            return wrong("size", &format!("{sector} to {most} bytes, to the end of the drive"), count * sector);
        }
        Ok(Range { lbn, count })
    }
}

/// Returns a share of a drive's sectors, in sectors.
fn share(key: &'static str, share: Option<f64>, drive: DriveSize) -> Result<u64, TableError> {
    match share {
        None => Ok(0),
        Some(share) if (0.0..=1.0).contains(&share) => Ok((share * drive.sectors as f64).round() as u64),
        Some(share) => wrong(key, "a share of the sectors, from 0 to 1", share),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRIVE: DriveSize = DriveSize { sectors: 1 << 22, sector_bytes: 512 };

    fn faults(text: &str) -> Result<Vec<Fault>, String> {
        read(text, Path::new("f.toml"), DRIVE).map_err(|e| e.to_string())
    }

    #[test]
    fn each_kind_is_read() {
        let text = "[[fault]]\nkind = \"unreadable\"\nstart = \"1 GiB\"\nsize = 4096\nafter = \"10s\"\n\
                    [[fault]]\nkind = \"slow\"\nstart = 0\nrevolutions = 3\nafter-commands = 7\n\
                    [[fault]]\nkind = \"hang\"\nfor = \"1500 ms\"\n[[fault]]\nkind = \"failure\"\n\
                    [[fault]]\nkind = \"worn\"\nunreadable = 1e-6\nslow = 0.00001\nseed = 9\n\
                    [[fault]]\nkind = \"power-off\"\nfor = \"1m\"\nlost = \"all\"\n[[fault]]\nkind = \"power-on\"\n\
                    [[fault]]\nkind = \"write-cache\"\non = false\n";
        let found = faults(text).unwrap();
        let range = |lbn, count| Range { lbn, count };
        let expected = [
            (What::Unreadable(range(1 << 21, 8)), When::After(Dur(10_000_000_000))),
            (What::Slow { range: range(0, 1), revolutions: 3 }, When::AfterCommands(7)),
            (What::Hang { lasts: Dur(1_500_000_000) }, When::Now),
            (What::Failure, When::Now),
            (What::Worn { unreadable: 4, slow: 42, revolutions: 8, seed: 9 }, When::Now),
            (What::PowerOff { lasts: Some(Dur(60_000_000_000)), lost: Lost::All }, When::Now),
            (What::PowerOn, When::Now),
            (What::WriteCache { on: false }, When::Now),
        ];
        assert_eq!(found, expected.map(|(what, when)| Fault { what, when }));
        assert_eq!(faults(""), Ok(vec![]));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line_and_the_closest_word() {
        let unreadable = "[[fault]]\nkind = \"unreadable\"\nstart = 0\n";
        for (text, said) in [
            ("[[fault]]\nkind = \"slwo\"\n", "f.toml:2: kind: unknown kind `slwo`; the closest is `slow`"),
            ("[[fualt]]\n", "f.toml:1: unknown key `fualt`; the closest is `fault`"),
            (
                "\n[[fault]]\n\nkind = \"failure\"\naftr = \"1s\"\n",
                "f.toml:5: unknown key `aftr`; the closest is `after`",
            ),
            ("[[fault]]\nstart = 0\n", "f.toml:1: kind: expected one of unreadable, slow, hang, failure, worn,"),
            ("[[fault]]\nkind = \"unreadable\"\n", "f.toml:1: start: expected the range's first byte, found nothing"),
            ("[[fault]]\nkind = \"hang\"\nfor = \"1 day\"\n", "f.toml:3: for: expected a whole number and us, ms"),
            ("[[fault]]\nkind = \"failure\"\non = true\n", "f.toml:3: on: a fault of kind failure has no such key"),
            (&format!("{unreadable}size = 100\n"), "f.toml:4: size: expected whole sectors of 512 bytes, found 100"),
            (&format!("{unreadable}size = \"4 GiB\"\n"), "f.toml:4: size: expected 512 to 2147483648 bytes"),
            (&format!("{unreadable}{unreadable}size = 0\n"), "f.toml:7: size: expected 512 to"),
            (&format!("{unreadable}after = \"1s\"\nafter-commands = 1\n"), "f.toml:4: after: expected after or"),
            ("[[fault]]\nkind = \"slow\"\nstart = -1\n", "f.toml:3: "),
            ("[[fault]]\nkind = \"slow\"\nstart = 0\nrevolutions = 0\n", "f.toml:4: revolutions: expected 1 to 1000"),
            ("[[fault]]\nkind = \"worn\"\nslow = 1.5\n", "f.toml:3: slow: expected a share of the sectors"),
            ("[[fault]]\nkind = \"worn\"\nslow = nan\n", "f.toml:3: slow: expected a share of the sectors"),
            (
                "[[fault]]\nkind = \"power-off\"\nlost = \"few\"\n",
                "f.toml:3: lost: expected some or all, found \"few\"",
            ),
            ("fault = 1\n", "f.toml:1: "),
        ] {
            let e = faults(text).unwrap_err();
            assert!(e.starts_with(said) && e.lines().count() == 1, "{text}: {e}");
        }
        assert_eq!([time("99999999999999h"), time("367d"), time("5"), time("")], [None; 4]);
    }

    #[test]
    fn a_table_is_sent_as_it_was_given() {
        let table = FaultTable { kind: "hang".into(), lasts: Some("1s".into()), ..FaultTable::default() };
        let sent = serde_json::to_string(&table).unwrap();
        assert_eq!(sent, r#"{"kind":"hang","for":"1s"}"#);
        assert_eq!(serde_json::from_str::<FaultTable>(&sent).unwrap(), table);
    }
}
