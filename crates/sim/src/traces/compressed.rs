//! Files that may be compressed: what they are is seen at their beginning, whatever their name.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::GzDecoder;
use ruzstd::decoding::StreamingDecoder;

/// A file's text.
pub type Input = Box<dyn BufRead + Send>;

/// Bytes that are read at a time.
const BUFFER: usize = 256 * 1024;
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// A zstd file may begin with frames to be skipped: 0x184d2a50 to 0x184d2a5f.
const ZSTD_SKIPPED: [u8; 3] = [0x2a, 0x4d, 0x18];
/// What programs of Windows write before text in UTF-8.
const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// Returns a file's text, without a byte-order mark.
pub(super) fn open(file: File) -> io::Result<Input> {
    let mut text = decompressed(file)?;
    if text.fill_buf()?.starts_with(&BYTE_ORDER_MARK) {
        text.consume(BYTE_ORDER_MARK.len());
    }
    Ok(text)
}

fn decompressed(file: File) -> io::Result<Input> {
    let mut file = BufReader::with_capacity(BUFFER, file);
    let begins = file.fill_buf()?;
    if begins.starts_with(&GZIP) {
        return Ok(Parts::<Member>::of(file));
    }
    if begins.starts_with(&ZSTD) || (begins.len() > 3 && begins[1..4] == ZSTD_SKIPPED && begins[0] >> 4 == 5) {
        return Ok(Parts::<Frame>::of(file));
    }
    Ok(Box::new(file))
}

/// A compressed part of a file: parts may follow one another.
trait Part: Read + Sized {
    /// Name of the format.
    const FORMAT: &'static str;
    /// Begins the next part; `None` at the end of the file, with what may be behind the last part.
    fn begin(input: BufReader<File>) -> io::Result<Option<Self>>;
    /// Returns what is behind it.
    fn rest(self) -> BufReader<File>;
}

/// The parts of a file one after another.
struct Parts<P> {
    input: Option<BufReader<File>>,
    part: Option<P>,
}

impl<P: Part + Send + 'static> Parts<P> {
    fn of(file: BufReader<File>) -> Input {
        Box::new(BufReader::with_capacity(BUFFER, Parts::<P> { input: Some(file), part: None }))
    }
}

impl<P: Part> Read for Parts<P> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(part) = &mut self.part {
                let read = part.read(buffer).map_err(damaged::<P>)?;
                if read > 0 || buffer.is_empty() {
                    return Ok(read);
                }
                self.input = self.part.take().map(P::rest);
            }
            let Some(input) = self.input.take() else { return Ok(0) };
            self.part = P::begin(input)?;
            if self.part.is_none() {
                return Ok(0);
            }
        }
    }
}

/// An error in compressed data, with what its decoder found.
fn damaged<P: Part>(why: impl Display) -> io::Error {
    let format = P::FORMAT;
    io::Error::new(io::ErrorKind::InvalidData, format!("expected {format} data, found it damaged or cut off ({why})"))
}

/// A member of a gzip file: files that were joined have several. Zeros behind the last one are
/// passed over, as gzip does: they fill a block of a tape or an archive.
type Member = GzDecoder<BufReader<File>>;

impl Part for Member {
    const FORMAT: &'static str = "gzip";

    fn begin(mut input: BufReader<File>) -> io::Result<Option<Member>> {
        let zeros = skip_zeros(&mut input)?;
        match (input.fill_buf()?.is_empty(), zeros) {
            (true, _) => Ok(None),
            (false, 0) => Ok(Some(GzDecoder::new(input))),
            (false, _) => Err(damaged::<Member>("data behind the zeros at its end")),
        }
    }

    fn rest(self) -> BufReader<File> {
        self.into_inner()
    }
}

/// Passes over zeros; returns their number.
fn skip_zeros(input: &mut impl BufRead) -> io::Result<usize> {
    let mut all = 0;
    loop {
        let bytes = input.fill_buf()?;
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        let others = zeros < bytes.len();
        input.consume(zeros);
        all += zeros;
        if others || zeros == 0 {
            return Ok(all);
        }
    }
}

/// A frame of a zstd file: tools that compress in parallel write several.
type Frame = StreamingDecoder<BufReader<File>, ruzstd::decoding::FrameDecoder>;

impl Part for Frame {
    const FORMAT: &'static str = "zstd";

    fn begin(mut input: BufReader<File>) -> io::Result<Option<Frame>> {
        loop {
            let begins = input.fill_buf()?;
            if begins.is_empty() {
                return Ok(None);
            }
            if begins.len() <= 3 || begins[1..4] != ZSTD_SKIPPED {
                return StreamingDecoder::new(input).map(Some).map_err(damaged::<Frame>);
            }
            let mut head = [0; 8];
            input.read_exact(&mut head)?;
            let length = u64::from(u32::from_le_bytes([head[4], head[5], head[6], head[7]]));
            if io::copy(&mut (&mut input).take(length), &mut io::sink())? < length {
                return Err(damaged::<Frame>("a frame to be skipped ends early"));
            }
        }
    }

    fn rest(self) -> BufReader<File> {
        self.into_inner()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        compress_to_vec(bytes, CompressionLevel::Fastest)
    }

    /// What is read from a file with these bytes.
    fn read(name: &str, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let path = std::env::temp_dir().join(format!("headtime-{name}-{}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        let mut all = Vec::new();
        let result = open(File::open(&path).unwrap()).and_then(|mut input| input.read_to_end(&mut all));
        std::fs::remove_file(&path).unwrap();
        result.map(|_| all)
    }

    #[test]
    fn what_was_compressed_is_read_in_one_piece_or_several() {
        let text: Vec<u8> = (0..40_000u32).flat_map(|i| format!("{i} 0 8 8 1\n").into_bytes()).collect();
        assert_eq!(read("plain", &text).unwrap(), text);
        let (a, b) = text.split_at(1000);
        assert_eq!(read("gz", &gzip(&text)).unwrap(), text);
        assert_eq!(read("gz2", &[gzip(a), gzip(b)].concat()).unwrap(), text);
        assert_eq!(read("zst", &zstd(&text)).unwrap(), text);
        let skipped = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
        let frames = [skipped.clone(), zstd(a), skipped, zstd(b)].concat();
        assert_eq!(read("zst2", &frames).unwrap(), text);
        assert!(read("empty", b"").unwrap().is_empty());
        for zeros in [1, 512, BUFFER, 3 * BUFFER + 1] {
            assert_eq!(read("zeros", &[gzip(&text), vec![0; zeros]].concat()).unwrap(), text, "{zeros}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_no_text() {
        let text = b"1 2\n".to_vec();
        let marked = [&BYTE_ORDER_MARK[..], &text].concat();
        for bytes in [marked.clone(), gzip(&marked), zstd(&marked)] {
            assert_eq!(read("mark", &bytes).unwrap(), text);
        }
    }

    #[test]
    fn damaged_files_are_errors() {
        let text = b"0 0 8 8 1\n".repeat(10_000);
        for (name, whole) in [("gz", gzip(&text)), ("zst", zstd(&text))] {
            for end in [5, whole.len() / 2, whole.len() - 1] {
                assert!(read(&format!("cut-{name}-{end}"), &whole[..end]).is_err(), "{name}: {end} bytes");
            }
            let after = [&whole[..], b"and more"].concat();
            assert!(read(&format!("after-{name}"), &after).is_err(), "{name}: bytes behind it");
        }
        let zeros_between = [gzip(&text), vec![0; 3], gzip(&text)].concat();
        assert!(read("between", &zeros_between).is_err());
        let e = read("bad", &zstd(&text)[..20]).unwrap_err().to_string();
        assert!(e.starts_with("expected zstd data, found it damaged or cut off ("), "{e}");
    }
}
