//! The control interface (`proto/headtime.proto`): gRPC over a unix socket.
//!
//! * [`service`]: the server's side; [`session`]: one freeblock session of it; [`streams`]: exports
//!   that are promised something; [`counts`]: what it counts, as messages
//! * [`incoming`]: its connections, whose number is bounded; [`arriving`]: what calls bring, which
//!   is bounded
//! * [`client`]: the client's side, as the background applications use it; [`socket`]: how it gets
//!   there

pub mod arriving;
pub mod caches;
pub mod calls;
pub mod client;
pub mod counts;
pub mod incoming;
pub mod service;
pub mod session;
pub mod socket;
pub mod streams;

/// The interface's types, made from its description.
#[allow(missing_docs, clippy::all)]
pub mod v1 {
    tonic::include_proto!("headtime.v1");
}

impl From<crate::device::Fault> for v1::Fault {
    fn from(fault: crate::device::Fault) -> v1::Fault {
        match fault {
            crate::device::Fault::Io => v1::Fault::Io,
            crate::device::Fault::Late => v1::Fault::Late,
            crate::device::Fault::TooLarge => v1::Fault::Invalid,
            crate::device::Fault::NoSpace => v1::Fault::NoSpace,
            crate::device::Fault::Gone => v1::Fault::Gone,
        }
    }
}

/// Bytes of one message at most: a unit with its data fits.
pub const MOST_MESSAGE: usize = 64 << 20;

/// HTTP/2 flow control window of a session, bytes: what one side sends before the other has taken
/// it.
pub(crate) const STREAM_WINDOW: u32 = 256 << 10;
/// The same of a connection with all its sessions. The library closes a connection on which more
/// short frames wait than this allows: each counts 256 bytes less its length, and half of this is
/// allowed. The shortest message has 7 bytes, so this much lets the window of a session fill with
/// them: 256 KiB / 7 * 249 * 2 = 17.8 MiB.
pub(crate) const CONNECTION_WINDOW: u32 = 20 << 20;
