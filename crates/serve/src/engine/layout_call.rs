//! Calls about reorganised exports, and their answers.

use std::sync::Arc;

use headtime_sched::layout::{BlockMap, HotUnit, Move};
use headtime_sched::{SessionId, TaskRange};
use tokio::sync::oneshot;

/// Moves of an export in progress at most, and units of one call.
pub const MAX_MOVES: usize = 256;

/// Units of a settling with a last copy, at most: their writes wait for all of them.
pub const MAX_COPIES: usize = 4;

/// A call about a reorganised export. Exports have their numbers.
#[derive(Debug)]
#[non_exhaustive]
pub enum LayoutCall {
    /// Sets an export's map, before its first request.
    Load {
        /// The export.
        export: u32,
        /// Its map.
        map: BlockMap,
    },
    /// Asks for an export's map and its hottest units.
    View {
        /// The export.
        export: u32,
        /// The channel for the answer: `None` if the export is not reorganised.
        reply: oneshot::Sender<Option<LayoutView>>,
    },
    /// Begins moves.
    Begin {
        /// The export.
        export: u32,
        /// The session whose moves these are. They are cancelled when it closes.
        session: SessionId,
        /// The moves.
        moves: Vec<Move>,
        /// The channel for the answer: what is to be copied where, or why a move is refused, in
        /// their order.
        reply: oneshot::Sender<Vec<Result<Begun, String>>>,
    },
    /// Holds back the writes to units whose data was copied.
    Settle {
        /// The export.
        export: u32,
        /// The session.
        session: SessionId,
        /// The units.
        units: Vec<u64>,
        /// The channel for the answer.
        reply: oneshot::Sender<Settling>,
    },
    /// Ends moves whose units settle.
    End {
        /// The export.
        export: u32,
        /// The units.
        units: Vec<u64>,
        /// Which map is on the disk.
        stored: Stored,
        /// The channel for the answer: the next settling must not overtake this call.
        reply: oneshot::Sender<()>,
    },
}

/// Which map is on the disk, after the new one was to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// The new one.
    New,
    /// The old one.
    Old,
    /// One of the two: neither could be written again.
    Unknown,
}

/// What is to be copied where: a unit whose move has begun, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    /// The unit.
    pub unit: u64,
    /// Where its data is.
    pub from: TaskRange,
    /// Where it is to be written.
    pub to: TaskRange,
}

/// Units that settle.
#[derive(Clone, Debug)]
pub struct Settling {
    /// The moves of units whose data was copied. Their writes wait.
    pub moves: Vec<Move>,
    /// What was overwritten of them since, and is to be copied again.
    pub copies: Vec<Begun>,
    /// The map without these moves.
    pub map: Arc<BlockMap>,
}

/// An export's map and heat.
#[derive(Clone, Debug)]
pub struct LayoutView {
    /// The map.
    pub map: Arc<BlockMap>,
    /// All units of which accesses are known, in no order.
    pub hot: Vec<HotUnit>,
    /// Accesses to all units.
    pub accesses: u64,
}
