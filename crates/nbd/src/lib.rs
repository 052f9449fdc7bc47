//! The server side of the NBD protocol as a state machine: bytes in, bytes out.
//!
//! * told: [`Connection::receive`], [`Connection::reply`], [`Connection::tls_established`],
//!   [`Connection::end_of_input`], [`Connection::shut_down`]
//! * asked: [`Connection::poll`] and [`Connection::output`], both until `None` after every telling
//!
//! It has no clock, no sockets, no threads and no data but what is on its way through. Whoever drives it owns the
//! socket, the timeouts and the TLS library, and answers the requests.
//!
//! A connection first haggles (`negotiation`: which export, in which form are replies) and then transmits
//! (`transmission`: requests in, each checked before it is handed on). `pending` remembers what is in flight and
//! writes the answers, and `output` holds what is to be sent. How the bytes look is said in `wire` alone.
//!
//! Whatever a client sends, no more is held than [`Limits`] say, and nothing panics. A request that cannot be granted
//! is refused with an error of its own and the stream goes on behind it; the connection ends only where the protocol
//! has no way to say no, or where what follows could no longer be understood ([`Violation`]).

mod closed;
mod connection;
mod export;
mod input;
mod limits;
mod negotiation;
mod options;
mod output;
mod pending;
mod refusal;
mod request;
mod step;
mod transmission;
mod wire;

pub use closed::{Closed, Violation};
pub use connection::{Connection, Event};
pub use export::{BlockSizeError, BlockSizes, Export};
pub use limits::{Limits, Tls};
pub use output::OUTPUT_ROOM;
pub use request::{Answer, Errno, Op, Request};
pub use transmission::PAYLOAD_SKIPPED;
