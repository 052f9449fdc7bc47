//! DiskSim 4.0 parameter files: `.parv` and the `.diskspecs`, `.model` and `.seek` files that it
//! references.
//!
//! Supports layout g1 with all its mapping and sparing schemes, and mechanics g1 with all its kinds
//! of seek curve. docs/profile-format.md lists the conversion of each parameter.

mod drive;
mod layout;
mod lexer;
mod mech;
mod params;
mod parser;

pub(super) use drive::load;
