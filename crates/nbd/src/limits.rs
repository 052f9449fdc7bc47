//! What a server demands of its clients, and how much of it one client may use.

/// Whether connections go on under TLS. The machine only says when; the driver wraps the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tls {
    /// Not offered: a client that asks is told that there is none.
    Off,
    /// A client may.
    Offered,
    /// A client must, before anything else is answered.
    Required,
}

/// The most that one client may use, whatever it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Options until the connection ends. Clients need less than ten.
    pub options: u32,
    /// Bytes of one option. Longer ones are read past and refused.
    pub option_bytes: u32,
    /// Requests in flight; zero counts as one.
    pub requests: u32,
    /// Bytes in flight: data of writes, and of reads from when they are asked for until their data
    /// was taken for sending. A request that alone is longer is served when nothing else is in
    /// flight; its export's [`crate::BlockSizes::maximum`] still holds.
    pub bytes: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { options: 64, option_bytes: 64 << 10, requests: 128, bytes: 64 << 20 }
    }
}
