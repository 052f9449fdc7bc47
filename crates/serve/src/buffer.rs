//! Memory that is aligned for direct I/O.

use bytes::Bytes;

/// The alignment of addresses and lengths that direct I/O needs on every device that headtime
/// serves.
pub const ALIGN: usize = 4096;

/// A zeroed buffer whose address is a multiple of [`ALIGN`].
///
/// It is a longer vector with an offset, so that creating it needs no unsafe code.
#[derive(Debug)]
pub struct Aligned {
    memory: Vec<u8>,
    from: usize,
    len: usize,
}

impl Aligned {
    /// Creates a buffer of `len` zero bytes.
    pub fn new(len: usize) -> Aligned {
        let memory = vec![0u8; len + ALIGN - 1];
        let from = memory.as_ptr().align_offset(ALIGN);
        assert!(from < ALIGN, "an address of bytes can always be aligned");
        Aligned { memory, from, len }
    }

    /// Creates an aligned copy.
    pub fn copy_of(data: &[u8]) -> Aligned {
        let mut new = Aligned::new(data.len());
        new.as_mut().copy_from_slice(data);
        new
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl AsRef<[u8]> for Aligned {
    fn as_ref(&self) -> &[u8] {
        &self.memory[self.from..self.from + self.len]
    }
}

impl AsMut<[u8]> for Aligned {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.from..self.from + self.len]
    }
}

impl From<Aligned> for Bytes {
    /// Converts without copying.
    fn from(a: Aligned) -> Bytes {
        Bytes::from_owner(a)
    }
}

/// Returns whether direct I/O can use these bytes in place.
pub fn is_aligned(data: &[u8]) -> bool {
    (data.as_ptr() as usize).is_multiple_of(ALIGN) && data.len().is_multiple_of(512)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_begins_at_a_page_whatever_its_length() {
        for len in [0, 1, 512, 4096, 4097, 1 << 20] {
            let b = Aligned::new(len);
            assert_eq!((b.as_ref().len(), b.as_ref().as_ptr() as usize % ALIGN), (len, 0));
            assert!(b.as_ref().iter().all(|&x| x == 0));
        }
    }

    #[test]
    fn the_bytes_made_of_a_buffer_stay_where_they_were() {
        let b = Aligned::copy_of(&[7; 512]);
        let at = b.as_ref().as_ptr();
        let bytes = Bytes::from(b);
        assert_eq!((bytes.as_ptr(), &bytes[..]), (at, &[7u8; 512][..]));
        assert!(is_aligned(&bytes));
        assert!(!is_aligned(&bytes[1..]));
    }
}
