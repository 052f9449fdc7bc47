//! Background work that goes as foreground: promoted tasks, and stragglers.
//!
//! What is left of a promoted task no longer waits for gaps; it joins the foreground a few pieces at a time (seed 002 section
//! 2.1, `fb_promote`). A *straggler* is a unit that nothing else would ever bring: it lies on two tracks of which one
//! passes just before the other, so that no gap is long enough, or it holds a sector known to be bad, which gaps and idle
//! time leave alone.

use headtime_disk::command::Kind;
use headtime_disk::model::Model;
use headtime_disk::time::{Dur, Time};

use super::subsystem::Freeblock;
use crate::tasks::wanted::Wanted;
use crate::tasks::{Range, Wants, Who};

/// Pieces of promoted tasks in the foreground at most, and sectors of one.
pub(super) const MOST_PROMOTED: usize = 4;
const PROMOTED_SECTORS: u64 = 256;

/// When nothing has been brought for so long, a straggler is fetched. It costs the foreground a turn each time.
pub(super) const PATIENCE: Dur = Dur::from_secs(2);

impl Freeblock {
    /// The next piece that is ready to be sent. `idle`: nobody in the foreground wants anything.
    pub fn next_promoted(&mut self, model: &Model, idle: bool, now: Time) -> Option<(Kind, Range)> {
        if let Some(range) = self.promoted_pending.take() {
            if self.tasks.granted(range) {
                self.tasks.picked(range);
                return Some((Kind::Write, range));
            }
            self.tasks.release(Kind::Write, range, now);
            return None;
        }
        if self.promoted.len() >= MOST_PROMOTED || self.dead {
            return None;
        }
        let promoted = self.tasks.next_promoted(PROMOTED_SECTORS).map(|(_, kind, range)| (kind, range));
        let (kind, range) = promoted.or_else(|| self.straggler(model, idle, now))?;
        if kind == Kind::Read {
            return Some((kind, range));
        }
        match self.tasks.ask(range) {
            true => self.promoted_pending = Some(range),
            false => self.tasks.release(kind, range, now),
        }
        None
    }

    /// The piece just handed out is the request in this slot.
    pub fn promoted_is(&mut self, slot: u32) {
        self.promoted.push(slot);
        if let Some(idling) = &mut self.idling {
            idling.detector().arrived();
        }
    }

    /// Whether the request in this slot, which has finished, was such a piece.
    pub fn is_promoted(&mut self, slot: u32) -> bool {
        let at = self.promoted.iter().position(|p| *p == slot);
        at.map(|i| self.promoted.swap_remove(i)).is_some()
    }

    /// The same for a piece that has not been tried. It is no request any more then.
    pub fn promoted_failed(&mut self, slot: u32, now: Time) -> bool {
        let promoted = self.is_promoted(slot);
        if promoted {
            self.finished(now);
        }
        promoted
    }

    /// The units that begin where the first wanted sector is. While the drive surprises only an idle one is asked: nothing has
    /// to be predicted for that.
    fn straggler(&mut self, model: &Model, idle: bool, now: Time) -> Option<(Kind, Range)> {
        if now.saturating_since(self.brought) < PATIENCE || !(self.may_fill() || idle && self.wants_something()) {
            return None;
        }
        self.brought = now;
        let cell = self.regions.next_up(Who::Anyone, 0, self.regions.all())?;
        let all = self.regions.cells().lbns(&model.geometry, cell)?;
        let unit = u64::from(self.regions.widest_unit());
        let (low, high) = (all.lbn.saturating_sub(unit), (all.end() + unit).min(model.geometry.capacity()));
        let mut wanted = Wanted::new();
        for kind in [Kind::Read, Kind::Write] {
            wanted.reset(low, (high - low) as u32);
            self.tasks.wanted(Who::Anyone, kind, &mut wanted);
            if let Some(first) = wanted.next(low) {
                // Only units that end in time: what is cut off would not be delivered, and could not be written.
                wanted.reset(first, unit.min(high - first) as u32);
                self.tasks.wanted(Who::Anyone, kind, &mut wanted);
                let end = wanted.next_unwanted(first);
                return (end > first).then_some((kind, Range { lbn: first, count: end - first }));
            }
        }
        None
    }
}
