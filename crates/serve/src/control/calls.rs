//! Where sessions' calls come from.

use tokio::sync::mpsc::Receiver;
use tonic::{Status, Streaming};

use super::v1::SessionCall;

/// Where a session's calls come from: a client's connection, or this program.
pub trait Calls: Send {
    /// The next; `None` when no more come.
    fn message(&mut self) -> impl Future<Output = Result<Option<SessionCall>, Status>> + Send;
}

impl Calls for Streaming<SessionCall> {
    async fn message(&mut self) -> Result<Option<SessionCall>, Status> {
        Streaming::message(self).await
    }
}

impl Calls for Receiver<SessionCall> {
    async fn message(&mut self) -> Result<Option<SessionCall>, Status> {
        Ok(self.recv().await)
    }
}
