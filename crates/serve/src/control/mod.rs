//! The control interface (`proto/headtime.proto`): gRPC over a unix socket.
//!
//! * [`service`]: the served disk; [`rpc`]: its calls; [`session`]: one freeblock session;
//!   [`events`]: its events as messages; [`streams`]: exports with guarantees; [`counts`]: counters
//!   as messages
//! * [`caches`], [`layouts`]: exports with a write cache, and reorganised ones
//! * [`incoming`]: bounded connections; [`arriving`]: bounded incoming messages
//! * [`client`]: the client side, used by the background applications; [`socket`]: its address

pub(crate) mod arriving;
pub(crate) mod caches;
pub(crate) mod calls;
pub mod client;
pub(crate) mod counts;
pub(crate) mod events;
pub(crate) mod incoming;
pub(crate) mod layouts;
pub(crate) mod rpc;
pub(crate) mod service;
pub(crate) mod session;
pub mod socket;
pub mod streams;

use crate::device::Fault;
use crate::engine::inbox::SendError;

/// The types generated from the interface's description.
#[allow(missing_docs, clippy::all)]
pub mod v1 {
    tonic::include_proto!("headtime.v1");
}

impl From<Fault> for v1::Fault {
    fn from(fault: Fault) -> v1::Fault {
        match fault {
            Fault::Io => v1::Fault::Io,
            Fault::Late => v1::Fault::Late,
            Fault::TooLarge => v1::Fault::Invalid,
            Fault::NoSpace => v1::Fault::NoSpace,
            Fault::Gone => v1::Fault::Gone,
        }
    }
}

impl From<SendError> for tonic::Status {
    fn from(why: SendError) -> tonic::Status {
        match why {
            SendError::Full => tonic::Status::internal("the engine's queue is full, which is a bug"),
            SendError::Ended => tonic::Status::unavailable("the server ends"),
        }
    }
}

/// The longest message, bytes: a unit fits with its data.
pub const MAX_MESSAGE: usize = 64 << 20;

/// HTTP/2 flow control window of a session, bytes: what one side may send before the other has read
/// it.
pub(crate) const STREAM_WINDOW: u32 = 256 << 10;
/// HTTP/2 flow control window of a connection, bytes. The library closes a connection when the
/// overhead of its buffered short frames exceeds half of this window: each frame counts 256 bytes
/// less its length. The shortest message has 7 bytes, so this value lets such messages fill the
/// window of a session: 256 KiB / 7 * 249 * 2 = 17.8 MiB.
pub(crate) const CONNECTION_WINDOW: u32 = 20 << 20;
