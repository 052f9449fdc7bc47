//! How many files a server may have open: each connection is one.

use super::listener::NEGOTIATING;
use crate::control::incoming;
use crate::metrics;

/// Files beside connections: the disk or the segments of a backing file, the engine's and the
/// threads' own, listening sockets' lock files, a recording, a configuration that is read again.
const BESIDE: usize = 128;

/// Where clients come.
#[derive(Clone, Copy, Debug)]
pub struct Sockets {
    /// Sockets for NBD clients.
    pub nbd: usize,
    /// Clients that each of them serves at a time.
    pub clients: usize,
    /// There is a control interface.
    pub control: bool,
    /// There are metrics.
    pub metrics: bool,
}

impl Sockets {
    /// Files that may be open when as many clients are there as may be. With fewer, clients that
    /// the server should have taken could not be accepted, and a file that it must open could not
    /// be opened.
    pub fn files(self) -> u64 {
        let nbd = self.nbd * (1 + self.clients + NEGOTIATING);
        let control = usize::from(self.control) * (1 + incoming::MOST_CONNECTIONS + incoming::MOST_LEAVING);
        let metrics = usize::from(self.metrics) * (1 + metrics::MOST_CONNECTIONS + metrics::MOST_ANSWERED);
        (BESIDE + nbd + control + metrics) as u64
    }
}
