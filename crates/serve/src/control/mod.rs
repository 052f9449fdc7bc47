//! The control interface (`proto/headtime.proto`): gRPC over a unix socket.
//!
//! * [`service`]: the server side; [`session`]: one freeblock session; [`streams`]: exports with
//!   guarantees; [`counts`]: counters as messages
//! * [`incoming`]: bounded connections; [`arriving`]: bounded incoming messages
//! * [`client`]: the client side, used by the background applications; [`socket`]: its address

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

/// The types generated from the interface's description.
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

/// The longest message, bytes: a unit fits with its data.
pub const MOST_MESSAGE: usize = 64 << 20;

/// HTTP/2 flow control window of a session, bytes: what one side may send before the other has read
/// it.
pub(crate) const STREAM_WINDOW: u32 = 256 << 10;
/// HTTP/2 flow control window of a connection, bytes. The library closes a connection when the
/// overhead of its buffered short frames exceeds half of this window: each frame counts 256 bytes
/// less its length. The shortest message has 7 bytes, so this value lets such messages fill the
/// window of a session: 256 KiB / 7 * 249 * 2 = 17.8 MiB.
pub(crate) const CONNECTION_WINDOW: u32 = 20 << 20;
