//! `headtime attach` and `headtime detach`: attach an export as a block device of this machine and
//! detach it.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use headtime_host::attach::{Attachments, Export, Listed, Means, Method, Status};
use headtime_host::state;
use serde::Serialize;

use crate::failure::Failure;
use crate::{control_socket, nbd_uri, screen};

/// Attach an export as a block device, for file systems and programs without NBD support
///
/// Prints the device. Uses the kernel's NBD client if available (module nbd, and nbd-client),
/// otherwise nbdfuse and a loop device. Requires root. The device stays attached until `headtime
/// detach`, after this command has ended too.
#[derive(Debug, Args)]
pub struct Attach {
    /// The export's name ("" for the unnamed one), or an NBD URI
    #[arg(value_name = "EXPORT|URI", required_unless_present = "list")]
    export: Option<String>,
    /// The server's NBD socket [default: nbd.sock here, or in $XDG_RUNTIME_DIR/headtime, or in
    /// /run/headtime]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Name of the attachment [default: the export's name, or "disk"]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The kernel's NBD client, or nbdfuse; auto uses the kernel's if available
    #[arg(long, value_enum, default_value = "auto")]
    method: Way,
    /// Refuse writes
    #[arg(long)]
    read_only: bool,
    /// Sector size of the device in bytes: 512, 1024, 2048 or 4096
    #[arg(long, value_name = "N", default_value = "512")]
    sector_size: u32,
    /// Only list the attachments
    #[arg(long, conflicts_with_all = ["export", "socket", "name", "read_only"])]
    list: bool,
    /// Print JSON on stdout
    #[arg(long)]
    json: bool,
}

/// Detach an attached export
///
/// Flushes written data first. A device that is mounted or in use stays attached.
#[derive(Debug, Args)]
pub struct Detach {
    /// Name of the attachment, or its device
    #[arg(value_name = "NAME|DEVICE")]
    attachment: String,
}

// The variants have no doc comments, so that help lists them on one line.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Way {
    Auto,
    Kernel,
    Fuse,
}

impl From<Way> for Method {
    fn from(way: Way) -> Method {
        match way {
            Way::Auto => Method::Auto,
            Way::Kernel => Method::Kernel,
            Way::Fuse => Method::Fuse,
        }
    }
}

fn attachments() -> Attachments {
    Attachments::in_directory(state::default_directory())
}

/// Attaches an export, or lists the attachments.
pub fn attach(args: &Attach) -> Result<(), Failure> {
    let host = attachments();
    let export = match &args.export {
        Some(export) if !args.list => export,
        _ => return list(&host, args.json),
    };
    let (uri, exported) = match scheme(export) {
        true if args.socket.is_some() => {
            return Err(Failure::input("--socket: expected an export's name beside it, found a URI, which says where"));
        }
        true => (from_anywhere(export)?, name_in(export)),
        false => (
            nbd_uri::at_socket(export, &args.socket.clone().unwrap_or_else(|| control_socket::usual("nbd.sock"))),
            export.clone(),
        ),
    };
    let name = match &args.name {
        Some(name) => name.clone(),
        None if exported.is_empty() => "disk".into(),
        None => exported,
    };
    let (method, sector_size, read_only) = (args.method.into(), args.sector_size, args.read_only);
    let attached =
        host.attach(&Export { method, sector_size, read_only, ..Export::new(uri, name) }).map_err(Failure::input)?;
    for warning in &attached.warnings {
        screen::warn(&warning.to_string());
    }
    if args.json {
        return screen::print_json(&attached);
    }
    let device = attached.device.as_deref().unwrap_or(Path::new(""));
    screen::print(&format!("{}\n", device.display()))
}

/// Detaches an export.
pub fn detach(args: &Detach) -> Result<(), Failure> {
    let host = attachments();
    let Some(detached) = host.detach(&args.attachment).map_err(Failure::input)? else {
        let known: Vec<String> =
            host.list().unwrap_or_default().into_iter().flatten().map(|l| l.attached.name).collect();
        let known = if known.is_empty() { "nothing is".to_string() } else { known.join(", ") };
        return Err(Failure::Input(format!("nothing called '{}' is attached (attached: {known})", args.attachment)));
    };
    match detached.unflushed {
        None => Ok(()),
        Some(why) => {
            screen::note(&format!("detached, but the last flush failed, so that writes may be lost: {why}"));
            Err(Failure::Check)
        }
    }
}

#[derive(Serialize)]
struct Row {
    name: String,
    device: Option<PathBuf>,
    uri: String,
    method: &'static str,
    status: String,
}

fn row(listed: Listed) -> Row {
    let Listed { attached, status } = listed;
    Row {
        name: attached.name,
        device: attached.device,
        uri: attached.uri,
        method: match attached.means {
            Means::Fuse { .. } => "fuse",
            Means::Kernel { .. } => "kernel",
        },
        status: match status {
            Status::Working => "working".into(),
            Status::Half => "half attached".into(),
            Status::Broken { what } => format!("broken: {what}"),
        },
    }
}

fn list(host: &Attachments, json: bool) -> Result<(), Failure> {
    let mut rows = Vec::new();
    let mut unreadable = None;
    for listed in host.list().map_err(Failure::input)? {
        match listed {
            Ok(listed) => rows.push(row(listed)),
            Err(e) => unreadable = Some(e),
        }
    }
    if json {
        screen::print_json(&rows)?;
    } else {
        let cells = rows.into_iter().map(|r| {
            let device = r.device.map_or("-".into(), |d| d.display().to_string());
            vec![r.name, device, r.method.into(), r.status, r.uri]
        });
        screen::print(&screen::columns(&cells.collect::<Vec<_>>(), &[]))?;
    }
    unreadable.map_or(Ok(()), |e| Err(Failure::input(e)))
}

/// Returns whether the text is an NBD URI.
fn scheme(text: &str) -> bool {
    text.starts_with("nbd") && text.contains("://")
}

/// Checks that the socket path in a URI is absolute: the connecting process runs in another
/// directory.
fn from_anywhere(uri: &str) -> Result<String, Failure> {
    match uri.split_once("socket=") {
        Some((_, path)) if !path.starts_with(['/', '%']) => Err(Failure::input(format!(
            "{uri}: expected the socket's absolute path, found {path} (or name the export, and the socket with \
             --socket)"
        ))),
        _ => Ok(uri.into()),
    }
}

/// Returns the export name at the end of a URI if it can be used in a file name unchanged.
fn name_in(uri: &str) -> String {
    let place = uri.split_once('?').map_or(uri, |(place, _)| place);
    let name = place.split_once("://").and_then(|(_, rest)| rest.split_once('/')).map_or("", |(_, name)| name);
    if name.contains('%') { String::new() } else { name.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_that_is_found_from_one_directory_only_is_refused() {
        assert!(from_anywhere("nbd+unix:///data?socket=nbd.sock").is_err());
        for good in ["nbd+unix:///data?socket=/run/s", "nbd://localhost/data", "nbd+unix:///?socket=%2Frun%2Fs"] {
            assert_eq!(from_anywhere(good).unwrap(), good);
        }
    }

    #[test]
    fn a_uris_name_is_the_attachments() {
        assert_eq!(name_in("nbd+unix:///data?socket=/run/s"), "data");
        assert_eq!(name_in("nbd://host:1/archive"), "archive");
        assert_eq!(name_in("nbd://host"), "");
        assert_eq!(name_in("nbd+unix:///a%20b?socket=/run/s"), "");
        assert!(scheme("nbd://host") && !scheme("nbd") && !scheme("data"));
    }
}
