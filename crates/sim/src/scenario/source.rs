//! Locations of settings in a scenario's file, so that errors found later have file and line.

use toml::de::{DeTable, DeValue};

use crate::workload::WorkloadError;

/// Locations of a table and its keys in the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Source {
    file: String,
    line: usize,
    keys: Vec<(String, usize)>,
}

impl Source {
    /// Adds file and line to an error of this table, which describes the task or stream `name`, and
    /// its name where the message lacks it.
    pub(super) fn table_fault(&self, what: &str, name: &str, e: WorkloadError) -> WorkloadError {
        if matches!(e, WorkloadError::Scenario { .. } | WorkloadError::Trace(_)) {
            return e;
        }
        let is_named = name.is_empty() || matches!(e, WorkloadError::Setting { is_named: true, .. });
        let message = match is_named {
            true => e.to_string(),
            false => format!("{what} \"{}\": {e}", name.escape_debug()),
        };
        let line = self.line_of_any(e.keys()).unwrap_or(self.line);
        WorkloadError::Scenario { place: format!("{}:{line}", self.file), message }
    }

    /// Adds file and line to an error of a setting in the file.
    pub(super) fn fault(&self, e: WorkloadError) -> WorkloadError {
        match self.line_of_any(e.keys()) {
            Some(line) => WorkloadError::Scenario { place: format!("{}:{line}", self.file), message: e.to_string() },
            None => e,
        }
    }

    /// Adds the line of `key` to an error.
    pub(super) fn fault_at(&self, key: &str, e: &WorkloadError) -> WorkloadError {
        let place = self.place(key).unwrap_or_else(|| format!("{}:{}", self.file, self.line));
        WorkloadError::Scenario { place, message: e.to_string() }
    }

    /// Returns file and line of `key`, if it is in the file.
    pub(super) fn place(&self, key: &str) -> Option<String> {
        self.line_of(key).map(|line| format!("{}:{line}", self.file))
    }

    /// Restricts the file's keys.
    pub(super) fn keeping(self, mut keep: impl FnMut(&str) -> bool) -> Source {
        Source { keys: self.keys.into_iter().filter(|(key, _)| keep(key)).collect(), ..self }
    }

    fn line_of(&self, key: &str) -> Option<usize> {
        self.keys.iter().find(|(k, _)| k == key).map(|(_, line)| *line)
    }

    fn line_of_any(&self, keys: &[&str]) -> Option<usize> {
        keys.iter().find_map(|key| self.line_of(key))
    }
}

/// Locations of a file's own settings, of each `[[task]]` and of each `[[stream]]`.
pub(super) struct Sources {
    pub(super) own: Source,
    pub(super) tasks: Vec<Source>,
    pub(super) streams: Vec<Source>,
}

impl Sources {
    /// Finds the locations in a document that was parsed from `text`.
    pub(super) fn new(document: &DeTable, text: &str, file: &str) -> Sources {
        let line_of = |at: usize| text.as_bytes()[..at.min(text.len())].iter().filter(|b| **b == b'\n').count() + 1;
        let of = |table: &DeTable, line| Source {
            file: file.to_owned(),
            line,
            // Some keys may be written as on the command line, too.
            keys: table.iter().map(|(key, _)| (key.get_ref().replace('-', "_"), line_of(key.span().start))).collect(),
        };
        let tables = |key: &str| match document.get(key).map(|v| v.get_ref()) {
            Some(DeValue::Array(all)) => all
                .iter()
                .filter_map(|table| match table.get_ref() {
                    DeValue::Table(keys) => Some(of(keys, line_of(table.span().start))),
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        };
        Sources { own: of(document, 1), tasks: tables("task"), streams: tables("stream") }
    }
}
