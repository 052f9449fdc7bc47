//! The configuration file of `headtime serve`. docs/using-it.md describes it; `examples/serve.toml`
//! is an example.
//!
//! Values that only make sense with a drive or a scheduler (their names, conservatism, the number
//! of outstanding commands, whether exports fit) are checked by the code that builds these; all
//! others are checked here.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use headtime_sched::Policy;
use headtime_sched::write_cache::Limits;
use serde::Deserialize;
use serde::de::{Deserializer, Error, Unexpected, Visitor};
use toml::Spanned;

use crate::net::address::{Address, BadSocket};
use crate::net::exports::ExportSpec;
use crate::net::tls::TlsFiles;
use crate::streams::WITHOUT_STREAM;

/// The configuration file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// The disk that is served.
    pub disk: Disk,
    /// How requests are scheduled.
    #[serde(default)]
    pub scheduler: Scheduler,
    /// The listening addresses.
    pub listen: Listen,
    /// The exports.
    #[serde(rename = "export")]
    pub exports: Vec<Export>,
    /// The user that the server switches to once the disk is open, before it listens.
    pub user: Option<String>,
}

/// The disk: a virtual or a real drive.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Disk {
    /// A built-in drive's name or a profile's file: the model of a virtual drive, or the profile of
    /// a real one.
    pub drive: String,
    /// A virtual drive's data: a file, or a directory of segment files.
    pub backing: Option<PathBuf>,
    /// A real drive: a block device, or a file.
    pub device: Option<PathBuf>,
    /// Seed of a virtual drive's noise.
    #[serde(default = "one")]
    pub seed: u64,
}

/// The scheduler.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Scheduler {
    /// Eligibility policy, or "das": exports may be streams. Default: BFQ+ with several exports,
    /// none otherwise.
    admit: Option<String>,
    /// With "das": the eligibility policy for exports that are not streams.
    best_effort: Option<String>,
    /// With "das": how a stream's requests are handled when its reservation is exhausted.
    exhausted: Option<String>,
    /// With "das": bounds of figures that the drive's profile does not state.
    assume: Option<String>,
    /// Dispatch order.
    pub order: String,
    /// Policy that fills gaps.
    pub fill: String,
    /// Conservatism of filling: microseconds, or "adaptive".
    #[serde(deserialize_with = "conservatism")]
    pub conservatism_us: String,
    /// Outstanding commands at the drive.
    pub outstanding: u32,
}

impl Default for Scheduler {
    fn default() -> Scheduler {
        Scheduler {
            admit: None,
            best_effort: None,
            exhausted: None,
            assume: None,
            // Shortest positioning time first, with look-ahead and aging, jointly with gap filling:
            // it serves the foreground at least as well as SPTF alone (experiments X8 and X9).
            order: "sptf-joint".into(),
            fill: "headtime".into(),
            conservatism_us: "adaptive".into(),
            outstanding: 2,
        }
    }
}

/// The listening addresses.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Listen {
    /// NBD addresses.
    #[serde(default)]
    nbd: Vec<String>,
    /// The control interface: a unix socket.
    pub control: Option<PathBuf>,
    /// Metrics for Prometheus over HTTP: a loopback address.
    metrics: Option<String>,
    /// NBD clients at a time, on each socket.
    #[serde(default = "sixty_four")]
    pub clients: usize,
    /// TLS for NBD.
    tls: Option<Tls>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    clients: Option<PathBuf>,
    #[serde(default = "yes")]
    required: bool,
}

/// An export: a named range of the disk.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Export {
    /// The name that clients ask for.
    #[serde(default)]
    pub name: String,
    /// A description for users.
    #[serde(default)]
    pub description: String,
    /// The start: bytes, or "10 GiB".
    #[serde(default)]
    start: Size,
    /// The length; default: to the end of the disk.
    size: Option<Size>,
    /// The weight when exports compete.
    #[serde(default = "hundred")]
    pub weight: u32,
    /// Whether writes are rejected.
    #[serde(default)]
    pub read_only: bool,
    /// Memory of its write cache.
    write_cache: Option<Spanned<Size>>,
    /// Its guarantees as a stream.
    pub stream: Option<stream::StreamTable>,
}

/// Reads the conservatism, which is always text since it may be a word.
fn conservatism<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    struct Text;
    impl Visitor<'_> for Text {
        type Value = String;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("microseconds or adaptive, in quotes")
        }
        fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
            Ok(text.into())
        }
    }
    from.deserialize_any(Text)
}

fn one() -> u64 {
    1
}
fn sixty_four() -> usize {
    64
}
fn hundred() -> u32 {
    100
}
fn yes() -> bool {
    true
}

/// The largest weight.
pub const HEAVIEST: u32 = headtime_sched::MAX_WEIGHT;
/// The largest number of clients.
const MOST_CLIENTS: usize = 1024;

/// A size: a number of bytes, or a number with a unit.
#[derive(Clone, Debug, PartialEq)]
enum Size {
    Bytes(u64),
    Text(String),
}

/// The valid sizes.
const SIZE: &str = "bytes, or in quotes a number and KiB, MiB, GiB, TiB, KB, MB, GB or TB";

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Size, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = Size;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(SIZE)
            }
            fn visit_i64<E: Error>(self, n: i64) -> Result<Size, E> {
                n.try_into().map(Size::Bytes).map_err(|_| E::invalid_value(Unexpected::Signed(n), &self))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Size, E> {
                Ok(Size::Text(text.into()))
            }
        }
        from.deserialize_any(Either)
    }
}

impl Default for Size {
    fn default() -> Size {
        Size::Bytes(0)
    }
}

impl Size {
    fn bytes(&self) -> Option<u64> {
        match self {
            Size::Bytes(b) => Some(*b),
            Size::Text(t) => bytes(t),
        }
    }
}

pub use headtime_disk::size::bytes;

/// What is wrong with a configuration, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The text is not valid TOML or does not have the expected structure.
    #[error("{file}:{line}: {why}")]
    Toml {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The cause.
        why: String,
    },
    /// A value is out of range.
    #[error("{file}: {key}: expected {expected}, found {found}")]
    Value {
        /// The file.
        file: String,
        /// The key.
        key: String,
        /// The valid values.
        expected: String,
        /// The value found.
        found: String,
    },
}

/// Rewrites serde's message as "expected ..., found ...", with the key, which serde does not name.
fn said(why: &str, before: &str) -> String {
    let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
    let odd = why.strip_prefix("invalid type: ").or_else(|| why.strip_prefix("invalid value: "));
    let Some((found, expected)) = odd.and_then(|odd| odd.split_once(", expected ")) else { return why };
    let whole = |most: u64| format!("a whole number from 0 to {most}");
    let expected = match expected {
        "u32" => whole(u32::MAX.into()),
        // TOML's integers end there.
        "u64" | "usize" => whole(i64::MAX as u64),
        other => other.into(),
    };
    let key = key(before).map_or(String::new(), |k| format!("{k}: "));
    format!("{key}expected {expected}, found {found}")
}

/// Returns the key whose value or list contains the end of this text.
fn key(before: &str) -> Option<&str> {
    let (keys, value) = before.rsplit_once('=')?;
    let value = value.trim();
    let within = value.is_empty() || value.starts_with('[') && !value.contains(']');
    let key = keys.rsplit(['\n', '{', ',']).next()?.trim();
    (within && !key.is_empty()).then_some(key)
}

/// Returns whether the system chooses the port, which then differs each time.
fn is_any_port(address: &Address) -> bool {
    matches!(address, Address::Tcp(host) if host.ends_with(":0"))
}

impl Config {
    /// Reads the text of `file`. Relative paths are relative to its directory.
    pub fn read(text: &str, file: &Path) -> Result<Config, ConfigError> {
        let name = file.display().to_string();
        let mut config: Config = toml::from_str(text).map_err(|e| {
            let at = e.span().map_or(0, |s| s.start).min(text.len());
            let line = 1 + text[..at].matches('\n').count();
            ConfigError::Toml { file: name.clone(), line, why: said(e.message(), &text[..at]) }
        })?;
        let folder = file.parent().unwrap_or(Path::new("")).to_owned();
        let no_control = config.listen.control.as_ref().is_some_and(|path| path.as_os_str().is_empty());
        let mut paths: Vec<&mut PathBuf> = Vec::new();
        paths.extend(config.disk.backing.as_mut());
        paths.extend(config.disk.device.as_mut());
        paths.extend(config.listen.control.as_mut());
        if let Some(tls) = &mut config.listen.tls {
            paths.extend([&mut tls.certificate, &mut tls.key]);
            paths.extend(tls.clients.as_mut());
        }
        paths.into_iter().for_each(|p| *p = folder.join(&*p));
        let wrong = |key: &str, expected: &str, found: String| ConfigError::Value {
            file: name.clone(),
            key: key.into(),
            expected: expected.into(),
            found,
        };
        match (&config.disk.backing, &config.disk.device) {
            (Some(_), Some(_)) => return Err(wrong("disk", "backing or device", "both".into())),
            (None, None) => return Err(wrong("disk", "backing or device", "neither".into())),
            _ => {}
        }
        if !(1..=MOST_CLIENTS).contains(&config.listen.clients) {
            let expected = format!("1 to {MOST_CLIENTS}");
            return Err(wrong("listen.clients", &expected, config.listen.clients.to_string()));
        }
        config.check_scheduler(&wrong)?;
        for (at, e) in config.exports.iter().enumerate() {
            let key = |k: &str| format!("export {} (\"{}\"), {k}", at + 1, e.name.escape_debug());
            if [&e.name, &e.description].iter().any(|text| text.chars().any(char::is_control)) {
                let found = format!("{:?} and {:?}", e.name, e.description);
                return Err(wrong(&key("name and description"), "text without control characters", found));
            }
            if !(1..=HEAVIEST).contains(&e.weight) {
                return Err(wrong(&key("weight"), &format!("1 to {HEAVIEST}"), e.weight.to_string()));
            }
            if let Some((expected, found)) = e.stream.as_ref().and_then(stream::StreamTable::odd_size) {
                return Err(wrong(&key("stream.size"), expected, found));
            }
            if e.stream.is_some() && !config.promises() {
                let found = config.scheduler.admit.as_deref().unwrap_or("nothing").escape_debug().to_string();
                return Err(wrong(&key("stream"), "scheduler.admit = \"das\" beside it", found));
            }
            if let Some(cache) = &e.write_cache {
                let at = cache.span().start.min(text.len());
                let odd = |expected: &str, found: String| ConfigError::Toml {
                    file: name.clone(),
                    line: 1 + text[..at].matches('\n').count(),
                    why: format!("{}: expected {expected}, found {found}", key("write-cache")),
                };
                match cache.get_ref().bytes() {
                    Some(bytes) if Limits::new(bytes).is_some() => {}
                    found => {
                        let found = match (found, cache.get_ref()) {
                            (None, Size::Text(text)) => format!("{text:?}"),
                            (bytes, _) => format!("{} bytes", bytes.unwrap_or_default()),
                        };
                        return Err(odd("1 MiB to 16 GiB", found));
                    }
                }
                if e.read_only {
                    return Err(odd("an export that can be written", "read-only = true".into()));
                }
                if e.stream.is_some() {
                    return Err(odd(WITHOUT_STREAM, "export.stream".into()));
                }
            }
            for (k, size) in [("start", Some(&e.start)), ("size", e.size.as_ref())] {
                if let Some(Size::Text(t)) = size.filter(|s| s.bytes().is_none()) {
                    return Err(wrong(&key(k), SIZE, format!("{t:?}")));
                }
            }
        }
        let nbd = config.nbd(&folder).unwrap_or_default();
        let control = config.listen.control.clone().map(Address::Unix);
        if no_control {
            return Err(wrong("listen.control", &BadSocket::expected(), "nothing".into()));
        }
        for (key, address) in nbd.iter().map(|a| ("listen.nbd", a)).chain(control.iter().map(|a| ("listen.control", a)))
        {
            address.check().map_err(|e| wrong(key, &BadSocket::expected(), e.found))?;
        }
        let all: Vec<&Address> = nbd.iter().chain(&control).collect();
        let twice = all.iter().enumerate().find(|(at, a)| !is_any_port(a) && all[..*at].contains(a));
        if let Some((_, address)) = twice {
            return Err(wrong("listen", "each address once, in nbd and control together", format!("{address} twice")));
        }
        config.nbd(&folder).map_err(|(found, why)| wrong("listen.nbd", &why, found))?;
        config.metrics().map_err(|found| wrong("listen.metrics", "HOST:PORT with a loopback address", found))?;
        config.listen.nbd = config.nbd(&folder).unwrap_or_default().iter().map(Address::to_string).collect();
        Ok(config)
    }

    fn nbd(&self, folder: &Path) -> Result<Vec<Address>, (String, String)> {
        let one = |text: &String| match text.parse::<Address>() {
            Ok(Address::Unix(path)) => Ok(Address::Unix(folder.join(path))),
            Ok(tcp) => Ok(tcp),
            Err(e) => Err((e.found, e.expected)),
        };
        self.listen.nbd.iter().map(one).collect()
    }

    /// Returns the addresses for NBD clients.
    pub fn addresses(&self) -> Vec<Address> {
        self.nbd(Path::new("")).expect("checked when it was read")
    }

    /// Returns the eligibility policy. By default, several exports are served fairly, regardless of
    /// demand. The drive is not idled with more than two outstanding commands, because it then
    /// orders commands itself.
    pub fn policy(&self) -> Policy {
        let usual = if self.exports.len() > 1 { "bfq+" } else { "none" };
        let s = &self.scheduler;
        // With streams, this policy orders best effort.
        let name = if self.promises() { &s.best_effort } else { &s.admit };
        let name = name.as_deref().unwrap_or(usual);
        let policy = Policy::named(name).expect("checked when it was read");
        if s.outstanding > 2 { policy.without_idling() } else { policy }
    }

    /// Returns the address of the metrics endpoint.
    pub fn metrics(&self) -> Result<Option<SocketAddr>, String> {
        let Some(text) = &self.listen.metrics else { return Ok(None) };
        let address = text.parse::<SocketAddr>().ok().filter(|a| a.ip().is_loopback());
        address.map(Some).ok_or_else(|| format!("\"{text}\""))
    }

    /// Returns the sections that differ, ignoring the weights and streams of exports.
    pub fn differs_beside_weights(&self, other: &Config) -> Vec<&'static str> {
        let plain = |e: &Export| Export { weight: 0, stream: None, ..e.clone() };
        let weightless = |c: &Config| c.exports.iter().map(plain).collect::<Vec<_>>();
        let parts = [
            ("[disk]", self.disk != other.disk),
            ("[scheduler]", self.scheduler != other.scheduler),
            ("[listen]", self.listen != other.listen),
            ("[[export]]", weightless(self) != weightless(other)),
            ("user", self.user != other.user),
        ];
        parts.into_iter().filter(|p| p.1).map(|p| p.0).collect()
    }

    /// Returns the exports with a write cache, by number, and the limits of each cache.
    pub fn write_caches(&self) -> Vec<(u32, Limits)> {
        let limits = |e: &Export| Limits::new(e.write_cache.as_ref()?.get_ref().bytes()?);
        let all = self.exports.iter().enumerate();
        all.filter_map(|(at, e)| Some((at as u32, limits(e)?))).collect()
    }

    /// Returns the TLS files, and whether clients must use TLS.
    pub fn tls(&self) -> Option<(TlsFiles, bool)> {
        let t = self.listen.tls.as_ref()?;
        let files = TlsFiles { certificate: t.certificate.clone(), key: t.key.clone(), clients: t.clients.clone() };
        Some((files, t.required))
    }

    /// Returns the exports on a disk of `sectors` sectors. Fails if the bounds of one are not whole
    /// sectors.
    pub fn exports(&self, sectors: u64, sector_bytes: u32) -> Result<Vec<ExportSpec>, String> {
        let unit = u64::from(sector_bytes);
        let whole = |name: &str, what: &str, bytes: u64| match bytes % unit {
            0 => Ok(bytes / unit),
            _ => Err(format!("export \"{name}\", {what}: expected whole sectors of {unit} bytes, found {bytes} bytes")),
        };
        let checked = |s: &Size| s.bytes().expect("checked when it was read");
        let spec = |e: &Export| {
            let first = whole(&e.name, "start", checked(&e.start))?;
            let length = match &e.size {
                Some(size) => whole(&e.name, "size", checked(size))?,
                None => sectors.saturating_sub(first),
            };
            Ok(ExportSpec {
                name: e.name.clone(),
                description: e.description.clone(),
                first,
                sectors: length,
                read_only: e.read_only,
                weight: e.weight,
            })
        };
        self.exports.iter().map(spec).collect()
    }
}

mod stream;

#[cfg(test)]
mod tests;
