//! Model of a hard disk: sector layout, arm and platter, electronics.
//!
//! This crate has two users: the scheduler, which keeps a [`Model`] of its drive, and
//! [`Drive`], the virtual drive. Both plan a media access with the same
//! [`Mechanics`]; they differ in what they know (noise, faults, cache contents).
//!
//! Pure: no clock, files or threads, and no randomness except what is passed in. Time is integer
//! nanoseconds ([`Time`]), an angle is a 64-bit fraction of a revolution ([`Angle`]),
//! so the same input gives the same output on every machine.

#![warn(missing_docs, unreachable_pub)]

mod angle;
mod command;
pub mod compare;
mod drive;
mod error;
mod geometry;
#[doc(hidden)]
pub mod internals;
mod mechanics;
mod model;
pub mod profile;
mod read_ahead;
mod rotation;
mod seek;
mod size;
mod time;

// Time and angle.
pub use angle::Angle;
pub use time::{Dur, Time};

// The virtual drive, and what a host exchanges with it.
pub use command::{Command, Completion, Kind, MediaTimes, Outcome, SubmitError};
pub use drive::{Drive, DriveConfig, DriveNoise, Fault, HiddenWork};

// The model of a drive, compiled from its profile.
pub use error::ModelError;
pub use geometry::{AlikeTracks, Geometry, GeometryError, GeometryWarning, NotASpare, Position, Track, TrackRun};
pub use mechanics::{Head, Landing, Mechanics};
pub use model::{Access, Model, Place};
pub use rotation::Rotation;
pub use seek::{SeekCurve, SeekError};

/// The example in the README is a test.
#[cfg(all(doctest, feature = "builtin"))]
#[doc = include_str!("../README.md")]
struct Readme;
