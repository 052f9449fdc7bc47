//! A handle to a running server, for changes of its exports' settings.

use crate::engine::inbox::{Outbox, SendError};
use crate::engine::messages::EngineMessage;
use crate::net::budget::Budget;
use crate::net::exports::Exports;

/// A handle to a running server.
#[derive(Clone, Debug)]
pub struct Handle {
    pub(super) engine: Outbox<EngineMessage>,
    pub(super) exports: Exports,
    pub(super) budget: Budget,
}

impl Handle {
    /// Returns the handle to the engine.
    pub fn engine(&self) -> &Outbox<EngineMessage> {
        &self.engine
    }

    /// Puts the current settings of the exports in force.
    ///
    /// # Errors
    /// [`SendError::Ended`]: the engine has ended.
    pub fn apply_settings(&self) -> Result<(), SendError> {
        let settings = self.exports.settings();
        // Before the first request may wait for a limit.
        self.budget.set_limited(settings.iter().map(|s| !s.limit.is_none()));
        self.engine.send(EngineMessage::Settings(settings))
    }
}
