//! Reading of user-supplied text files, which may be neither files, nor small, nor text.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Reads a regular file of at most `most` bytes as text. The error states in one line what was
/// expected and found, without the file's name. Devices, pipes and directories are refused before
/// they are opened: opening a pipe without a writer would block, and a device may be endless.
pub fn text(path: &Path, most: u64) -> Result<String, String> {
    let meta = std::fs::metadata(path).map_err(|e| e.to_string())?;
    if meta.is_dir() {
        return Err("expected a regular file, found a directory".into());
    }
    if !meta.is_file() {
        return Err("expected a regular file, found a device, pipe or socket".into());
    }
    let mut bytes = Vec::new();
    // The reported length is not trusted: for some files it is 0 although they are not empty or are
    // endless.
    let read = File::open(path).and_then(|f| f.take(most.saturating_add(1)).read_to_end(&mut bytes));
    if read.map_err(|e| e.to_string())? as u64 > most {
        return Err(format!("expected at most {most} bytes, found more"));
    }
    let not_text = |at| format!("expected text in UTF-8, found other data at byte {at}");
    String::from_utf8(bytes).map_err(|e| not_text(e.utf8_error().valid_up_to()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_the_limit_and_not_beyond() {
        let path = std::env::temp_dir().join(format!("headtime-input-{}", std::process::id()));
        std::fs::write(&path, "12345678").unwrap();
        assert_eq!(text(&path, 8).unwrap(), "12345678");
        assert_eq!(text(&path, 7).unwrap_err(), "expected at most 7 bytes, found more");
        std::fs::write(&path, [b'a', 0xff]).unwrap();
        assert_eq!(text(&path, 7).unwrap_err(), "expected text in UTF-8, found other data at byte 1");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn what_is_no_regular_file_is_refused() {
        assert!(text(&std::env::temp_dir(), 8).unwrap_err().contains("directory"));
        #[cfg(unix)]
        assert!(text(Path::new("/dev/zero"), 8).unwrap_err().contains("device"));
    }
}
