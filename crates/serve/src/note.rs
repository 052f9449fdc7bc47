//! Log lines for the operator of a server.

use std::sync::Arc;

/// What a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// A condition that the operator should check.
    Warning,
    /// An action of the server.
    Server,
    /// A client that did not disconnect properly. Clients can cause any number of these lines.
    Client,
    /// A client that connected or disconnected.
    Visits,
}

/// A log callback. It is called from threads that serve clients and must not block.
pub type Note = Arc<dyn Fn(About, String) + Send + Sync>;
