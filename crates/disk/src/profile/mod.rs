//! The profile: typed data of one drive.
//!
//! A profile is read from a TOML file or from DiskSim's parameter files ([`load`] accepts both), or
//! made by a program. It holds figures only; [`Geometry`](crate::Geometry) and
//! [`Mechanics`](crate::Mechanics) are compiled from it. docs/profile-format.md documents each key
//! of the file.

mod bounds;
#[cfg(feature = "builtin")]
mod builtin;
mod capacity;
mod check;
pub(crate) mod decimal;
#[cfg(feature = "disksim")]
mod disksim;
mod electronics;
mod fault;
mod geometry_spec;
mod known;
mod known_check;
#[cfg(any(feature = "toml", feature = "disksim"))]
mod load;
mod loaded;
mod places;
#[cfg(feature = "toml")]
pub(crate) mod schema;
mod service;
#[cfg(feature = "toml")]
mod skew;
mod spec;
#[cfg(feature = "toml")]
mod table;
#[cfg(feature = "toml")]
mod text;
#[cfg(feature = "toml")]
mod toml;
#[cfg(feature = "toml")]
mod write;

pub use bounds::{Bounds, BoundsError, FORM as BOUNDS_FORM};
#[cfg(feature = "builtin")]
pub use builtin::{UnknownProfile, builtin, builtin_names};
pub use check::check;
pub use electronics::{
    BusSpec, ByLast, CacheSpec, Electronics, ExtraDisconnect, FirmwareOrder, Overheads, Prefetch, QueueSpec,
    QueuedOverheads,
};
pub use fault::{At, ProfileError, Reason, Warning, WarningKind};
pub use geometry_spec::{GeometrySpec, HeadOrder, Layout, SectorAddress, Skew, Slip, SpareUnit, Sparing, ZoneSpec};
pub use known::{Figure, Figures, Knowledge, Known, LATE_TURNS, Late};
#[cfg(any(feature = "toml", feature = "disksim"))]
pub use load::load;
pub use loaded::{Loaded, Resolver};
pub use service::{Run, ServiceLoad, ServiceTimes};
#[cfg(feature = "disksim")]
pub(crate) use spec::FROM_DISKSIM;
pub use spec::{MechanicsSpec, NoiseSpec, Profile};
#[cfg(feature = "toml")]
pub use toml::read;
#[cfg(feature = "toml")]
pub use write::write;
