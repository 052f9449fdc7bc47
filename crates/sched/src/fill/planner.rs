//! The algorithms behind one call.

use headtime_disk::model::Model;

use super::Algorithm;
use super::gap::{Gap, Plan};
use super::headtime::habit::Habit;
use super::headtime::prices::Prices;
use super::headtime::visit::Asked;
use super::headtime::{self, walk::Map};
use super::placement::Placement;
use super::regions::Regions;
use super::subsystem::FillConfig;
use crate::tasks::manager::TaskManager;
use crate::tasks::{Range, SessionId, Who};

/// An algorithm, and what it keeps from search to search.
#[derive(Clone, Debug)]
pub struct Planner {
    algorithm: Algorithm,
    own: headtime::Planner,
    prices: Prices,
    columns: u32,
}

impl Planner {
    /// As configured.
    pub fn new(config: &FillConfig, model: &Model) -> Planner {
        let columns = if model.geometry.group_tracks().is_some() { u32::from(model.geometry.surfaces()) } else { 1 };
        Planner { algorithm: config.algorithm, own: Default::default(), prices: Prices::default(), columns }
    }

    /// Something more is wanted.
    pub fn registered(&mut self, _model: &Model, _range: &Range) {}

    /// Something is no longer wanted.
    pub fn shrunk(&mut self, _model: &Model, _range: &Range) {}

    /// The best plan.
    #[allow(clippy::too_many_arguments)]
    pub fn plan(
        &mut self,
        model: &Model,
        gap: &Gap,
        placement: Placement,
        last_read: Option<(u32, u16)>,
        wants: &TaskManager,
        regions: &Regions,
        winner: SessionId,
        exclude: &[Range],
    ) -> Option<Plan> {
        let who = Who::Session(winner);
        let habit = Habit::before(model, placement, last_read);
        let asked = Asked { model, gap, habit, wants, who, exclude, prices: &self.prices };
        let map = RegionMap { regions, who, columns: self.columns };
        let _ = self.algorithm;
        self.own.search(&asked, &map).map(|f| f.plan)
    }
}

struct RegionMap<'a> {
    regions: &'a Regions,
    who: Who,
    columns: u32,
}

impl Map for RegionMap<'_> {
    fn columns(&self) -> u16 {
        self.columns as u16
    }
    fn cells(&self) -> u32 {
        self.regions.cells().count() / self.columns
    }
    fn width(&self) -> u32 {
        self.columns
    }
    fn up(&self, column: u16, cell: u32, mask: u64) -> Option<u32> {
        let mut at = cell * self.columns + u32::from(column);
        loop {
            let found = self.regions.next_up(self.who, at, mask)?;
            if found % self.columns == u32::from(column) {
                return Some(found / self.columns);
            }
            at = found + 1;
        }
    }
    fn down(&self, column: u16, cell: u32, mask: u64) -> Option<u32> {
        let mut at = cell * self.columns + u32::from(column);
        loop {
            let found = self.regions.next_down(self.who, at, mask)?;
            if found % self.columns == u32::from(column) {
                return Some(found / self.columns);
            }
            at = found.checked_sub(1)?;
        }
    }
}
