//! A completed command, from which its requests and tasks take their data.

use bytes::Bytes;
use headtime_sched::TaskRange;

use crate::device::Fault;

/// A completed command.
#[derive(Debug)]
pub(crate) struct CompletedCommand {
    /// Its first sector.
    pub(super) lbn: u64,
    /// The data of its sectors; empty unless it was a read.
    pub(super) data: Bytes,
    /// Why it failed; `None` if it succeeded.
    pub(super) fault: Option<Fault>,
}

impl CompletedCommand {
    /// Returns a copy of a range's data, so that unread data does not keep the whole command's
    /// memory.
    pub(crate) fn copy(&self, range: &TaskRange, sector_bytes: u32) -> Bytes {
        Bytes::copy_from_slice(&self.sectors(range.lbn, range.count, sector_bytes))
    }

    /// Returns the data of these sectors, which the command covered.
    pub(crate) fn sectors(&self, lbn: u64, count: u64, sector_bytes: u32) -> Bytes {
        let from = (lbn - self.lbn) * u64::from(sector_bytes);
        let len = count * u64::from(sector_bytes);
        self.data.slice(from as usize..(from + len) as usize)
    }
}
