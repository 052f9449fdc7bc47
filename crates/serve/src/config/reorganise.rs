//! Reorganisation of an export: the table `[export.reorganise]`.
//!
//! ```toml
//! [export.reorganise]
//! start = "465 GiB"    # of the reserve, a range of the disk within this export or in none
//! size = "1 GiB"       # of the reserve
//! unit = "128 KiB"     # what is moved at a time, the default
//! ```

use headtime_sched::TaskRange;
use serde::Deserialize;

use super::Config;
use super::size::{SIZE, Size};
use crate::layout::{Area, BLOCK_BYTES, UNIT_BYTES, USUAL_UNIT_BYTES};
use crate::net::exports::ExportSpec;

/// The table `[export.reorganise]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ReorganiseTable {
    start: Size,
    size: Size,
    #[serde(default = "usual_unit")]
    unit: Size,
}

fn usual_unit() -> Size {
    Size::Bytes(USUAL_UNIT_BYTES)
}

impl ReorganiseTable {
    /// Checks the sizes; returns the key of one that is malformed, the valid sizes and the value
    /// found.
    pub(super) fn odd_size(&self) -> Option<(&'static str, String, String)> {
        for (key, size) in [("start", &self.start), ("size", &self.size), ("unit", &self.unit)] {
            if let Size::Text(text) = size
                && size.bytes().is_none()
            {
                return Some((key, SIZE.into(), format!("{text:?}")));
            }
        }
        let unit = self.unit.bytes().unwrap_or_default();
        let kib = |bytes: &u64| bytes >> 10;
        let expected = format!("{} to {} KiB", kib(UNIT_BYTES.start()), kib(UNIT_BYTES.end()));
        (!UNIT_BYTES.contains(&unit)).then(|| ("unit", expected, format!("{unit} bytes")))
    }
}

impl ReorganiseTable {
    /// Returns the sectors of the reserve if it is within an export of these sectors; its clients
    /// do not see them.
    pub(super) fn within(&self, export: &TaskRange, sector_bytes: u64) -> Option<u64> {
        let sectors = |size: &Size| size.bytes().expect("checked when it was read") / sector_bytes;
        let start = sectors(&self.start);
        let ends = start.saturating_add(sectors(&self.size)) < export.lbn.saturating_add(export.count);
        (export.lbn < start && ends).then(|| sectors(&self.size))
    }
}

impl Config {
    /// Returns the reorganised exports, by number. `specs`: all exports of the disk.
    ///
    /// # Errors
    /// A reserve is not on the disk, or overlaps an export or another reserve, or is too small.
    pub fn areas(&self, specs: &[ExportSpec], sectors: u64, sector_bytes: u32) -> Result<Vec<(u32, Area)>, String> {
        let mut areas: Vec<(u32, Area)> = Vec::new();
        for (number, (export, spec)) in self.exports.iter().zip(specs).enumerate() {
            let Some(table) = &export.reorganise else { continue };
            let wrong = |what: String| format!("export \"{}\", reorganise: {what}", spec.name);
            let whole = |key: &str, size: &Size| {
                let bytes = size.bytes().expect("checked when it was read");
                // A sector is no longer than a block, or a whole number of them.
                let whole = BLOCK_BYTES.max(u64::from(sector_bytes));
                match bytes % whole {
                    0 => Ok(bytes / u64::from(sector_bytes)),
                    _ => Err(wrong(format!("{key}: expected a multiple of {whole} bytes, found {bytes}"))),
                }
            };
            let reserve = TaskRange { lbn: whole("start", &table.start)?, count: whole("size", &table.size)? };
            if reserve.lbn.checked_add(reserve.count).is_none_or(|end| end > sectors) {
                let TaskRange { lbn, count } = reserve;
                return Err(wrong(format!("expected a reserve on a disk of {sectors} sectors, found {lbn}+{count}")));
            }
            let part = TaskRange { lbn: spec.first, count: spec.sectors };
            let area = Area { part, reserve, unit: whole("unit", &table.unit)?, sector_bytes };
            let span = area.span();
            // If it is not wholly within the export, clients see all of that.
            let bytes = export.size.as_ref().map(|size| size.bytes().expect("checked when it was read"));
            let configured = bytes.map_or(sectors.saturating_sub(spec.first), |bytes| bytes / u64::from(sector_bytes));
            let is_within = area.is_within() && span.count == configured;
            if is_within && span.end() > sectors {
                return Err(wrong(format!(
                    "expected an export that ends before sector {sectors}, found {}",
                    span.end()
                )));
            }
            let is_other = |(other, s): &(usize, &ExportSpec)| {
                let is_own = *other == number && is_within;
                !is_own && reserve.overlaps(&TaskRange { lbn: s.first, count: s.sectors })
            };
            if let Some((_, other)) = (0..).zip(specs).find(is_other) {
                let name = &other.name;
                let what = format!("expected a reserve within its export or in none, found one in export \"{name}\"");
                return Err(wrong(what));
            }
            if areas.iter().any(|(_, other)| other.reserve.overlaps(&reserve) || other.span().overlaps(&reserve)) {
                return Err(wrong("expected a reserve of its own, found one that overlaps another export's".into()));
            }
            // Read-only exports may overlap.
            let shared = (0..)
                .zip(specs)
                .find(|(other, s)| *other != number && span.overlaps(&TaskRange { lbn: s.first, count: s.sectors }));
            if let Some((_, other)) = shared {
                let name = &other.name;
                let what = format!("expected an export that overlaps no other, found that it overlaps \"{name}\"");
                return Err(wrong(what));
            }
            area.map().map_err(|why| wrong(why.to_string()))?;
            areas.push((number as u32, area));
        }
        Ok(areas)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn read(keys: &str) -> Result<Config, String> {
        let text = format!(
            "[disk]\ndrive = \"barracuda-st3500630\"\nbacking = \"d\"\n[listen]\n[[export]]\nname = \"a\"\n\
             size = \"1 GiB\"\n{keys}\n[[export]]\nname = \"b\"\nstart = \"2 GiB\"\nsize = \"1 GiB\"\n"
        );
        Config::read(&text, Path::new("serve.toml")).map_err(|e| e.to_string())
    }

    fn areas(keys: &str) -> Result<Vec<(u32, Area)>, String> {
        let config = read(keys).expect("it is well formed");
        let sectors = 8 << 21;
        config.areas(&config.exports(sectors, 512).unwrap(), sectors, 512)
    }

    fn reserve(start: &str, size: &str) -> String {
        format!("[export.reorganise]\nstart = \"{start}\"\nsize = \"{size}\"\n")
    }

    #[test]
    fn a_reserve_is_a_range_of_the_disk_that_no_export_has() {
        let found = areas(&reserve("1 GiB", "1 GiB")).unwrap();
        let [(0, area)] = found[..] else { panic!("{found:?}") };
        assert_eq!((area.part, area.unit), (TaskRange { lbn: 0, count: 2 << 20 }, 256));
        assert_eq!(area.reserve, TaskRange { lbn: 2 << 20, count: 2 << 20 });
        assert_eq!(areas("").unwrap(), []);
        for (start, size, what) in [
            ("1 GiB", "1025 MiB", "in export \"b\""),
            ("1023 MiB", "1 GiB", "in export \"a\""),
            ("7 GiB", "2 GiB", "on a disk"),
            ("1 GiB", "4 KiB", "one unit or more"),
            ("1 GiB", "1 KiB", "size: expected a multiple of 4096 bytes, found 1024"),
        ] {
            let why = areas(&reserve(start, size)).unwrap_err();
            assert!(why.starts_with("export \"a\", reorganise: ") && why.contains(what), "{why}");
        }
    }

    #[test]
    fn a_reserve_within_its_export_is_none_of_what_clients_see() {
        let found = areas(&reserve("512 MiB", "256 MiB")).unwrap();
        let [(0, area)] = found[..] else { panic!("{found:?}") };
        assert_eq!(area.part, TaskRange { lbn: 0, count: 3 << 19 });
        assert_eq!((area.is_within(), area.span()), (true, TaskRange { lbn: 0, count: 2 << 20 }));
        // Up to the end of the export: it is one behind what is left. Of units that it divides.
        for (start, size, what) in [
            ("512 MiB", "512 MiB", "in export \"a\""),
            ("524292 KiB", "256 MiB", "between two units"),
            ("2560 MiB", "256 MiB", "in export \"b\""),
        ] {
            let why = areas(&reserve(start, size)).unwrap_err();
            assert!(why.contains(what), "{why}");
        }
    }

    #[test]
    fn malformed_values_are_refused() {
        for (keys, what) in [
            ("[export.reorganise]\nstart = \"x\"\nsize = 5\n".into(), "reorganise.start"),
            (reserve("1 GiB", "1 GiB") + "unit = \"1 KiB\"\n", "expected 64 to 4096 KiB, found 1024 bytes"),
            (format!("write-cache = \"1 MiB\"\n{}", reserve("1 GiB", "1 GiB")), "without a write cache"),
            ("[export.reorganise]\nstart = 5\n".into(), "size"),
        ] {
            let why = read(&keys).unwrap_err();
            assert!(why.contains(what), "{why}");
        }
    }
}
