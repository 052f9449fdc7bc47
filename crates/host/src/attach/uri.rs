//! NBD URIs, parsed for nbd-client, which does not accept them.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// Server and name of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Export {
    /// The server.
    pub server: Server,
    /// The export's name, often empty.
    pub name: String,
}

/// Address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Server {
    /// A Unix socket.
    Unix(OsString),
    /// A TCP server, without encryption.
    Tcp {
        /// Host name or address.
        host: String,
        /// Port.
        port: u16,
    },
}

/// Default port of NBD servers.
const PORT: u16 = 10809;

/// Whether a text begins as an NBD URI does. The program that it is passed to checks the rest.
pub(super) fn is_nbd(uri: &str) -> bool {
    let schemes = ["nbd://", "nbds://", "nbd+unix://", "nbds+unix://", "nbd+vsock://", "nbds+vsock://"];
    schemes.iter().any(|scheme| uri.starts_with(scheme))
}

/// Parses a URI; `None` when it is invalid or not supported by the kernel's client (encryption,
/// vsock).
pub(super) fn parse(uri: &str) -> Option<Export> {
    if let Some(rest) = uri.strip_prefix("nbd+unix://") {
        let (path, query) = rest.split_once('?')?;
        let name = path.strip_prefix('/')?;
        let socket = query.split('&').find_map(|pair| pair.strip_prefix("socket="))?;
        let socket = decoded(socket).filter(|socket| !socket.is_empty())?;
        let server = Server::Unix(OsString::from_vec(socket));
        return Some(Export { server, name: String::from_utf8(decoded(name)?).ok()? });
    }
    let rest = uri.strip_prefix("nbd://")?;
    let rest = rest.split_once('?').map_or(rest, |(rest, _)| rest);
    let (authority, name) = rest.split_once('/').unwrap_or((rest, ""));
    // An IPv6 address is in brackets because it contains colons.
    let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, port)) => (host, Some(port.strip_prefix(':')?)),
        None => authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
    };
    let port = port.map_or(Some(PORT), |port| port.parse().ok())?;
    // A host name that begins with a hyphen would be taken for an option.
    if host.is_empty() || host.starts_with('-') || host.contains('@') {
        return None;
    }
    let server = Server::Tcp { host: host.to_string(), port };
    Some(Export { server, name: String::from_utf8(decoded(name)?).ok()? })
}

/// Decodes percent-encoded bytes.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        let value = digit()? * 16 + digit()?;
        // The system accepts no name with a NUL byte.
        out.push(u8::try_from(value).ok().filter(|byte| *byte != 0)?);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_and_a_machine_are_distinguished() {
        let unix = |socket: &str, name: &str| Some(Export { server: Server::Unix(socket.into()), name: name.into() });
        assert_eq!(parse("nbd+unix:///?socket=/run/a.sock"), unix("/run/a.sock", ""));
        assert_eq!(parse("nbd+unix:///my%20disk?x=1&socket=/run/a%2fb"), unix("/run/a/b", "my disk"));
        let tcp = |host: &str, port, name: &str| {
            Some(Export { server: Server::Tcp { host: host.into(), port }, name: name.into() })
        };
        assert_eq!(parse("nbd://localhost"), tcp("localhost", 10809, ""));
        assert_eq!(parse("nbd://10.0.0.1:99/disk"), tcp("10.0.0.1", 99, "disk"));
        assert_eq!(parse("nbd://[::1]:99/"), tcp("::1", 99, ""));
        assert_eq!(parse("nbd://[::1]"), tcp("::1", 10809, ""));
    }

    #[test]
    fn what_nbd_client_cannot_use_is_nothing() {
        for uri in [
            "",
            "/run/a.sock",
            "nbds://host/disk",
            "nbd://",
            "nbd://host:port/",
            "nbd://-oops/",
            "nbd+unix:///disk",
            "nbd+unix:///?socket=",
            "nbd+unix:///?socket=%0",
            "nbd+unix:///?socket=%00",
            "nbd+unix://host/?socket=/a",
        ] {
            assert_eq!(parse(uri), None, "{uri}");
        }
        assert!(is_nbd("nbds://host/") && !is_nbd("--help") && !is_nbd("http://nbd://"));
    }
}
