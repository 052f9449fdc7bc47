//! DAS: streams with guarantees, after Reuther and Pohlack, "Rotational-Position-Aware Real-Time
//! Disk Scheduling Using a Dynamic Active Subset" (2003). docs/guarantees.md describes it as a
//! whole.
//!
//! * [`stream`]: parameters of a stream; [`written`]: their text form
//! * [`worst`]: worst-case service time from a drive's profile, [`worsts`] by size;
//!   [`distribution`]: service-time distribution, and [`family`]: the same by number of candidates
//! * [`known`]: both from a profile; [`rests`]: which of its figures must be known for that
//! * [`admission`]: admission control of a set of streams; `demand`: the mandatory ones;
//!   [`ledger`]: the optional ones, with `sums`, and [`reserve`]: the reservation of each;
//!   [`forecast`]: the throughput left for best effort
//! * [`subset`]: eligibility at each decision; [`periods`]: pending requests and statistics of one
//!   stream; [`at_drive`]: until when the drive may be busy; `calendar`: deadlines; `sweep`: slack
//! * [`streams`]: the interface to the core

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
