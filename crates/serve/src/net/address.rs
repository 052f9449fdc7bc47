//! Addresses: `unix:PATH` or `tcp:HOST:PORT`.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;
use std::{fmt, io};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with, sockopt};
use tokio::net::{TcpListener, TcpStream, UnixListener};

use super::Stream;

/// File mode: read and write for the owner and the group only.
const MODE: u32 = 0o660;

/// An address to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A unix socket.
    Unix(PathBuf),
    /// A host name or IP address, and a port.
    Tcp(String),
}

/// TCP keepalive: after this time without a segment from the client, probes are sent at this
/// interval, and after this number of unanswered probes the connection ends.
const ALIVE_AFTER: Duration = Duration::from_secs(60);
const ALIVE_EVERY: Duration = Duration::from_secs(10);
const ALIVE_TIMES: u32 = 6;
/// A client that acknowledges no data for this time is disconnected (TCP_USER_TIMEOUT).
pub const UNACKNOWLEDGED_TIMEOUT: Duration = Duration::from_secs(120);

/// The longest path of a unix socket that the kernel accepts, bytes.
const LONGEST_PATH: usize = 107;

/// Text that is not an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, found {found}")]
pub struct BadAddress {
    /// The valid forms.
    pub expected: String,
    /// The text, shortened.
    pub found: String,
}

/// A path that cannot name a socket.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {}, found {found}", BadSocket::expected())]
pub struct BadSocket {
    /// What is wrong with the path.
    pub found: String,
}

impl BadSocket {
    /// Describes valid paths.
    pub fn expected() -> String {
        format!("a socket's path of 1 to {LONGEST_PATH} bytes")
    }
}

impl FromStr for Address {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Address, BadAddress> {
        let bad = || BadAddress {
            expected: "unix:PATH or tcp:HOST:PORT".into(),
            found: format!("{:?}", text.chars().take(80).collect::<String>()),
        };
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

/// Why listening failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// A file that is not a socket has this name.
    #[error("{}: expected a socket or nothing, found another file", .0.display())]
    NoSocket(PathBuf),
    /// Another server listens on this socket.
    #[error("{}: another server listens there", .0.display())]
    InUse(PathBuf),
    /// The operating system reports an error.
    #[error("{address}: {why}")]
    Io {
        /// The address.
        address: Address,
        /// The cause.
        why: io::Error,
    },
}

/// A listening socket. Dropping it removes the file of a unix socket.
#[derive(Debug)]
pub enum Listening {
    /// A unix socket, and its file.
    Unix(UnixListener, SocketFile),
    /// A TCP socket.
    Tcp(TcpListener),
}

/// The file of a unix socket that this server created; removed on drop.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Its device and inode numbers.
    id: (u64, u64),
}

fn id(path: &Path) -> io::Result<(u64, u64)> {
    std::fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Another server may have replaced the file in the meantime.
        if id(&self.path).is_ok_and(|id| id == self.id) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Address {
    /// Checks a unix socket's path. The kernel's error would name neither the path nor the limit.
    pub fn check(&self) -> Result<(), BadSocket> {
        let Address::Unix(path) = self else { return Ok(()) };
        match path.as_os_str().as_bytes() {
            b"" => Err(BadSocket { found: "nothing".into() }),
            b if b.contains(&0) => Err(BadSocket { found: "a zero byte in it".into() }),
            b if b.len() > LONGEST_PATH => Err(BadSocket { found: format!("{} bytes", b.len()) }),
            _ => Ok(()),
        }
    }

    /// Listens on this address, after removing the socket file of a server that has ended. Must be
    /// called within a tokio runtime.
    pub async fn listen(&self) -> Result<Listening, ListenError> {
        let failed = |why| ListenError::Io { address: self.clone(), why };
        match self {
            Address::Unix(path) => {
                self.check().map_err(|e| failed(io::Error::new(io::ErrorKind::InvalidInput, e)))?;
                clear(path)?;
                // The socket is renamed into place once it has its mode, so that no client connects
                // before.
                let hidden = hidden(path);
                clear(&hidden)?;
                let listener = UnixListener::bind(&hidden).map_err(failed)?;
                let named = std::fs::set_permissions(&hidden, PermissionsExt::from_mode(MODE))
                    .and_then(|()| id(&hidden))
                    .and_then(|id| std::fs::rename(&hidden, path).map(|()| id));
                match named {
                    Ok(id) => Ok(Listening::Unix(listener, SocketFile { path: path.clone(), id })),
                    Err(why) => {
                        let _ = std::fs::remove_file(&hidden);
                        Err(failed(why))
                    }
                }
            }
            Address::Tcp(host) => Ok(Listening::Tcp(TcpListener::bind(host).await.map_err(failed)?)),
        }
    }
}

/// Sets socket options: small answers are sent at once, and a client whose machine has failed is
/// detected, so that it does not keep its place.
fn prepared(stream: TcpStream) -> TcpStream {
    let _ = stream.set_nodelay(true);
    // An option that the kernel lacks is ignored; the others still apply.
    let _ = sockopt::set_socket_keepalive(&stream, true);
    let _ = sockopt::set_tcp_keepidle(&stream, ALIVE_AFTER);
    let _ = sockopt::set_tcp_keepintvl(&stream, ALIVE_EVERY);
    let _ = sockopt::set_tcp_keepcnt(&stream, ALIVE_TIMES);
    let _ = sockopt::set_tcp_user_timeout(&stream, UNACKNOWLEDGED_TIMEOUT.as_millis() as u32);
    stream
}

/// Returns a temporary name for a socket, in the same directory and within the kernel's limit.
fn hidden(path: &Path) -> PathBuf {
    let usual = path.with_extension(format!("{}.new", std::process::id()));
    match usual.as_os_str().len() <= LONGEST_PATH {
        true => usual,
        false => path.with_file_name("~".repeat(path.file_name().map_or(1, |name| name.len()))),
    }
}

/// Removes a socket file if the server that created it has ended.
fn clear(path: &Path) -> Result<(), ListenError> {
    let Ok(found) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !found.file_type().is_socket() {
        return Err(ListenError::NoSocket(path.into()));
    }
    let failed = |why| ListenError::Io { address: Address::Unix(path.into()), why };
    let connected =
        socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
            .and_then(|socket| connect(&socket, &SocketAddrUnix::new(path)?));
    match connected {
        // EAGAIN: a program listens, but its backlog is full.
        Ok(()) | Err(Errno::AGAIN) => Err(ListenError::InUse(path.into())),
        Err(Errno::NOENT) => Ok(()),
        // Only ECONNREFUSED proves that no program listens; EACCES means another user's socket.
        Err(Errno::CONNREFUSED) => std::fs::remove_file(path).map_err(failed),
        Err(why) => Err(failed(why.into())),
    }
}

impl Listening {
    /// Accepts the next client.
    pub async fn accept(&self) -> io::Result<Box<dyn Stream>> {
        Ok(match self {
            Listening::Unix(l, _) => Box::new(l.accept().await?.0),
            Listening::Tcp(l) => Box::new(prepared(l.accept().await?.0)),
        })
    }

    /// Returns the port of a TCP listener, which the system chose if the address has port 0.
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
    async fn a_listener_with_a_full_backlog_is_in_use() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let at = SocketAddrUnix::new(&path).unwrap();
        let socket = || socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK, None).unwrap();
        let listener = socket();
        rustix::net::bind(&listener, &at).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let waiting: Vec<_> = (0..4).map(|_| socket()).collect();
        assert!(waiting.iter().any(|one| connect(one, &at) == Err(Errno::AGAIN)));
        assert!(matches!(Address::Unix(path).listen().await, Err(ListenError::InUse(_))));
    }

    #[tokio::test]
    async fn a_client_whose_machine_has_gone_is_found_out() {
        let listening = Address::Tcp("127.0.0.1:0".into()).listen().await.unwrap();
        let Listening::Tcp(listener) = listening else { panic!("another kind of socket") };
        let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let stream = prepared(listener.accept().await.unwrap().0);
        assert!(sockopt::socket_keepalive(&stream).unwrap());
        assert_eq!(sockopt::tcp_keepidle(&stream).unwrap(), ALIVE_AFTER);
        assert_eq!(sockopt::tcp_keepintvl(&stream).unwrap(), ALIVE_EVERY);
        assert_eq!(sockopt::tcp_keepcnt(&stream).unwrap(), ALIVE_TIMES);
        assert_eq!(sockopt::tcp_user_timeout(&stream).unwrap(), UNACKNOWLEDGED_TIMEOUT.as_millis() as u32);
    }

    #[tokio::test]
    async fn a_socket_is_for_owner_and_group_and_goes_with_its_server() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let address = Address::Unix(path.clone());
        let listening = address.listen().await.unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
        assert!(matches!(address.listen().await, Err(ListenError::InUse(_))));
        let (a, b) = tokio::join!(listening.accept(), tokio::net::UnixStream::connect(&path));
        assert!(a.is_ok() && b.is_ok());
        drop(listening);
        assert!(!path.exists());
        // A file that has replaced its own is not removed.
        let listening = address.listen().await.unwrap();
        std::fs::remove_file(&path).unwrap();
        let other = address.listen().await.unwrap();
        drop(listening);
        assert!(path.exists());
        drop(other);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn a_socket_has_any_name_that_the_kernel_takes() {
        let dir = tempfile::tempdir().unwrap();
        let room = LONGEST_PATH - dir.path().as_os_str().len() - 1;
        for length in [1, room - 1, room] {
            let address = Address::Unix(dir.path().join("s".repeat(length)));
            assert!(address.check().is_ok() && address.listen().await.is_ok(), "{length}");
        }
        let e = Address::Unix(dir.path().join("s".repeat(room + 1))).listen().await.unwrap_err().to_string();
        assert!(e.ends_with("expected a socket's path of 1 to 107 bytes, found 108 bytes"), "{e}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left behind");
    }

    #[tokio::test]
    async fn what_a_dead_server_left_is_replaced_and_other_files_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        assert!(Address::Unix(path.clone()).listen().await.is_ok());
        // The socket is in use, though a stream connection to it fails.
        let other = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
        assert!(matches!(Address::Unix(path.clone()).listen().await, Err(ListenError::Io { .. })));
        assert!(path.exists());
        drop(other);
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "precious").unwrap();
        assert!(matches!(Address::Unix(path.clone()).listen().await, Err(ListenError::NoSocket(_))));
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    }
}
