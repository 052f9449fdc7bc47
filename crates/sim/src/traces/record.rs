//! Recorded requests, and the parts of which the parsers of all formats make them.

use headtime_disk::{Dur, Kind, Time};

use super::text::{Bad, sectors};

/// A recorded request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Arrival time from the file's first request; `None` where the trace has only gaps.
    pub arrival: Option<Time>,
    /// Gap before or after it, where the trace has gaps between a completion and the next arrival.
    pub gap: Option<Gap>,
    /// Read, write or flush.
    pub kind: Kind,
    /// Whether it is a write with FUA.
    pub fua: bool,
    /// First 512-byte sector, whatever the drive's sector size. Zero for a flush.
    pub lbn: u64,
    /// Number of 512-byte sectors; at least 1, but zero for a flush.
    pub count: u32,
    /// The device's number in the trace (files of an iolog: in order of appearance from 0).
    pub device: u32,
    /// Originator: a process, host or volume if the trace has it, otherwise the device.
    pub owner: u32,
    /// Response time measured in the trace.
    pub response: Option<Dur>,
    /// Its line, from 1.
    pub line: u64,
}

/// A gap between a completion and an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gap {
    /// From the completion of the previous request to this arrival.
    Before(Dur),
    /// From this completion to the next arrival.
    After(Dur),
}

impl Record {
    /// Makes the record of a line: kind, first sector and number of sectors. Nothing else is known
    /// of it; parsers add what their format has.
    pub(super) fn new(line: u64, kind: Kind, (lbn, count): (u64, u32)) -> Record {
        Record { arrival: None, gap: None, kind, fua: false, lbn, count, device: 0, owner: 0, response: None, line }
    }

    /// Sets the time of arrival.
    pub(super) fn at(self, arrival: Time) -> Record {
        Record { arrival: Some(arrival), ..self }
    }

    /// Sets the device, which is also the owner unless the format has one ([`Record::by`]).
    pub(super) fn on(self, device: u32) -> Record {
        Record { device, owner: device, ..self }
    }

    /// Sets the owner.
    pub(super) fn by(self, owner: u32) -> Record {
        Record { owner, ..self }
    }

    /// Sets the response time, if it is known.
    pub(super) fn answered(self, response: Option<Dur>) -> Record {
        Record { response, ..self }
    }
}

/// Place of a request without sectors: a flush.
pub(super) const NOWHERE: (u64, u32) = (0, 0);

/// Checks that a range of sectors is not empty and cannot overflow, because traces are untrusted
/// input.
pub(super) fn range(lbn: u64, count: u64) -> Result<(u64, u32), Bad> {
    let bad = |found: String| Bad { expected: "1 to 2^32-1 sectors from a sector below 2^54".into(), found };
    let count = match u32::try_from(count) {
        Ok(0) => return Err(bad("a request for 0 sectors".to_owned())),
        Ok(c) => c,
        Err(_) => return Err(bad(format!("a request for {count} sectors"))),
    };
    if lbn > u64::MAX / 1024 {
        return Err(bad(format!("sector {lbn}")));
    }
    Ok((lbn, count))
}

/// Converts a range of bytes to sectors, and checks it as [`range`] does.
pub(super) fn byte_range(offset: u64, size: u64) -> Result<(u64, u32), Bad> {
    range(sectors(offset, "an offset of whole sectors")?, sectors(size, "a size of whole sectors")?)
}

/// Conversion of an absolute clock to time since its first instant.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Since {
    first: Option<u64>,
}

impl Since {
    /// Converts `at`, in units of `per` nanoseconds; instants before the first count as the first.
    pub(super) fn first(&mut self, at: u64, per: u64) -> Time {
        let first = *self.first.get_or_insert(at);
        Time(at.saturating_sub(first).saturating_mul(per))
    }
}

/// Numbers for names in order of appearance; few names are expected.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    seen: Vec<Vec<u8>>,
}

impl Names {
    pub(super) fn number(&mut self, name: &[u8]) -> u32 {
        let at = self.seen.iter().position(|s| s == name);
        let at = at.unwrap_or_else(|| {
            self.seen.push(name.to_vec());
            self.seen.len() - 1
        });
        u32::try_from(at).unwrap_or(u32::MAX)
    }
}
