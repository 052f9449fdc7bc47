//! A server from its configuration: what is decided before the disk is opened, and then the
//! scheduler and the settings for the disk that was found.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

use headtime_disk::profile::{FirmwareOrder, Profile};
use headtime_disk::{DriveConfig, Model, ModelError};
use headtime_sched::streams::{GuaranteeConfig, Stream};
use headtime_sched::write_cache::Limits;
use headtime_sched::{Config as CoreConfig, Core};
use tokio_rustls::TlsAcceptor;

use crate::backing::{self, BackingError};
use crate::config::{Config, ConfigError, MAX_OUTSTANDING};
use crate::device::virtual_drive::{VirtualDrive, VirtualDriveError};
use crate::layout::Area;
use crate::net::descriptors::Sockets;
use crate::net::exports::Exports;
use crate::net::tls::{self, TlsError};
use crate::note::Note;
use crate::record::Header;
use crate::server::{CAPACITY, CAPACITY_FOR_LAYOUTS, Caches, ControlAt, Service};
use crate::streams::{self, Grounds};
use crate::web::{Token, TokenError, WebAt};

/// The fewest commands at the drive that hide its overheads, and leave it no choice of order.
const HIDES_OVERHEADS: u32 = 2;

/// Why a server cannot be assembled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AssemblyError {
    /// The configuration does not fit the disk.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The profile describes no drive.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A file of TLS is missing or wrong.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The token of the live view cannot be used.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// A stream of the configuration is not admitted beside those before it.
    #[error("export \"{export}\", stream: {why}")]
    Stream {
        /// The name of its export.
        export: String,
        /// Why, and the nearest that would be admitted.
        why: String,
    },
    /// The file of a virtual drive cannot be used.
    #[error(transparent)]
    Backing(#[from] BackingError),
    /// The identifier of a virtual drive's file cannot be read.
    #[error("{}: {why}", path.display())]
    Identifier {
        /// The file.
        path: PathBuf,
        /// The cause.
        why: io::Error,
    },
    /// The virtual drive cannot be created.
    #[error(transparent)]
    Drive(#[from] VirtualDriveError),
    /// Guarantees are configured, and the worst case of this disk is unknown.
    #[error(
        "{}: scheduler.admit: \"das\" expected a disk of which the profile says how long its commands take, found a \
         file, or a disk whose write cache is on (hdparm -W0 turns it off)", file.display()
    )]
    Unbounded {
        /// The configuration's file.
        file: PathBuf,
    },
}

/// The disk as it was found when it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedDisk {
    /// A persistent identifier; empty if nothing needs one.
    pub id: String,
    /// Whether it rotates: gaps are filled on no other disk.
    pub rotates: bool,
    /// Whether it may acknowledge writes before they are on the medium; `None`: as its profile
    /// says.
    pub write_back: Option<bool>,
}

/// The basis of guarantees for streams.
#[derive(Clone, Debug)]
pub struct Guarantees {
    /// The drive's figures.
    pub setup: GuaranteeConfig,
    /// What these rest on.
    pub grounds: Arc<Grounds>,
}

/// A configured server that has not started.
pub struct Assembly {
    config: Config,
    profile: Profile,
    model: Model,
    /// The virtual drive's own write cache was turned off.
    turned_cache_off: bool,
    sectors: u64,
    exports: Exports,
    caches: Vec<(u32, Limits)>,
    areas: Vec<(u32, Area)>,
    streams: Vec<(u32, Stream)>,
    guarantees: Option<Guarantees>,
    core: CoreConfig,
    tls: Option<(TlsAcceptor, bool)>,
    token: Option<Token>,
    disk_id: String,
}

impl fmt::Debug for Assembly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Assembly").field("config", &self.config).finish_non_exhaustive()
    }
}

/// Makes an error of the configuration's file.
fn misfit(config: &Config) -> impl Fn(String) -> ConfigError + '_ {
    |why| ConfigError::Export { file: config.file.display().to_string(), why }
}

impl Assembly {
    /// Decides how the drive of this profile is served.
    ///
    /// # Errors
    /// The exports do not fit the drive, the profile describes none, or TLS cannot be set up.
    pub fn new(config: Config, mut profile: Profile) -> Result<Assembly, AssemblyError> {
        let caches = config.write_caches();
        let is_virtual = config.disk.backing.is_some();
        let turned_cache_off = !caches.is_empty() && is_virtual && profile.electronics.cache.write_back;
        if turned_cache_off {
            // With that cache on, the position of the head cannot be predicted.
            profile.electronics.cache.write_back = false;
        }
        let model = Model::new(&profile)?;
        let (sectors, sector_bytes) = (model.geometry.capacity(), profile.sector_bytes);
        let specs = config.exports(sectors, sector_bytes).map_err(misfit(&config))?;
        let exports = Exports::new(specs, sectors, sector_bytes).map_err(|e| misfit(&config)(e.to_string()))?;
        let areas = config.areas(&exports.specs, sectors, sector_bytes).map_err(misfit(&config))?;
        config.exports.iter().for_each(|e| _ = exports.set(&e.name, e.settings()));
        let streams = config.streams(sector_bytes).map_err(misfit(&config))?;
        let s = &config.scheduler;
        // A virtual drive has the queue depth of its profile; a real drive gets as many commands as
        // the configuration says.
        let max_outstanding =
            if is_virtual { s.outstanding.min(profile.electronics.queue.depth) } else { s.outstanding };
        let fill = s.fill_config(config.disk.seed);
        let capacity = CAPACITY + if areas.is_empty() { 0 } else { CAPACITY_FOR_LAYOUTS };
        let core = CoreConfig::new(s.order).with_outstanding(max_outstanding).with_capacity(capacity).with_fill(fill);
        let tls = match config.tls() {
            Some((files, required)) => Some((tls::acceptor(&files)?, required)),
            None => None,
        };
        let token = config.listen.web_token.as_deref().map(Token::read).transpose()?;
        let (guarantees, disk_id) = (None, String::new());
        Ok(Assembly {
            config,
            profile,
            model,
            turned_cache_off,
            sectors,
            exports,
            caches,
            areas,
            streams,
            guarantees,
            core,
            tls,
            token,
            disk_id,
        })
    }

    /// Gives the streams guarantees. Requests are then bounded by the largest with a known worst
    /// case.
    pub fn guarantee(&mut self, guarantees: Guarantees) {
        let most = guarantees.setup.worsts.most_sectors().saturating_mul(self.profile.sector_bytes);
        self.exports = self.exports.clone().with_requests_up_to(most);
        self.guarantees = Some(guarantees);
    }

    /// Returns the configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the drive's profile.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Returns the drive's profile, to which measured service times may be added.
    pub fn profile_mut(&mut self) -> &mut Profile {
        &mut self.profile
    }

    /// Returns whether the virtual drive's own write cache is turned off, since an export has one
    /// of the server's.
    pub fn turned_cache_off(&self) -> bool {
        self.turned_cache_off
    }

    /// Returns the sectors of the drive.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Returns the exports.
    pub fn exports(&self) -> &Exports {
        &self.exports
    }

    /// Returns the exports with a write cache, by number, and the limits of each cache.
    pub fn caches(&self) -> &[(u32, Limits)] {
        &self.caches
    }

    /// Returns the reorganised exports, by number.
    pub fn areas(&self) -> &[(u32, Area)] {
        &self.areas
    }

    /// Returns the streams of the configuration, by export number.
    pub fn streams(&self) -> &[(u32, Stream)] {
        &self.streams
    }

    /// Returns the basis of guarantees; `None` if exports cannot be streams.
    pub fn guarantees(&self) -> Option<&Guarantees> {
        self.guarantees.as_ref()
    }

    /// Returns the number of commands that the drive has at a time.
    pub fn outstanding(&self) -> u32 {
        self.core.max_outstanding
    }

    /// Returns the number of commands that the drive orders itself while its write cache may hold
    /// data. A configuration with an `outstanding` other than the usual one gets that number.
    pub fn depth(&self) -> u32 {
        let (queue, outstanding) = (self.profile.electronics.queue, self.core.max_outstanding);
        match queue.order {
            FirmwareOrder::Sptf if outstanding == HIDES_OVERHEADS => queue.depth.clamp(outstanding, MAX_OUTSTANDING),
            _ => outstanding,
        }
    }

    /// Returns the listening sockets.
    pub fn sockets(&self) -> Sockets {
        let listen = &self.config.listen;
        let (control, metrics) = (listen.control.is_some(), self.config.metrics_address().is_some());
        let web = self.config.web_address().is_some();
        Sockets { nbd: self.config.addresses().len(), clients: listen.clients, control, metrics, web }
    }

    /// Returns the header of a recording of requests.
    pub fn recording_header(&self) -> Header {
        let clients = self.exports.specs.iter().map(|s| s.name.clone()).collect();
        let (disk, sectors, sector_bytes) = (self.profile.title.clone(), self.sectors, self.profile.sector_bytes);
        Header { disk, sectors, sector_bytes, clients }
    }

    /// Opens the virtual drive, whose data is at `path`.
    ///
    /// # Errors
    /// The data cannot be used.
    pub fn open_virtual(&self, path: &Path) -> Result<(VirtualDrive, OpenedDisk), AssemblyError> {
        let backing = backing::open(path, self.sectors * u64::from(self.profile.sector_bytes))?;
        let id = match self.config.listen.control {
            Some(_) => backing::id(path).map_err(|why| AssemblyError::Identifier { path: path.into(), why })?,
            None => String::new(),
        };
        let noise = DriveConfig::default().with_seed(self.config.disk.seed);
        let device = VirtualDrive::new(&self.profile, noise, backing)?;
        Ok((device, OpenedDisk { id, rotates: true, write_back: None }))
    }

    /// Takes the properties of the disk that was opened. They take precedence over its profile.
    ///
    /// # Errors
    /// There are guarantees, and the worst case of this disk is unknown.
    pub fn take_disk(&mut self, disk: OpenedDisk) -> Result<(), AssemblyError> {
        if (disk.write_back == Some(true) || !disk.rotates) && self.guarantees.is_some() {
            return Err(AssemblyError::Unbounded { file: self.config.file.clone() });
        }
        if !disk.rotates {
            self.core.fill = None;
        }
        if let Some(write_back) = disk.write_back {
            self.model.cache.write_back = write_back || !disk.rotates;
        }
        self.disk_id = disk.id;
        Ok(())
    }

    /// Returns the scheduler, with the configured streams open.
    ///
    /// # Errors
    /// A stream is not admitted.
    pub fn core(&self) -> Result<Core, AssemblyError> {
        let core = Core::new(self.core.clone(), self.model.clone()).handing_over(self.depth());
        let core = core.admitting(&self.config.policy());
        let Some(guarantees) = &self.guarantees else { return Ok(core) };
        let mut core = core.guaranteeing(&guarantees.setup);
        streams::begin(&mut core, &self.exports, &self.streams).map_err(|(at, why)| {
            let name = |at: usize| self.exports.specs[self.streams[at].0 as usize].name.clone();
            let why = why.with_names(|at| format!("stream \"{}\"", name(at))).to_string();
            AssemblyError::Stream { export: name(at), why }
        })?;
        Ok(core)
    }

    /// Returns the number of a reorganised export.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn reorganised(&self, name: &str) -> Result<u32, AssemblyError> {
        let number = self.exports.number(name).filter(|number| self.areas.iter().any(|(export, _)| export == number));
        let none = || misfit(&self.config)(format!("expected a reorganised export \"{name}\", found none"));
        Ok(number.ok_or_else(none)?)
    }

    /// Returns the server's settings, without a recording.
    pub fn service(&self, note: Note) -> Service {
        let fills = self.core.fill.is_some();
        let guarantees = self.guarantees.as_ref();
        let mut service = Service::new(self.config.addresses(), self.exports.clone(), note);
        service.clients = self.config.listen.clients;
        service.streams = guarantees.map(|g| Arc::new(g.setup.disk.clone()));
        service.grounds = guarantees.map(|g| Arc::clone(&g.grounds)).unwrap_or_default();
        service.tls = self.tls.clone();
        service.caches = Caches { exports: self.caches.clone(), fills };
        service.layouts = self.areas.clone();
        service.metrics = self.config.metrics_address();
        service.web = self.config.web_address().map(|address| WebAt {
            address,
            token: self.token.clone(),
            disk: self.profile.title.clone(),
            fills,
            geometry: Arc::new(self.model.geometry.clone()),
            revolution: self.model.mechanics.rotation.period(),
        });
        service.control = self.config.listen.control.clone().map(|path| ControlAt {
            path,
            disk: self.profile.title.clone(),
            disk_id: self.disk_id.clone(),
            sectors: self.sectors,
            fills,
        });
        service
    }
}
