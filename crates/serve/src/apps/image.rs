//! An image file, written block by block in any order; blocks of zeros are holes.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use headtime_sched::TaskRange;
use rustix::fs::{Advice, FallocateFlags, FlockOperation, fadvise, fallocate, flock};

use super::error::{AppError, plain_or_none};
use super::progress::Progress;
use super::ranges::Ranges;
use super::sums::{Known, Sums, sum};
use crate::private;

/// The granularity at which file systems allocate.
const BLOCK: usize = 4096;

/// Returns the path of a file that belongs to an image.
pub fn beside(image: &Path, what: &str) -> PathBuf {
    let mut name = image.file_name().unwrap_or_default().to_os_string();
    name.push(what);
    image.with_file_name(name)
}

/// Removes a file if it exists.
pub fn remove(path: &Path) -> Result<(), AppError> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(AppError::file(path, e)),
        _ => Ok(()),
    }
}

/// Checks before reading that a file of this name can be created at the end. An existing one is
/// replaced, so it must be a plain file that no server or other program has locked: that program
/// would continue on a deleted file.
pub fn name_fits(image: &Path) -> Result<(), AppError> {
    plain_or_none(image)?;
    if let Ok(file) = File::open(image) {
        lock(&file, image)?;
    }
    match image.file_name().is_none() || image.as_os_str().as_encoded_bytes().ends_with(b"/") {
        true => Err(AppError::NoName(image.into())),
        false => Ok(()),
    }
}

/// Renames a finished image. The target is checked again: reading a disk takes long, and a server
/// may have been started on it.
pub fn take_name(part: &Path, image: &Path) -> Result<(), AppError> {
    name_fits(image)?;
    private::rename(part, image).map_err(|e| AppError::file(image, e))
}

fn lock(file: &File, path: &Path) -> Result<(), AppError> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(AppError::InUse(path.into())),
        Err(e) => Err(AppError::file(path, e.into())),
    }
}

fn locked(path: &Path, make: bool) -> Result<File, AppError> {
    plain_or_none(path)?;
    let file = private::open(path, make).map_err(|why| AppError::file(path, why))?;
    lock(&file, path)?;
    Ok(file)
}

/// An image file.
#[derive(Debug)]
pub struct Image {
    file: File,
    path: PathBuf,
    /// Whether the file may hold old data, which zeros must replace.
    used: bool,
}

impl Image {
    /// Opens an unfinished image of `bytes` bytes and locks it.
    pub fn again(path: &Path, bytes: u64) -> Result<Image, AppError> {
        let file = locked(path, false)?;
        let len = file.metadata().map_err(|e| AppError::file(path, e))?.len();
        if len != bytes {
            let why = format!("expected an unfinished image of {bytes} bytes, found {len}");
            return Err(AppError::Leftover { path: path.into(), why });
        }
        Ok(Image { file, path: path.into(), used: true })
    }

    /// Creates an empty image of `bytes` bytes and locks it. `forget` removes the files that
    /// describe an image of this name; it is called with the lock held and before existing data is
    /// lost.
    pub fn anew(path: &Path, bytes: u64, forget: impl FnOnce() -> Result<(), AppError>) -> Result<Image, AppError> {
        let file = locked(path, true)?;
        forget()?;
        file.set_len(0).and_then(|()| file.set_len(bytes)).map_err(|e| AppError::file(path, e))?;
        Ok(Image { file, path: path.into(), used: false })
    }

    /// Writes data at `offset`.
    pub fn put(&self, offset: u64, data: &[u8]) -> Result<(), AppError> {
        if self.used {
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            if fallocate(&self.file, hole, offset, data.len() as u64).is_err() {
                // The file system does not support holes: the zeros are written.
                return self.write(offset, data);
            }
        }
        let is_zero = |block: &[u8]| block.iter().all(|&b| b == 0);
        let mut at = 0;
        for run in data.chunks(BLOCK).collect::<Vec<_>>().chunk_by(|a, b| is_zero(a) == is_zero(b)) {
            let len: usize = run.iter().map(|b| b.len()).sum();
            if !is_zero(run[0]) {
                self.write(offset + at as u64, &data[at..at + len])?;
            }
            at += len;
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), AppError> {
        self.file.write_all_at(data, offset).map_err(|e| AppError::file(&self.path, e))
    }

    /// Makes written data durable.
    pub fn sync(&self) -> Result<(), AppError> {
        self.file.sync_data().map_err(|e| AppError::file(&self.path, e))
    }

    /// Reads everything back from the medium, compares it with the checksums, and returns the units
    /// that differ. `stop` is called periodically with the number of bytes read; if it returns
    /// true, the result is `None`.
    pub fn verify(
        &self,
        progress: &Progress,
        sums: &Sums,
        mut stop: impl FnMut(u64) -> bool,
    ) -> Result<Option<Ranges>, AppError> {
        self.sync()?;
        // Drops cached pages so that the medium is read. If that fails, the page cache is read.
        let _ = fadvise(&self.file, 0, None, Advice::DontNeed);
        let _ = fadvise(&self.file, 0, None, Advice::Sequential);
        let (units, sector) = (progress.units(), progress.sector_bytes());
        let (mut data, mut wrong, mut read) = (Vec::new(), Ranges::default(), 0);
        for index in 0..units.len() {
            let range: TaskRange = units.range(index);
            data.resize((range.count * sector) as usize, 0);
            let offset = units.offset(range.lbn) * sector;
            self.file.read_exact_at(&mut data, offset).map_err(|e| AppError::file(&self.path, e))?;
            match sums.get(index)? {
                Known::Sum(s) if s == sum(&data) => {}
                // A unit with unreadable sectors has no sum.
                Known::Nothing if holds_unreadable(progress, range) => {}
                Known::Sum(_) | Known::Nothing | Known::Damaged => wrong.insert(range),
            }
            read += data.len() as u64;
            if index % 64 == 0 && stop(read) {
                return Ok(None);
            }
        }
        Ok(Some(wrong))
    }
}

fn holds_unreadable(progress: &Progress, range: TaskRange) -> bool {
    progress.unreadable_ranges().iter().any(|r| r.overlaps(&range))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apps::units::Units;
    use std::os::unix::fs::MetadataExt;

    fn parts(dir: &Path) -> (Image, Sums, Progress) {
        let units = Units::new(vec![TaskRange { lbn: 8, count: 1000 }], 64, 2000, 512).unwrap();
        let progress = Progress::new("backup", "d", 2000, 512, "x", units);
        let sums = Sums::open(&dir.join("s"), progress.identity(), progress.units().len()).unwrap().0;
        (Image::anew(&dir.join("i"), 1000 * 512, || Ok(())).unwrap(), sums, progress)
    }

    #[test]
    fn zeros_are_holes_and_replace_what_was_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("i");
        let image = Image::anew(&path, 1 << 20, || Ok(())).unwrap();
        image.put(0, &[0; 65536]).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().blocks(), 0);
        let mut data = vec![0; 65536];
        data[5000] = 1;
        image.put(65536, &data).unwrap();
        image.sync().unwrap();
        assert!(std::fs::metadata(&path).unwrap().blocks() <= 16);
        assert!(matches!(Image::again(&path, 1 << 20), Err(AppError::InUse(_))));
        drop(image);
        let image = Image::again(&path, 1 << 20).unwrap();
        image.put(65536, &[0; 65536]).unwrap();
        assert!(std::fs::read(&path).unwrap().iter().all(|&b| b == 0));
        drop(image);
        assert!(matches!(Image::again(&path, 1 << 19), Err(AppError::Leftover { .. })));
        assert!(matches!(Image::again(&dir.path().join("none"), 1 << 19), Err(AppError::File { .. })));
    }

    #[test]
    fn an_image_that_differs_from_what_came_is_found_out() {
        let dir = tempfile::tempdir().unwrap();
        let (image, sums, mut progress) = parts(dir.path());
        for index in 0..progress.units().len() {
            let range = progress.units().range(index);
            let data = vec![index as u8; (range.count * 512) as usize];
            image.put(progress.units().offset(range.lbn) * 512, &data).unwrap();
            sums.set(index, sum(&data)).unwrap();
            progress.mark(index);
        }
        assert!(image.verify(&progress, &sums, |_| false).unwrap().unwrap().is_empty());
        assert!(image.verify(&progress, &sums, |_| true).unwrap().is_none());
        image.write(64 * 512 * 3 + 7, &[99]).unwrap();
        sums.clear(5).unwrap();
        let wrong = image.verify(&progress, &sums, |_| false).unwrap().unwrap();
        let unit = |i: u64| TaskRange { lbn: 8 + i * 64, count: 64 };
        assert_eq!(wrong.iter().collect::<Vec<_>>(), [unit(3), unit(5)]);
        progress.unreadable(TaskRange { lbn: unit(5).lbn + 1, count: 1 });
        assert_eq!(image.verify(&progress, &sums, |_| false).unwrap().unwrap().len(), 1);
    }
}
