//! Merging: adjacent writes are sent to the drive as one command.
//!
//! A drive without a write cache writes each command by itself. Some need a little time from one
//! queued write to the next. The first sector of the next one has passed by then, and it waits a
//! turn; an order that takes another write instead overtakes this one, time after time. One command
//! for all that wait loses one turn in all. Drives that need no such time and have a queue, drives
//! with a write cache, which merge what they hold, and reads, for which drives read ahead, need
//! none.

use headtime_disk::command::Kind;

use crate::request::Request;

/// A merged command has at most this number of bytes: about what a block layer sends at once (1,280
/// KiB by default in Linux). A request that arrives meanwhile waits for a turn or two.
pub const MOST_BYTES: u64 = 1 << 20;

/// And at most this number of requests: 4 KiB each.
pub const MOST_REQUESTS: usize = 256;

/// Whether `next` can go behind `first` in one command.
#[inline]
pub fn can_merge(first: &Request, next: &Request) -> bool {
    let plain = |r: &Request| r.kind == Kind::Write && !r.fua;
    plain(first) && plain(next) && first.lbn + u64::from(first.count) == next.lbn
}
