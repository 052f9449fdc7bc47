//! NBD URIs of exports.

use std::path::Path;

use headtime_serve::net::address::Address;

/// Returns the URI of an export at an address, valid from any directory. `tls`: over TCP, TLS is
/// required.
pub fn of(address: &Address, export: &str, tls: bool) -> String {
    match address {
        Address::Unix(path) => at_socket(export, path),
        Address::Tcp(host) => format!("nbd{}://{host}/{}", if tls { "s" } else { "" }, written(export.as_bytes())),
    }
}

/// Returns the URI of an export at a unix socket.
pub fn at_socket(export: &str, socket: &Path) -> String {
    // Fails only without a current directory; the relative path is then as good as any.
    let path = std::path::absolute(socket).unwrap_or_else(|_| socket.into());
    format!("nbd+unix:///{}?socket={}", written(export.as_bytes()), written(path.as_os_str().as_encoded_bytes()))
}

/// Percent-encodes reserved characters.
fn written(text: &[u8]) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-~".contains(&byte);
    text.iter().map(|&b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exports_name_and_a_socket_become_a_uri() {
        assert_eq!(at_socket("data", Path::new("/run/a b")), "nbd+unix:///data?socket=/run/a%20b");
        assert_eq!(at_socket("", Path::new("/run/ü?")), "nbd+unix:///?socket=/run/%C3%BC%3F");
        assert_eq!(at_socket("a?b", Path::new("/s")), "nbd+unix:///a%3Fb?socket=/s");
        let relative = at_socket("", Path::new("nbd.sock"));
        assert!(relative.starts_with("nbd+unix:///?socket=/") && relative.ends_with("/nbd.sock"), "{relative}");
    }

    #[test]
    fn tls_has_a_scheme_of_its_own() {
        let address: Address = "tcp:[::1]:10809".parse().unwrap();
        assert_eq!(of(&address, "data", false), "nbd://[::1]:10809/data");
        assert_eq!(of(&address, "data", true), "nbds://[::1]:10809/data");
    }
}
