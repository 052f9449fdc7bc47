//! The configuration file of `headtime serve`. docs/using-it.md describes it; `examples/serve.toml`
//! is an example.
//!
//! Values that only make sense with a drive (its name, whether exports fit on it) are checked by
//! the code that builds the server ([`crate::assembly`]); all others are checked here.

mod error;
mod names;
mod rates;
mod reorganise;
mod scheduler;
mod size;
mod stream;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use headtime_disk::Dur;
use headtime_sched::write_cache::Limits;
use headtime_sched::{Policy, Rate, TaskRange};
use serde::Deserialize;
use toml::Spanned;

use crate::net::address::{Address, BadSocket};
use crate::net::exports::ExportSpec;
use crate::net::tls::TlsFiles;
use crate::streams::WITHOUT_STREAM;
pub use error::ConfigError;
use error::{Wrong, line_of};
pub use headtime_disk::internals::bytes;
use scheduler::SchedulerTable;
pub use scheduler::{MAX_OUTSTANDING, Scheduler};
use size::{SIZE, Size};

/// The configuration file.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// The file, as it was named.
    pub file: PathBuf,
    /// The disk that is served.
    pub disk: Disk,
    /// How requests are scheduled.
    pub scheduler: Scheduler,
    /// The listening addresses.
    pub listen: Listen,
    /// The exports.
    pub exports: Vec<Export>,
    /// The user that the server switches to once the disk is open, before it listens.
    pub user: Option<String>,
}

/// The file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Tables {
    disk: Disk,
    #[serde(default)]
    scheduler: SchedulerTable,
    listen: Listen,
    #[serde(rename = "export")]
    exports: Vec<Export>,
    user: Option<String>,
}

/// The disk: a virtual or a real drive.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[non_exhaustive]
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

/// The listening addresses.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[non_exhaustive]
pub struct Listen {
    /// NBD addresses.
    #[serde(default)]
    nbd: Vec<String>,
    /// The control interface: a unix socket.
    pub control: Option<PathBuf>,
    /// Metrics for Prometheus over HTTP: a loopback address.
    metrics: Option<String>,
    /// The live view over HTTP: a loopback address.
    web: Option<String>,
    /// The file with the token that changes made in the live view need; without it none can be
    /// made.
    pub web_token: Option<PathBuf>,
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
#[non_exhaustive]
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
    /// The limit of its clients, MB per second.
    #[serde(default, deserialize_with = "rates::mb_s")]
    max_mb_s: Option<Rate>,
    /// The limit of its clients, requests per second.
    #[serde(default, deserialize_with = "rates::iops")]
    max_iops: Option<Rate>,
    /// Its latency target.
    #[serde(default, deserialize_with = "rates::target")]
    latency_target_ms: Option<Dur>,
    /// Whether writes are rejected.
    #[serde(default)]
    pub read_only: bool,
    /// Memory of its write cache.
    write_cache: Option<Spanned<Size>>,
    /// Its guarantees as a stream.
    pub stream: Option<stream::StreamTable>,
    /// Where its hot units are moved to.
    pub reorganise: Option<reorganise::ReorganiseTable>,
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
pub const MAX_WEIGHT: u32 = headtime_sched::MAX_WEIGHT;
/// The largest number of clients.
const MAX_CLIENTS: usize = 1024;

/// Returns whether the system chooses the port, which then differs each time.
fn is_any_port(address: &Address) -> bool {
    matches!(address, Address::Tcp(host) if host.ends_with(":0"))
}

/// What an address of pages must be.
const LOOPBACK: &str = "HOST:PORT with a loopback address: anyone who reaches it can read what it shows \
    (docs/security.md)";

fn loopback(text: &Option<String>) -> Result<Option<SocketAddr>, String> {
    let Some(text) = text else { return Ok(None) };
    let address = text.parse::<SocketAddr>().ok().filter(|a| a.ip().is_loopback());
    address.map(Some).ok_or_else(|| format!("{text:?}"))
}

impl Config {
    /// Reads the text of `file`. Relative paths are relative to its directory.
    pub fn read(text: &str, file: &Path) -> Result<Config, ConfigError> {
        let name = file.display().to_string();
        let tables: Tables = toml::from_str(text).map_err(|e| ConfigError::toml(&name, text, &e))?;
        let named = Wrong(name);
        let scheduler = tables.scheduler.parse(&named)?;
        let Tables { disk, scheduler: SchedulerTable { admit, .. }, listen, exports, user } = tables;
        let mut config = Config { file: file.into(), disk, scheduler, listen, exports, user };
        let folder = file.parent().unwrap_or(Path::new("")).to_owned();
        let no_control = config.listen.control.as_ref().is_some_and(|path| path.as_os_str().is_empty());
        let mut paths: Vec<&mut PathBuf> = Vec::new();
        paths.extend(config.disk.backing.as_mut());
        paths.extend(config.disk.device.as_mut());
        paths.extend(config.listen.control.as_mut());
        paths.extend(config.listen.web_token.as_mut());
        if let Some(tls) = &mut config.listen.tls {
            paths.extend([&mut tls.certificate, &mut tls.key]);
            paths.extend(tls.clients.as_mut());
        }
        paths.into_iter().for_each(|p| *p = folder.join(&*p));
        let wrong = |key: &str, expected: &str, found: String| named.value(key, expected, found);
        match (&config.disk.backing, &config.disk.device) {
            (Some(_), Some(_)) => return Err(wrong("disk", "backing or device", "both".into())),
            (None, None) => return Err(wrong("disk", "backing or device", "neither".into())),
            _ => {}
        }
        if !(1..=MAX_CLIENTS).contains(&config.listen.clients) {
            let expected = format!("1 to {MAX_CLIENTS}");
            return Err(wrong("listen.clients", &expected, config.listen.clients.to_string()));
        }
        for (at, e) in config.exports.iter().enumerate() {
            let key = |k: &str| format!("export {} (\"{}\"), {k}", at + 1, e.name.escape_debug());
            if [&e.name, &e.description].iter().any(|text| text.chars().any(char::is_control)) {
                let found = format!("{:?} and {:?}", e.name, e.description);
                return Err(wrong(&key("name and description"), "text without control characters", found));
            }
            if !(1..=MAX_WEIGHT).contains(&e.weight) {
                return Err(wrong(&key("weight"), &format!("1 to {MAX_WEIGHT}"), e.weight.to_string()));
            }
            if let Some((expected, found)) = e.stream.as_ref().and_then(stream::StreamTable::odd_size) {
                return Err(wrong(&key("stream.size"), expected, found));
            }
            if e.stream.is_some() && !config.scheduler.has_guarantees {
                let found = admit.as_deref().unwrap_or("nothing").escape_debug().to_string();
                return Err(wrong(&key("stream"), "scheduler.admit = \"das\" beside it", found));
            }
            if let Some(table) = &e.reorganise {
                if let Some((k, expected, found)) = table.odd_size() {
                    return Err(wrong(&key(&format!("reorganise.{k}")), &expected, found));
                }
                let beside = [
                    (e.write_cache.is_some(), "an export without a write cache", "write-cache"),
                    // A request in several places takes longer than it was promised.
                    (config.scheduler.has_guarantees, "a scheduler without guarantees", "scheduler.admit = \"das\""),
                ];
                if let Some((_, expected, found)) = beside.into_iter().find(|b| b.0) {
                    return Err(wrong(&key("reorganise"), expected, found.into()));
                }
            }
            if e.latency_target_ms.is_some() && !config.knows_latency_targets() {
                let found = admit.as_deref().unwrap_or("nothing").escape_debug().to_string();
                return Err(wrong(&key("latency-target-ms"), rates::WITH_BFQ, found));
            }
            if let Some(cache) = &e.write_cache {
                let at = cache.span().start.min(text.len());
                let odd = |expected: &str, found: String| ConfigError::Toml {
                    file: named.0.clone(),
                    line: line_of(text, at),
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
                if !e.limit().is_none() {
                    return Err(odd(rates::WITHOUT_LIMIT, "a limit".into()));
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
        let listen = &config.listen;
        for (key, text) in [("listen.metrics", &listen.metrics), ("listen.web", &listen.web)] {
            loopback(text).map_err(|found| wrong(key, LOOPBACK, found))?;
        }
        if listen.web_token.is_some() && listen.web.is_none() {
            return Err(wrong("listen.web-token", "listen.web beside it", "none".into()));
        }
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
    /// demand. With more than two outstanding commands the drive orders them itself.
    pub fn policy(&self) -> Policy {
        let s = &self.scheduler;
        let usual = if self.exports.len() > 1 { "bfq+" } else { "none" };
        let usual = || Policy::named(usual).expect("one of its names");
        let policy = s.policy.clone().unwrap_or_else(usual);
        if s.outstanding > 2 { policy.with_ncq() } else { policy }
    }

    /// Returns the address of the metrics endpoint.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        loopback(&self.listen.metrics).expect("checked when it was read")
    }

    /// Returns the address of the live view.
    pub fn web_address(&self) -> Option<SocketAddr> {
        loopback(&self.listen.web).expect("checked when it was read")
    }

    /// Returns the sections that differ, ignoring what may change while exports are served: their
    /// weights, limits, latency targets and streams.
    pub fn differs_beside_weights(&self, other: &Config) -> Vec<&'static str> {
        let plain = |e: &Export| {
            let (weight, max_mb_s, max_iops, latency_target_ms, stream) = (0, None, None, None, None);
            Export { weight, max_mb_s, max_iops, latency_target_ms, stream, ..e.clone() }
        };
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
            let span = match &e.size {
                Some(size) => whole(&e.name, "size", checked(size))?,
                None => sectors.saturating_sub(first),
            };
            let within = e.reorganise.as_ref().and_then(|t| t.within(&TaskRange { lbn: first, count: span }, unit));
            let length = span.saturating_sub(within.unwrap_or(0));
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

#[cfg(test)]
mod tests;
