//! Locations of settings in a scenario's file, so that errors found later have file and line.

use toml::de::{DeTable, DeValue};

use super::WorkloadError;
use super::scenario::Scenario;

/// Locations of a table and its keys in the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Source {
    file: String,
    line: usize,
    keys: Vec<(String, usize)>,
}

/// Names that later errors use for the settings of a task or stream, since they know nothing of
/// files.
const CALLED: [(&str, &[&str]); 9] = [
    ("alignment", &["align"]),
    ("request size", &["size", "sizes", "size_mean", "size_max", "like"]),
    ("mean request size", &["size_mean", "size_step"]),
    ("step of the request size", &["size_step"]),
    ("smallest request size", &["size_min"]),
    ("largest request size", &["size_max"]),
    ("sum of the weights", &["sizes"]),
    ("part of the disk", &["to", "from"]),
    ("to (a share of the disk)", &["to", "from"]),
];

impl Source {
    /// Adds the file to an error, with the line of the first key that its message names.
    pub(super) fn fault(&self, e: WorkloadError, whose: Option<(&str, &str)>) -> WorkloadError {
        if matches!(e, WorkloadError::Scenario { .. } | WorkloadError::Trace(_)) {
            return e;
        }
        let mut message = e.to_string();
        let line = self.named(&message).unwrap_or(self.line);
        let said = |(what, name): &(&str, &str)| name.is_empty() || message.contains(&format!("{what} \"{name}\""));
        if let Some((what, name)) = whose.filter(|whose| !said(whose)) {
            message = format!("{what} \"{}\": {message}", name.escape_debug());
        }
        WorkloadError::Scenario { place: format!("{}:{line}", self.file), message }
    }

    /// Does the same if the message names a key of the file.
    pub(super) fn fault_if_named(&self, e: WorkloadError) -> WorkloadError {
        match self.named(&e.to_string()) {
            Some(_) => self.fault(e, None),
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
        // Some keys may be written as on the command line, too.
        self.keys.iter().find(|(k, _)| k.replace('-', "_") == key).map(|(_, line)| *line)
    }

    /// Returns the line of the key that a message refers to.
    fn named(&self, message: &str) -> Option<usize> {
        if let Some((_, keys)) = CALLED.iter().find(|(words, _)| message.starts_with(words)) {
            return keys.iter().find_map(|key| self.line_of(key));
        }
        // In "expected 1 to 5", `to` does not refer to the key of that name.
        let about = message.split_once(": expected").map_or(message, |(about, _)| about);
        about.split(|c: char| !c.is_alphanumeric() && c != '_').find_map(|word| self.line_of(word))
    }
}

/// Returns the locations of the file's own settings, of each `[[task]]` and of each `[[stream]]`,
/// for a text that was parsed before.
pub(super) fn sources(text: &str, file: &str) -> (Source, Vec<Source>, Vec<Source>) {
    let line_of = |at: usize| text.as_bytes()[..at.min(text.len())].iter().filter(|b| **b == b'\n').count() + 1;
    let of = |table: &DeTable, line| Source {
        file: file.to_owned(),
        line,
        keys: table.iter().map(|(key, _)| (key.get_ref().to_string(), line_of(key.span().start))).collect(),
    };
    let Ok(document) = DeTable::parse(text) else {
        return (Source { file: file.to_owned(), line: 1, keys: Vec::new() }, Vec::new(), Vec::new());
    };
    let document = document.get_ref();
    let tables = |key: &str| {
        let mut found = Vec::new();
        if let Some(DeValue::Array(all)) = document.get(key).map(|v| v.get_ref()) {
            for table in all.iter() {
                if let DeValue::Table(keys) = table.get_ref() {
                    found.push(of(keys, line_of(table.span().start)));
                }
            }
        }
        found
    };
    (of(document, 1), tables("task"), tables("stream"))
}

/// Converts TOML's error to one line: the file's line, what was expected, what was found.
pub(super) fn fault(text: &str, file: &str, e: &toml::de::Error) -> WorkloadError {
    let Some(span) = e.span() else {
        return WorkloadError::Scenario { place: file.to_owned(), message: e.message().to_owned() };
    };
    let start = (0..=span.start.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    let before = &text[..start];
    let place = format!("{file}:{}", before.matches('\n').count() + 1);
    // A value that spans several lines is represented by its first.
    let value = text.get(span).and_then(|v| v.lines().next()).unwrap_or("").trim();
    let begin = before.rfind('\n').map_or(0, |at| at + 1);
    let line = text[begin..].lines().next().unwrap_or("").trim();
    WorkloadError::Scenario { place, message: in_plain_words(e.message(), value, line) }
}

/// Rewrites `message` without terms of the programming language or of TOML's grammar. `value` is
/// the value that it refers to, `line` the whole line.
fn in_plain_words(message: &str, value: &str, line: &str) -> String {
    const TYPES: [(&str, &str); 9] = [
        ("u32", "a whole number from 0 to 4294967295"),
        ("u64", "a whole number, 0 or more"),
        ("f64", "a number"),
        ("path string", "text in quotes"),
        ("a string", "text in quotes"),
        ("a boolean", "true or false"),
        ("a sequence", "a list, written as [[task]] or [[stream]]"),
        ("struct TaskTable", "a table [[task]]"),
        ("struct StreamTable", "a table [[stream]]"),
    ];
    const GRAMMAR: [(&str, &str); 14] = [
        ("duplicate key", "expected each key once"),
        ("string values must be quoted", "expected text in quotes, a number, true or false"),
        ("invalid basic string, expected `\"`", "expected text that ends with \" in its line"),
        ("invalid literal string, expected `'`", "expected text that ends with ' in its line"),
        ("invalid basic string", "expected text without control characters"),
        ("invalid literal string", "expected text without control characters"),
        ("invalid multi-line basic string, expected `\"`", "expected text that ends with \"\"\""),
        ("invalid multi-line literal string, expected `'`", "expected text that ends with '''"),
        ("missing escaped value", "expected \\\\ for each \\ in text, or text in '"),
        ("unexpected key or value", "expected one key = value in a line"),
        ("unquoted keys cannot be empty", "expected a key before ="),
        ("unexpected leading zero", "expected a number without leading zeros"),
        ("`_` may only go between digits", "expected a digit on both sides of each _"),
        ("integer number overflowed", "expected a whole number"),
    ];
    let message = message.replace('\n', " ");
    let is_of_type = ["invalid type: ", "invalid value: "].iter().any(|begin| message.starts_with(begin));
    if let Some((_, theirs)) = message.rsplit_once(", expected ").filter(|_| is_of_type) {
        let ours = TYPES.iter().find(|(t, _)| *t == theirs).map_or(theirs, |(_, ours)| *ours);
        return format!("expected {ours}, found {}", start_of(value));
    }
    if let Some(rest) = message.strip_prefix("unknown field") {
        return format!("unknown key{rest}");
    }
    if message.contains(", found ") {
        return message;
    }
    let ours =
        GRAMMAR.iter().find(|(theirs, _)| message.starts_with(theirs)).map_or(message.as_str(), |(_, ours)| *ours);
    format!("{ours}, found {}", if line.is_empty() { "nothing".into() } else { start_of(line) })
}

/// Returns the start of a text from the file for a message, with control characters escaped.
fn start_of(text: &str) -> String {
    const MOST: usize = 40;
    let mut shown = String::new();
    for c in text.chars().take(MOST) {
        match c.is_control() {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    if text.chars().nth(MOST).is_some() {
        shown.push_str("...");
    }
    shown
}

impl Scenario {
    /// Checks each setting in a file, with errors at its line. Combinations are not checked here,
    /// because flags may complete them.
    pub(super) fn check_settings(&self, own: &Source) -> Result<(), WorkloadError> {
        let nothing = Scenario::default;
        // Settings that need FILL are checked with one: whether the file has one is checked when
        // the flags are known.
        let filled = || Scenario { fill: Some("headtime".into()), ..nothing() };
        let trace = || Scenario { trace: Some("t".into()), trace_format: Some("mqsim".into()), ..nothing() };
        for (key, alone) in [
            ("admit", Scenario { admit: self.admit.clone(), ..nothing() }),
            ("exhausted", Scenario { admit: Some("das".into()), exhausted: self.exhausted.clone(), ..nothing() }),
            ("order", Scenario { order: self.order.clone(), ..nothing() }),
            ("fill", Scenario { fill: self.fill.clone(), ..nothing() }),
            ("placement", Scenario { placement: self.placement.clone(), ..filled() }),
            ("background", Scenario { background: self.background.clone(), ..filled() }),
            ("conservatism_us", Scenario { conservatism_us: self.conservatism_us.clone(), ..filled() }),
            ("host_us", Scenario { host_us: self.host_us.clone(), ..nothing() }),
            ("seconds", Scenario { seconds: self.seconds, ..nothing() }),
            ("requests", Scenario { requests: self.requests, ..nothing() }),
            ("write_cache", Scenario { write_cache: self.write_cache, ..nothing() }),
            ("depth", Scenario { depth: self.depth, ..nothing() }),
            ("workload", Scenario { workload: self.workload.clone(), ..nothing() }),
            ("replay", Scenario { replay: self.replay.clone(), ..trace() }),
            ("trace_format", Scenario { trace_format: self.trace_format.clone().or(trace().trace_format), ..trace() }),
            ("task", Scenario { task: self.task.clone(), ..nothing() }),
            ("stream", Scenario { stream: self.stream.clone(), ..nothing() }),
        ] {
            alone.check().map_err(|e| match e {
                e @ WorkloadError::Scenario { .. } => e,
                e => own.fault_at(key, &e),
            })?;
        }
        Ok(())
    }
}
