//! Where in a scenario's file a setting stands, so that a fault found later can name file and line.

use toml::de::{DeTable, DeValue};

use super::WorkloadError;
use super::scenario::Scenario;

/// A table of the file: where it begins, and where its keys stand.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Source {
    file: String,
    line: usize,
    keys: Vec<(String, usize)>,
}

impl Source {
    /// The error with its file, and with the line of the key that it is about: the first key that its message names.
    pub(super) fn fault(&self, e: WorkloadError, task: Option<&str>) -> WorkloadError {
        if matches!(e, WorkloadError::Scenario { .. } | WorkloadError::Trace(_)) {
            return e;
        }
        let mut message = e.to_string();
        let named = message
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .find_map(|word| self.keys.iter().find(|(key, _)| key == word));
        let line = named.map_or(self.line, |(_, line)| *line);
        if let Some(name) = task.filter(|name| !name.is_empty() && !message.contains(&format!("task \"{name}\""))) {
            message = format!("task \"{}\": {message}", name.escape_debug());
        }
        WorkloadError::Scenario { place: format!("{}:{line}", self.file), message }
    }

    /// The error at the line of `key`.
    pub(super) fn fault_at(&self, key: &str, e: &WorkloadError) -> WorkloadError {
        let line = self.keys.iter().find(|(k, _)| k == key).map_or(self.line, |(_, line)| *line);
        WorkloadError::Scenario { place: format!("{}:{line}", self.file), message: e.to_string() }
    }
}

/// The sources of the file's own settings and of each `[[task]]`, for a text that has been understood already.
pub(super) fn sources(text: &str, file: &str) -> (Source, Vec<Source>) {
    let line_of = |at: usize| text.as_bytes()[..at.min(text.len())].iter().filter(|b| **b == b'\n').count() + 1;
    let of = |table: &DeTable, line| Source {
        file: file.to_owned(),
        line,
        keys: table.iter().map(|(key, _)| (key.get_ref().to_string(), line_of(key.span().start))).collect(),
    };
    let Ok(document) = DeTable::parse(text) else {
        return (Source { file: file.to_owned(), line: 1, keys: Vec::new() }, Vec::new());
    };
    let document = document.get_ref();
    let mut tasks = Vec::new();
    if let Some(DeValue::Array(all)) = document.get("task").map(|v| v.get_ref()) {
        for task in all.iter() {
            if let DeValue::Table(table) = task.get_ref() {
                tasks.push(of(table, line_of(task.span().start)));
            }
        }
    }
    (of(document, 1), tasks)
}

/// A type fault in words that are not those of the program's language.
pub(super) fn in_plain_words(message: &str) -> String {
    const WORDS: [(&str, &str); 9] = [
        ("expected u32", "expected a whole number from 0 to 4294967295"),
        ("expected u64", "expected a whole number, 0 or more"),
        ("expected f64", "expected a number"),
        ("expected path string", "expected text in quotes"),
        ("expected a string", "expected text in quotes"),
        ("expected a boolean", "expected true or false"),
        ("expected a tuple of size 2", "expected a list of a size and a weight"),
        ("expected a sequence", "expected a list, written as [[task]] for tasks"),
        ("expected struct TaskTable", "expected a table [[task]]"),
    ];
    let mut message = message.replace('\n', " ").replace("floating point", "number");
    for (theirs, ours) in WORDS {
        message = message.replace(theirs, ours);
    }
    message
}

impl Scenario {
    /// Checks what stands in a file, setting by setting, each fault at its line. Settings that must go together are
    /// not held against each other here: flags may yet complete them.
    pub(super) fn check_settings(&self, own: &Source) -> Result<(), WorkloadError> {
        let nothing = Scenario::default;
        // What needs a fill is checked with one: whether the file has one is checked when the flags are known.
        let filled = || Scenario { fill: Some("headtime".into()), ..nothing() };
        let trace = || Scenario { trace: Some("t".into()), trace_format: Some("mqsim".into()), ..nothing() };
        for (key, alone) in [
            ("admit", Scenario { admit: self.admit.clone(), ..nothing() }),
            ("order", Scenario { order: self.order.clone(), ..nothing() }),
            ("fill", Scenario { fill: self.fill.clone(), ..nothing() }),
            ("placement", Scenario { placement: self.placement.clone(), ..filled() }),
            ("background", Scenario { background: self.background.clone(), ..filled() }),
            ("conservatism_us", Scenario { conservatism_us: self.conservatism_us.clone(), ..filled() }),
            ("seconds", Scenario { seconds: self.seconds, ..nothing() }),
            ("requests", Scenario { requests: self.requests, ..nothing() }),
            ("depth", Scenario { depth: self.depth, ..nothing() }),
            ("workload", Scenario { workload: self.workload.clone(), ..nothing() }),
            ("replay", Scenario { replay: self.replay.clone(), ..trace() }),
            ("trace_format", Scenario { trace_format: self.trace_format.clone().or(trace().trace_format), ..trace() }),
            ("task", Scenario { task: self.task.clone(), ..nothing() }),
        ] {
            alone.check().map_err(|e| match e {
                e @ WorkloadError::Scenario { .. } => e,
                e => own.fault_at(key, &e),
            })?;
        }
        Ok(())
    }
}
