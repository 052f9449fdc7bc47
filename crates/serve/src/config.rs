//! `headtime serve`'s configuration file. docs/using-it.md describes it; `examples/serve.toml` is one.
//!
//! Names of drives, orders and the like are read by whoever builds the scheduler; everything else is checked here.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use headtime_sched::admit::Policy;
use serde::Deserialize;

use crate::net::address::Address;
use crate::net::exports::ExportSpec;
use crate::net::tls::TlsFiles;

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
    /// A built-in drive's name or a profile's file: what a virtual drive is, or what is known of a real one.
    pub drive: String,
    /// A virtual drive's data.
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
    /// Who may go; without it BFQ+ where exports have different weights, and else everybody at any time.
    admit: Option<String>,
    /// Who goes next.
    pub order: String,
    /// What fills gaps.
    pub fill: String,
    /// How careful it is: microseconds, or "adaptive".
    pub conservatism_us: String,
    /// Commands at the drive.
    pub outstanding: u32,
}

impl Default for Scheduler {
    fn default() -> Scheduler {
        Scheduler {
            admit: None,
            order: "sptf".into(),
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
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Size {
    Bytes(u64),
    Text(String),
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

/// Bytes, from a text: a number, or a number with a unit. `None` when it is neither, or too many.
pub fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit: u64 = match text[digits..].trim_start() {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        "KB" | "kB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        _ => return None,
    };
    text[..digits].parse::<u64>().ok()?.checked_mul(unit)
}

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
            ConfigError::Toml {
                file: name.clone(),
                line,
                why: e.message().split_whitespace().collect::<Vec<_>>().join(" "),
            }
        })?;
        let folder = file.parent().unwrap_or(Path::new("")).to_owned();
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
        for (at, e) in config.exports.iter().enumerate() {
            let key = |k: &str| format!("export {} (\"{}\"), {k}", at + 1, e.name.escape_debug());
            if [&e.name, &e.description].iter().any(|text| text.chars().any(char::is_control)) {
                let found = format!("{:?} and {:?}", e.name, e.description);
                return Err(wrong(&key("name and description"), "text without control characters", found));
            }
            if !(1..=HEAVIEST).contains(&e.weight) {
                return Err(wrong(&key("weight"), &format!("1 to {HEAVIEST}"), e.weight.to_string()));
            }
            for (k, size) in [("start", Some(&e.start)), ("size", e.size.as_ref())] {
                if let Some(Size::Text(t)) = size.filter(|s| s.bytes().is_none()) {
                    return Err(wrong(
                        &key(k),
                        "bytes, or a number and KiB, MiB, GiB, TiB, KB, MB, GB or TB",
                        t.clone(),
                    ));
                }
            }
        }
        if let Some(name) = config.scheduler.admit.as_deref().filter(|name| Policy::named(name).is_none()) {
            return Err(wrong("scheduler.admit", &Policy::NAMES.join(", "), name.escape_debug().to_string()));
        }
        let nbd = config.nbd(&folder).unwrap_or_default();
        let control = config.listen.control.clone().map(Address::Unix);
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
            Err(_) => Err((format!("\"{text}\""), "unix:PATH or tcp:HOST:PORT".into())),
        };
        self.listen.nbd.iter().map(one).collect()
    }

    /// Where NBD clients come.
    pub fn addresses(&self) -> Vec<Address> {
        self.nbd(Path::new("")).expect("checked when it was read")
    }

    /// Who may go. What is not said follows from the weights; one that is not waited for, with more commands at the drive than
    /// keep it busy, because the drive then has an order of its own.
    pub fn policy(&self) -> Policy {
        let differ = self.exports.iter().any(|e| e.weight != self.exports[0].weight);
        let usual = if differ { "bfq+" } else { "none" };
        let name = self.scheduler.admit.as_deref().unwrap_or(usual);
        let policy = Policy::named(name).expect("checked when it was read");
        if self.scheduler.outstanding > 2 { policy.without_idling() } else { policy }
    }

    /// Where metrics are fetched.
    pub fn metrics(&self) -> Result<Option<SocketAddr>, String> {
        let Some(text) = &self.listen.metrics else { return Ok(None) };
        let address = text.parse::<SocketAddr>().ok().filter(|a| a.ip().is_loopback());
        address.map(Some).ok_or_else(|| format!("\"{text}\""))
    }

    /// Which parts differ from another's, the weights of exports aside.
    pub fn differs_beside_weights(&self, other: &Config) -> Vec<&'static str> {
        let weightless = |c: &Config| c.exports.iter().map(|e| Export { weight: 0, ..e.clone() }).collect::<Vec<_>>();
        let parts = [
            ("[disk]", self.disk != other.disk),
            ("[scheduler]", self.scheduler != other.scheduler),
            ("[listen]", self.listen != other.listen),
            ("[[export]]", weightless(self) != weightless(other)),
            ("user", self.user != other.user),
        ];
        parts.into_iter().filter(|p| p.1).map(|p| p.0).collect()
    }

    /// TLS, and whether clients must use it.
    pub fn tls(&self) -> Option<(TlsFiles, bool)> {
        let t = self.listen.tls.as_ref()?;
        let files = TlsFiles { certificate: t.certificate.clone(), key: t.key.clone(), clients: t.clients.clone() };
        Some((files, t.required))
    }

    /// The exports on a disk of so many sectors. Fails with the one whose bounds are not whole sectors.
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

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
        [disk]
        drive = "atlas10k"
        backing = "disk.img"
        [listen]
        nbd = ["unix:nbd.sock", "tcp:127.0.0.1:10809"]
        control = "control.sock"
        [[export]]
        name = "a"
        size = "1 GiB"
        [[export]]
        name = "b"
        start = 1073741824
        weight = 300
        "#;

    fn read(text: &str) -> Result<Config, ConfigError> {
        Config::read(text, Path::new("/etc/headtime/serve.toml"))
    }

    #[test]
    fn what_is_left_out_is_as_usual_and_paths_lie_beside_the_file() {
        let c = read(GOOD).unwrap();
        assert_eq!(c.disk.backing.as_deref(), Some(Path::new("/etc/headtime/disk.img")));
        assert_eq!(c.addresses()[0].to_string(), "unix:/etc/headtime/nbd.sock");
        assert_eq!((c.scheduler.fill.as_str(), c.scheduler.outstanding, c.listen.clients), ("headtime", 2, 64));
        let e = c.exports(10 << 21, 512).unwrap();
        assert_eq!((e[0].first, e[0].sectors, e[0].weight), (0, 1 << 21, 100));
        assert_eq!((e[1].first, e[1].sectors, e[1].weight), (1 << 21, 9 << 21, 300));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let wrong = |from: &str, to: &str| read(&GOOD.replace(from, to)).unwrap_err().to_string();
        assert!(
            wrong("backing", "baking").contains("serve.toml:4: unknown field `baking`"),
            "{}",
            wrong("backing", "baking")
        );
        assert!(wrong("backing = \"disk.img\"", "").contains("expected backing or device, found neither"));
        assert!(wrong("1 GiB", "1 gig").contains("export 1 (\"a\"), size: expected bytes"));
        assert!(wrong("weight = 300", "weight = 0").contains("expected 1 to 1000, found 0"));
        assert!(wrong("unix:nbd.sock", "nbd.sock").contains("expected unix:PATH"));
        assert!(wrong("control =", "metrics = \"0.0.0.0:1\"\ncontrol =").contains("loopback"));
        assert!(wrong("[disk]", "[disk").contains("serve.toml:2:"));
        assert!(wrong("control.sock", "nbd.sock").contains("each address once"));
        let escape = wrong("name = \"a\"", "name = \"a\\u001b[31m\"");
        assert!(escape.contains("control characters") && !escape.contains('\u{1b}'), "{escape}");
        let halves = read(&GOOD.replace("1073741824", "1073741825")).unwrap();
        assert!(halves.exports(10 << 21, 512).unwrap_err().contains("whole sectors"));
    }
}
