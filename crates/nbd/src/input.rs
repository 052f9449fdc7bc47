//! Messages that arrive in pieces: assembled or skipped.

use bytes::Bytes;

/// Takes up to `most` bytes off the front of `rest`.
fn split<'a>(rest: &mut &'a [u8], most: usize) -> &'a [u8] {
    let (taken, left) = rest.split_at(rest.len().min(most));
    *rest = left;
    taken
}

/// A header of `N` bytes, possibly received in pieces.
#[derive(Debug)]
pub(crate) struct Header<const N: usize> {
    bytes: [u8; N],
    filled: usize,
}

impl<const N: usize> Header<N> {
    /// Creates an empty header.
    pub(crate) fn new() -> Header<N> {
        Header { bytes: [0; N], filled: 0 }
    }

    /// Takes its bytes from `rest`; returns the header once it is complete.
    #[inline]
    pub(crate) fn take(&mut self, rest: &mut &[u8]) -> Option<&[u8; N]> {
        let piece = split(rest, N - self.filled);
        self.bytes[self.filled..][..piece.len()].copy_from_slice(piece);
        self.filled += piece.len();
        (self.filled == N).then_some(&self.bytes)
    }
}

/// Data of an announced length, in one buffer.
///
/// Memory grows with the data received, so that a client which announces much and sends little
/// causes no large allocation. Up to [`Payload::AT_ONCE`] the buffer is allocated at once, so that
/// data of usual lengths is copied exactly once.
#[derive(Debug)]
pub(crate) struct Payload {
    data: Vec<u8>,
    length: usize,
}

impl Payload {
    /// Allocation before more data has arrived.
    pub(crate) const AT_ONCE: usize = 1 << 20;

    /// Creates an empty payload of this length.
    pub(crate) fn new(length: u32) -> Payload {
        Payload { data: Vec::new(), length: length as usize }
    }

    /// Takes its bytes from `rest`; returns whether it is complete.
    pub(crate) fn take(&mut self, rest: &mut &[u8]) -> bool {
        let piece = split(rest, self.length - self.data.len());
        let needed = self.data.len() + piece.len();
        if needed > self.data.capacity() {
            // Explicit doubling: by itself the vector could allocate twice the announced length.
            let room = needed.max(2 * self.data.capacity()).max(Self::AT_ONCE).min(self.length);
            self.data.reserve_exact(room - self.data.len());
        }
        self.data.extend_from_slice(piece);
        self.is_whole()
    }

    /// Whether it is complete.
    pub(crate) fn is_whole(&self) -> bool {
        self.data.len() == self.length
    }

    /// Returns the number of missing bytes.
    pub(crate) fn missing(&self) -> u32 {
        (self.length - self.data.len()) as u32
    }

    /// Returns the bytes received.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.data
    }

    /// Returns the size of its buffer.
    pub(crate) fn held(&self) -> usize {
        self.data.capacity()
    }

    /// Returns the data without copying it.
    pub(crate) fn into_bytes(self) -> Bytes {
        Bytes::from(self.data)
    }
}

/// Skips up to `left` bytes at the front of `rest`; returns whether all are skipped.
pub(crate) fn skip(left: &mut u32, rest: &mut &[u8]) -> bool {
    *left -= split(rest, *left as usize).len() as u32;
    *left == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_in_pieces_is_the_same_header() {
        let mut header = Header::<4>::new();
        assert_eq!(header.take(&mut &b"ab"[..]), None);
        assert_eq!(header.take(&mut &b""[..]), None);
        let mut rest = &b"cdef"[..];
        assert_eq!(header.take(&mut rest), Some(b"abcd"));
        assert_eq!(rest, b"ef");
    }

    #[test]
    fn a_payload_leaves_what_is_behind_it() {
        let mut payload = Payload::new(3);
        let mut rest = &b"abcd"[..];
        assert!(payload.take(&mut rest));
        assert_eq!(rest, b"d");
        assert_eq!(&payload.into_bytes()[..], b"abc");
    }

    #[test]
    fn an_empty_payload_is_whole_at_once() {
        assert!(Payload::new(0).is_whole());
        assert!(!Payload::new(1).is_whole());
    }

    #[test]
    fn a_payload_of_usual_length_is_reserved_once() {
        let mut payload = Payload::new(4096);
        payload.take(&mut &[1][..]);
        assert_eq!(payload.held(), 4096);
        let place = payload.bytes().as_ptr();
        payload.take(&mut &[2; 4095][..]);
        assert_eq!(payload.bytes().as_ptr(), place);
        assert_eq!(payload.into_bytes().as_ptr(), place, "handing it on copies nothing");
    }

    #[test]
    fn memory_follows_what_has_arrived_and_ends_at_the_announced_length() {
        let length = 5 * Payload::AT_ONCE + 17;
        let mut payload = Payload::new(length as u32);
        assert_eq!(payload.held(), 0, "an announcement reserves nothing");
        let piece = vec![7; 1000];
        while !payload.take(&mut &piece[..piece.len().min(payload.missing() as usize)]) {
            assert!(payload.held() <= Payload::AT_ONCE.max(2 * payload.bytes().len()));
        }
        assert_eq!(payload.held(), length);
    }

    #[test]
    fn what_is_read_past_is_counted() {
        let mut left = 5;
        assert!(!skip(&mut left, &mut &b"abc"[..]));
        let mut rest = &b"defg"[..];
        assert!(skip(&mut left, &mut rest));
        assert_eq!(rest, b"fg");
    }
}
