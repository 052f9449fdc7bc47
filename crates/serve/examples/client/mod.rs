//! The common code of the examples: a minimal NBD client (fixed newstyle, simple replies, reads),
//! and pseudo-random positions to read.
#![allow(dead_code, reason = "each example uses some of it")]

use std::io::{self, Error, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// The error of a read that was cancelled.
pub const EIO: u32 = 5;
/// The read timeout for the server's answers.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
const REPLY: [u8; 4] = 0x6744_6698_u32.to_be_bytes();

/// A client of one export.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    /// Bytes of the export.
    pub bytes: u64,
}

impl Client {
    /// Opens the export of this name on the server that listens at `path`.
    ///
    /// # Errors
    /// No server listens, or there is no such export.
    pub fn open(path: &Path, name: &str) -> io::Result<Client> {
        let mut stream = UnixStream::connect(path)
            .map_err(|e| Error::new(e.kind(), format!("{}: expected a server that listens: {e}", path.display())))?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        stream.read_exact(&mut [0; 18])?;
        let head = [&3u32.to_be_bytes()[..], b"IHAVEOPT", &1u32.to_be_bytes(), &(name.len() as u32).to_be_bytes()];
        stream.write_all(&[&head.concat(), name.as_bytes()].concat())?;
        let mut export = [0; 10];
        stream
            .read_exact(&mut export)
            .map_err(|e| Error::new(e.kind(), format!("export \"{name}\": expected one that is served: {e}")))?;
        let bytes = u64::from_be_bytes(export[..8].try_into().expect("eight bytes"));
        Ok(Client { stream, bytes })
    }

    /// Returns a second handle to the connection, so that one thread sends and another receives.
    ///
    /// # Errors
    /// The process has no file descriptors left.
    pub fn split(&self) -> io::Result<Client> {
        Ok(Client { stream: self.stream.try_clone()?, bytes: self.bytes })
    }

    /// Sends a read of the export without waiting for the answer.
    ///
    /// # Errors
    /// The server has gone.
    pub fn ask(&mut self, cookie: u64, offset: u64, bytes: u32) -> io::Result<()> {
        let head = [0x25, 0x60, 0x95, 0x13, 0, 0, 0, 0];
        let parts = [&head[..], &cookie.to_be_bytes(), &offset.to_be_bytes(), &bytes.to_be_bytes()];
        self.stream.write_all(&parts.concat())
    }

    /// Receives the next answer to a read of `bytes` bytes: its cookie, and its data or error
    /// number.
    ///
    /// # Errors
    /// The server has gone, or violates the protocol.
    pub fn answer(&mut self, bytes: u32) -> io::Result<(u64, Result<Vec<u8>, u32>)> {
        let mut head = [0; 16];
        self.stream.read_exact(&mut head)?;
        if head[..4] != REPLY {
            return Err(Error::other(format!("expected a simple reply, found {:02x?}", &head[..4])));
        }
        let cookie = u64::from_be_bytes(head[8..].try_into().expect("eight bytes"));
        let error = u32::from_be_bytes(head[4..8].try_into().expect("four bytes"));
        if error != 0 {
            return Ok((cookie, Err(error)));
        }
        let mut data = vec![0; bytes as usize];
        self.stream.read_exact(&mut data)?;
        Ok((cookie, Ok(data)))
    }

    /// Reads and waits for the data. No other request may be in flight on this connection.
    ///
    /// # Errors
    /// The server has gone, or rejects the request.
    pub fn read(&mut self, offset: u64, bytes: u32) -> io::Result<Vec<u8>> {
        self.ask(offset, offset, bytes)?;
        let (_, data) = self.answer(bytes)?;
        data.map_err(|e| Error::other(format!("{bytes} bytes at {offset}: expected data, found error {e}")))
    }

    /// Closes the connection, which ends the receiving thread.
    pub fn hang_up(&self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

/// Pseudo-random numbers without a pattern that affects a disk (Knuth's linear congruential
/// generator), reproducible by seed.
#[derive(Clone, Debug)]
pub struct Places(pub u64);

impl Places {
    /// Returns the next number below `end`, which must not be 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}
