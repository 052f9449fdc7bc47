//! Where the control interface of `headtime serve` is, for the commands that are its clients.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::failure::Failure;

/// Its name where none is given.
const NAME: &str = "control.sock";

/// `--control PATH`, for commands to flatten into their flags.
#[derive(Clone, Debug, Args)]
pub struct ControlSocket {
    /// The server's control socket [default: control.sock here, or in $XDG_RUNTIME_DIR/headtime, or
    /// in /run/headtime]
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
}

impl ControlSocket {
    /// The path to connect to. Without one, a socket must be where servers usually have it.
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

/// Where a server's socket of this name is usually found: here, in the user's directory of sockets,
/// or in the system's. One that another user than root made is used only if it is named: what is
/// read or written through it is that user's.
pub fn usual(name: &str) -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(|dir| Path::new(&dir).join("headtime").join(name));
    let first = [Some(PathBuf::from(name)), runtime].into_iter().flatten().find(|path| is_ours(path));
    first.unwrap_or_else(|| Path::new("/run/headtime").join(name))
}

fn is_ours(path: &Path) -> bool {
    let owners = [0, rustix::process::geteuid().as_raw()];
    std::fs::metadata(path).is_ok_and(|found| owners.contains(&found.uid()))
}
