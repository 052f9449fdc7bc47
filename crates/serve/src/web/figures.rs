//! The figures of the live view, as JSON: the counters of the control interface, and where on the
//! platter the last commands were.

use headtime_disk::{Geometry, Kind};
use serde::Serialize;

use super::WebAt;
use crate::control::counts;
use crate::control::service::Service;
use crate::control::v1;
use crate::engine::snapshot::{RecentCommand, Snapshot};

/// What the page reads.
#[derive(Debug, Serialize)]
struct Figures<'a> {
    version: &'static str,
    disk: &'a str,
    /// Whether gaps are filled.
    fills: bool,
    /// Whether sessions can be changed, with the token.
    changes: bool,
    cylinders: u32,
    surfaces: u16,
    revolution_ms: f64,
    sector_bytes: u32,
    /// As `headtime top` reads them.
    counts: v1::Snapshot,
    /// The oldest first.
    commands: Vec<Command>,
}

/// A completed command.
#[derive(Debug, Serialize)]
pub(super) struct Command {
    kind: &'static str,
    lbn: u64,
    sectors: u32,
    /// Sectors at its front that were background data.
    free: u32,
    /// Since the server began.
    sent_ms: f64,
    took_ms: f64,
    failed: bool,
    /// Where it begins; absent for flushes.
    place: Option<Place>,
}

#[derive(Debug, Serialize)]
struct Place {
    cylinder: u32,
    surface: u16,
    /// The part of a turn from the index mark.
    turn: f64,
}

pub(super) fn command(c: &RecentCommand, geometry: &Geometry) -> Command {
    let place = if c.kind == Kind::Flush { None } else { geometry.locate(c.lbn) };
    Command {
        kind: match c.kind {
            Kind::Read => "read",
            Kind::Write => "write",
            Kind::Flush => "flush",
        },
        lbn: c.lbn,
        sectors: c.count,
        free: c.free,
        sent_ms: c.sent.0 as f64 / 1e6,
        took_ms: c.done.saturating_since(c.sent).as_ms_f64(),
        failed: c.failed,
        place: place.map(|p| Place { cylinder: p.cylinder, surface: p.surface, turn: p.angle.turns() }),
    }
}

/// Returns the figures of a snapshot.
pub(super) fn json(at: &WebAt, service: &Service, snapshot: Snapshot) -> String {
    let geometry = &at.geometry;
    let commands = snapshot.recent.iter().map(|c| command(c, geometry)).collect();
    let figures = Figures {
        version: env!("CARGO_PKG_VERSION"),
        disk: &at.disk,
        fills: at.fills,
        changes: at.token.is_some(),
        cylinders: geometry.cylinders(),
        surfaces: geometry.surfaces(),
        revolution_ms: at.revolution.as_ms_f64(),
        sector_bytes: service.exports.sector_bytes,
        counts: counts::complete(snapshot, &service.exports, &service.names, &service.cached),
        commands,
    };
    serde_json::to_string(&figures).expect("it has no maps and no readers")
}
