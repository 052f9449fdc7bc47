//! Moves of units of reorganised exports, and where a session may write.

use std::collections::{BTreeMap, BTreeSet};

use headtime_sched::layout::{Move, Place};
use headtime_sched::{TaskId, TaskRange};
use tonic::Status;

use super::Session;
use crate::control::events::refused;
use crate::control::layouts::{Ended, MoveError};
use crate::control::v1;
use crate::control::v1::session_event::Event as ClientEvent;
use crate::engine::layout_call::{Begun, MAX_MOVES};

/// The moves of a session in progress.
#[derive(Debug, Default)]
pub(super) struct Moving {
    /// The new places of the units, by export and unit: where the session may write.
    to: BTreeMap<(u32, u64), TaskRange>,
    /// Write tasks that have not ended.
    writing: BTreeSet<TaskId>,
}

impl Moving {
    pub(super) fn begins_writing(&mut self, task: TaskId) {
        self.writing.insert(task);
    }

    pub(super) fn ends_writing(&mut self, task: TaskId) {
        self.writing.remove(&task);
    }
}

impl Session {
    /// Returns why this session must not write these ranges with a task.
    pub(super) fn forbids_task(&self, ranges: &[TaskRange]) -> Option<String> {
        let own: Vec<TaskRange> = self.moving.to.values().copied().collect();
        self.forbids(ranges, &own)
    }

    /// Returns why this session must not write this range with a request.
    pub(super) fn forbids_request(&self, range: &TaskRange) -> Option<String> {
        self.forbids(std::slice::from_ref(range), &[])
    }

    /// `own`: where it may write although the export is reorganised.
    fn forbids(&self, ranges: &[TaskRange], own: &[TaskRange]) -> Option<String> {
        let service = &self.service;
        if service.cache.is_some() {
            return None;
        }
        let of_cache = service.cached.forbids(&service.exports, ranges);
        of_cache.or_else(|| service.layouts.forbids(&service.exports, ranges, own))
    }

    /// Begins moves of units.
    pub(super) async fn begin_moves(&mut self, m: v1::Moves) -> Result<ClientEvent, Status> {
        let Some(export) = self.service.exports.number(&m.export) else {
            return Ok(refused(None, &format!("no export {:?}", m.export)));
        };
        if m.moves.len() > MAX_MOVES {
            return Ok(refused(None, &format!("expected at most {MAX_MOVES} moves, found {}", m.moves.len())));
        }
        let moves = m.moves.iter().map(|m| Move { unit: m.unit, to: m.slot.map_or(Place::Home, Place::Slot) });
        let begun = self.service.layouts.begin(export, self.id, moves.collect(), &self.service.engine).await?;
        let range = |r: TaskRange| Some(v1::Range { lbn: r.lbn, count: r.count });
        let mut answer = v1::Moving::default();
        for (asked, begun) in m.moves.iter().zip(begun) {
            answer.begun.push(match begun {
                Ok(Begun { unit, from, to }) => {
                    self.moving.to.insert((export, unit), to);
                    v1::Begun { unit, why_not: String::new(), from: range(from), to: range(to) }
                }
                Err(why_not) => v1::Begun { unit: asked.unit, why_not, from: None, to: None },
            });
        }
        Ok(ClientEvent::Moving(answer))
    }

    /// Ends moves of units.
    pub(super) async fn settle(&mut self, s: v1::Settle) -> Result<ClientEvent, Status> {
        let Some(export) = self.service.exports.number(&s.export) else {
            return Ok(refused(None, &format!("no export {:?}", s.export)));
        };
        if !self.moving.writing.is_empty() {
            // What they write later would overwrite newer data of the export's clients.
            return Ok(refused(None, "expected no write task of the session that has not ended"));
        }
        if s.units.len() > MAX_MOVES {
            return Ok(refused(None, &format!("expected at most {MAX_MOVES} units, found {}", s.units.len())));
        }
        s.units.iter().for_each(|&unit| _ = self.moving.to.remove(&(export, unit)));
        Ok(match self.service.layouts.settle(export, self.id, s.units).await {
            Ok(Ended { moved, stayed }) => ClientEvent::Settled(v1::Settled { moved, stayed }),
            Err(MoveError::Ended(why)) => return Err(why.into()),
            Err(why) => refused(None, &why.to_string()),
        })
    }
}
