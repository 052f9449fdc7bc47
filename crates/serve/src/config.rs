//! `headtime serve`'s configuration file. docs/using-it.md describes it; `examples/serve.toml` is
//! one.
//!
//! What only makes sense with a drive or a scheduler (their names, how careful filling is, how many
//! commands are outstanding, whether exports fit) is checked by whoever builds them; everything
//! else is checked here.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use headtime_sched::admit::Policy;
use headtime_sched::write_cache::Limits;
use serde::Deserialize;
use serde::de::{Deserializer, Error, Unexpected, Visitor};
use toml::Spanned;

use crate::net::address::{Address, BadSocket};
use crate::net::exports::ExportSpec;
use crate::net::tls::TlsFiles;
use crate::streams::WITHOUT_STREAM;

/// The file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// What is served.
    pub disk: Disk,
    /// In what order.
    #[serde(default)]
    pub scheduler: Scheduler,
    /// To whom.
    pub listen: Listen,
    /// Under which names.
    #[serde(rename = "export")]
    pub exports: Vec<Export>,
    /// The user that the server becomes when the disk is open, before it listens.
    pub user: Option<String>,
}

/// A virtual drive, or a real one.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Disk {
    /// A built-in drive's name or a profile's file: what a virtual drive is, or what is known of a
    /// real one.
    pub drive: String,
    /// A virtual drive's data: a file, or a directory of segment files.
    pub backing: Option<PathBuf>,
    /// A real one: a block device, or a file.
    pub device: Option<PathBuf>,
    /// Seed of a virtual drive's noise.
    #[serde(default = "one")]
    pub seed: u64,
}

/// In what order.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Scheduler {
    /// Who may go, or "das": exports may be streams. Without it BFQ+ where there are several
    /// exports, and else everybody at any time.
    admit: Option<String>,
    /// Under "das": who may go of those that are no streams.
    best_effort: Option<String>,
    /// Under "das": what becomes of a stream's requests when its reservation is used up.
    exhausted: Option<String>,
    /// Under "das": bounds of figures that the drive's profile does not know.
    assume: Option<String>,
    /// Who goes next.
    pub order: String,
    /// What fills gaps.
    pub fill: String,
    /// How careful it is: microseconds, or "adaptive".
    #[serde(deserialize_with = "conservatism")]
    pub conservatism_us: String,
    /// Commands at the drive.
    pub outstanding: u32,
}

impl Default for Scheduler {
    fn default() -> Scheduler {
        Scheduler {
            admit: None,
            best_effort: None,
            exhausted: None,
            assume: None,
            // The shortest first, with look-ahead and ages, and together with what fills gaps: the
            // foreground is served as by SPTF alone and better (experiments X8 and X9).
            order: "sptf-joint".into(),
            fill: "headtime".into(),
            conservatism_us: "adaptive".into(),
            outstanding: 2,
        }
    }
}

/// To whom.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Listen {
    /// NBD.
    #[serde(default)]
    nbd: Vec<String>,
    /// The control interface: a unix socket.
    pub control: Option<PathBuf>,
    /// Metrics for Prometheus, over HTTP: an address of this machine's own.
    metrics: Option<String>,
    /// NBD clients at a time.
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

/// A range of the disk under a name.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Export {
    /// As clients ask for it.
    #[serde(default)]
    pub name: String,
    /// For people.
    #[serde(default)]
    pub description: String,
    /// Where it begins: bytes, or "10 GiB".
    #[serde(default)]
    start: Size,
    /// How long it is; without it, to the end of the disk.
    size: Option<Size>,
    /// Its clients' part of the disk when they compete.
    #[serde(default = "hundred")]
    pub weight: u32,
    /// Nothing can be written.
    #[serde(default)]
    pub read_only: bool,
    /// Memory of a write cache in front of it.
    write_cache: Option<Spanned<Size>>,
    /// What its clients are promised.
    pub stream: Option<stream::StreamTable>,
}

/// It may be a word, and so it is always text.
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

/// Largest weight.
pub const HEAVIEST: u32 = headtime_sched::admit::MOST_WEIGHT;
/// Most clients.
const MOST_CLIENTS: usize = 1024;

/// A number of bytes, or a number with a unit.
#[derive(Clone, Debug, PartialEq)]
enum Size {
    Bytes(u64),
    Text(String),
}

/// What a size may be.
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
    /// No TOML, or not what is expected.
    #[error("{file}:{line}: {why}")]
    Toml {
        /// The file.
        file: String,
        /// From 1.
        line: usize,
        /// What was expected.
        why: String,
    },
    /// A value out of range.
    #[error("{file}: {key}: expected {expected}, found {found}")]
    Value {
        /// The file.
        file: String,
        /// Which.
        key: String,
        /// What it may be.
        expected: String,
        /// What it is.
        found: String,
    },
}

/// What was expected and what was found, of what serde says: it says it the other way round, and
/// does not say of which key.
fn said(why: &str, before: &str) -> String {
    let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
    let odd = why.strip_prefix("invalid type: ").or_else(|| why.strip_prefix("invalid value: "));
    let Some((found, expected)) = odd.and_then(|odd| odd.split_once(", expected ")) else { return why };
    let whole = |most: u64| format!("a whole number from 0 to {most}");
    let expected = match expected {
        "u32" => whole(u32::MAX.into()),
        // TOML's own numbers end there.
        "u64" | "usize" => whole(i64::MAX as u64),
        other => other.into(),
    };
    let key = key(before).map_or(String::new(), |k| format!("{k}: "));
    format!("{key}expected {expected}, found {found}")
}

/// The key whose value, or whose list, begins or goes on at the end of this text.
fn key(before: &str) -> Option<&str> {
    let (keys, value) = before.rsplit_once('=')?;
    let value = value.trim();
    let within = value.is_empty() || value.starts_with('[') && !value.contains(']');
    let key = keys.rsplit(['\n', '{', ',']).next()?.trim();
    (within && !key.is_empty()).then_some(key)
}

/// Whether the system chooses the port: another each time.
fn is_any_port(address: &Address) -> bool {
    matches!(address, Address::Tcp(host) if host.ends_with(":0"))
}

impl Config {
    /// Reads the text of `file`. Paths that are not absolute lie beside it.
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

    /// Where NBD clients come.
    pub fn addresses(&self) -> Vec<Address> {
        self.nbd(Path::new("")).expect("checked when it was read")
    }

    /// Who may go. Several exports are to be served alike when nothing else is said, however much
    /// the clients of one ask for. Nobody is waited for with more commands at the drive than keep
    /// it busy, because the drive then has an order of its own.
    pub fn policy(&self) -> Policy {
        let usual = if self.exports.len() > 1 { "bfq+" } else { "none" };
        let s = &self.scheduler;
        // Beneath streams it orders the others.
        let name = if self.promises() { &s.best_effort } else { &s.admit };
        let name = name.as_deref().unwrap_or(usual);
        let policy = Policy::named(name).expect("checked when it was read");
        if s.outstanding > 2 { policy.without_idling() } else { policy }
    }

    /// Where metrics are fetched.
    pub fn metrics(&self) -> Result<Option<SocketAddr>, String> {
        let Some(text) = &self.listen.metrics else { return Ok(None) };
        let address = text.parse::<SocketAddr>().ok().filter(|a| a.ip().is_loopback());
        address.map(Some).ok_or_else(|| format!("\"{text}\""))
    }

    /// Which parts differ from another's, the weights of exports and their streams aside.
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

    /// Exports with a write cache, by their numbers, and what each cache may take.
    pub fn write_caches(&self) -> Vec<(u32, Limits)> {
        let limits = |e: &Export| Limits::new(e.write_cache.as_ref()?.get_ref().bytes()?);
        let all = self.exports.iter().enumerate();
        all.filter_map(|(at, e)| Some((at as u32, limits(e)?))).collect()
    }

    /// TLS, and whether clients must use it.
    pub fn tls(&self) -> Option<(TlsFiles, bool)> {
        let t = self.listen.tls.as_ref()?;
        let files = TlsFiles { certificate: t.certificate.clone(), key: t.key.clone(), clients: t.clients.clone() };
        Some((files, t.required))
    }

    /// The exports on a disk of so many sectors. Fails with the one whose bounds are not whole
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
