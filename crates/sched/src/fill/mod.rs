//! FILL: background work served in the rotational gaps before foreground requests, and in idle time
//! (Lumb 2001 and 2002, Thereska 2003).
//!
//! * [`gap`]: the rotational gap, and the final check that a plan fits into it
//! * [`conservatism`]: margins for moves that take longer than predicted
//! * [`adaptive`]: seek times and margins learned from the drive, from [`evidence`]
//! * [`gate`]: disables filling while predictions fail
//! * [`idle`]: detection of idle time; [`idling`], [`reach`], [`offer`]: choice of idle work
//! * [`subsystem::promotion`]: background work promoted to foreground; [`bad`]: defective sectors
//!   that are left alone
//! * [`placement`]: what a scheduler inside or outside the drive may do
//! * [`cells`], [`regions`]: a coarse index of wanted sectors, which restricts a search to places
//!   where it can find something
//! * `touched`: the cells and regions that a range of LBNs touches
//! * [`subsystem`]: the parts combined; [`calls`]: the calls of applications; [`report`]: its
//!   statistics
//! * [`offered`]: the wanted sectors that a search sees
//! * [`track`]: when each sector of a track passes the head
//! * [`candidate`], [`merged`]: the best use of a gap on one track
//! * [`search`]: the search that the papers' algorithms share; each of them has a file of its own:
//!   [`bw_greedy`], [`bw_ep_greedy`], [`angle_ep_greedy`], [`angle_ep_frag`]; `walk`: the order in
//!   which it visits cells; `left`: the wanted sectors of tracks
//! * `stay`: how long the head can stay somewhere in a gap
//! * [`headtime`]: the project's own planner

pub(crate) mod adaptive;
pub(crate) mod angle_ep_frag;
pub(crate) mod angle_ep_greedy;
pub(crate) mod backwards;
pub(crate) mod bad;
mod banded;
mod bitmap;
pub(crate) mod bw_ep_greedy;
pub(crate) mod bw_greedy;
pub(crate) mod calls;
pub(crate) mod candidate;
pub(crate) mod cells;
pub(crate) mod config;
pub(crate) mod conservatism;
pub(crate) mod evidence;
mod front;
pub(crate) mod gap;
pub(crate) mod gate;
pub(crate) mod headtime;
mod history;
pub(crate) mod idle;
mod idle_leg;
pub(crate) mod idling;
pub(crate) mod left;
pub(crate) mod merged;
pub(crate) mod offer;
pub(crate) mod offered;
pub(crate) mod periods;
pub(crate) mod placement;
pub(crate) mod planner;
pub(crate) mod reach;
pub(crate) mod regions;
pub(crate) mod report;
pub(crate) mod reuse;
pub(crate) mod scene;
pub(crate) mod search;
mod stay;
pub(crate) mod subsystem;
mod touched;
pub(crate) mod track;
pub(crate) mod walk;

use std::fmt;
use std::str::FromStr;

use crate::names::NameError;
use search::Policy;

/// The algorithms that fill gaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// `bw_greedy`.
    BwGreedy,
    /// `bw_ep_greedy`.
    BwEpGreedy,
    /// `angle_ep_greedy`.
    AngleEpGreedy,
    /// `angle_ep_frag`, the paper's default.
    #[default]
    AngleEpFrag,
    /// headtime's own planner.
    Headtime,
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Algorithm; 5] = [
        Algorithm::BwGreedy,
        Algorithm::BwEpGreedy,
        Algorithm::AngleEpGreedy,
        Algorithm::AngleEpFrag,
        Algorithm::Headtime,
    ];

    /// Names.
    pub const NAMES: [&'static str; Algorithm::ALL.len()] =
        ["bw-greedy", "bw-ep-greedy", "angle-ep-greedy", "angle-ep-frag", "headtime"];

    /// Returns the policy of one of the papers' four algorithms, for [`search::Search::begin`];
    /// `None` for the project's own planner, which does not use this search.
    pub fn policy(self) -> Option<&'static Policy> {
        match self {
            Algorithm::BwGreedy => Some(&bw_greedy::BW_GREEDY),
            Algorithm::BwEpGreedy => Some(&bw_ep_greedy::BW_EP_GREEDY),
            Algorithm::AngleEpGreedy => Some(&angle_ep_greedy::ANGLE_EP_GREEDY),
            Algorithm::AngleEpFrag => Some(&angle_ep_frag::ANGLE_EP_FRAG),
            Algorithm::Headtime => None,
        }
    }

    /// Returns the name for figures and tables, as the paper writes it, or `headtime`.
    pub fn name(self) -> &'static str {
        self.policy().map_or("headtime", |p| p.name)
    }
}

impl FromStr for Algorithm {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Algorithm, NameError> {
        let found = Algorithm::ALL.into_iter().zip(Algorithm::NAMES).find(|a| a.1 == name);
        found.map(|a| a.0).ok_or_else(|| NameError::unknown("fill", name, &Algorithm::NAMES))
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(Algorithm::NAMES[*self as usize])
    }
}
