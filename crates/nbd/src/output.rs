//! Output: messages written by the state machine, and data passed through without copying.

use bytes::{BufMut, Bytes, BytesMut};
use std::collections::VecDeque;

/// Limit of queued header and message bytes. Above it, input is not processed until output is
/// taken, so that a client which sends but never reads cannot fill the memory.
pub const OUTPUT_ROOM: usize = 64 << 10;

/// A piece ready to send.
#[derive(Debug)]
struct Chunk {
    bytes: Bytes,
    is_data: bool,
}

/// Output in order.
#[derive(Debug, Default)]
pub(crate) struct Output {
    ready: VecDeque<Chunk>,
    /// Headers and messages after the last chunk, which are sent together.
    tail: BytesMut,
    /// Bytes of headers and messages, in `ready` and in `tail`.
    own: usize,
    /// Bytes of data in `ready`.
    data: u64,
}

impl Output {
    /// Writes a header or a message.
    #[inline]
    pub(crate) fn write(&mut self, write: impl FnOnce(&mut BytesMut)) {
        let before = self.tail.len();
        write(&mut self.tail);
        self.own += self.tail.len() - before;
    }

    /// Queues data without copying it.
    pub(crate) fn pass(&mut self, data: Bytes) {
        self.end_chunk();
        self.data += data.len() as u64;
        self.ready.push_back(Chunk { bytes: data, is_data: true });
    }

    /// Takes the next chunk to send.
    pub(crate) fn take(&mut self) -> Option<Bytes> {
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

    /// Whether there is no output.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.tail.is_empty()
    }

    /// Whether there is room for one more message.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.own < OUTPUT_ROOM
    }

    /// Returns the number of queued data bytes.
    #[inline]
    pub(crate) fn data(&self) -> u64 {
        self.data
    }

    /// Returns the number of queued bytes.
    pub(crate) fn held(&self) -> u64 {
        self.own as u64 + self.data
    }

    fn end_chunk(&mut self) {
        if !self.tail.is_empty() {
            self.ready.push_back(Chunk { bytes: self.tail.split().freeze(), is_data: false });
        }
    }
}

/// Writes a text, preceded by its length.
pub(crate) fn put_text(to: &mut BytesMut, text: &str) {
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
