//! Addresses: `unix:PATH` or `tcp:HOST:PORT`.

use std::fmt;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::Stream;

/// Read and write for the owner and the group; nobody else.
const MODE: u32 = 0o660;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A unix socket.
    Unix(PathBuf),
    /// A host, by name or number, and a port.
    Tcp(String),
}

/// Text that is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected unix:PATH or tcp:HOST:PORT, found \"{found}\"")]
pub struct BadAddress {
    found: String,
}

impl FromStr for Address {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Address, BadAddress> {
        let bad = || BadAddress { found: text.chars().take(80).collect() };
        match text.split_once(':') {
            Some(("unix", path)) if !path.is_empty() => Ok(Address::Unix(path.into())),
            Some(("tcp", host)) => {
                let port = host.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
                if matches!(port, Some(Ok(_))) { Ok(Address::Tcp(host.into())) } else { Err(bad()) }
            }
            _ => Err(bad()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
            Address::Tcp(host) => write!(f, "tcp:{host}"),
        }
    }
}

/// Why nothing can be listened to there.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Something that is no socket has this name.
    #[error("{}: expected a socket or nothing, found another file", .0.display())]
    NoSocket(PathBuf),
    /// Another server listens there.
    #[error("{}: another server listens there", .0.display())]
    InUse(PathBuf),
    /// The system refuses.
    #[error("{address}: {why}")]
    Io {
        /// Where.
        address: Address,
        /// Why.
        why: io::Error,
    },
}

/// Something that listens. A unix socket's file goes when it ends.
#[derive(Debug)]
pub enum Listening {
    /// With the file that goes.
    Unix(UnixListener, SocketFile),
    /// TCP.
    Tcp(TcpListener),
}

/// The file of a socket that we made.
#[derive(Debug)]
pub struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Address {
    /// Listens. The socket of a server that is gone is removed first. Must be called within a tokio runtime.
    pub async fn listen(&self) -> Result<Listening, ListenError> {
        let failed = |why| ListenError::Io { address: self.clone(), why };
        match self {
            Address::Unix(path) => {
                clear(path)?;
                // Nobody can connect before the mode is right: until it has its name the socket is nobody's.
                let hidden = path.with_extension(format!("{}.new", std::process::id()));
                let listener = UnixListener::bind(&hidden).map_err(failed)?;
                let named = std::fs::set_permissions(&hidden, PermissionsExt::from_mode(MODE))
                    .and_then(|()| std::fs::rename(&hidden, path));
                if let Err(why) = named {
                    let _ = std::fs::remove_file(&hidden);
                    return Err(failed(why));
                }
                Ok(Listening::Unix(listener, SocketFile(path.clone())))
            }
            Address::Tcp(host) => Ok(Listening::Tcp(TcpListener::bind(host).await.map_err(failed)?)),
        }
    }

    /// Connects.
    pub async fn connect(&self) -> io::Result<Box<dyn Stream>> {
        Ok(match self {
            Address::Unix(path) => Box::new(UnixStream::connect(path).await?),
            Address::Tcp(host) => Box::new(no_delay(TcpStream::connect(host).await?)),
        })
    }
}

/// Small answers go out at once.
fn no_delay(stream: TcpStream) -> TcpStream {
    let _ = stream.set_nodelay(true);
    stream
}

/// Makes a name free that only a dead server uses.
fn clear(path: &Path) -> Result<(), ListenError> {
    let Ok(found) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !found.file_type().is_socket() {
        return Err(ListenError::NoSocket(path.into()));
    }
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        return Err(ListenError::InUse(path.into()));
    }
    std::fs::remove_file(path).map_err(|why| ListenError::Io { address: Address::Unix(path.into()), why })
}

impl Listening {
    /// The next client.
    pub async fn accept(&self) -> io::Result<Box<dyn Stream>> {
        Ok(match self {
            Listening::Unix(l, _) => Box::new(l.accept().await?.0),
            Listening::Tcp(l) => Box::new(no_delay(l.accept().await?.0)),
        })
    }

    /// The port of a TCP listener, which the system chose when 0 was asked for.
    pub fn port(&self) -> Option<u16> {
        match self {
            Listening::Unix(..) => None,
            Listening::Tcp(l) => l.local_addr().ok().map(|a| a.port()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_printed_alike_and_others_refused() {
        for good in ["unix:/run/headtime/nbd", "unix:S", "tcp:127.0.0.1:10809", "tcp:[::1]:0", "tcp:host:1"] {
            assert_eq!(good.parse::<Address>().unwrap().to_string(), good);
        }
        for bad in ["", "unix:", "unix", "tcp:host", "tcp:host:99999", "udp:host:1", "/run/s"] {
            let e = bad.parse::<Address>().unwrap_err();
            assert!(e.to_string().contains("expected unix:PATH"), "{e}");
        }
    }

    #[tokio::test]
    async fn a_socket_is_for_owner_and_group_and_goes_with_its_server() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let address = Address::Unix(path.clone());
        let listening = address.listen().await.unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
        assert!(matches!(address.listen().await, Err(ListenError::InUse(_))));
        let (a, b) = tokio::join!(listening.accept(), address.connect());
        assert!(a.is_ok() && b.is_ok());
        drop(listening);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn what_a_dead_server_left_is_replaced_and_other_files_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        assert!(Address::Unix(path.clone()).listen().await.is_ok());
        std::fs::write(&path, "precious").unwrap();
        assert!(matches!(Address::Unix(path.clone()).listen().await, Err(ListenError::NoSocket(_))));
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    }
}
