//! The address of a server's control interface.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

use tokio::net::UnixStream;

use crate::net::Stream;

/// Opens a connection that does not use a socket.
type Opens = Arc<dyn Fn() -> io::Result<Box<dyn Stream>> + Send + Sync>;

/// The path of a unix socket. If client and server are in one program, as in a simulated server,
/// the connection is in memory and the path is only a name.
#[derive(Clone)]
pub struct Socket {
    path: PathBuf,
    opens: Option<Opens>,
}

impl Socket {
    /// Creates an in-memory connection under a name.
    pub fn in_memory(name: &str, opens: impl Fn() -> io::Result<Box<dyn Stream>> + Send + Sync + 'static) -> Socket {
        Socket { path: name.into(), opens: Some(Arc::new(opens)) }
    }

    pub(super) async fn connect(&self) -> io::Result<Box<dyn Stream>> {
        Ok(match &self.opens {
            Some(opens) => opens()?,
            None => Box::new(UnixStream::connect(&self.path).await?),
        })
    }
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(f)
    }
}

impl Deref for Socket {
    type Target = Path;
    fn deref(&self) -> &Path {
        &self.path
    }
}

impl From<PathBuf> for Socket {
    fn from(path: PathBuf) -> Socket {
        Socket { path, opens: None }
    }
}

impl From<&PathBuf> for Socket {
    fn from(path: &PathBuf) -> Socket {
        path.clone().into()
    }
}

impl From<&Path> for Socket {
    fn from(path: &Path) -> Socket {
        path.to_path_buf().into()
    }
}

impl From<&Socket> for Socket {
    fn from(socket: &Socket) -> Socket {
        socket.clone()
    }
}
