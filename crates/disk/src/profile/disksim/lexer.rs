//! Tokens of DiskSim parameter files, with `source` resolved.
//!
//! Whitespace separates; `#` starts a comment up to the end of the line; `{ } [ ] , =` are single
//! tokens and `; : ?` are reserved; any other run of characters is a word. Whether a word is a
//! number is decided where it is used, because names of files and drives may look like numbers.
//! `source FILE` may appear anywhere and is replaced by that file's tokens.

use std::sync::Arc;

use crate::profile::Resolver;
use crate::profile::fault::{At, ProfileError, Reason, excerpt};

/// Maximum number of files per drive. Real drives have three or four.
pub(super) const MAX_FILES: usize = 64;

/// Kind of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A run of ordinary characters.
    Word(String),
    /// One of `{ } [ ] , =` or a reserved `; : ?`.
    Mark(char),
}

/// A token with its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    /// Location.
    pub at: At,
    /// Kind.
    pub kind: Kind,
}

impl Token {
    /// Describes the token for messages.
    pub(super) fn describe(&self) -> String {
        match &self.kind {
            Kind::Word(w) => format!("`{}`", excerpt(w)),
            Kind::Mark(c) => format!("`{c}`"),
        }
    }
}

/// Returns all tokens of `path` and of every sourced file, in order.
///
/// Errors: an unreadable file (reported at the `source` line), `source` without a file name, a file
/// that sources itself, too many files, and a sourced file that ends inside a block or list, that
/// is, a truncated one.
pub(super) fn tokens(path: &str, resolver: &Resolver) -> Result<Vec<Token>, ProfileError> {
    let mut lexer = Lexer { resolver, files: 0, open: Vec::new(), out: Vec::new() };
    lexer.file(path, &At::file(path))?;
    Ok(lexer.out)
}

/// Resolves `name` relative to the file `from`; absolute names stay.
pub(super) fn beside(from: &str, name: &str) -> String {
    match from.rfind('/') {
        Some(end) if !name.starts_with('/') => format!("{}/{name}", &from[..end]),
        _ => name.to_string(),
    }
}

struct Lexer<'r> {
    resolver: &'r Resolver<'r>,
    files: usize,
    /// The files being read, the main one first.
    open: Vec<String>,
    out: Vec<Token>,
}

impl Lexer<'_> {
    fn file(&mut self, path: &str, asked_at: &At) -> Result<(), ProfileError> {
        self.files += 1;
        if self.files > MAX_FILES {
            return Err(ProfileError { at: asked_at.clone(), reason: Reason::TooDeep { max: MAX_FILES } });
        }
        if let Some(first) = self.open.iter().position(|f| f == path) {
            let through = self.open.len() - first - 1;
            let reason = Reason::SourcesItself { file: path.into(), through };
            return Err(ProfileError { at: asked_at.clone(), reason });
        }
        self.open.push(path.into());
        let text = (self.resolver)(path).map_err(|why| ProfileError {
            at: asked_at.clone(),
            reason: Reason::Unreadable(format!("{path}: {why}")),
        })?;
        let file: Arc<str> = path.into();
        // Location of a `source` without its file name yet.
        let mut source: Option<At> = None;
        // Open blocks and lists of this file, with their locations.
        let mut begun: Vec<(char, At)> = Vec::new();
        let mut end = At { file: file.clone(), line: 1 };
        for (number, line) in text.lines().enumerate() {
            let at = At { file: file.clone(), line: number as u32 + 1 };
            let code = line.split('#').next().unwrap_or("");
            end = at.clone();
            for kind in split(code) {
                match kind {
                    Kind::Mark('{') => begun.push(('}', at.clone())),
                    Kind::Mark('[') => begun.push((']', at.clone())),
                    Kind::Mark('}' | ']') => drop(begun.pop()),
                    _ => {}
                }
                match (source.take(), kind) {
                    (Some(at), Kind::Word(name)) => self.file(&beside(path, &name), &at)?,
                    (Some(at), Kind::Mark(c)) => {
                        let found = format!("`{c}`");
                        return Err(ProfileError::expected(&at, "a file name after `source`", found));
                    }
                    (None, Kind::Word(w)) if w == "source" => source = Some(at.clone()),
                    (None, kind) => self.out.push(Token { at: at.clone(), kind }),
                }
            }
        }
        if let Some(at) = source {
            return Err(ProfileError::expected(&at, "a file name after `source`", "the end of the file"));
        }
        self.open.pop();
        // The end of the main file is reported by the parser, which knows what it expects.
        if let Some((mark, from)) = begun.pop()
            && !self.open.is_empty()
        {
            let expected = format!("`{mark}` for what begins on line {}", from.line);
            return Err(ProfileError::expected(&end, expected, "the end of the file"));
        }
        Ok(())
    }
}

fn split(code: &str) -> Vec<Kind> {
    let mut out = Vec::new();
    let mut word = String::new();
    for c in code.chars() {
        let mark = matches!(c, '{' | '}' | '[' | ']' | ',' | '=' | ';' | ':' | '?');
        if (mark || c.is_whitespace()) && !word.is_empty() {
            out.push(Kind::Word(std::mem::take(&mut word)));
        }
        if mark {
            out.push(Kind::Mark(c));
        } else if !c.is_whitespace() {
            word.push(c);
        }
    }
    if !word.is_empty() {
        out.push(Kind::Word(word));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(tokens: &[Token]) -> String {
        let text: Vec<String> = tokens
            .iter()
            .map(|t| match &t.kind {
                Kind::Word(w) => w.clone(),
                Kind::Mark(c) => c.to_string(),
            })
            .collect();
        text.join(" ")
    }

    #[test]
    fn a_sourced_file_is_spliced_in_place_with_its_own_lines() {
        let files = |path: &str| match path {
            "d/a.parv" => Ok("# a comment\nModel = source sub/b.model,\nlast".to_string()),
            "d/sub/b.model" => Ok("x {\n  y/z (in blks) = -1.5 # so\n}".to_string()),
            other => Err(format!("no file {other}")),
        };
        let t = tokens("d/a.parv", &files).unwrap();
        assert_eq!(words(&t), "Model = x { y/z (in blks) = -1.5 } , last");
        assert_eq!(t[4].at.to_string(), "d/sub/b.model:2");
        assert_eq!(t[t.len() - 1].at.to_string(), "d/a.parv:3");
    }

    #[test]
    fn a_missing_file_is_reported_where_it_was_asked_for() {
        let files = |path: &str| match path {
            "a" => Ok("\nx = source gone".to_string()),
            _ => Err("no such file".to_string()),
        };
        let e = tokens("a", &files).unwrap_err();
        assert_eq!(e.to_string(), "a:2: cannot be read: gone: no such file");
    }

    #[test]
    fn a_file_that_sources_itself_ends() {
        let files = |_: &str| Ok("source a".to_string());
        assert_eq!(tokens("a", &files).unwrap_err().to_string(), "a:1: a sources itself");
        let round = |path: &str| Ok(if path == "d/a" { "x\nsource b" } else { "source a" }.to_string());
        let e = tokens("d/a", &round).unwrap_err().to_string();
        assert_eq!(e, "d/b:1: d/a sources itself, through 1 other file(s)");
        let deeper = |path: &str| Ok(format!("source {}x", path));
        assert_eq!(tokens("a", &deeper).unwrap_err().reason, Reason::TooDeep { max: MAX_FILES });
    }

    #[test]
    fn a_sourced_file_that_was_cut_off_is_reported_at_its_own_end() {
        let files = |path: &str| match path {
            "a" => Ok("M = source b,\nN = 1\n}".to_string()),
            _ => Ok("x {\n  y = [ 1,\n   2\n".to_string()),
        };
        let e = tokens("a", &files).unwrap_err().to_string();
        assert_eq!(e, "b:3: expected `]` for what begins on line 2, found the end of the file");
    }

    #[test]
    fn source_without_a_name_is_an_error_with_its_line() {
        for (text, found) in [("\nsource\n{", "`{`"), ("source", "the end of the file")] {
            let files = |_: &str| Ok(text.to_string());
            let e = tokens("f", &files).unwrap_err();
            assert!(e.to_string().contains(found), "{e}");
        }
    }
}
