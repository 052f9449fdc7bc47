//! The grammar of DiskSim parameter files: tokens into a tree of blocks, values and instances.
//!
//! ```text
//! file       = { definition | "instantiate" list "as" name | "topology" component }
//! definition = type name "{" params "}"
//! component  = type name "[" { component } "]"
//! params     = { ( key | "[" key { "," key } "]" ) "=" value } separated by ","
//! value      = number | word | "[" values "]" | type [ name ] "{" params "}"
//! ```
//!
//! A key is one or more words. In a list, `a0 .. a5` stands for the six names.

use crate::profile::fault::{At, ProfileError, excerpt};

use super::lexer::{Kind, Token};

/// Maximum number of names in one `..` range.
const MAX_RANGE: u64 = 10_000;
/// Maximum nesting depth of blocks.
const MAX_DEPTH: usize = 64;

/// A value with its location.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    /// Its location.
    pub at: At,
    /// The value.
    pub value: Value,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// A number or a name, verbatim.
    Word(String),
    /// A list.
    List(Vec<Node>),
    /// An inline block.
    Block(Block),
}

impl Value {
    /// Describes the value for messages.
    pub(super) fn describe(&self) -> String {
        match self {
            Value::Word(w) => format!("`{}`", excerpt(w)),
            Value::List(_) => "a list".into(),
            Value::Block(b) => format!("a block of type {}", b.kind),
        }
    }
}

/// `Type [Name] { key = value, ... }`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Block {
    /// Its type.
    pub kind: String,
    /// Its name, where it has one.
    pub name: Option<String>,
    /// Its location.
    pub at: At,
    /// Its parameters in file order.
    pub params: Vec<Param>,
}

/// One parameter.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Param {
    /// Its words, separated by single spaces.
    pub key: String,
    /// Location of the key.
    pub at: At,
    /// Its value.
    pub value: Node,
}

/// A component of the topology with its children.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Component {
    /// Its type.
    pub kind: String,
    /// Its instance name.
    pub name: String,
    /// Its children.
    pub children: Vec<Component>,
}

/// A parsed file with everything it sources.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Document {
    /// Definitions at the top level.
    pub blocks: Vec<Block>,
    /// `instantiate`: the instance's name and its definition.
    pub instances: Vec<(String, String)>,
    /// The topology's roots.
    pub topology: Vec<Component>,
}

/// Parses a token stream; `whole` names the file for errors at its end.
pub(super) fn parse(tokens: Vec<Token>, whole: &At) -> Result<Document, ProfileError> {
    let end = tokens.last().map_or(whole.clone(), |t| t.at.clone());
    let mut p = Parser { tokens, next: 0, end };
    let mut doc = Document::default();
    while let Some(first) = p.peek().cloned() {
        match &first.kind {
            Kind::Word(w) if w == "instantiate" => {
                p.next += 1;
                let names = p.names()?;
                p.keyword("as")?;
                let kind = p.word("the name of a definition")?;
                doc.instances.extend(names.into_iter().map(|n| (n, kind.clone())));
            }
            Kind::Word(w) if w == "topology" => {
                p.next += 1;
                let root = p.component(0)?;
                doc.topology.push(root);
            }
            Kind::Word(_) => {
                let kind = p.word("a type")?;
                let name = p.word("a name")?;
                let params = p.params(0)?;
                doc.blocks.push(Block { kind, name: Some(name), at: first.at, params });
            }
            Kind::Mark(_) => {
                return Err(ProfileError::expected(
                    &first.at,
                    "a definition, `instantiate` or `topology`",
                    first.describe(),
                ));
            }
        }
    }
    Ok(doc)
}

struct Parser {
    tokens: Vec<Token>,
    next: usize,
    end: At,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next)
    }

    fn fail<T>(&self, expected: &str) -> Result<T, ProfileError> {
        Err(match self.peek() {
            Some(t) => ProfileError::expected(&t.at, expected, t.describe()),
            None => ProfileError::expected(&self.end, expected, "the end of the file"),
        })
    }

    fn is_mark(&self, c: char) -> bool {
        matches!(self.peek(), Some(Token { kind: Kind::Mark(m), .. }) if *m == c)
    }

    fn take_mark(&mut self, c: char) -> bool {
        let hit = self.is_mark(c);
        self.next += usize::from(hit);
        hit
    }

    fn mark(&mut self, c: char) -> Result<(), ProfileError> {
        if self.take_mark(c) { Ok(()) } else { self.fail(&format!("`{c}`")) }
    }

    fn word(&mut self, expected: &str) -> Result<String, ProfileError> {
        match self.peek() {
            Some(Token { kind: Kind::Word(w), .. }) => {
                let w = w.clone();
                self.next += 1;
                Ok(w)
            }
            _ => self.fail(expected),
        }
    }

    fn keyword(&mut self, keyword: &str) -> Result<(), ProfileError> {
        let expected = format!("`{keyword}`");
        match self.peek() {
            Some(Token { kind: Kind::Word(w), .. }) if w == keyword => {
                self.next += 1;
                Ok(())
            }
            _ => self.fail(&expected),
        }
    }

    /// Returns the words up to the next mark; at least one.
    fn words(&mut self, expected: &str) -> Result<Vec<String>, ProfileError> {
        let mut out = vec![self.word(expected)?];
        while let Some(Token { kind: Kind::Word(_), .. }) = self.peek() {
            out.push(self.word(expected)?);
        }
        Ok(out)
    }

    fn names(&mut self) -> Result<Vec<String>, ProfileError> {
        let node = self.list(0)?;
        let Value::List(items) = node.value else {
            return self.fail("a list of names");
        };
        items
            .into_iter()
            .map(|n| match n.value {
                Value::Word(w) => Ok(w),
                other => Err(ProfileError::expected(&n.at, "a name", other.describe())),
            })
            .collect()
    }

    fn component(&mut self, depth: usize) -> Result<Component, ProfileError> {
        self.bounded(depth)?;
        let kind = self.word("a component type")?;
        let name = self.word("a component name")?;
        self.mark('[')?;
        let mut children = Vec::new();
        while !self.take_mark(']') {
            children.push(self.component(depth + 1)?);
            self.take_mark(',');
        }
        Ok(Component { kind, name, children })
    }

    fn bounded(&self, depth: usize) -> Result<(), ProfileError> {
        if depth > MAX_DEPTH {
            return self.fail(&format!("at most {MAX_DEPTH} levels of nesting"));
        }
        Ok(())
    }

    fn params(&mut self, depth: usize) -> Result<Vec<Param>, ProfileError> {
        self.bounded(depth)?;
        self.mark('{')?;
        let mut out = Vec::new();
        while !self.take_mark('}') {
            let Some(at) = self.peek().map(|t| t.at.clone()) else {
                return self.fail("a parameter or `}`");
            };
            let mut keys = Vec::new();
            if self.take_mark('[') {
                loop {
                    keys.push(self.words("a parameter name")?.join(" "));
                    if self.take_mark(']') {
                        break;
                    }
                    self.mark(',')?;
                }
            } else {
                keys.push(self.words("a parameter name or `}`")?.join(" "));
            }
            self.mark('=')?;
            let value = self.value(depth + 1)?;
            out.extend(keys.into_iter().map(|key| Param { key, at: at.clone(), value: value.clone() }));
            if !self.take_mark(',') && !self.is_mark('}') {
                return self.fail("`,` or `}`");
            }
        }
        Ok(out)
    }

    fn value(&mut self, depth: usize) -> Result<Node, ProfileError> {
        self.bounded(depth)?;
        let Some(at) = self.peek().map(|t| t.at.clone()) else {
            return self.fail("a value");
        };
        if self.is_mark('[') {
            return self.list(depth);
        }
        let mut words = self.words("a value")?;
        let value = if self.is_mark('{') {
            let params = self.params(depth + 1)?;
            let kind = words.remove(0);
            let name = (!words.is_empty()).then(|| words.join(" "));
            Value::Block(Block { kind, name, at: at.clone(), params })
        } else {
            Value::Word(words.join(" "))
        };
        Ok(Node { at, value })
    }

    fn list(&mut self, depth: usize) -> Result<Node, ProfileError> {
        self.bounded(depth)?;
        let Some(at) = self.peek().map(|t| t.at.clone()) else {
            return self.fail("`[`");
        };
        self.mark('[')?;
        let mut items = Vec::new();
        while !self.take_mark(']') {
            let item = self.value(depth + 1)?;
            match &item.value {
                Value::Word(w) if w.contains("..") => match range(w) {
                    Some(names) => {
                        items.extend(names.into_iter().map(|n| Node { at: item.at.clone(), value: Value::Word(n) }))
                    }
                    None => {
                        return Err(ProfileError::expected(
                            &item.at,
                            "a range of names such as `disk0 .. disk5`",
                            format!("`{w}`"),
                        ));
                    }
                },
                _ => items.push(item),
            }
            if !self.take_mark(',') && !self.is_mark(']') {
                return self.fail("`,` or `]`");
            }
        }
        Ok(Node { at, value: Value::List(items) })
    }
}

/// Expands `a0 .. a5` to its six names.
fn range(text: &str) -> Option<Vec<String>> {
    let (from, to) = text.split_once("..")?;
    let cut = |w: &str| -> Option<(String, u64)> {
        let w = w.trim();
        let stem = w.trim_end_matches(|c: char| c.is_ascii_digit());
        Some((stem.to_string(), w[stem.len()..].parse().ok()?))
    };
    let ((stem, first), (other, last)) = (cut(from)?, cut(to)?);
    if stem != other || last < first || last - first >= MAX_RANGE {
        return None;
    }
    Some((first..=last).map(|i| format!("{stem}{i}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::disksim::lexer;

    fn doc(text: &str) -> Result<Document, ProfileError> {
        let files = |_: &str| Ok(text.to_string());
        parse(lexer::tokens("f", &files)?, &At::file("f"))
    }

    #[test]
    fn definitions_instances_and_topology_are_read() {
        let d = doc("disksim_bus BUS0 { type = 1, [ Read block transfer time, Write time (x) ] = 0.5 }\n\
             disk QM-1.5.model {\n Model = dm_disk M { zones = [ z { a = 1 }, z { a = 2 } ] },\n empty = [ ] }\n\
             instantiate [ d0 .. d2, e ] as QM-1.5.model\n\
             topology driver x [ bus b [ disk d0 [] disk d1 [] ] ]")
        .unwrap();
        assert_eq!(d.blocks.len(), 2);
        assert_eq!(d.blocks[0].params[1].key, "Read block transfer time");
        assert_eq!(d.blocks[0].params[2].key, "Write time (x)");
        assert_eq!(d.blocks[1].name.as_deref(), Some("QM-1.5.model"));
        let Value::Block(model) = &d.blocks[1].params[0].value.value else { panic!("the model is a block") };
        assert_eq!((model.kind.as_str(), model.name.as_deref()), ("dm_disk", Some("M")));
        assert_eq!(model.at.line, 3);
        let names: Vec<&str> = d.instances.iter().map(|(n, _)| n.as_str()).collect();
        assert_eq!(names, ["d0", "d1", "d2", "e"]);
        assert_eq!(d.topology[0].children[0].children[1].name, "d1");
    }

    #[test]
    fn faults_name_line_and_expectation() {
        for (text, message) in [
            ("a b {\n x = 1\n y = 2 }", "f:3: expected `,` or `}`, found `=`"),
            ("a b {\n x 1 }", "f:2: expected `=`, found `}`"),
            ("a b { x =", "f:1: expected a value, found the end of the file"),
            ("a b { x = [1, 2", "expected `,` or `]`, found the end of the file"),
            ("a { x = 1 }", "f:1: expected a name, found `{`"),
            ("\n= 3", "f:2: expected a definition"),
            ("instantiate [ a ] like b", "expected `as`, found `like`"),
            ("a b { x = [ p0 .. q3 ] }", "expected a range of names"),
            ("a b { x = [ p0 .. p99999999 ] }", "expected a range of names"),
            ("topology a b [ c", "expected a component name"),
        ] {
            let e = doc(text).unwrap_err().to_string();
            assert!(e.contains(message), "{text:?} gave {e}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let deep = format!("a b {{ x = {} }}", "[".repeat(100_000));
        assert!(doc(&deep).unwrap_err().to_string().contains("nesting"));
    }
}
