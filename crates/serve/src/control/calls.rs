//! The source of a session's calls.

use tokio::sync::mpsc::Receiver;
use tonic::{Status, Streaming};

use super::v1::SessionCall;

/// The source of a session's calls: a client's connection, or this program.
pub trait Calls: Send {
    /// Returns the next call, or `None` at the end.
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
