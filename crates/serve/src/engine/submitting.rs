//! How a client's request becomes requests of the core: at its places on the disk, after reads of
//! what it overwrites and a backup needs, and in pieces.

use headtime_disk::{Kind, Time};
use headtime_sched::{Refused, Request, Scheduler, TaskRange};

use super::layouts::Arrival;
use super::messages::Submission;
use super::{Engine, streams};
use crate::clock::Timer;
use crate::device::{Device, Fault};

/// Bytes of a write whose blocks are preserved with one read, where request sizes are bounded.
const PRESERVED_AT_ONCE: u64 = 512 << 10;

impl<S: Scheduler, D: Device, T: Timer> Engine<S, D, T> {
    /// Submits a request of a client, or of the engine itself.
    pub(super) fn submit(&mut self, submission: Submission, now: Time) {
        let (mut submission, places) = match self.layouts.arrived(submission) {
            Arrival::Submit(submission, places) => (submission, places),
            Arrival::Held => return,
            Arrival::Refused(submission) => return submission.answer(Err(Fault::Io)),
        };
        if submission.kind == Kind::Write {
            places.iter().for_each(|place| self.preserve(place, submission.owner, now));
        }
        let in_turns = !self.promises() && self.core.core().is_some_and(|c| c.has_policy());
        let places = if in_turns { self.pieces.limited(places, self.sector_bytes) } else { places };
        match places[..] {
            [place] => {
                submission.lbn = place.lbn;
                self.put(submission, now);
            }
            _ => {
                let pieces = self.pieces.divide(submission, &places, self.sector_bytes);
                pieces.into_iter().for_each(|piece| self.put(piece, now));
            }
        }
    }

    /// Reads what is about to be overwritten, as far as it must be preserved.
    fn preserve(&mut self, place: &TaskRange, owner: u32, now: Time) {
        // With streams, request sizes are bounded, and a range of whole blocks may be longer than
        // the write.
        let most = match self.promises() {
            true => (PRESERVED_AT_ONCE / u64::from(self.sector_bytes)).max(1),
            false => place.count.max(1),
        };
        let mut lbn = place.lbn;
        while lbn < place.end() {
            let range = TaskRange { lbn, count: most.min(place.end() - lbn) };
            if let Some(old) = self.background.to_preserve(&range) {
                // Submitted first, the read completes first: the two overlap, and one is a write.
                self.put(Submission::preserve(&old, self.who_preserves(owner)), now);
            }
            lbn = range.end();
        }
    }

    /// Returns whether guarantees for streams are enabled.
    fn promises(&mut self) -> bool {
        self.core.core().is_some_and(|c| c.promised_from().is_some())
    }

    /// Returns the owner of a read of blocks that `owner` is about to overwrite. It is `owner`,
    /// which waits for the read; but a stream's reservation covers only its declared requests, not
    /// a backup's reads.
    fn who_preserves(&self, owner: u32) -> u32 {
        if self.core.standings().iter().any(|s| s.owner == owner) { streams::SERVER_OWNER } else { owner }
    }

    fn put(&mut self, submission: Submission, now: Time) {
        let (kind, lbn, count, fua, owner) =
            (submission.kind, submission.lbn, submission.count, submission.fua, submission.owner);
        let id = self.requests.insert(submission, self.core.idled(now));
        match self.core.submit(Request { id, kind, lbn, count, fua, sync: true, owner }, now) {
            Ok(()) => {
                if let Some(recorder) = &mut self.recorder {
                    recorder.submitted(id, self.requests.get(id), now);
                }
            }
            Err(Refused::TooLarge { .. }) => self.refused(id, Fault::TooLarge, now),
            // Both are checked before a request gets here; a client that bypasses the checks gets
            // an error.
            Err(Refused::Full { .. } | Refused::OutOfRange { .. }) => self.refused(id, Fault::Io, now),
            // Reasons that the core may have later: the client always gets an answer.
            Err(_) => self.refused(id, Fault::Io, now),
        }
    }
}
