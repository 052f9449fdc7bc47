//! Internals of the scheduler for its reference models, tests, benchmarks and experiments.
//!
//! No part of the interface: anything here may change in any version.

pub mod adaptive {
    pub use crate::fill::adaptive::{Adaptive, CEILING, FLOOR, START};
}
pub mod admit {
    pub use crate::admit::{ASYNCHRONOUS, Admission, Turn, queue_of};
}
pub mod ahead {
    pub use crate::order::ahead::{AGE_DIVISOR, Arrivals, MAX_EXACT, MAX_EXACT_FOR_THREE};
}
pub mod at_drive {
    pub use crate::admit::das::at_drive::AtDrive;
}
pub mod bfq {
    pub use crate::admit::bfq::Bfq;
}
pub mod bwf2q {
    pub use crate::admit::bwf2q::{Bwf2q, Since};
}
pub mod candidate {
    pub use crate::fill::candidate::{Look, Scratch};
}
pub mod cfq {
    pub use crate::admit::cfq::Cfq;
}
pub mod charge {
    pub use crate::admit::das::subset::charge::{share, times};
}
pub mod classify {
    pub use crate::classify::{CLOSE, OVERLAP};
}
pub mod conservatism {
    pub use crate::fill::conservatism::Margins;
}
pub mod evidence {
    pub use crate::fill::evidence::Seen;
}
pub mod fluid {
    pub use crate::admit::fluid::Fluid;
}
pub mod front {
    pub use crate::fill::headtime::front::Front;
}
pub mod gap {
    pub use crate::fill::gap::{Gap, Leg, Plan};
}
pub mod gate {
    pub use crate::fill::gate::Gate;
}
pub mod habit {
    pub use crate::fill::headtime::habit::{Habit, holds};
}
pub mod headtime {
    pub use crate::fill::headtime::{Planner, Settings};
}
pub mod manager {
    pub use crate::tasks::manager::TaskManager;
}
pub mod merge {
    pub use crate::merge::MAX_REQUESTS;
}
pub mod merging {
    pub use crate::admit::merging::Merging;
}
pub mod order {
    pub use crate::order::View;
}
pub mod overheads {
    pub use crate::overheads::{between, lead_in};
}
pub mod passage {
    pub use crate::passage::Track;
}
pub mod placement {
    pub use crate::fill::placement::Rules;
}
pub mod planner {
    pub use crate::fill::planner::{Planner, Task};
}
pub mod pool {
    pub use crate::pool::Pool;
}
pub mod predictor {
    pub use crate::predictor::Predictor;
}
pub mod prices {
    pub use crate::fill::headtime::prices::Prices;
}
pub mod promotion {
    pub use crate::fill::subsystem::promotion::PATIENCE;
}
pub mod reach {
    pub use crate::fill::reach::{BANDS, Gone, Reach, WantedCells};
}
pub mod regions {
    pub use crate::fill::regions::Regions;
}
pub mod scene {
    pub use crate::fill::scene::Scene;
}
pub mod search {
    pub use crate::fill::search::Search;
}
pub mod subset {
    pub use crate::admit::das::subset::{Event, Member, Rules, Sent, Subset};
}
pub mod tasks {
    pub use crate::tasks::{Wants, Who};
}
pub mod together {
    pub use crate::admit::bfq::together::AHEAD;
}
pub mod track {
    pub use crate::fill::track::TrackMap;
}
pub mod visit {
    pub use crate::fill::headtime::visit::{PlanContext, Point};
}
pub mod wanted {
    pub use crate::tasks::wanted::Wanted;
}
