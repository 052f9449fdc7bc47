//! Requirements on clients, and limits of the resources that one client may use.

/// Use of TLS. The state machine signals when it starts; the driver wraps the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tls {
    /// Not offered: STARTTLS is refused.
    Off,
    /// Optional.
    Offered,
    /// Required before any other option.
    Required,
}

/// Limits for one client, whatever it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Options before the connection is closed. Clients need fewer than ten.
    pub options: u32,
    /// Bytes of one option. A longer one is skipped and refused.
    pub option_bytes: u32,
    /// Requests in flight; zero counts as one.
    pub requests: u32,
    /// Bytes in flight: data of writes, and of reads from the request until the data is taken for
    /// sending. A longer single request is served when nothing else is in flight; its export's
    /// [`crate::BlockSizes::maximum`] still applies.
    pub bytes: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { options: 64, option_bytes: 64 << 10, requests: 128, bytes: 64 << 20 }
    }
}
