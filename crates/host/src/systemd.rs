//! Notifications to the service manager, as `sd_notify(3)` describes them, without its library.
//!
//! The manager passes its socket's address in the environment. Without one there is no manager, and
//! every call does nothing. Child processes that inherit the environment could send notifications
//! in this process's name: `attach` removes these variables from theirs.
//!
//! Written by hand, because sd-notify (0.5) blocks while a manager does not read, and ignores
//! malformed variables.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use rustix::time::ClockId;

/// The environment variables of the protocol.
pub const VARIABLES: [&str; 3] = ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"];

/// A notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Started, or reloaded.
    Ready,
    /// Reloading the configuration; [`Notice::Ready`] follows.
    Reloading,
    /// Shutting down.
    Stopping,
    /// Watchdog keep-alive; see [`watchdog_interval`].
    Watchdog,
}

/// Why a notification could not be sent, or the environment not parsed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotifyError {
    /// The address is neither an absolute path nor an abstract name.
    #[error("NOTIFY_SOCKET: expected an absolute path or @name, found {found:?}")]
    Address {
        /// The variable's value.
        found: OsString,
    },
    /// It could not be sent.
    #[error("cannot notify the service manager at {address:?}: {source}")]
    Send {
        /// The socket's address.
        address: OsString,
        /// The I/O error.
        source: io::Error,
    },
    /// A variable is not a valid number.
    #[error("{variable}: expected {expected}, found {found:?}")]
    Number {
        /// The variable.
        variable: &'static str,
        /// What was expected.
        expected: &'static str,
        /// Its value.
        found: OsString,
    },
}

/// Sends a notification to the service manager; returns whether there is one.
///
/// # Errors
/// [`NotifyError::Address`], [`NotifyError::Send`]. A service that works should continue after
/// them.
pub fn notify(notice: Notice) -> Result<bool, NotifyError> {
    match std::env::var_os("NOTIFY_SOCKET").filter(|address| !address.is_empty()) {
        Some(address) => notify_at(&address, notice).map(|()| true),
        None => Ok(false),
    }
}

/// Sends a notification to the socket at `address`: an absolute path, or `@` and an abstract name.
///
/// # Errors
/// As [`notify`].
pub fn notify_at(address: &OsStr, notice: Notice) -> Result<(), NotifyError> {
    let bytes = address.as_bytes();
    let to = match bytes.first() {
        Some(b'/') => SocketAddr::from_pathname(address),
        Some(b'@') => SocketAddr::from_abstract_name(&bytes[1..]),
        _ => return Err(NotifyError::Address { found: address.to_os_string() }),
    };
    let failed = |source| NotifyError::Send { address: address.to_os_string(), source };
    let socket = UnixDatagram::unbound().map_err(failed)?;
    let message = text(notice);
    // Non-blocking, so that a manager that does not read cannot hold up the disk: a full queue is
    // an error, and a later notification gets through.
    socket.set_nonblocking(true).map_err(failed)?;
    socket.send_to_addr(message.as_bytes(), &to.map_err(failed)?).map_err(failed)?;
    Ok(())
}

fn text(notice: Notice) -> String {
    match notice {
        Notice::Ready => "READY=1".into(),
        Notice::Stopping => "STOPPING=1".into(),
        Notice::Watchdog => "WATCHDOG=1".into(),
        Notice::Reloading => {
            let now = rustix::time::clock_gettime(ClockId::Monotonic);
            format!("RELOADING=1\nMONOTONIC_USEC={}", now.tv_sec * 1_000_000 + now.tv_nsec / 1_000)
        }
    }
}

/// Returns the interval of [`Notice::Watchdog`]: half of the manager's timeout, so that one
/// notification may be late. `None` without a watchdog.
///
/// # Errors
/// [`NotifyError::Number`].
pub fn watchdog_interval() -> Result<Option<Duration>, NotifyError> {
    interval(std::env::var_os("WATCHDOG_USEC"), std::env::var_os("WATCHDOG_PID"), std::process::id())
}

fn interval(micros: Option<OsString>, pid: Option<OsString>, own: u32) -> Result<Option<Duration>, NotifyError> {
    let Some(micros) = micros.filter(|micros| !micros.is_empty()) else { return Ok(None) };
    // The variables may have been inherited from a parent that they were meant for.
    if let Some(pid) = pid.filter(|pid| !pid.is_empty()) {
        let number: Option<u32> = pid.to_str().and_then(|pid| pid.parse().ok());
        match number {
            Some(pid) if pid == own => {}
            Some(_) => return Ok(None),
            None => {
                let (variable, expected) = ("WATCHDOG_PID", "the number of a process");
                return Err(NotifyError::Number { variable, expected, found: pid });
            }
        }
    }
    match micros.to_str().and_then(|micros| micros.parse().ok()) {
        Some(number @ 1..=u64::MAX) => Ok(Some(Duration::from_micros(number.div_ceil(2)))),
        _ => {
            let (variable, expected) = ("WATCHDOG_USEC", "a number of microseconds above 0");
            Err(NotifyError::Number { variable, expected, found: micros })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    fn heard(socket: &UnixDatagram) -> String {
        let mut bytes = [0; 256];
        let length = socket.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }

    #[test]
    fn notices_arrive_at_a_path() {
        let dir = Scratch::new("systemd");
        let path = dir.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        for (notice, text) in
            [(Notice::Ready, "READY=1"), (Notice::Stopping, "STOPPING=1"), (Notice::Watchdog, "WATCHDOG=1")]
        {
            notify_at(path.as_os_str(), notice).unwrap();
            assert_eq!(heard(&socket), text);
        }
    }

    #[test]
    fn notices_arrive_at_an_abstract_name() {
        let name = format!("headtime-notify-{}", std::process::id());
        let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        notify_at(OsStr::new(&format!("@{name}")), Notice::Ready).unwrap();
        assert_eq!(heard(&socket), "READY=1");
    }

    #[test]
    fn reloading_says_since_when() {
        let text = text(Notice::Reloading);
        let micros = text.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap();
        let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
        let seconds: f64 = uptime.split(' ').next().unwrap().parse().unwrap();
        // Uptime includes time in suspend.
        assert!(micros.parse::<u64>().unwrap() <= (seconds * 1e6) as u64 + 1_000_000);
    }

    #[test]
    fn an_address_without_a_listener_is_an_error_that_names_it() {
        let e = notify_at(OsStr::new("/no/such/socket"), Notice::Ready).unwrap_err().to_string();
        assert!(e.contains("/no/such/socket"), "{e}");
        let e = notify_at(OsStr::new("vsock:2:1"), Notice::Ready).unwrap_err();
        assert!(matches!(e, NotifyError::Address { .. }));
    }

    #[test]
    fn a_manager_that_does_not_listen_does_not_hold_us_up() {
        let dir = Scratch::new("systemd-full");
        let path = dir.path().join("notify");
        let _deaf = UnixDatagram::bind(&path).unwrap();
        let full = (0..100_000).find_map(|_| notify_at(path.as_os_str(), Notice::Watchdog).err());
        assert!(matches!(full, Some(NotifyError::Send { .. })));
    }

    #[test]
    fn the_watchdog_is_fed_twice_in_its_time_and_by_the_process_it_watches() {
        let text = |text: &str| Some(OsString::from(text));
        let second = Some(Duration::from_secs(1));
        assert_eq!(interval(text("2000000"), None, 7).unwrap(), second);
        assert_eq!(interval(text("2000000"), text("7"), 7).unwrap(), second);
        assert_eq!(interval(text("2000000"), text("8"), 7).unwrap(), None);
        assert_eq!(interval(None, text("7"), 7).unwrap(), None);
        for (micros, pid) in [("0", "7"), ("soon", "7"), ("-1", "7"), ("1", "me")] {
            assert!(interval(text(micros), text(pid), 7).is_err(), "{micros} {pid}");
        }
    }
}
