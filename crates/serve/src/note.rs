//! Log lines for the operator of a server.

use std::sync::Arc;

/// What a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// Something that the operator should look at.
    Warning,
    /// What the server does.
    Server,
    /// A client that did not leave in good order. A client can make as many as it likes.
    Client,
    /// A client that came or left.
    Visits,
}

/// Called with a line, from threads that serve clients: it must not wait.
pub type Note = Arc<dyn Fn(About, String) + Send + Sync>;
