//! Characterisation: a drive that nobody has described is timed, and a profile comes out.
//!
//! Everything is found by asking for sectors and looking at when the answers come (Lumb, Schindler
//! and Ganger 2002, section 4.2; Reuther and Pohlack 2003, sections 3.1 and 4.1; Wong 2019).
//! Whatever a seek took, the time between the ends of two reads is the angle between them and whole
//! turns; so angles come out to microseconds, and everything else follows from angles.
//!
//! * [`device`]: what the drive under test must be able to do; who has it does the I/O
//! * [`sampler`]: timed reads that come from the media, with a budget, a watch and an account of
//!   surprises
//! * [`spindle`]: the period, and the angle of any instant and any sector
//! * [`tracks`]: where tracks begin; [`map`]: all of them, as [`runs`]; [`layout`]: those as a
//!   geometry
//! * [`pairs`], [`border`]: two reads of which the second is aimed, and what the turns that it
//!   missed say
//! * [`seeks`]: seek table and head switch
//! * [`habits`]: what the drive does unasked
//! * [`overheads`]: what the electronics add; [`long_reads`]: what of it only shows in reads of one
//!   sector, or of many
//! * [`settling`]: turns that are lost now and then, and recalibrations
//! * [`verify`]: how well a profile foretells its drive
//! * [`writes`]: what writes cost, where the drive may be written to
//! * [`characterize()`]: all of it, one after the other, as a profile
//! * [`journal`]: answers kept, to go on from where another run ended
//! * [`virtual_drive`]: a virtual drive as such a device
//!
//! No I/O, no clock, no threads: the same drive and the same seed give the same profile.

pub mod border;
mod characterize;
pub mod device;
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
pub mod writes;

pub use characterize::{Found, Options, THOROUGH, characterize, recheck};
pub use findings::Finding;
