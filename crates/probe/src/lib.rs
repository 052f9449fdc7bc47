//! Characterisation: times an unknown drive and produces its profile.
//!
//! Everything follows from the completion times of requests (Lumb, Schindler and Ganger 2002,
//! section 4.2; Reuther and Pohlack 2003, sections 3.1 and 4.1; Wong 2019). Whatever a seek took,
//! the time between the ends of two reads is the angle between them plus whole revolutions; so
//! angles are known to microseconds, and everything else follows from angles.
//!
//! * [`device`]: the interface of the drive under test; its implementation does the I/O
//! * [`watch`]: progress and findings; [`error`]: why a probe ends early
//! * [`sampler`]: timed reads from the media, with a budget, a watcher and a record of unexpected
//!   events
//! * [`spindle`]: the period, and the angle of any instant and any sector
//! * [`tracks`]: where tracks begin; [`map`]: all of them, as [`runs`]; [`layout`]: those as a
//!   geometry
//! * [`pairs`], [`border`]: two reads of which the second is aimed, and what its missed revolutions
//!   show
//! * [`seeks`]: seek table and head switch
//! * [`habits`]: the drive's autonomous behaviour
//! * [`overheads`]: overheads of the electronics; [`long_reads`]: those that show only in reads of
//!   one sector, or of many
//! * [`settling`]: occasional missed revolutions, and recalibrations
//! * [`verify`]: how well a profile predicts its drive
//! * [`writes`]: the cost of writes, if the drive may be written to
//! * [`characterize()`]: the complete sequence, which produces a profile
//! * [`journal`]: stored answers, from which another run can resume
//! * [`virtual_drive`]: a virtual drive as such a device
//!
//! No I/O, no clock, no threads: the same drive and the same seed give the same profile.

#![warn(unreachable_pub)]

pub mod border;
mod characterize;
pub mod device;
pub mod error;
mod findings;
mod fit;
pub mod habits;
pub mod journal;
pub mod layout;
pub mod long_reads;
pub mod map;
pub mod overheads;
pub mod pairs;
mod patterns;
pub mod runs;
pub mod sampler;
pub mod scattered;
pub mod seeks;
pub mod settling;
pub mod shingled;
pub mod spindle;
pub mod tracks;
pub mod verify;
pub mod virtual_drive;
pub mod watch;
pub mod writes;

pub use characterize::{Found, Options, THOROUGH_REQUESTS, characterize, recheck};
pub use watch::Finding;
