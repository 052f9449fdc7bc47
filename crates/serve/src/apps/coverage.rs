//! What a background application has read, and where on the disk its findings are.

use serde::Serialize;

use super::progress::Progress;
use super::ranges::Ranges;
use crate::control::v1::InfoReply;

/// The location of a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// First sector of the disk.
    pub lbn: u64,
    /// Sectors.
    pub count: u64,
    /// Bytes.
    pub bytes: u64,
    /// The export that contains it, if any.
    pub export: Option<String>,
    /// Byte offset in the export, or else on the disk.
    pub offset: u64,
}

/// Returns where ranges are, split at export boundaries; of overlapping exports the first counts.
pub fn places(info: &InfoReply, ranges: &Ranges) -> Vec<Place> {
    let sector = u64::from(info.sector_bytes);
    let mut all = Vec::new();
    for r in ranges.iter() {
        let mut lbn = r.lbn;
        while lbn < r.end() {
            let holding = info.exports.iter().find(|e| e.first <= lbn && lbn - e.first < e.sectors);
            let ends = info.exports.iter().flat_map(|e| [e.first, e.first + e.sectors]);
            let end = ends.filter(|&end| end > lbn).fold(r.end(), u64::min);
            let from = holding.map_or(0, |e| e.first);
            all.push(Place {
                lbn,
                count: end - lbn,
                bytes: (end - lbn) * sector,
                export: holding.map(|e| e.name.clone()),
                offset: (lbn - from) * sector,
            });
            lbn = end;
        }
    }
    all
}

/// What was read, in reports.
#[derive(Clone, Debug, Serialize)]
pub struct Coverage {
    /// The disk.
    pub disk: String,
    /// The export or the whole disk.
    pub what: String,
    /// Whether all of it was read.
    pub complete: bool,
    /// Bytes read, or found unreadable.
    pub bytes: u64,
    /// Duration in seconds, over all runs.
    pub seconds: f64,
    /// Bytes that were promoted to foreground work to keep the floor.
    pub promoted_bytes: u64,
    /// Unreadable ranges.
    pub unreadable: Vec<Place>,
    /// Their size in bytes.
    pub unreadable_bytes: u64,
}

impl Coverage {
    /// Returns what was read so far.
    pub fn new(info: &InfoReply, progress: &Progress) -> Coverage {
        let (notes, unreadable) = (&progress.notes, progress.unreadable_ranges());
        Coverage {
            disk: info.disk.clone(),
            what: progress.identity().what.clone(),
            complete: progress.is_complete(),
            bytes: progress.bytes().0,
            seconds: notes.milliseconds as f64 / 1e3,
            promoted_bytes: notes.promoted_bytes,
            unreadable: places(info, unreadable),
            unreadable_bytes: unreadable.sectors() * progress.sector_bytes(),
        }
    }

    /// Returns the mean rate, MB/s.
    pub fn mb_s(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.seconds.max(1e-3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::v1::Export;
    use headtime_sched::TaskRange;

    #[test]
    fn a_position_is_reported_as_an_offset_of_the_export() {
        let export =
            |name: &str, first, sectors| Export { name: name.into(), first, sectors, weight: 1, ..Export::default() };
        let info = InfoReply {
            sector_bytes: 512,
            sectors: 100,
            exports: vec![export("a", 10, 10), export("b", 20, 30)],
            ..InfoReply::default()
        };
        let found: Ranges = [TaskRange { lbn: 8, count: 14 }, TaskRange { lbn: 90, count: 1 }].into_iter().collect();
        let told: Vec<_> = places(&info, &found)
            .into_iter()
            .map(|p| (p.lbn, p.count, p.export.unwrap_or_default(), p.offset))
            .collect();
        let at = |lbn, count, name: &str, offset| (lbn, count, name.to_string(), offset);
        assert_eq!(told, [at(8, 2, "", 4096), at(10, 10, "a", 0), at(20, 2, "b", 0), at(90, 1, "", 46080)]);
    }
}
