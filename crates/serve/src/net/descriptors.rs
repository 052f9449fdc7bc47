//! The number of files a server may have open; each connection is one.

use super::listener::MAX_NEGOTIATING;
use crate::control::incoming;
use crate::loopback;

/// Files other than connections: the disk or the segments of a backing file, the files of the
/// engine and the threads, lock files of listening sockets, a recording, a configuration that is
/// read again.
const OTHER_FILES: usize = 64;

/// The listening sockets and their client limits.
#[derive(Clone, Copy, Debug)]
pub struct Sockets {
    /// Sockets for NBD clients.
    pub nbd: usize,
    /// Clients that each of them serves at a time.
    pub clients: usize,
    /// Whether there is a control interface.
    pub control: bool,
    /// Whether there is a metrics endpoint.
    pub metrics: bool,
    /// Whether there is a live view.
    pub web: bool,
}

impl Sockets {
    /// Returns the number of open files at the maximum number of clients. With a lower limit the
    /// server could not accept clients within their limits or open its own files.
    pub fn files(self) -> u64 {
        let nbd = self.nbd * (1 + self.clients + MAX_NEGOTIATING);
        let control = usize::from(self.control) * (1 + incoming::MAX_CONNECTIONS + incoming::MAX_LEAVING);
        let pages = usize::from(self.metrics) + usize::from(self.web);
        (OTHER_FILES + nbd + control + pages * (1 + loopback::MAX_CONNECTIONS)) as u64
    }
}
