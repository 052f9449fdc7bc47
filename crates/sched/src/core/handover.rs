//! Handover: while the drive's own write cache may hold data, the drive orders commands itself.
//!
//! A drive that keeps writes in its volatile cache writes them to the media when it sees fit, and does not report it. Where its head is
//! cannot be known then, and two commands selected outside are worse than all of them selected inside. So while data may be
//! in the cache the drive is given as many commands as its queue takes, as it would have without a scheduler in front of it. Once nothing was
//! written for a while, or a flush has emptied the cache, selection outside resumes.
//!
//! Streams with guarantees and ADMIT's shares exclude this: both rest on the selection outside.

use headtime_disk::command::{Kind, Outcome};
use headtime_disk::time::{Dur, Time};

use super::Core;
use crate::dispatch::Sent;

/// A drive is taken to have written its cache back so long after it answered the last write. Drives write back as soon as no command
/// waits, so data outlasts this only on a drive that is never idle, where reads show it: they come later than predicted, and
/// filling stops.
const DIRTY: Dur = Dur::from_secs(1);

/// The state of handover.
#[derive(Clone, Debug, Default)]
pub(super) struct Handover {
    /// Commands that the drive's queue takes; 0: the drive never orders them itself.
    depth: usize,
    /// When the drive answered the last write that it may have cached.
    written: Option<Time>,
}

impl Handover {
    fn is_on(&self, now: Time) -> bool {
        self.depth > 0 && self.written.is_some_and(|at| now.saturating_since(at) < DIRTY)
    }
}

impl Core {
    /// The same for a drive that orders up to `depth` commands itself: for as long as its write cache may hold data, and where each
    /// continues the one before. Call it before anything was submitted.
    #[must_use]
    pub fn handing_over(mut self, depth: u32) -> Core {
        if depth > self.config.max_outstanding {
            self.chain = depth as usize;
            self.enlarge(depth as usize);
            if self.model.cache.write_back {
                self.handover.depth = depth as usize;
            }
        }
        self
    }

    /// Whether the drive orders commands itself now.
    pub(super) fn hands_over(&self) -> bool {
        self.handover.is_on(self.now) && self.streams.is_none() && self.admit.is_none()
    }

    /// A command ended: the drive's cache holds data, or none.
    pub(super) fn note_cached(&mut self, sent: &Sent, outcome: Outcome) {
        if self.handover.depth == 0 || outcome != Outcome::Ok {
            return;
        }
        match sent.command.kind {
            Kind::Write if !sent.command.fua => self.handover.written = Some(self.now),
            // It covers what the drive had answered when it was sent.
            Kind::Flush if self.handover.written.is_some_and(|at| at <= sent.at) => self.handover.written = None,
            _ => {}
        }
    }

    /// How many commands the drive is given now.
    pub(super) fn limit_outstanding(&mut self) {
        let limit = if self.hands_over() { self.handover.depth } else { self.config.max_outstanding as usize };
        self.dispatch.set_limit(limit);
    }
}
