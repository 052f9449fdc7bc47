//! What is to be sent: what the machine writes itself, and data that passes through without being
//! copied.

use bytes::{BufMut, Bytes, BytesMut};
use std::collections::VecDeque;

/// Once so many bytes of headers and messages wait to be sent, nothing more is understood until
/// some are taken: a client that asks and never reads shall not fill the memory.
pub const OUTPUT_ROOM: usize = 64 << 10;

/// A piece that is ready to be sent.
#[derive(Debug)]
struct Chunk {
    bytes: Bytes,
    is_data: bool,
}

/// What is to be sent, in order.
#[derive(Debug, Default)]
pub struct Output {
    ready: VecDeque<Chunk>,
    /// Headers and messages behind the last chunk; they are sent together.
    tail: BytesMut,
    /// Bytes of headers and messages, in `ready` and in `tail`.
    own: usize,
    /// Bytes of data in `ready`.
    data: u64,
}

impl Output {
    /// Writes a header or a message.
    #[inline]
    pub fn write(&mut self, write: impl FnOnce(&mut BytesMut)) {
        let before = self.tail.len();
        write(&mut self.tail);
        self.own += self.tail.len() - before;
    }

    /// Sends data as it is.
    pub fn pass(&mut self, data: Bytes) {
        self.end_chunk();
        self.data += data.len() as u64;
        self.ready.push_back(Chunk { bytes: data, is_data: true });
    }

    /// The next chunk to send.
    pub fn take(&mut self) -> Option<Bytes> {
        if self.ready.is_empty() {
            self.end_chunk();
        }
        let chunk = self.ready.pop_front()?;
        if chunk.is_data {
            self.data -= chunk.bytes.len() as u64;
        } else {
            self.own -= chunk.bytes.len();
        }
        Some(chunk.bytes)
    }

    /// Whether nothing is to be sent.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.tail.is_empty()
    }

    /// Whether there is room for one more message.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.own < OUTPUT_ROOM
    }

    /// Bytes of data that wait.
    #[inline]
    pub fn data(&self) -> u64 {
        self.data
    }

    /// Everything that waits.
    pub fn held(&self) -> u64 {
        self.own as u64 + self.data
    }

    fn end_chunk(&mut self) {
        if !self.tail.is_empty() {
            self.ready.push_back(Chunk { bytes: self.tail.split().freeze(), is_data: false });
        }
    }
}

/// A message: its length first, then the text.
pub fn put_text(to: &mut BytesMut, text: &str) {
    to.put_u32(text.len() as u32);
    to.put_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(output: &mut Output) -> Vec<Bytes> {
        std::iter::from_fn(|| output.take()).collect()
    }

    #[test]
    fn messages_leave_together_and_data_by_itself() {
        let mut output = Output::default();
        output.write(|b| b.put_u8(1));
        output.write(|b| b.put_u8(2));
        output.pass(Bytes::from_static(b"data"));
        output.write(|b| b.put_u8(3));
        assert_eq!(drain(&mut output), [&[1, 2][..], b"data", &[3]]);
        assert!(output.is_empty());
    }

    #[test]
    fn data_is_not_copied() {
        let data = Bytes::from(vec![1; 100]);
        let mut output = Output::default();
        output.pass(data.clone());
        assert_eq!(output.take().unwrap().as_ptr(), data.as_ptr());
    }

    #[test]
    fn what_waits_is_counted_by_kind() {
        let mut output = Output::default();
        output.write(|b| b.put_u64(0));
        output.pass(Bytes::from_static(b"data"));
        assert_eq!((output.held(), output.data()), (12, 4));
        output.take();
        assert_eq!((output.held(), output.data()), (4, 4));
        output.take();
        assert_eq!((output.held(), output.data()), (0, 0));
    }

    #[test]
    fn data_takes_no_room_from_messages() {
        let mut output = Output::default();
        output.pass(Bytes::from(vec![0; 2 * OUTPUT_ROOM]));
        assert!(output.has_room());
        output.write(|b| b.put_bytes(0, OUTPUT_ROOM - 1));
        assert!(output.has_room());
        output.write(|b| b.put_u8(0));
        assert!(!output.has_room());
    }
}
