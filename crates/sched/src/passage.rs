//! How sectors pass under the head when they are read from front to back, run by run.

use headtime_disk::internals::sectors_time;
use headtime_disk::{Head, Kind, Model, Time, TrackRun};

/// A track: cylinder and surface.
pub type Track = (u32, u16);

/// Read-ahead after a read, to the end of its track, before the drive begins another command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadsOn {
    /// LBNs that it reads.
    pub count: u32,
    /// Sectors per track there.
    pub spt: u32,
}

/// Blocks of one track that pass under the head without interruption.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunPassage {
    pub(crate) count: u32,
    pub(crate) arrived: Time,
    pub(crate) start: Time,
    sector_fx: u64,
    /// The head when all of them have passed.
    pub(crate) end: Head,
}

impl RunPassage {
    pub(crate) fn passed(&self, n: u32) -> Time {
        self.start + sectors_time(self.sector_fx, n as u64)
    }

    /// Returns how many blocks have passed whole by `t`, which is before its end.
    pub(crate) fn count_at(&self, t: Time) -> u32 {
        let ns = t.saturating_since(self.start).0 as u128;
        let n = ((ns << 32) / self.sector_fx.max(1) as u128).min(self.count as u128) as u32;
        if n > 0 && self.passed(n) > t { n - 1 } else { n }
    }
}

/// Returns the head when `from..end` have passed, read from front to back on every drive.
pub(crate) fn passed_in_order(model: &Model, head: &Head, from: u64, end: u64) -> Head {
    let (mut head, mut at) = (*head, from);
    while at < end {
        let want = u32::try_from(end - at).unwrap_or(u32::MAX);
        let Some(run) = model.geometry.run_at(at, want) else {
            break;
        };
        head = along(model, &head, &run).end;
        at += run.count as u64;
    }
    head
}

/// Simulates one run on one track. A prefetch goes from front to back on every drive.
pub(crate) fn along(model: &Model, head: &Head, run: &TrackRun) -> RunPassage {
    let mech = &model.mechanics;
    let (cylinder, surface) = (run.start.cylinder, run.start.surface);
    let moved = mech.reposition((head.cylinder, head.surface), (cylinder, surface), Kind::Read);
    let arrived = head.at + moved;
    let here = head.angle + mech.rotation.angle_after(moved);
    let start = arrived + mech.rotation.wait(here, run.start.angle);
    let at = start + mech.rotation.sectors(run.span as u64, run.start.spt);
    let end = Head { cylinder, surface, angle: head.angle_at(at, &mech.rotation), at };
    RunPassage { count: run.count, arrived, start, sector_fx: mech.rotation.sector_fx(run.start.spt), end }
}
