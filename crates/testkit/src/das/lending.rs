//! Use of blocking time by older requests, by the stream and period of the waiting requests.

use std::collections::BTreeMap;

use headtime_disk::Dur;

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
    pub(super) fn of(&self, of: Of) -> Dur {
        self.lent.get(&of).copied().unwrap_or_default()
    }

    /// Lends time to an eligible older request.
    pub(super) fn lend(&mut self, of: Of, time: Dur) {
        *self.lent.entry(of).or_default() += time;
        self.now = Some((of, time));
    }

    /// Takes the loan back if its command was not chosen.
    pub(super) fn take_back(&mut self) {
        if let Some((of, time)) = self.now.take() {
            self.end(of, time);
        }
    }

    /// Its command is chosen. Returns the stream and period that wait for it.
    pub(super) fn goes(&mut self) -> Option<Of> {
        self.held = self.now.take();
        self.held.map(|held| held.0)
    }

    /// The chosen command is dispatched.
    pub(super) fn sent(&mut self) {
        self.held = None;
    }

    /// The chosen command is withdrawn.
    pub(super) fn withdrawn(&mut self) {
        self.now = self.held.take();
        self.take_back();
    }

    /// A request no longer waits: ends `time` of its loans.
    pub(super) fn end(&mut self, of: Of, time: Dur) {
        if let Some(lent) = self.lent.get_mut(&of) {
            *lent = lent.saturating_sub(time);
        }
    }
}
