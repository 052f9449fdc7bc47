//! Reads that wait in the drive and continue the one before: the drive goes on reading for them
//! without a break.

use headtime_disk::mechanics::Head;
use headtime_disk::model::{Model, Place};
use headtime_disk::profile::Prefetch;
use headtime_disk::time::{Dur, Time};

use super::ahead::Ahead;
use super::{Behind, Cached, Found, Hit, Passed, begin_ahead};
use crate::classify::CLOSE;
use crate::flight::{Flight, Served};
use crate::request::{Prediction, Surprise};

impl Cached {
    /// Whether a read of `lbn` goes on where the last one ended.
    #[inline]
    pub fn continues(&self, lbn: u64) -> bool {
        lbn == self.last_read_end
    }

    /// One past the last LBN of the last read.
    #[inline]
    pub fn read_end(&self) -> u64 {
        self.last_read_end
    }

    /// Whether the drive may read on behind the last read.
    #[inline]
    pub fn reads_behind(&self, model: &Model) -> bool {
        model.cache.prefetch != Prefetch::None && (self.behind.is_some() || self.ahead.is_some())
    }

    /// Whether the cache has this block, and moves nothing for it.
    pub fn holds_block(&mut self, model: &Model, lbn: u64) -> bool {
        self.segments.look_up(&model.geometry, lbn, lbn.saturating_add(1)) != Found::Nothing
    }

    /// A read of `lbn..end` is looked at. If it waits until the drive is done with what was sent
    /// before it, `waits` is the head then, and if the read continues what the media brings until
    /// then, the drive goes on reading for it without a break (`headtime_disk::drive`).
    #[inline]
    pub fn go_on(&mut self, model: &Model, lbn: u64, end: u64, waits: Option<&Head>) {
        self.goes_on = false;
        let Some(head) = waits.filter(|_| model.cache.prefetch != Prefetch::None) else { return };
        match (self.behind, self.ahead) {
            (Some(behind), _) => {
                self.goes_on = self.segments.goes_on_at(&model.geometry, behind.segment, lbn);
                if self.goes_on {
                    let Behind { segment, from, .. } = behind;
                    let nothing = Ahead { segment, from, limit: from, known_to: 0, head: *head };
                    self.ahead = Some(begin_ahead(model, &behind, head).unwrap_or(nothing));
                    self.behind = None;
                    self.segments.filling(segment);
                }
            }
            (None, Some(ahead)) => {
                // The read before this one is in the buffer then, though it be by a nanosecond.
                let stand = ahead.stand(model, head.at, model.cache.stop_in_sector);
                let passed = if stand.over { ahead.limit } else { stand.reached };
                let passed = passed.max(self.last_read_end.min(ahead.limit));
                self.segments.fill_to(ahead.segment, passed.max(stand.reached));
                self.goes_on = self.segments.goes_on_at(&model.geometry, ahead.segment, lbn);
                if self.goes_on {
                    self.ahead = Some(Ahead { from: passed, head: *head, ..ahead });
                }
            }
            (None, None) => {}
        }
        if let Some(ahead) = self.ahead.as_mut().filter(|a| self.goes_on && a.limit < end) {
            (ahead.limit, ahead.known_to) = (end, 0);
        }
    }

    /// The drive goes on reading for a read of `place`, from where `ahead` begins, and reads ahead
    /// behind it as far as it was going to. `held` is up to where the segment holds it already.
    pub(super) fn went_on_for(&mut self, command: u64, place: &Place, ahead: &Ahead, held: u64) -> Hit {
        let (lbn, end) = (place.lbn, place.lbn + place.count as u64);
        let Ahead { segment, limit, known_to, .. } = *ahead;
        // What passed before the read is in the buffer, and still passes again where the drive
        // reads on.
        let from = if held < end { end } else { ahead.from };
        self.segments.fill_to(segment, if from == limit { from.max(known_to) } else { from });
        let passed = Passed { asked: lbn, end, before: 0, whole: None };
        (self.ahead, self.stand) = (None, None);
        self.behind = Some(Behind { command, segment, passed, from, sequential: true, on: Some((limit, known_to)) });
        Hit::GoesOn { from: if held < end { ahead.from } else { end } }
    }

    /// Whether a sequential read was served in another way than predicted, and it is known in
    /// which. Either a prefetch brought it: it completed as soon as its blocks had passed under a
    /// head that was already there. Or the prefetch had to restart for it: it completed a turn
    /// later. Without this rule one wrong prediction would cause the next, up to the end of the
    /// file. If the prefetch had not arrived yet when the read completed, the read was a plain
    /// cache hit. The prefetch runs on while the drive decodes the command, which it took up at
    /// `taken_up`.
    pub fn went_on(&self, flight: &Flight, found: &Prediction, taken_up: Time) -> bool {
        match flight.served {
            Served::Running => return found.surprise == Surprise::ExtraTurn,
            // It came from the media behind the one before, whenever that was.
            Served::GoesOn => return found.surprise != Surprise::None && found.observed > CLOSE,
            _ => {}
        }
        let passes = flight.place.map_or(Dur::ZERO, |p| p.transfer);
        let passed = (flight.begins + found.observed).saturating_since(taken_up);
        let early = found.observed + CLOSE < found.predicted && passed.0.abs_diff(passes.0) <= 2 * CLOSE.0;
        let on_its_way = flight.delay > CLOSE && found.observed == Dur::ZERO;
        flight.sequential && early && !on_its_way && found.surprise != Surprise::None
    }
}
