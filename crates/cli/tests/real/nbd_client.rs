//! A small NBD client for tests, with exact control of requests and replies.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

const OPTION: u64 = 0x4948_4156_454f_5054;
const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
const REQUEST: u32 = 0x2560_9513;
const REPLY: u32 = 0x6744_6698;
const GO: u32 = 7;
const ACK: u32 = 1;
const INFO: u32 = 3;

pub const READ: u16 = 0;
pub const WRITE: u16 = 1;
pub const FLUSH: u16 = 3;
pub const FUA: u16 = 1;

/// A connection to an opened export, with simple replies.
pub struct Nbd {
    pub stream: UnixStream,
    pub size: u64,
}

fn odd(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_string())
}

fn exactly<const N: usize>(from: &mut UnixStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Connects, and answers the greeting.
pub fn greeted(path: &Path) -> io::Result<UnixStream> {
    let mut stream = UnixStream::connect(path)?;
    // Longer than any operation here, so that a hang fails.
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    stream.set_write_timeout(Some(Duration::from_secs(30)))?;
    let greeting: [u8; 18] = exactly(&mut stream)?;
    if &greeting[..16] != b"NBDMAGICIHAVEOPT" {
        return Err(odd("the greeting"));
    }
    stream.write_all(&3u32.to_be_bytes())?;
    Ok(stream)
}

/// An option with its data.
pub fn option(kind: u32, data: &[u8]) -> Vec<u8> {
    let head = [&OPTION.to_be_bytes()[..], &kind.to_be_bytes(), &(data.len() as u32).to_be_bytes()];
    [&head.concat(), data].concat()
}

/// A request without its data.
pub fn request(op: u16, flags: u16, cookie: u64, offset: u64, length: u32) -> Vec<u8> {
    [
        &REQUEST.to_be_bytes()[..],
        &flags.to_be_bytes(),
        &op.to_be_bytes(),
        &cookie.to_be_bytes(),
        &offset.to_be_bytes(),
        &length.to_be_bytes(),
    ]
    .concat()
}

impl Nbd {
    /// Opens an export.
    pub fn open(path: &Path, export: &str) -> io::Result<Nbd> {
        let mut stream = greeted(path)?;
        let name = export.as_bytes();
        let data = [&(name.len() as u32).to_be_bytes()[..], name, &0u16.to_be_bytes()].concat();
        stream.write_all(&option(GO, &data))?;
        let mut size = 0;
        loop {
            let head: [u8; 20] = exactly(&mut stream)?;
            let word = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().unwrap());
            if head[..8] != OPTION_REPLY.to_be_bytes() || word(8) != GO {
                return Err(odd("the answer to an option"));
            }
            let mut data = vec![0; word(16) as usize];
            stream.read_exact(&mut data)?;
            match word(12) {
                ACK => return Ok(Nbd { stream, size }),
                INFO if data.len() == 12 && data[..2] == [0, 0] => {
                    size = u64::from_be_bytes(data[2..10].try_into().unwrap());
                }
                INFO => {}
                refused => return Err(odd(&format!("refused: {refused:#x}"))),
            }
        }
    }

    /// Sends a request; a write's data follows from `data`.
    pub fn send(&mut self, op: u16, flags: u16, cookie: u64, offset: u64, length: u32, data: &[u8]) -> io::Result<()> {
        self.stream.write_all(&[&request(op, flags, cookie, offset, length), data].concat())
    }

    /// Returns the next reply, to a request without returned data: its cookie and its error, 0 for
    /// none.
    pub fn answer(&mut self) -> io::Result<(u64, u32)> {
        let head: [u8; 16] = exactly(&mut self.stream)?;
        if head[..4] != REPLY.to_be_bytes() {
            return Err(odd("an answer"));
        }
        let error = u32::from_be_bytes(head[4..8].try_into().unwrap());
        Ok((u64::from_be_bytes(head[8..].try_into().unwrap()), error))
    }

    /// Returns the data after the reply to a read.
    pub fn data(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut data = vec![0; length];
        self.stream.read_exact(&mut data)?;
        Ok(data)
    }

    fn done(&mut self) -> io::Result<()> {
        match self.answer()? {
            (_, 0) => Ok(()),
            (_, error) => Err(io::Error::from_raw_os_error(error as i32)),
        }
    }

    /// Reads, with no other request in flight.
    pub fn read(&mut self, offset: u64, length: u32) -> io::Result<Vec<u8>> {
        self.send(READ, 0, 1, offset, length, &[])?;
        self.done()?;
        self.data(length as usize)
    }

    /// Writes, with no other request in flight.
    pub fn write(&mut self, flags: u16, offset: u64, data: &[u8]) -> io::Result<()> {
        self.send(WRITE, flags, 1, offset, data.len() as u32, data)?;
        self.done()
    }

    /// Flushes, with no other request in flight.
    pub fn flush(&mut self) -> io::Result<()> {
        self.send(FLUSH, 0, 1, 0, 0, &[])?;
        self.done()
    }
}
