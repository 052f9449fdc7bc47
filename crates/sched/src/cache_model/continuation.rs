//! Queued reads that continue the read before: the drive continues reading for them without a
//! break.

use headtime_disk::profile::Prefetch;
use headtime_disk::{Dur, Head, Model, Place, Time};

use super::ahead::Ahead;
use super::{Behind, CacheModel, Found, Hit, Passed, begin_ahead};
use crate::classify::CLOSE;
use crate::flight::{Flight, Served};
use crate::request::{Prediction, Surprise};

impl CacheModel {
    /// Returns whether a read of `lbn` continues the last one.
    #[inline]
    pub(crate) fn continues(&self, lbn: u64) -> bool {
        lbn == self.last_read_end
    }

    /// Returns one past the last LBN of the last read.
    #[inline]
    pub(crate) fn read_end(&self) -> u64 {
        self.last_read_end
    }

    /// Returns whether the drive may read ahead after the last read.
    #[inline]
    pub(crate) fn reads_behind(&self, model: &Model) -> bool {
        model.cache.prefetch != Prefetch::None && (self.behind.is_some() || self.ahead.is_some())
    }

    /// Returns whether the cache holds this block, so that the head does not move for it.
    pub(crate) fn holds_block(&mut self, model: &Model, lbn: u64) -> bool {
        self.segments.look_up(&model.geometry, lbn, lbn.saturating_add(1)) != Found::Nothing
    }

    /// Considers a read of `lbn..end`. If it waits until the drive has completed what was sent
    /// before it, `waits` is the head at that time, and if the read continues what the media brings
    /// until then, the drive continues reading for it without a break ([`headtime_disk::Drive`]).
    #[inline]
    pub(crate) fn go_on(&mut self, model: &Model, lbn: u64, end: u64, waits: Option<&Head>) {
        self.continues = false;
        let Some(head) = waits.filter(|_| model.cache.prefetch != Prefetch::None) else { return };
        match (self.behind, self.ahead) {
            (Some(behind), _) => {
                self.continues = self.segments.continues_at(&model.geometry, behind.segment, lbn);
                if self.continues {
                    let Behind { segment, from, .. } = behind;
                    let nothing = Ahead { segment, from, limit: from, known_to: 0, head: *head };
                    self.ahead = Some(begin_ahead(model, &behind, head).unwrap_or(nothing));
                    self.behind = None;
                    self.segments.filling(segment);
                }
            }
            (None, Some(ahead)) => {
                // The read before this one is in the buffer at that time, if only by a nanosecond.
                let state = ahead.state_at(model, head.at, model.cache.stop_in_sector);
                let passed = if state.over { ahead.limit } else { state.reached };
                let passed = passed.max(self.last_read_end.min(ahead.limit));
                self.segments.fill_to(ahead.segment, passed.max(state.reached));
                self.continues = self.segments.continues_at(&model.geometry, ahead.segment, lbn);
                if self.continues {
                    self.ahead = Some(Ahead { from: passed, head: *head, ..ahead });
                }
            }
            (None, None) => {}
        }
        if let Some(ahead) = self.ahead.as_mut().filter(|a| self.continues && a.limit < end) {
            (ahead.limit, ahead.known_to) = (end, 0);
        }
    }

    /// Continues reading for a read of `place`, from where `ahead` begins, and reads ahead after it
    /// as far as was planned. `held`: one past the last LBN that the segment holds already.
    pub(super) fn went_on_for(&mut self, command: u64, place: &Place, ahead: &Ahead, held: u64) -> Hit {
        let (lbn, end) = (place.lbn, place.lbn + place.count as u64);
        let Ahead { segment, limit, known_to, .. } = *ahead;
        // What passed before the read is in the buffer, and passes again while the drive continues
        // reading.
        let from = if held < end { end } else { ahead.from };
        self.segments.fill_to(segment, if from == limit { from.max(known_to) } else { from });
        let passed = Passed { asked: lbn, end, before: 0, whole: None };
        (self.ahead, self.prefetch) = (None, None);
        self.behind = Some(Behind { command, segment, passed, from, sequential: true, on: Some((limit, known_to)) });
        Hit::GoesOn { from: if held < end { ahead.from } else { end } }
    }

    /// Returns whether a sequential read was served differently from the prediction, in a known
    /// way. Either a prefetch brought it: it completed as soon as its blocks had passed under a
    /// head that was already there. Or the prefetch had to restart for it: it completed a
    /// revolution later. Without this rule one wrong prediction would cause the next, up to the end
    /// of the file. If the prefetch had not arrived yet when the read completed, the read was a
    /// plain cache hit. The prefetch continues while the drive decodes the command, which it began
    /// at `taken_up`.
    pub(crate) fn kept_reading(&self, flight: &Flight, found: &Prediction, taken_up: Time) -> bool {
        match flight.served {
            Served::Running => return found.surprise == Surprise::ExtraTurn,
            // It came from the media after the read before, at whatever time.
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
