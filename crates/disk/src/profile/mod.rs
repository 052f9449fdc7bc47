//! The profile: typed data of one drive.
//!
//! A profile is read from a TOML file or from DiskSim's parameter files ([`load`] accepts both), or
//! made by a program. It holds figures only; [`crate::geometry::Geometry`] and
//! [`crate::mechanics::Mechanics`] are compiled from it. docs/profile-format.md documents each key
//! of the file.

pub mod bounds;
mod builtin;
mod capacity;
mod check;
pub mod decimal;
pub mod disksim;
mod electronics;
pub mod fault;
mod geometry_spec;
pub mod keys;
pub mod known;
mod load;
mod loaded;
mod neutral;
mod places;
pub mod service;
mod skew;
mod spec;
mod table;
pub mod toml;
mod write;

pub use builtin::{UnknownProfile, builtin, builtin_names};
pub use check::check;
pub use electronics::{
    BusSpec, ByLast, CacheSpec, Electronics, ExtraDisconnect, FirmwareOrder, Overheads, Prefetch, QueueSpec,
    QueuedOverheads,
};
pub use fault::{At, ProfileError, Reason, Warning, WarningKind};
pub use geometry_spec::{GeometrySpec, HeadOrder, Layout, SectorAddress, Skew, Slip, SpareUnit, Sparing, ZoneSpec};
pub use known::{Figure, Figures, Knowledge, Known, LATE_TURNS, Late};
pub use load::load;
pub use loaded::{Loaded, Resolver};
pub use service::{Run, ServiceLoad, ServiceTimes};
pub(crate) use spec::FROM_DISKSIM;
pub use spec::{MechanicsSpec, NoiseSpec, Profile};
pub use write::write;
