//! What a hard disk is: where its sectors lie, how its arm and platter move, what its electronics
//! do.
//!
//! Two users share this crate: the scheduler, which keeps a [`model::Model`] of the drive it talks
//! to, and [`drive::Drive`], the virtual drive that answers like a real one. Both plan a media
//! access with the same [`mechanics::Mechanics`]; they differ in what they know (noise, faults,
//! cache contents).
//!
//! Pure: no clock, no files, no threads, no randomness that is not passed in. Time is integer
//! nanoseconds ([`time::Time`]), an angle is a 64-bit fraction of a turn ([`angle::Angle`]), so the
//! same input gives the same output on every machine.

pub mod angle;
pub mod command;
pub mod compare;
pub mod drive;
pub mod geometry;
pub mod mechanics;
pub mod model;
pub mod profile;
pub mod rotation;
pub mod seek;
pub mod size;
pub mod time;

/// The example in the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
