//! The checkpoint of a characterisation, from which another run can resume.
//!
//! A text file next to the output: a JSON header line that identifies the run, then one line for
//! each command and its answer in the format of [`headtime_probe::journal`], and comment lines that
//! begin with `#`. The last line may be truncated. After a power failure the last lines may be
//! zeros: the first line with zeros ends the file.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use headtime_probe::journal::{self, Entry};
use serde::{Deserialize, Serialize};

use headtime_serve::private;

use crate::failure::Failure;
use crate::screen;

/// Flush interval: the most that a crash of the machine can lose.
const FLUSH_INTERVAL: Duration = Duration::from_secs(2);
/// Longest line, bytes. A line holds one batch of commands.
const MAX_LINE_BYTES: u64 = 1 << 20;

/// The header, which identifies the run. A run may resume only if the whole header is equal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// This program's version: another version may request other sectors.
    pub headtime: String,
    /// The drive's model, with its serial number if known.
    pub drive: String,
    /// Capacity of the drive.
    pub sectors: u64,
    /// Sector size.
    pub sector_bytes: u32,
    /// Queue depth: most commands in flight.
    pub depth: u32,
    /// The seed of the run.
    pub seed: u64,
    /// Whether the run writes.
    pub destructive: bool,
    /// Whether the run looks for rare events.
    pub thorough: bool,
}

/// The checkpoint file of a run.
#[derive(Debug)]
pub struct Checkpoint {
    path: PathBuf,
    /// `None`: writing failed.
    out: Option<BufWriter<File>>,
    flushed: Instant,
    entries: u64,
}

/// Returns the checkpoint's path, next to the output.
pub fn of(output: &Path) -> PathBuf {
    let mut name = output.file_name().unwrap_or_default().to_os_string();
    name.push(".unfinished");
    output.with_file_name(name)
}

fn bad(path: &Path, what: impl std::fmt::Display) -> Failure {
    Failure::Input(format!("{}: {what}", path.display()))
}

impl Checkpoint {
    /// Creates a new checkpoint.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn begin(path: &Path, head: &Head) -> Result<Checkpoint, Failure> {
        let line = serde_json::to_string(head).map_err(Failure::input)?;
        // The file gets its name only when its header is complete: no run can resume from an empty
        // file.
        let file = private::write_whole(path, |file| writeln!(file, "{line}")).map_err(|e| bad(path, e))?;
        let out = Some(BufWriter::new(file));
        Ok(Checkpoint { path: path.to_path_buf(), out, flushed: Instant::now(), entries: 0 })
    }

    /// Returns a checkpoint that keeps nothing: the output is not a regular file.
    pub fn none(path: &Path) -> Checkpoint {
        Checkpoint { path: path.to_path_buf(), out: None, flushed: Instant::now(), entries: 0 }
    }

    /// Reads an earlier run's entries, and opens its file for more.
    ///
    /// # Errors
    /// There is no file, it is not a checkpoint, or it belongs to another drive, seed or version.
    pub fn resume(path: &Path, head: &Head) -> Result<(Vec<Entry>, Checkpoint), Failure> {
        let file = private::open(path, false).map_err(|e| bad(path, e))?;
        let mut lines = BufReader::new(file);
        let mut line = String::new();
        let mut next = |line: &mut String| -> Result<u64, Failure> {
            line.clear();
            let read = (&mut lines).take(MAX_LINE_BYTES).read_line(line).map_err(|e| bad(path, e))?;
            if read as u64 == MAX_LINE_BYTES && !line.ends_with('\n') && !line.contains('\0') {
                return Err(bad(path, format!("expected lines of at most {MAX_LINE_BYTES} bytes, found a longer one")));
            }
            Ok(if line.ends_with('\n') { read as u64 } else { 0 })
        };
        let mut whole = next(&mut line)?;
        let found: Head = serde_json::from_str(&line)
            .map_err(|e| bad(path, format!("line 1: expected what an unfinished characterisation left, found {e}")))?;
        if found != *head {
            let shown = |h: &Head| serde_json::to_string(h).unwrap_or_default();
            return Err(bad(path, format!("expected a run of {}, found one of {}", shown(head), shown(&found))));
        }
        let mut entries = Vec::new();
        for number in 2u64.. {
            let read = next(&mut line)?;
            if line.contains('\0') {
                screen::warn(&format!("{}: goes on from line {number}; the rest was lost", path.display()));
                break;
            }
            if read == 0 {
                break;
            }
            let text = line.trim_end();
            if !text.starts_with('#') {
                let here = journal::parse(text);
                entries.extend(here.ok_or_else(|| {
                    bad(path, format!("line {number}: expected a command and its answer, found {text:.60}"))
                })?);
            }
            whole += read;
        }
        let mut file = private::open(path, false).map_err(|e| bad(path, e))?;
        // A truncated last line is dropped.
        file.set_len(whole).and_then(|()| file.seek(SeekFrom::Start(whole))).map_err(|e| bad(path, e))?;
        let out = Some(BufWriter::new(file));
        let kept = Checkpoint { path: path.to_path_buf(), out, flushed: Instant::now(), entries: entries.len() as u64 };
        Ok((entries, kept))
    }

    /// Appends a line. After a write error the file is no longer written, and one note says so.
    fn line(&mut self, text: &str) {
        let Some(out) = &mut self.out else { return };
        let is_due = self.flushed.elapsed() >= FLUSH_INTERVAL;
        let kept = |out: &mut BufWriter<File>| out.flush().and_then(|()| out.get_ref().sync_data());
        let done = writeln!(out, "{text}").and_then(|()| if is_due { kept(out) } else { Ok(()) });
        if is_due {
            self.flushed = Instant::now();
        }
        if let Err(e) = done {
            screen::warn(&format!("{}: {e}; nothing more is kept for --resume", self.path.display()));
            self.out = None;
        }
    }

    /// Appends answered commands, or readings of the clock.
    pub fn tell(&mut self, entries: &[Entry]) {
        self.entries += entries.len() as u64;
        self.line(&journal::line(entries));
    }

    /// Keeps the file of a run that ended early, and notes its end and findings. Without any answer
    /// the file is discarded.
    pub fn keep(mut self, ended: &str, found: &[String]) {
        if self.entries == 0 {
            return self.discard();
        }
        for line in found {
            self.line(&format!("# {}", line.replace('\n', " ")));
        }
        self.line(&format!("# ended: {}", ended.replace('\n', " ")));
        if let Some(mut out) = self.out.take()
            && out.flush().and_then(|()| out.get_ref().sync_data()).is_ok()
        {
            screen::note(&format!("--resume goes on from {}", self.path.display()));
        }
    }

    /// Stops writing and removes the file.
    pub fn give_room(&mut self) {
        self.out = None;
        let _ = std::fs::remove_file(&self.path);
    }

    /// Removes the file, which is no longer needed.
    pub fn discard(self) {
        drop(self.out);
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use headtime_disk::{Outcome, Time};
    use headtime_probe::device::{Answer, Ask};

    use super::*;

    /// A scratch directory of a test.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let dir = std::env::temp_dir().join(format!("headtime-checkpoint-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&dir).unwrap();
            Scratch(dir)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn head() -> Head {
        Head {
            headtime: "0".into(),
            drive: "it".into(),
            sectors: 100,
            sector_bytes: 512,
            depth: 2,
            seed: 7,
            destructive: false,
            thorough: false,
        }
    }

    fn ran(lbn: u64) -> Entry {
        Entry::Ran(Ask::read(lbn, 1), Answer { sent: Time(lbn), done: Time(lbn + 5), outcome: Outcome::Ok })
    }

    #[test]
    fn a_hole_that_a_power_failure_left_ends_the_file() {
        let dir = Scratch::new("hole");
        let path = of(&dir.0.join("p.toml"));
        let mut first = Checkpoint::begin(&path, &head()).unwrap();
        first.tell(&[ran(3)]);
        first.keep("stopped", &[]);
        let whole = std::fs::read_to_string(&path).unwrap();
        for hole in [1, 3 * MAX_LINE_BYTES as usize] {
            let mut text = whole.clone().into_bytes();
            text.extend(vec![0; hole]);
            text.extend(format!("\n{}\n", journal::line(&[ran(9)])).bytes());
            std::fs::write(&path, text).unwrap();
            assert_eq!(Checkpoint::resume(&path, &head()).unwrap().0, [ran(3)]);
            assert_eq!(std::fs::read_to_string(&path).unwrap(), whole, "the rest is cut off");
        }
    }

    #[test]
    fn what_was_kept_is_had_again_but_for_a_line_that_was_cut_off() {
        let dir = Scratch::new("kept");
        let path = of(&dir.0.join("p.toml"));
        assert!(path.ends_with("p.toml.unfinished"));
        let mut first = Checkpoint::begin(&path, &head()).unwrap();
        first.tell(&[Entry::Now(Time(1))]);
        first.tell(&[ran(3), ran(4)]);
        first.keep("stopped", &["period: 6 ms".into()]);
        let mut file = File::options().append(true).open(&path).unwrap();
        write!(file, "read 9 1 0 1").unwrap();
        let (entries, mut second) = Checkpoint::resume(&path, &head()).unwrap();
        assert_eq!(entries, [Entry::Now(Time(1)), ran(3), ran(4)]);
        second.tell(&[ran(9)]);
        second.keep("stopped", &[]);
        assert_eq!(Checkpoint::resume(&path, &head()).unwrap().0, [Entry::Now(Time(1)), ran(3), ran(4), ran(9)]);
        Checkpoint::resume(&path, &head()).unwrap().1.discard();
        assert!(!path.exists());
    }

    #[test]
    fn a_run_of_another_drive_and_a_damaged_file_are_refused_with_the_line() {
        let dir = Scratch::new("damaged");
        let path = dir.0.join("x");
        let said = |text: &str| {
            std::fs::write(&path, text).unwrap();
            format!("{:?}", Checkpoint::resume(&path, &head()).unwrap_err())
        };
        let first = serde_json::to_string(&head()).unwrap();
        assert!(said("").contains("line 1"));
        assert!(said("{}\n").contains("line 1"));
        assert!(said(&format!("{}\n", first.replace("512", "4096"))).contains("4096"));
        // The same length, another header.
        assert!(said(&format!("{}\n", first.replace("\"it\"", "\"sdb S123\""))).contains("S123"));
        assert!(said(&format!("{}\n", first.replace("\"thorough\":false", "\"thorough\":true"))).contains("thorough"));
        assert!(said(&format!("{first}\nnow 1\nwalk\n")).contains("line 3"));
        // No answer: no file is kept.
        Checkpoint::begin(&path, &head()).unwrap().keep("stopped", &[]);
        assert!(!path.exists());
    }
}
