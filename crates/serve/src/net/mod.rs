//! NBD clients: listening, one task per connection, TLS.
//!
//! * [`address`]: addresses and listening on them
//! * [`descriptors`]: the number of open files
//! * [`exports`]: named ranges of the disk
//! * [`budget`]: the limit on requests in flight of all clients
//! * [`listener`]: accepting clients, and ending all connections
//! * [`connection`]: one client
//! * [`tls`]: certificates and keys

pub mod address;
pub mod budget;
pub(crate) mod connection;
pub mod descriptors;
pub mod exports;
pub(crate) mod listener;
pub(crate) mod tls;

use tokio::io::{AsyncRead, AsyncWrite};

/// The transport of a connection: a socket, or TLS over one.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}
