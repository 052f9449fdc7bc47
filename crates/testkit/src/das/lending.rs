//! Use of blocking time by older requests, by the stream and period of the waiting requests.

use std::collections::BTreeMap;

use headtime_disk::time::Dur;

/// A stream, and a period of it.
type Of = (usize, u64);

#[derive(Clone, Debug, Default)]
pub(super) struct Lending {
    lent: BTreeMap<Of, Dur>,
    /// The latest loan, to a command that is not chosen yet.
    now: Option<(Of, Dur)>,
    /// The loan of the held command.
    held: Option<(Of, Dur)>,
}

impl Lending {
    pub fn of(&self, of: Of) -> Dur {
        self.lent.get(&of).copied().unwrap_or_default()
    }

    /// Lends time to an eligible older request.
    pub fn lend(&mut self, of: Of, time: Dur) {
        *self.lent.entry(of).or_default() += time;
        self.now = Some((of, time));
    }

    /// Takes the loan back if its command was not chosen.
    pub fn take_back(&mut self) {
        if let Some((of, time)) = self.now.take() {
            self.end(of, time);
        }
    }

    /// Its command is chosen. Returns the stream and period that wait for it.
    pub fn goes(&mut self) -> Option<Of> {
        self.held = self.now.take();
        self.held.map(|held| held.0)
    }

    /// The chosen command is dispatched.
    pub fn sent(&mut self) {
        self.held = None;
    }

    /// The chosen command is withdrawn.
    pub fn withdrawn(&mut self) {
        self.now = self.held.take();
        self.take_back();
    }

    /// A request no longer waits: ends `time` of its loans.
    pub fn end(&mut self, of: Of, time: Dur) {
        if let Some(lent) = self.lent.get_mut(&of) {
            *lent = lent.saturating_sub(time);
        }
    }
}
