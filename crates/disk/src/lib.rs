//! Model of a hard disk: sector layout, arm and platter, electronics.
//!
//! This crate has two users: the scheduler, which keeps a [`model::Model`] of its drive, and
//! [`drive::Drive`], the virtual drive. Both plan a media access with the same
//! [`mechanics::Mechanics`]; they differ in what they know (noise, faults, cache contents).
//!
//! Pure: no clock, files or threads, and no randomness except what is passed in. Time is integer
//! nanoseconds ([`time::Time`]), an angle is a 64-bit fraction of a revolution ([`angle::Angle`]),
//! so the same input gives the same output on every machine.

pub mod angle;
pub mod command;
pub mod compare;
pub mod drive;
pub mod error;
pub mod geometry;
pub mod mechanics;
pub mod model;
pub mod profile;
pub mod rotation;
pub mod seek;
pub mod size;
pub mod time;

/// The example in the README is a test.
#[cfg(all(doctest, feature = "builtin"))]
#[doc = include_str!("../README.md")]
struct Readme;
