//! Checks the output files before the run: none is an input, and none exists without --overwrite.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use headtime_disk::profile;
use headtime_sim::scenario::Scenario;

use super::Simulate;
use crate::failure::Failure;

/// Refuses outputs that would destroy a file. `disk` is the name of the run's disk.
pub(super) fn check(args: &Simulate, scenario: &Scenario, disk: &str) -> Result<(), Failure> {
    let outputs = [("--perfetto", args.perfetto.as_deref()), ("--requests-out", args.requests_out.as_deref())];
    let outputs: Vec<(&str, &Path)> = outputs.into_iter().filter_map(|(flag, path)| Some((flag, path?))).collect();
    // A file with the name of a built-in drive is not read.
    let profile = profile::builtin_names().all(|known| known != disk).then(|| Path::new(disk));
    let inputs = [("scenario", args.scenario.as_deref()), ("trace", scenario.trace.as_deref()), ("profile", profile)];
    for &(flag, output) in &outputs {
        for (what, input) in inputs.into_iter().filter_map(|(what, input)| Some((what, input?))) {
            if is_same_file(output, input) {
                return Err(Failure::Input(format!(
                    "{flag}: expected another file than the run's {what}, found {}",
                    output.display()
                )));
            }
        }
    }
    if let [(_, one), (_, other)] = outputs[..]
        && is_same_file(one, other)
    {
        let why = format!("--requests-out: expected another file than --perfetto, found {}", other.display());
        return Err(Failure::Input(why));
    }
    for (_, output) in outputs {
        // Devices and pipes are written to, not replaced.
        if !args.overwrite && fs::metadata(output).is_ok_and(|there| there.is_file()) {
            return Err(Failure::Input(format!(
                "{}: expected no file of this name, found one (--overwrite replaces it)",
                output.display()
            )));
        }
    }
    Ok(())
}

/// Returns whether two paths lead to the same file, also through links. Devices and pipes may be
/// both input and output.
fn is_same_file(a: &Path, b: &Path) -> bool {
    match (fs::metadata(a), fs::metadata(b)) {
        (Ok(a), Ok(b)) => a.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino()),
        (Err(_), Err(_)) => matches!((real(a), real(b)), (Ok(a), Ok(b)) if a == b),
        _ => false,
    }
}

/// Returns the path without links; the file itself need not exist.
fn real(path: &Path) -> io::Result<PathBuf> {
    fs::canonicalize(path).or_else(|e| {
        let name = path.file_name().ok_or(e)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok(fs::canonicalize(folder)?.join(name))
    })
}
