//! Result of processing one piece of input.

use crate::closed::Closed;
use crate::request::Request;

/// Result of processing one piece of input.
#[derive(Debug)]
pub(crate) enum Step {
    /// Progress was made; there may be more input to process.
    Again,
    /// The input is incomplete.
    NeedsInput,
    /// A complete message waits for room. It is kept and examined again later.
    NeedsRoom,
    /// The client was instructed to start TLS.
    StartTls,
    /// An export was opened.
    Open {
        /// Its index.
        export: usize,
        /// Replies are structured.
        structured: bool,
    },
    /// The data of a write comes next.
    Payload {
        /// Length in bytes.
        length: u32,
    },
    /// A request to serve.
    Request(Request),
    /// Input ends.
    Close(Closed),
}
