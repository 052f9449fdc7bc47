//! FILL: what background work fits before the next foreground request, for free? (Lumb 2001 and
//! 2002, Thereska 2003)
//!
//! * [`gap`]: the opportunity, and the last word on whether a plan keeps it
//! * [`conservatism`]: how much longer than predicted a move may take
//! * [`adaptive`]: seek times and margins that follow the drive, from [`evidence`]
//! * [`gate`]: no filling while the drive surprises
//! * [`idle`]: when the disk is idle; [`idling`], [`reach`], [`offer`]: what to fetch then
//! * [`forward`]: what goes as foreground after all; [`bad`]: sectors that are left alone
//! * [`placement`]: what a scheduler inside or outside the drive may do
//! * [`cells`], [`regions`]: where something is wanted, coarsely, so that a search looks only where
//!   it can find something
//! * `touched`: the cells and regions that a stretch of LBNs touches
//! * [`subsystem`]: all of it put together; [`calls`]: the applications' calls; [`report`]: what it
//!   says of itself
//! * [`offered`]: what a search is shown of what is wanted
//! * [`track`]: which sectors of one track pass when
//! * [`candidate`], [`merged`]: the best that one track offers to a gap
//! * [`search`]: the search that the papers' algorithms have in common; each of them is a file of
//!   its own: [`bw_greedy`], [`bw_ep_greedy`], [`angle_ep_greedy`], [`angle_ep_frag`]
//! * [`headtime`]: the project's own planner

pub mod adaptive;
pub mod angle_ep_frag;
pub mod angle_ep_greedy;
pub mod backwards;
pub mod bad;
mod banded;
mod bitmap;
pub mod bw_ep_greedy;
pub mod bw_greedy;
pub mod calls;
pub mod candidate;
pub mod cells;
pub mod conservatism;
pub mod evidence;
pub mod forward;
mod front;
pub mod gap;
pub mod gate;
pub mod headtime;
mod history;
pub mod idle;
mod idle_leg;
pub mod idling;
pub mod merged;
pub mod offer;
pub mod offered;
pub mod periods;
pub mod placement;
pub mod planner;
pub mod reach;
pub mod regions;
pub mod report;
pub mod reuse;
pub mod search;
pub mod subsystem;
mod touched;
pub mod track;
pub mod walk;

use search::Policy;

/// The algorithms that fill gaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// [`bw_greedy`].
    BwGreedy,
    /// [`bw_ep_greedy`].
    BwEpGreedy,
    /// [`angle_ep_greedy`].
    AngleEpGreedy,
    /// [`angle_ep_frag`], the paper's default.
    #[default]
    AngleEpFrag,
    /// headtime's own planner.
    Headtime,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Algorithm; 5] = [
        Algorithm::BwGreedy,
        Algorithm::BwEpGreedy,
        Algorithm::AngleEpGreedy,
        Algorithm::AngleEpFrag,
        Algorithm::Headtime,
    ];

    /// The policy of one of the papers' four, with which [`search::Search::begin`] makes a search;
    /// `None` for the project's own planner, which does not search in this way.
    pub fn policy(self) -> Option<&'static Policy> {
        match self {
            Algorithm::BwGreedy => Some(&bw_greedy::BW_GREEDY),
            Algorithm::BwEpGreedy => Some(&bw_ep_greedy::BW_EP_GREEDY),
            Algorithm::AngleEpGreedy => Some(&angle_ep_greedy::ANGLE_EP_GREEDY),
            Algorithm::AngleEpFrag => Some(&angle_ep_frag::ANGLE_EP_FRAG),
            Algorithm::Headtime => None,
        }
    }

    /// Its name: the seed's.
    pub fn name(self) -> &'static str {
        self.policy().map_or("headtime", |p| p.name)
    }

    /// The algorithm of a name, whatever its case.
    pub fn named(name: &str) -> Option<Algorithm> {
        Algorithm::ALL.into_iter().find(|a| a.name().eq_ignore_ascii_case(name))
    }
}
