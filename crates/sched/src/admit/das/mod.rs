//! DAS: streams with guarantees, after Reuther and Pohlack, "Rotational-Position-Aware Real-Time
//! Disk Scheduling Using a Dynamic Active Subset" (2003). docs/guarantees.md tells it in one piece.
//!
//! * [`stream`]: what a stream asks for; [`written`], how people say it
//! * [`worst`]: the longest that a request can take, from a drive's profile, [`worsts`] by size;
//!   [`distribution`]: how long requests do take, and [`family`], by how many one is chosen from
//! * [`known`]: both from a profile; [`rests`], which of its figures must be known for that
//! * [`admission`]: whether a set of streams can be had; `demand`, the mandatory ones; [`ledger`],
//!   the optional ones, with `sums`, and [`reserve`], with how much time each; [`forecast`], what
//!   best effort has beside them
//! * [`subset`]: at each decision, who may go without a guarantee being broken; [`periods`], what
//!   one stream has waiting and has had; [`at_drive`], until when the drive may be busy;
//!   `calendar`, what is due when; `sweep`, how much time there is
//! * [`streams`]: all of it as the core has it

pub mod admission;
pub mod at_drive;
mod calendar;
mod demand;
pub mod distribution;
pub mod family;
pub mod forecast;
pub mod known;
pub mod ledger;
pub mod periods;
mod rates;
pub mod reserve;
pub mod rests;
pub mod stream;
pub mod streams;
pub mod subset;
mod sums;
mod sweep;
pub mod worst;
pub mod worsts;
pub mod written;
