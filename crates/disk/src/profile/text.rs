//! Texts and lists as TOML.

use std::fmt::Write;

/// Maximum length of a line that holds more than one item.
pub(super) const WIDTH: usize = 116;

/// Formats a text with TOML's escapes.
pub(super) fn text(s: &str) -> String {
    let mut out = String::from("\"");
    for c in s.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => write!(out, "\\u{:04x}", c as u32).unwrap_or_default(),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Formats a list inside a zone, on separate lines if it is long.
pub(super) fn wrapped(items: &[String]) -> String {
    let one = format!("[{}]", items.join(", "));
    if one.len() <= 40 {
        return one;
    }
    let mut out = String::from("[\n       ");
    let mut column = 7;
    for item in items {
        if column + item.len() + 2 > WIDTH {
            out.push_str("\n       ");
            column = 7;
        }
        write!(out, " {item},").unwrap_or_default();
        column += item.len() + 2;
    }
    out.push_str("\n    ]");
    out
}
