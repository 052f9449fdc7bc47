//! The head's work in the seconds of a run from which the demo's picture is taken.

use headtime_disk::{Command, Completion, Dur, MediaTimes, Time};
use headtime_sim::observe::Observer;
use headtime_sim::stats::Done;
use headtime_sim::workload::READER;

/// Earliest start of the picture: by then the ten programs are out of phase.
pub const FROM: Time = Time(10_000_000_000);
/// Length of the record of each run from which the picture's window is chosen.
const RECORD_LENGTH: Dur = Dur::from_secs(5);

/// One command's work on the media.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    pub command: Command,
    pub media: MediaTimes,
    /// Leading sectors of the command that the scan wanted, up to all of them.
    pub scanned: u32,
}

/// Records the head's work in the seconds from which the picture is taken.
#[derive(Default)]
pub struct Window {
    pub work: Vec<Work>,
    /// Completion times of the programs' requests.
    pub done: Vec<Time>,
    /// Completion times of commands answered without the media.
    pub cached: Vec<Time>,
}

impl Window {
    /// Returns an empty record.
    pub fn new() -> Window {
        Window::default()
    }
}

fn kept(t: Time) -> bool {
    FROM <= t && t < FROM + RECORD_LENGTH
}

impl Observer for Window {
    fn completed(&mut self, command: &Command, free: u32, completion: &Completion) {
        if !kept(completion.at) {
            return;
        }
        match completion.media {
            Some(media) => self.work.push(Work { command: *command, media, scanned: free }),
            None => self.cached.push(completion.at),
        }
    }

    fn finished(&mut self, done: &Done) {
        if !kept(done.done) {
            return;
        }
        if done.owner != READER {
            self.done.push(done.done);
            return;
        }
        // A background reader's request is a command of its own, with the same range.
        let same = |w: &&mut Work| w.command.lbn == done.lbn && w.command.count == done.count;
        if let Some(w) = self.work.iter_mut().rfind(same) {
            w.scanned = w.command.count;
        }
    }
}
