//! DiskSim 4.0 parameter files: `.parv` and the `.diskspecs`, `.model` and `.seek` files that it
//! names.
//!
//! Layout g1 with all its mapping and sparing schemes, mechanics g1 with all its kinds of seek
//! curve. What each parameter becomes is listed in docs/profile-format.md.

mod drive;
mod layout;
mod lexer;
mod mech;
mod params;
mod parser;

pub use drive::load;
