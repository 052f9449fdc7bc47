//! What the page asks for.

use serde::Deserialize;

/// Most commands and requests of which a run gives the details.
const MOST_ROWS: usize = 100_000;
/// Most cells of the map of what was read.
const MOST_CELLS: usize = 4_096;
/// The shortest interval of the figures of a run that is not over.
const SHORTEST_SLICE_MS: u64 = 1;

/// A request.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum Request {
    /// The drives, and the names of all choices.
    Catalogue {},
    /// A drive's layout and motion, to be drawn.
    Drive {
        /// Its name.
        disk: String,
    },
    /// A run.
    Simulate(Simulate),
}

/// A run, and what of it is to be given besides its result.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Simulate {
    /// A scenario's text (docs/scenarios.md).
    pub scenario: String,
    /// Of how many commands, and of how many requests, the details are given.
    #[serde(default)]
    pub commands: usize,
    /// Length of an interval in virtual milliseconds, after each of which the figures so far are
    /// given; 0: none.
    #[serde(default)]
    pub slice_ms: u64,
    /// Number of cells of the map of what background work has read.
    #[serde(default)]
    pub cells: usize,
}

impl Request {
    /// Parses a request and checks its limits.
    ///
    /// # Errors
    /// It is no request; the page is at fault, not its visitor.
    pub fn parse(text: &str) -> Result<Request, String> {
        let request: Request =
            serde_json::from_str(text).map_err(|e| format!("this is no request of the page: {e}"))?;
        if let Request::Simulate(s) = &request {
            let within = s.commands <= MOST_ROWS
                && s.cells <= MOST_CELLS
                && (s.slice_ms == 0 || s.slice_ms >= SHORTEST_SLICE_MS);
            if !within {
                return Err(format!("request: at most {MOST_ROWS} commands and {MOST_CELLS} cells"));
            }
        }
        Ok(request)
    }
}
