//! The server side of the NBD protocol as a state machine: bytes in, bytes out.
//!
//! * Inputs: [`Connection::receive`], [`Connection::reply`], [`Connection::tls_established`],
//!   [`Connection::end_of_input`], [`Connection::shut_down`]
//! * Outputs: [`Connection::poll`] and [`Connection::output`], both until `None` after every input
//!
//! It has no clock, sockets or threads, and stores no data except in transit. The driver owns the
//! socket, the timeouts and the TLS library, and answers the requests.
//!
//! A connection starts with negotiation (`negotiation`: the export, the form of replies), followed
//! by transmission (`transmission`: requests, each checked before it is passed on). `pending`
//! tracks requests in flight and writes their replies; `output` holds the bytes to send. The
//! encoding is defined in `wire` alone.
//!
//! Whatever a client sends, memory is bounded by [`Limits`], and nothing panics. A request that
//! cannot be served is refused with a specific error, and the stream continues; the connection is
//! closed only where the protocol has no error reply, or where the rest of the stream could not be
//! parsed ([`Violation`]).
//!
//! A driver for one client and a RAM disk, which blocks only when there is nothing else to do:
//!
//! ```
//! use headtime_nbd::{Answer, Connection, Event, Op, Request};
//! use std::io::{Read, Write};
//!
//! fn serve(mut connection: Connection, mut stream: impl Read + Write, disk: &mut [u8]) -> std::io::Result<()> {
//!     let mut buffer = vec![0; 64 << 10];
//!     let mut input = 0..0;
//!     while !connection.is_closed() {
//!         let mut busy = false;
//!         while let Some(event) = connection.poll() {
//!             busy = true;
//!             match event {
//!                 Event::Request(request) => connection.reply(request.token, answer(&request, disk)),
//!                 Event::StartTls => unimplemented!("send all output, wrap the stream, tell the connection"),
//!                 Event::Opened { .. } | Event::Payload { .. } | Event::Closed(_) => {}
//!             }
//!         }
//!         while let Some(chunk) = connection.output() {
//!             busy = true;
//!             stream.write_all(&chunk)?;
//!         }
//!         if connection.wants_input() && !input.is_empty() {
//!             busy = true;
//!             input.start += connection.receive(&buffer[input.clone()]);
//!         }
//!         if !busy && connection.wants_input() {
//!             input = 0..stream.read(&mut buffer)?;
//!             if input.is_empty() {
//!                 connection.end_of_input();
//!             }
//!         }
//!     }
//!     Ok(())
//! }
//!
//! fn answer(request: &Request, disk: &mut [u8]) -> Answer {
//!     let range = request.offset as usize..(request.offset + request.length) as usize;
//!     match request.op {
//!         Op::Read => return Answer::Data(disk[range].to_vec().into()),
//!         Op::Write => disk[range].copy_from_slice(&request.data),
//!         Op::Trim | Op::WriteZeroes => disk[range].fill(0),
//!         Op::Flush => {}
//!     }
//!     Answer::Done
//! }
//! # use headtime_nbd::{BlockSizes, Export, Limits, Tls};
//! # struct Pipe(std::collections::VecDeque<u8>, Vec<u8>);
//! # impl Read for Pipe {
//! #     fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> { self.0.read(to) }
//! # }
//! # impl Write for Pipe {
//! #     fn write(&mut self, from: &[u8]) -> std::io::Result<usize> { self.1.write(from) }
//! #     fn flush(&mut self) -> std::io::Result<()> { Ok(()) }
//! # }
//! # let export = Export {
//! #     name: "a".into(), description: String::new(), size: 4096, read_only: false, rotational: true, trim: true,
//! #     write_zeroes: true, multi_conn: true, blocks: BlockSizes::new(512, 4096, 4096)?,
//! # };
//! # let connection = Connection::new([export].into(), Tls::Off, Limits::default());
//! # let mut said = b"\0\0\0\x03IHAVEOPT\0\0\0\x07\0\0\0\x06\0\0\0\0\0\0".to_vec();
//! # said.extend(b"\x25\x60\x95\x13\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02\0");
//! # let mut pipe = Pipe(said.into(), Vec::new());
//! # serve(connection, &mut pipe, &mut [7; 4096])?;
//! # assert!(pipe.1.ends_with(&[7; 512]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(unreachable_pub)]

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
