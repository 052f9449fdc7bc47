//! Clients over NBD: listening, one task a connection, TLS.
//!
//! * [`address`]: what can be listened on, and doing so
//! * [`descriptors`]: how many files may be open
//! * [`exports`]: names for ranges of the disk
//! * [`budget`]: what all clients together may have under way
//! * [`listener`]: accepting, and ending all connections
//! * [`connection`]: one client
//! * [`tls`]: certificates and keys

pub mod address;
pub mod budget;
pub mod connection;
pub mod descriptors;
pub mod exports;
pub mod listener;
pub mod tls;

use tokio::io::{AsyncRead, AsyncWrite};

/// What a connection runs over: a socket, or TLS over one.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}
