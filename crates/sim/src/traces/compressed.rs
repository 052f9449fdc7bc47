//! Files that may be compressed: what they are is seen at their beginning, whatever their name.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;

/// A file's text.
pub type Input = Box<dyn BufRead + Send>;

/// Bytes that are read at a time.
const BUFFER: usize = 256 * 1024;
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// A zstd file may begin with frames to be skipped: 0x184d2a50 to 0x184d2a5f.
const ZSTD_SKIPPED: [u8; 3] = [0x2a, 0x4d, 0x18];

/// Returns a file's text.
pub(super) fn open(file: File) -> io::Result<Input> {
    let mut file = BufReader::with_capacity(BUFFER, file);
    let begins = file.fill_buf()?;
    if begins.starts_with(&GZIP) {
        return Ok(Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(file))));
    }
    if begins.starts_with(&ZSTD) || (begins.len() > 3 && begins[1..4] == ZSTD_SKIPPED && begins[0] >> 4 == 5) {
        return Ok(Box::new(BufReader::with_capacity(BUFFER, Frames { input: Some(file), frame: None })));
    }
    Ok(Box::new(file))
}

/// The frames of a zstd file one after another: tools that compress in parallel write several.
struct Frames {
    input: Option<BufReader<File>>,
    frame: Option<StreamingDecoder<BufReader<File>, ruzstd::decoding::FrameDecoder>>,
}

fn damaged(why: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_string())
}

impl Read for Frames {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(frame) = &mut self.frame {
                let read = frame.read(buffer)?;
                if read > 0 || buffer.is_empty() {
                    return Ok(read);
                }
                self.input = self.frame.take().map(StreamingDecoder::into_inner);
            }
            let Some(mut input) = self.input.take() else { return Ok(0) };
            let begins = input.fill_buf()?;
            if begins.is_empty() {
                return Ok(0);
            }
            if begins.len() > 3 && begins[1..4] == ZSTD_SKIPPED {
                let mut head = [0; 8];
                input.read_exact(&mut head)?;
                let length = u64::from(u32::from_le_bytes([head[4], head[5], head[6], head[7]]));
                if io::copy(&mut (&mut input).take(length), &mut io::sink())? < length {
                    return Err(damaged("a frame to be skipped ends early"));
                }
                self.input = Some(input);
                continue;
            }
            self.frame = Some(StreamingDecoder::new(input).map_err(damaged)?);
        }
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
    }
}
