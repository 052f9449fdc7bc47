//! The address of `headtime serve`'s control interface, for the commands that are its clients.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::failure::Failure;

/// Default file name of the socket.
const NAME: &str = "control.sock";

/// `--control PATH`, flattened into the flags of commands.
#[derive(Clone, Debug, Args)]
pub struct ControlSocket {
    /// The server's control socket [default: control.sock here, or in $XDG_RUNTIME_DIR/headtime, or
    /// in /run/headtime]
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
}

impl ControlSocket {
    /// Returns the path to connect to. Without the flag, the socket must be in a usual place.
    pub fn path(&self) -> Result<PathBuf, Failure> {
        let path = self.control.clone().unwrap_or_else(|| usual(NAME));
        match self.control.is_some() || path.exists() {
            true => Ok(path),
            false => Err(Failure::Input(format!(
                "expected a server's socket at {NAME}, in $XDG_RUNTIME_DIR/headtime or at {}, found none: say \
                 --control PATH",
                path.display()
            ))),
        }
    }
}

/// Returns the usual path of a server's socket: the current directory, the user's runtime directory
/// or the system's. A socket owned by another user (neither root nor this one) is used only if it
/// is named explicitly, because its owner controls all data that passes through it.
pub fn usual(name: &str) -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(|dir| Path::new(&dir).join("headtime").join(name));
    let first = [Some(PathBuf::from(name)), runtime].into_iter().flatten().find(|path| is_ours(path));
    first.unwrap_or_else(|| Path::new("/run/headtime").join(name))
}

fn is_ours(path: &Path) -> bool {
    let owners = [0, rustix::process::geteuid().as_raw()];
    std::fs::metadata(path).is_ok_and(|found| owners.contains(&found.uid()))
}
