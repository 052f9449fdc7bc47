//! Attaching through the kernel's NBD devices and `nbd-client`.

use std::ffi::OsString;
use std::path::Path;

use crate::attach::programs::{Program, ProgramError, wait_until};
use crate::attach::uri::{self, Server};
use crate::attach::{AttachError, Attached, Attachments, Export, Means, Status, Way, queue};
use crate::blockdev::BlockDevice;
use crate::process;
use crate::state::StateError;
use crate::sys::{self, Sys, SysError};

/// Checks that the kernel has NBD devices, that `nbd-client` is installed, and that it supports the
/// URI.
pub(super) fn way(host: &Attachments, export: &Export) -> Result<Way, AttachError> {
    if !host.sys.sys.join("module/nbd").is_dir() && !host.sys.dev.join("nbd0").exists() {
        return Err(AttachError::NoKernelNbd);
    }
    host.programs.find(Program::NbdClient)?;
    let parsed = uri::parse(&export.uri);
    parsed.map(Way::Kernel).ok_or_else(|| AttachError::Uri { found: export.uri.clone(), kernel: true })
}

pub(super) fn attach(
    host: &Attachments,
    export: &Export,
    parsed: &uri::Export,
    attached: &mut Attached,
    save: &dyn Fn(&Attached) -> Result<(), StateError>,
) -> Result<(), AttachError> {
    let devices = devices(&host.sys)?;
    for name in &devices {
        if owner(&host.sys, name)?.is_some() {
            continue;
        }
        let device = host.sys.dev.join(name);
        let arguments = arguments(export, parsed, &device);
        match host.programs.run(Program::NbdClient, &arguments, host.within) {
            Ok(_) => {}
            // Another process connected the device first.
            Err(ProgramError::Failed { .. }) if owner(&host.sys, name)?.is_some() => continue,
            Err(e) => return Err(e.into()),
        }
        let ready = wait_until(host.within, || {
            let size = sys::number::<u64>(&host.sys.block(name).join("size")).unwrap_or(0);
            owner(&host.sys, name).ok().flatten().filter(|_| size > 0)
        });
        let connected = owner(&host.sys, name)?;
        // Recorded even if unusable, because this process has to disconnect it.
        attached.device = Some(device.clone());
        if let Means::Kernel { pid, .. } = &mut attached.means {
            *pid = connected;
        }
        save(attached)?;
        if ready.is_none() {
            let (what, said) = (device.display().to_string(), "it has no size".to_string());
            return Err(AttachError::NotReady { what, within: host.within, said });
        }
        queue::set(&host.sys, &device, export, attached);
        return Ok(save(attached)?);
    }
    Err(AttachError::NoFreeDevice { found: devices.len() })
}

fn arguments(export: &Export, parsed: &uri::Export, device: &Path) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = match &parsed.server {
        Server::Unix(socket) => vec!["-unix".into(), socket.clone(), device.into()],
        Server::Tcp { host, port } => vec![host.into(), port.to_string().into(), device.into()],
    };
    arguments.extend(["-block-size".into(), export.sector_size.to_string().into()]);
    if !parsed.name.is_empty() {
        arguments.extend(["-name".into(), parsed.name.clone().into()]);
    }
    if export.read_only {
        arguments.push("-readonly".into());
    }
    arguments
}

pub(super) fn status(
    host: &Attachments,
    attached: &Attached,
    boot: &str,
    pid: Option<&str>,
) -> Result<Status, AttachError> {
    let (Some(device), Some(pid)) = (&attached.device, pid) else { return Ok(Status::Half) };
    if is_ours(&host.sys, &name(device), boot, pid)? {
        return Ok(Status::Working);
    }
    Ok(Status::Broken { what: "the NBD device is not connected any more" })
}

/// Disconnects the device if the recorded connection still exists; returns the error of the last
/// flush, if it failed.
///
/// A process that dies between the connection and its record leaves a device without a known owner,
/// which must be disconnected by hand.
pub(super) fn take_down(
    host: &Attachments,
    attached: &Attached,
    boot: &str,
    pid: Option<&str>,
) -> Result<Option<String>, AttachError> {
    let (Some(device), Some(pid)) = (&attached.device, pid) else { return Ok(None) };
    let name = name(device);
    let ours = || is_ours(&host.sys, &name, boot, pid);
    if !ours()? {
        return Ok(None);
    }
    // Held until the device is disconnected, so that it cannot be mounted in between.
    let claimed = BlockDevice::inspect(&host.sys, device)?.claim()?;
    let unflushed = rustix::fs::fsync(&claimed).err().map(|e| e.to_string());
    queue::put_back(&host.sys, device, &attached.queue);
    host.run(Program::NbdClient, &["-d".as_ref(), device.as_os_str()])?;
    drop(claimed);
    let gone = wait_until(host.within, || ours().is_ok_and(|ours| !ours).then_some(()));
    gone.map(|()| unflushed).ok_or_else(|| AttachError::StillOpen { device: device.clone() })
}

/// Returns the kernel's NBD devices in numerical order.
fn devices(sys: &Sys) -> Result<Vec<String>, SysError> {
    let number = |name: &str| name.strip_prefix("nbd")?.parse::<u32>().ok();
    let mut devices: Vec<_> = sys::names(&sys.sys.join("class/block"))?;
    // A partition's name has letters after the device's number.
    devices.retain(|name| number(name).is_some());
    devices.sort_by_key(|name| number(name));
    Ok(devices)
}

/// Returns the PID that connected a device; `None` when it is free.
fn owner(sys: &Sys, name: &str) -> Result<Option<String>, SysError> {
    sys::text_if_there(&sys.block(name).join("pid"))
}

/// Whether a device is still connected as recorded. PIDs are reused, at the latest after a reboot.
fn is_ours(sys: &Sys, name: &str, boot: &str, pid: &str) -> Result<bool, SysError> {
    Ok(owner(sys, name)?.as_deref() == Some(pid) && process::boot(sys)? == boot)
}

fn name(device: &Path) -> String {
    device.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
