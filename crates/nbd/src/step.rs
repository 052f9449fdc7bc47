//! What one step of understanding the input comes to.

use crate::closed::Closed;
use crate::request::Request;

/// What one step of understanding the input comes to.
#[derive(Debug)]
pub enum Step {
    /// Something was understood; there may be more.
    Again,
    /// What is there is too little.
    NeedsInput,
    /// A whole message is there, and no room for what it asks for. It is kept, and looked at again.
    NeedsRoom,
    /// The client was told to begin with TLS.
    StartTls,
    /// The client was told that it has this export.
    Open {
        /// Which.
        export: usize,
        /// Replies are structured.
        structured: bool,
    },
    /// The data of a write is to come next.
    Payload {
        /// Its bytes.
        length: u32,
    },
    /// A request to be served.
    Request(Request),
    /// Nothing more is to be understood.
    Close(Closed),
}
