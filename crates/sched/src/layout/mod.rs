//! Layout reorganisation: what is accessed often, and together, is moved together. It is one of the
//! three applications for which the freeblock framework was built (Thereska 2003 sections 1 and 2
//! refer to it). That the blocks which are accessed often go into a reserve in one part of the disk
//! is the block rearrangement of Akyürek and Salem (ACM Transactions on Computer Systems, 1995).
//!
//! A part of the disk is divided into *units*. Each unit has a *home*, its place without
//! reorganisation, and may be moved into a *slot* of a reserve, which nothing else uses. A home
//! stays empty while its unit is in a slot, so every move can be undone.
//!
//! * [`BlockMap`]: where each unit is
//! * [`Heat`]: which units are accessed often, and after which others
//! * [`moves`]: which units to move next
//!
//! All of it is bookkeeping: the server of the disk translates requests with the map, copies the
//! data of a unit with background tasks, and makes the map durable.

mod heat;
mod map;
mod plan;

pub use heat::{Heat, HotUnit, MAX_UNITS, hottest};
pub use map::{BlockMap, MapError, Place};
pub use plan::{Move, moves};
