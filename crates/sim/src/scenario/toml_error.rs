//! Errors of the TOML parser, in the words of the documentation.

use crate::workload::WorkloadError;

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

/// The same for a value that is in no file.
pub(super) fn of_value(e: &toml::de::Error) -> String {
    let found = e.message().split_once(": ").and_then(|(_, rest)| rest.rsplit_once(", expected "));
    in_plain_words(e.message(), found.map_or("another value", |(found, _)| found), "")
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
    const MAX_CHARACTERS: usize = 40;
    let mut shown = String::new();
    for c in text.chars().take(MAX_CHARACTERS) {
        match c.is_control() {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    if text.chars().nth(MAX_CHARACTERS).is_some() {
        shown.push_str("...");
    }
    shown
}
