//! DAS: streams with guarantees, after Reuther and Pohlack, "Rotational-Position-Aware Real-Time
//! Disk Scheduling Using a Dynamic Active Subset" (2003). docs/guarantees.md describes it as a
//! whole.
//!
//! * [`stream`]: parameters of a stream; [`written`]: their text form
//! * [`worst`]: worst-case service time from a drive's profile, [`worsts`] by size;
//!   [`distribution`]: service-time distribution, and [`family`]: the same by number of candidates
//! * [`known`]: both from a profile; [`rests`]: which of its figures must be known for that
//! * [`admission`]: admission control of a set of streams, with [`disk`]: its parameters, and
//!   [`verdict`]: its results; `demand`: the mandatory ones;
//!   [`ledger`]: the optional ones, with `sums`, and [`reserve`]: the reservation of each;
//!   [`forecast`]: the throughput left for best effort
//! * [`subset`]: eligibility at each decision; [`periods`]: pending requests and statistics of one
//!   stream; [`at_drive`]: until when the drive may be busy; `calendar`: deadlines; `sweep`: slack
//! * [`streams`]: the interface to the core

pub(crate) mod admission;
pub(crate) mod at_drive;
mod calendar;
mod demand;
pub(crate) mod disk;
pub(crate) mod distribution;
pub(crate) mod family;
pub(crate) mod forecast;
pub(crate) mod known;
pub(crate) mod ledger;
pub(crate) mod periods;
mod rates;
pub(crate) mod reserve;
pub(crate) mod rests;
pub(crate) mod stream;
pub(crate) mod streams;
pub(crate) mod subset;
mod sweep;
pub(crate) mod verdict;
pub(crate) mod worst;
pub(crate) mod worsts;
pub(crate) mod written;
