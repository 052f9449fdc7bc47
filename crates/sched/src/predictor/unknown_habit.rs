//! A drive that reads a track to its end after a second read there
//! (`same_track_prefetch_delays`), although its profile says that it does not.
//!
//! The command behind such a pair of reads then begins later than predicted, and where its latency
//! is shorter than that it is a revolution late. FILL makes many such pairs, and fills latencies:
//! on a Cheetah 36ES whose profile lacks the habit the foreground loses 4 to 7% of its requests a
//! second, and the arm appears to be slow, which costs most of the free bandwidth. The gate does
//! not see it: too few of the predictions fail. So completions are compared with what the habit
//! would do, and it is assumed once it explains them.
//!
//! The reverse, a profile with the habit and a drive without, costs the foreground 0.5% at most, so
//! the habit is not unlearned.

use headtime_disk::{Dur, Model};

use crate::classify::CLOSE;
use crate::flight::{Flight, Known};
use crate::overheads::between;
use crate::request::{Prediction, Surprise};

/// Informative completions that are considered.
const SEEN: u32 = 16;
/// Of these, those that must be late as the habit predicts. With the habit nearly all are. Without
/// it, turns late are some per cent, on a drive whose moves err by milliseconds a third.
const LATE: u32 = 14;

/// Evidence of the habit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UnknownHabit {
    /// How long the drive would read on after the last completed command.
    reads_on: Option<Dur>,
    /// Whether each of the last completions was late, where the habit would make it so; the latest
    /// in the lowest bit.
    late: u16,
    shown: bool,
}

impl UnknownHabit {
    /// Returns whether the habit was shown.
    #[inline]
    pub(super) fn is_shown(&self) -> bool {
        self.shown
    }

    /// Records a completion in order. `before`: the state after the preceding command.
    pub(super) fn completed(&mut self, model: &Model, before: &Known, flight: &Flight, p: Option<&Prediction>) {
        let rotation = &model.mechanics.rotation;
        let reads_on = flight.might_read_on.map(|on| rotation.sectors(u64::from(on.count), on.spt));
        let Some(busy) = std::mem::replace(&mut self.reads_on, reads_on) else { return };
        let Some(p) = p.filter(|p| !p.cached) else { return };
        let free_at = before.free_at + busy;
        let begins = free_at + between(model, before.kind, flight.kind);
        // Otherwise the habit would not delay it, or the delay would vanish in its latency.
        if flight.sent >= free_at || begins <= flight.begins + p.latency + CLOSE {
            return;
        }
        let late = p.error_ns() > 0 && matches!(p.surprise, Surprise::ExtraTurn | Surprise::Other);
        self.late = self.late << 1 | u16::from(late);
        self.shown |= self.late.count_ones() >= LATE;
    }
}

const _: () = assert!(SEEN == u16::BITS);
