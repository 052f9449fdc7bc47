//! Attaching through `nbdfuse`, which exposes an export as a file, and a loop device on that file.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions};

use crate::attach::programs::{Program, end, start, wait_until};
use crate::attach::{AttachError, Attached, Attachments, Export, Means, Status, Way, become_flusher, queue};
use crate::blockdev::BlockDevice;
use crate::process::Process;
use crate::state::StateError;
use crate::sys::{self, SysError};
use crate::usage;

/// The file that is the export, in the attachment's directory.
const FILE: &str = "disk";
/// Output of nbdfuse.
const LOG: &str = "nbdfuse.log";
/// PID file, which nbdfuse writes once it serves.
const PID: &str = "nbdfuse.pid";

/// How long nbdfuse may take to end after a signal.
const AFTER_SIGNAL: Duration = Duration::from_secs(2);

/// Checks that all programs are installed, including those needed to detach.
pub(super) fn way(host: &Attachments) -> Result<Way, AttachError> {
    for program in [Program::NbdFuse, Program::Losetup, Program::Fusermount, Program::Setsid] {
        host.programs.find(program)?;
    }
    Ok(Way::Fuse)
}

pub(super) fn attach(
    host: &Attachments,
    export: &Export,
    attached: &mut Attached,
    save: &dyn Fn(&Attached) -> Result<(), StateError>,
) -> Result<(), AttachError> {
    let Means::Fuse { directory, .. } = &attached.means else { return Ok(()) };
    let directory = directory.clone();
    let file = directory.join(FILE);
    DirBuilder::new().mode(0o700).create(&directory).map_err(unusable(&directory))?;
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file).map_err(unusable(&file))?;
    let mut child = start_server(host, export, &directory, &mut attached.warnings)?;
    let recorded = Process::of(&host.sys, child.id()).map_err(AttachError::from).and_then(|process| {
        attached.means = Means::Fuse { directory: directory.clone(), server: process };
        Ok(save(attached)?)
    });
    if let Err(e) = recorded {
        // Without its PID in the state file, detaching would have to search for it.
        end(&mut child);
        return Err(e);
    }
    wait_for_server(host, &mut child, &directory)?;
    let size = fs::metadata(&file).map_err(unusable(&file))?.len();
    if size == 0 {
        return Err(AttachError::Empty { uri: export.uri.clone() });
    }
    if size % u64::from(export.sector_size) != 0 {
        return Err(AttachError::Uneven { uri: export.uri.clone(), size, sector: export.sector_size });
    }
    let sector_size = export.sector_size.to_string();
    let mut arguments = vec!["--direct-io=on".as_ref(), "--sector-size".as_ref(), sector_size.as_ref()];
    if export.read_only {
        arguments.push("--read-only".as_ref());
    }
    arguments.extend(["--show".as_ref(), "--find".as_ref(), file.as_os_str()]);
    let device = PathBuf::from(host.run(Program::Losetup, &arguments)?);
    attached.device = Some(device.clone());
    save(attached)?;
    // losetup only warns when direct I/O is not available.
    let name = device.file_name().unwrap_or_default().to_string_lossy();
    let direct = sys::text_if_there(&host.sys.block(&name).join("loop/dio"))?.unwrap_or_default();
    if direct != "1" {
        return Err(AttachError::NotDirect { device, found: direct });
    }
    queue::set(&host.sys, &device, export, attached);
    save(attached)?;
    Ok(())
}

/// Starts nbdfuse in a session of its own, so that neither Ctrl-C nor closing the terminal ends it.
fn start_server(
    host: &Attachments,
    export: &Export,
    directory: &Path,
    warnings: &mut Vec<String>,
) -> Result<Child, AttachError> {
    let log_path = directory.join(LOG);
    let log = File::create_new(&log_path).map_err(unusable(&log_path))?;
    let same = log.try_clone().map_err(unusable(&log_path))?;
    // A child that leads no process group becomes a session leader without another fork, so its PID
    // stays the same.
    let mut command = host.programs.command(Program::Setsid)?;
    command.arg(host.programs.find(Program::NbdFuse)?).arg("--pidfile").arg(directory.join(PID));
    if export.read_only {
        command.arg("--readonly");
    }
    command.arg(directory.join(FILE)).arg(&export.uri);
    command.stdout(Stdio::from(log)).stderr(Stdio::from(same)).current_dir("/");
    // The child inherits this thread's I/O-flusher state, which is restored right after.
    let was = rustix::process::is_io_flusher().unwrap_or(false);
    if let Err(e) = become_flusher() {
        warnings.push(format!("nbdfuse is no I/O flusher: {e}"));
    }
    let child = start(&mut command);
    if !was {
        let _ = rustix::process::configure_io_flusher_behavior(false);
    }
    let child = child?;
    let spared = host.sys.proc.join(child.id().to_string()).join("oom_score_adj");
    if let Err(e) = fs::write(&spared, "-1000") {
        warnings.push(format!("nbdfuse may be killed when memory is short: cannot write {}: {e}", spared.display()));
    }
    Ok(child)
}

/// Waits until nbdfuse has written its PID file, which it does when it serves. The served file
/// itself is not examined: that would block on a hanging server and could not be interrupted.
fn wait_for_server(host: &Attachments, child: &mut Child, directory: &Path) -> Result<(), AttachError> {
    let said = || fs::read_to_string(directory.join(LOG)).unwrap_or_default().trim().to_string();
    let ready = wait_until(host.within, || match child.try_wait() {
        Ok(Some(status)) => Some(Err(AttachError::Ended { status, said: said() })),
        _ => serves(directory).then_some(Ok(())),
    });
    let what = "nbdfuse".to_string();
    ready.unwrap_or_else(|| Err(AttachError::NotReady { what, within: host.within, said: said() }))
}

/// Whether nbdfuse has written its PID file.
fn serves(directory: &Path) -> bool {
    fs::metadata(directory.join(PID)).is_ok_and(|number| number.len() > 0)
}

pub(super) fn status(
    host: &Attachments,
    attached: &Attached,
    directory: &Path,
    server: Option<&Process>,
) -> Result<Status, AttachError> {
    let (Some(device), Some(server)) = (&attached.device, server) else { return Ok(Status::Half) };
    if !server.is_running(&host.sys)? {
        return Ok(Status::Broken { what: "nbdfuse has ended" });
    }
    let name = device.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if !usage::loops_upon(&host.sys, &directory.join(FILE))?.contains(&name) {
        return Ok(Status::Broken { what: "the loop device is gone" });
    }
    Ok(Status::Working)
}

/// Removes what exists, from the loop device inwards, according to the system's state rather than
/// the state file, which may be incomplete.
pub(super) fn take_down(
    host: &Attachments,
    attached: &Attached,
    directory: &Path,
    server: Option<&Process>,
) -> Result<Option<String>, AttachError> {
    let file = directory.join(FILE);
    let mut unflushed = None;
    for name in usage::loops_upon(&host.sys, &file)? {
        unflushed = detach_loop(host, &name, &attached.queue)?.or(unflushed);
    }
    let server = match server {
        Some(server) => Some(server.clone()),
        None => unrecorded_server(host, directory)?,
    };
    let mounted = unmount(host, &file)?;
    if let Some(server) = server {
        // A server without a mount has no reason to end by itself.
        let patience = if mounted { host.within } else { Duration::ZERO };
        end_server(host, &server, patience)?;
        // A killed server leaves its mount behind.
        unmount(host, &file)?;
    }
    for name in [FILE, LOG, PID] {
        absent(fs::remove_file(directory.join(name))).map_err(unusable(&directory.join(name)))?;
    }
    absent(fs::remove_dir(directory)).map_err(unusable(directory))?;
    Ok(unflushed)
}

/// Detaches a loop device; returns the error of the last flush, if it failed.
fn detach_loop(
    host: &Attachments,
    name: &str,
    settings: &[crate::tuning::Setting],
) -> Result<Option<String>, AttachError> {
    let device = host.sys.dev.join(name);
    let behind = host.sys.block(name).join("loop/backing_file");
    // Held until losetup is done, so that the device cannot be mounted in between.
    let claimed = BlockDevice::inspect(&host.sys, &device)?.claim()?;
    let unflushed = rustix::fs::fsync(&claimed).err().map(|e| e.to_string());
    queue::put_back(&host.sys, &device, settings);
    host.run(Program::Losetup, &["--detach".as_ref(), device.as_os_str()])?;
    drop(claimed);
    // The kernel detaches the device on the last close; udev often opens it briefly at this point.
    let gone = wait_until(host.within, || (!behind.exists()).then_some(()));
    gone.map(|()| unflushed).ok_or(AttachError::StillOpen { device })
}

/// Unmounts the file; returns whether it was mounted.
fn unmount(host: &Attachments, file: &Path) -> Result<bool, AttachError> {
    if !usage::is_mount_point(&host.sys, file)? {
        return Ok(false);
    }
    // A loop device that has just been detached may keep it busy for a moment.
    let mut last = None;
    let done = wait_until(host.within, || match host.run(Program::Fusermount, &["-u".as_ref(), file.as_os_str()]) {
        Ok(_) => Some(()),
        Err(e) => {
            last = Some(e);
            usage::is_mount_point(&host.sys, file).is_ok_and(|mounted| !mounted).then_some(())
        }
    });
    match (done, last) {
        (None, Some(e)) => Err(e.into()),
        _ => Ok(true),
    }
}

/// Finds an nbdfuse process that has this directory's file in its command line but is not in the
/// state file, because the attaching process died in between.
fn unrecorded_server(host: &Attachments, directory: &Path) -> Result<Option<Process>, SysError> {
    let file = directory.join(FILE);
    for name in sys::names(&host.sys.proc)? {
        let Ok(pid) = name.parse() else { continue };
        let line = fs::read(host.sys.proc.join(&name).join("cmdline")).unwrap_or_default();
        if line.split(|byte| *byte == 0).any(|word| word == file.as_os_str().as_encoded_bytes())
            && is_nbdfuse(&line)
            && let Some(process) = Process::of(&host.sys, pid)?
        {
            return Ok(Some(process));
        }
    }
    Ok(None)
}

/// Whether a command line is nbdfuse's, or that of setsid about to execute it, by its first two
/// words. Others, such as losetup or an editor, may have the same file in theirs.
fn is_nbdfuse(line: &[u8]) -> bool {
    let name = Program::NbdFuse.name().as_bytes();
    line.split(|byte| *byte == 0).take(2).any(|word| word.rsplit(|byte| *byte == b'/').next() == Some(name))
}

fn end_server(host: &Attachments, server: &Process, patience: Duration) -> Result<(), AttachError> {
    for (signal, within) in [(None, patience), (Some(Signal::TERM), AFTER_SIGNAL), (Some(Signal::KILL), AFTER_SIGNAL)] {
        let pid = i32::try_from(server.pid).ok().and_then(Pid::from_raw);
        if let (Some(signal), Some(pid)) = (signal, pid)
            && server.is_running(&host.sys)?
        {
            let _ = rustix::process::kill_process(pid, signal);
        }
        let ended = wait_until(within, || {
            let running = server.is_running(&host.sys);
            running.is_ok_and(|running| !running).then_some(())
        });
        if ended.is_some() {
            // If it is a child of this process, it must not remain as a zombie.
            let _ = rustix::process::waitpid(pid, WaitOptions::NOHANG);
            return Ok(());
        }
    }
    Err(AttachError::Stays { pid: server.pid, within: patience + 2 * AFTER_SIGNAL })
}

/// Treats "not found" as success of a removal.
fn absent(removed: io::Result<()>) -> io::Result<()> {
    removed.or_else(|e| if e.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(e) })
}

fn unusable(path: &Path) -> impl FnOnce(io::Error) -> AttachError {
    let path = path.to_path_buf();
    move |source| AttachError::File { path, source }
}
