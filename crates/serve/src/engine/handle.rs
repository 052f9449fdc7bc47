//! Questions to the engine that are answered at once: the caller's end of the queue, with the
//! channel for the answer.

use headtime_sched::TaskError;
use tokio::sync::oneshot;

use super::inbox::{Outbox, SendError};
use super::messages::{EngineMessage, Reply, SessionCall};
use super::snapshot::Snapshot;

impl Outbox<EngineMessage> {
    /// Returns the engine's counters.
    ///
    /// # Errors
    /// [`SendError::Ended`].
    pub async fn snapshot(&self) -> Result<Snapshot, SendError> {
        let (sender, receiver) = oneshot::channel();
        self.call(EngineMessage::Snapshot(sender)).await?;
        receiver.await.map_err(|_| SendError::Ended)
    }

    /// Sends a call of a session and returns its result; `call` is given the channel for it.
    ///
    /// # Errors
    /// [`SendError::Ended`].
    pub async fn session_call<T>(
        &self,
        call: impl FnOnce(Reply<T>) -> SessionCall,
    ) -> Result<Result<T, TaskError>, SendError> {
        let (reply, answer) = oneshot::channel();
        self.call(EngineMessage::Session(call(reply))).await?;
        answer.await.map_err(|_| SendError::Ended)
    }
}
