//! Merging: adjacent writes are sent to the drive as one command.
//!
//! A drive without a write cache writes each command by itself. Some need a little time from one
//! queued write to the next. The first sector of the next one has passed by then, and it waits a
//! revolution; an order that picks another write instead bypasses this one repeatedly. One command
//! for all that wait loses one revolution in total. Merging is unnecessary for drives that need no
//! such time and have a queue, for drives with a write cache, which merge what they hold, and for
//! reads, for which drives read ahead.

use headtime_disk::Kind;

use crate::request::Request;

/// Maximum bytes of a merged command: about what a block layer sends at once (1,280 KiB by default
/// in Linux). A request that arrives during it waits for a revolution or two.
pub(crate) const MAX_BYTES: u64 = 1 << 20;

/// Maximum requests of a merged command: 4 KiB each.
pub const MAX_REQUESTS: usize = 256;

/// Returns whether `next` can follow `first` in one command.
#[inline]
pub(crate) fn can_merge(first: &Request, next: &Request) -> bool {
    let plain = |r: &Request| r.kind == Kind::Write && !r.fua;
    plain(first) && plain(next) && first.lbn + u64::from(first.count) == next.lbn
}
