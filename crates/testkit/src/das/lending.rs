//! Of the time that is counted for older requests, what these have had, by the stream and period of
//! those that wait.

use std::collections::BTreeMap;

use headtime_disk::time::Dur;

/// A stream, and a period of it.
type Of = (usize, u64);

#[derive(Clone, Debug, Default)]
pub(super) struct Lending {
    lent: BTreeMap<Of, Dur>,
    /// What was lent last, to something that has not gone.
    now: Option<(Of, Dur)>,
    /// The same for what is held.
    held: Option<(Of, Dur)>,
}

impl Lending {
    pub fn of(&self, of: Of) -> Dur {
        self.lent.get(&of).copied().unwrap_or_default()
    }

    /// An older request may go, and has so much of the time.
    pub fn lend(&mut self, of: Of, time: Dur) {
        *self.lent.entry(of).or_default() += time;
        self.now = Some((of, time));
    }

    /// It has not gone.
    pub fn take_back(&mut self) {
        if let Some((of, time)) = self.now.take() {
            self.end(of, time);
        }
    }

    /// It was chosen. The stream and period that waits for it.
    pub fn goes(&mut self) -> Option<Of> {
        self.held = self.now.take();
        self.held.map(|held| held.0)
    }

    /// The command of what was chosen went.
    pub fn sent(&mut self) {
        self.held = None;
    }

    /// What was chosen does not go.
    pub fn withdrawn(&mut self) {
        self.now = self.held.take();
        self.take_back();
    }

    /// A request does not wait any more: so much of what was counted for it is over.
    pub fn end(&mut self, of: Of, time: Dur) {
        if let Some(lent) = self.lent.get_mut(&of) {
            *lent = lent.saturating_sub(time);
        }
    }
}
