//! What the examples share: a client of NBD as small as one can be (fixed newstyle, simple replies,
//! reads), and rows of places to read.
#![allow(dead_code, reason = "each example uses some of it")]

use std::io::{self, Error, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// What a read that was given up is answered with.
pub const EIO: u32 = 5;
/// A server that says nothing for so long is taken for dead.
const SILENT: Duration = Duration::from_secs(30);
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
    /// Nobody listens, or there is no such export.
    pub fn open(path: &Path, name: &str) -> io::Result<Client> {
        let mut stream = UnixStream::connect(path)
            .map_err(|e| Error::new(e.kind(), format!("{}: expected a server that listens: {e}", path.display())))?;
        stream.set_read_timeout(Some(SILENT))?;
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

    /// The same connection once more, so that one thread asks and another hears.
    ///
    /// # Errors
    /// The process has no more files.
    pub fn split(&self) -> io::Result<Client> {
        Ok(Client { stream: self.stream.try_clone()?, bytes: self.bytes })
    }

    /// Asks for bytes of the export, and does not wait for them.
    ///
    /// # Errors
    /// The server has gone.
    pub fn ask(&mut self, cookie: u64, offset: u64, bytes: u32) -> io::Result<()> {
        let head = [0x25, 0x60, 0x95, 0x13, 0, 0, 0, 0];
        let parts = [&head[..], &cookie.to_be_bytes(), &offset.to_be_bytes(), &bytes.to_be_bytes()];
        self.stream.write_all(&parts.concat())
    }

    /// The next answer, where each is to a read of so many bytes: whose it is, and its data or the
    /// number of its error.
    ///
    /// # Errors
    /// The server has gone, or does not speak NBD.
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

    /// Reads, and waits for it. Nothing else may be asked for on this connection meanwhile.
    ///
    /// # Errors
    /// The server has gone, or refuses.
    pub fn read(&mut self, offset: u64, bytes: u32) -> io::Result<Vec<u8>> {
        self.ask(offset, offset, bytes)?;
        let (_, data) = self.answer(bytes)?;
        data.map_err(|e| Error::other(format!("{bytes} bytes at {offset}: expected data, found error {e}")))
    }

    /// Whoever hears on this connection hears its end.
    pub fn hang_up(&self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

/// A row of numbers with no pattern that a disk would notice (Knuth's linear congruence), the same
/// for the same seed.
#[derive(Clone, Debug)]
pub struct Places(pub u64);

impl Places {
    /// The next, below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}
