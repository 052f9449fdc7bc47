//! Streams as specified by users: on a command line, or in a small TOML file.
//!
//! ```toml
//! [[stream]]
//! name = "I frames"    # optional
//! requests = 5         # per period
//! period = "500ms"     # s, ms or us
//! quality = "100%"     # required share done in its period; 100%: mandatory
//! size = "64k"         # maximum of each request
//! kinds = "reads"      # or "writes", or "any" (default)
//! blocked-by = 1       # maximum number of older requests that one may have to wait for; default 0
//! ```
//!
//! The same in one line: `requests=5,period=500ms,quality=100%,size=64k,name=I frames`.

use std::path::Path;

use headtime_disk::Dur;
use headtime_sched::streams::{
    Kinds, QUALITY_FORMAT, Quality, Stream, StreamError, parse_period, parse_quality, period_format,
};
use toml::de::{DeTable, DeValue};

use crate::input;
use crate::scenario::Bytes;

/// The keys of a stream.
pub const KEYS: [&str; 7] = ["requests", "period", "quality", "size", "kinds", "blocked-by", "name"];
/// Maximum file size in bytes, and maximum number of streams.
const LONGEST_FILE: u64 = 1 << 20;
const MOST_STREAMS: usize = 1_000;
const LONGEST_NAME: usize = 64;

/// A stream as specified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Its name, or its number among the streams.
    pub name: String,
    /// Requests per period.
    pub requests: u32,
    /// The period.
    pub period: Dur,
    /// Required share of them done in the period.
    pub quality: Quality,
    /// Size of its largest request in bytes.
    pub bytes: u64,
    /// Kinds of its requests.
    pub kinds: Kinds,
    /// Maximum number of older requests that one may have to wait for.
    pub blocked_by: u32,
    /// Location and number, for messages.
    pub place: String,
}

/// Why a specification is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {reason}")]
pub struct StreamsError {
    /// File and line, or the flag.
    pub place: String,
    /// What was expected and found.
    pub reason: String,
}

impl StreamsError {
    fn new(place: &str, reason: impl ToString) -> StreamsError {
        StreamsError { place: place.into(), reason: reason.to_string() }
    }
}

impl Asked {
    /// Converts the stream for a drive with this sector size.
    ///
    /// # Errors
    /// A size that is not a multiple of the sector size, or a figure out of range.
    pub fn stream(&self, sector_bytes: u32) -> Result<Stream, StreamsError> {
        let refused = |why: &dyn ToString| StreamsError::new(&self.place, why.to_string());
        let sector = u64::from(sector_bytes.max(1));
        let sectors = u32::try_from(self.bytes / sector).ok().filter(|n| *n > 0 && self.bytes.is_multiple_of(sector));
        let sectors = sectors.ok_or_else(|| {
            refused(&format!("size: expected whole sectors of {sector} bytes, found {} bytes", self.bytes))
        })?;
        let stream = Stream::new(self.requests, self.period, self.quality, sectors);
        let stream = stream.and_then(|s| s.only(self.kinds).blocked_by(self.blocked_by));
        stream.map_err(|e: StreamError| refused(&e))
    }
}

/// Parses a stream from one line of a command; without a name it is called by its number `nth`,
/// from 1. `place` is the location of the line, for messages.
///
/// # Errors
/// What was expected and found.
pub fn parse(line: &str, place: &str, nth: usize) -> Result<Asked, StreamsError> {
    let mut given: Vec<(&str, String)> = Vec::new();
    for part in line.split(',') {
        let (key, value) = part.split_once('=').map_or((part.trim(), ""), |(k, v)| (k.trim(), v.trim()));
        let form = "expected requests=N,period=T,quality=Q,size=S and perhaps kinds=reads, blocked-by=N, name=X";
        if !KEYS.contains(&key) || value.is_empty() {
            return Err(StreamsError::new(place, format!("{form}, found \"{}\"", shown(part))));
        }
        if given.iter().any(|g| g.0 == key) {
            return Err(StreamsError::new(
                place,
                format!("expected each of {} once, found {key} twice", KEYS.join(", ")),
            ));
        }
        given.push((key, value.into()));
    }
    one(&given, &|_| place.into(), place.into(), nth)
}

/// Checks that the streams' names are distinct.
///
/// # Errors
/// The second of two with one name.
pub fn distinct(streams: &[Asked]) -> Result<(), StreamsError> {
    let twice = streams.iter().enumerate().find(|(n, s)| streams[..*n].iter().any(|before| before.name == s.name));
    twice.map_or(Ok(()), |(_, s)| {
        let reason = format!("name: expected another for each stream, found \"{}\" twice", shown(&s.name));
        Err(StreamsError::new(&s.place, reason))
    })
}

/// Loads the streams of a file.
///
/// # Errors
/// File, line, what was expected and found.
pub fn load(path: &Path) -> Result<Vec<Asked>, StreamsError> {
    let file = path.display().to_string();
    let text = input::text(path, LONGEST_FILE).map_err(|why| StreamsError::new(&file, why))?;
    read(&file, &text)
}

/// Parses the streams of a text; `file` is its name in messages.
///
/// # Errors
/// File, line, what was expected and found.
pub fn read(file: &str, text: &str) -> Result<Vec<Asked>, StreamsError> {
    let line = |at: usize| {
        let before = &text.as_bytes()[..at.min(text.len())];
        format!("{file}:{}", before.iter().filter(|b| **b == b'\n').count() + 1)
    };
    let document = DeTable::parse(text).map_err(|e| {
        let place = e.span().map_or_else(|| file.to_string(), |s| line(s.start));
        StreamsError::new(&place, format!("expected TOML, found: {}", e.message().replace('\n', " ")))
    })?;
    let mut streams = Vec::new();
    for (key, value) in document.get_ref().iter() {
        let (key_at, key) = (line(key.span().start), key.get_ref());
        let DeValue::Array(all) = value.get_ref() else {
            return Err(StreamsError::new(&key_at, format!("expected [[stream]] tables only, found {}", shown(key))));
        };
        if key != "stream" {
            return Err(StreamsError::new(&key_at, format!("expected [[stream]] tables only, found {}", shown(key))));
        }
        if all.len() > MOST_STREAMS {
            return Err(StreamsError::new(
                &key_at,
                format!("expected at most {MOST_STREAMS} streams, found {}", all.len()),
            ));
        }
        for (n, item) in all.iter().enumerate() {
            let begin = line(item.span().start);
            let DeValue::Table(table) = item.get_ref() else {
                return Err(StreamsError::new(&begin, "expected a table [[stream]], found another value"));
            };
            let mut given = Vec::new();
            let mut places = Vec::new();
            for (key, value) in table.iter() {
                let place = line(key.span().start);
                let Some(known) = KEYS.into_iter().find(|k| *k == key.get_ref()) else {
                    let reason = format!("expected one of {}, found the key {}", KEYS.join(", "), shown(key.get_ref()));
                    return Err(StreamsError::new(&place, reason));
                };
                let figure = match value.get_ref() {
                    DeValue::String(s) => s.to_string(),
                    DeValue::Integer(n) => n.to_string(),
                    DeValue::Float(n) => n.to_string(),
                    _ => {
                        let reason = format!("{known}: expected a number or text in quotes, found another value");
                        return Err(StreamsError::new(&place, reason));
                    }
                };
                given.push((known, figure));
                places.push((known, place));
            }
            let at = |key: &str| places.iter().find(|p| p.0 == key).map_or(begin.clone(), |p| p.1.clone());
            streams.push(one(&given, &at, format!("{begin}: stream {}", n + 1), n + 1)?);
        }
    }
    if streams.is_empty() {
        return Err(StreamsError::new(file, "expected one [[stream]] or more, found none"));
    }
    Ok(streams)
}

/// Builds a stream from its keys; `at` returns each key's location, and `place` is the whole
/// stream's.
fn one(
    given: &[(&str, String)],
    at: &dyn Fn(&str) -> String,
    place: String,
    nth: usize,
) -> Result<Asked, StreamsError> {
    let find = |key: &str| given.iter().find(|g| g.0 == key).map(|g| g.1.clone());
    let need = |key: &'static str, form: &str| {
        find(key).ok_or_else(|| StreamsError::new(&place, format!("expected {key} ({form}), found none")))
    };
    let refused = |key: &str, form: &str, found: &str| {
        StreamsError::new(&at(key), format!("{key}: expected {form}, found \"{}\"", shown(found)))
    };
    let requests_form = "a whole number of requests in each period";
    let (period_form, quality_form) = (period_format(), QUALITY_FORMAT);
    let size_form = "a number of bytes such as 64k";
    let (requests, period) = (need("requests", requests_form)?, need("period", &period_form)?);
    let (quality, size) = (need("quality", quality_form)?, need("size", size_form)?);
    let name = find("name").unwrap_or_else(|| nth.to_string());
    if name.trim().is_empty() || name.chars().count() > LONGEST_NAME || name.chars().any(char::is_control) {
        let form = format!("1 to {LONGEST_NAME} characters, none of them control characters");
        return Err(refused("name", &form, &name));
    }
    let kinds = match find("kinds") {
        None => Kinds::default(),
        Some(kinds) => Kinds::named(&kinds).ok_or_else(|| refused("kinds", &Kinds::NAMES.join(", "), &kinds))?,
    };
    let blocked_form = "a whole number of older requests that one may have to wait for";
    let blocked_by =
        find("blocked-by").map_or(Ok(0), |n| n.parse().map_err(|_| refused("blocked-by", blocked_form, &n)))?;
    Ok(Asked {
        kinds,
        blocked_by,
        requests: requests
            .parse()
            .ok()
            .filter(|n| *n > 0)
            .ok_or_else(|| refused("requests", requests_form, &requests))?,
        period: parse_period(&period).ok_or_else(|| refused("period", &period_form, &period))?,
        quality: parse_quality(&quality).ok_or_else(|| refused("quality", quality_form, &quality))?,
        bytes: Bytes::parse(&size).filter(|n| *n > 0).ok_or_else(|| refused("size", size_form, &size))?,
        name,
        place,
    })
}

/// Returns the start of user input for a message, with control characters escaped.
fn shown(text: &str) -> String {
    const MAX_CHARACTERS: usize = 40;
    let mut out: String = text.chars().take(MAX_CHARACTERS).flat_map(char::escape_default).collect();
    if text.chars().count() > MAX_CHARACTERS {
        out.push_str("...");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Result<Asked, StreamsError> {
        parse(text, "--stream: stream 3", 3)
    }

    #[test]
    fn a_line_and_a_table_say_the_same() {
        let said = line("requests=5, period=500ms,quality=99.5%,size=64K").unwrap();
        assert_eq!((said.requests, said.period, said.bytes), (5, Dur::from_ms(500), 65_536));
        assert_eq!((said.quality.ppm(), said.name.as_str(), said.kinds), (995_000, "3", Kinds::Any));
        let writes = line("requests=5,period=500ms,quality=1,size=64k,kinds=writes").unwrap().stream(512).unwrap();
        assert_eq!(writes.kinds, Kinds::Writes);
        let behind = line("requests=5,period=500ms,quality=1,size=64k,blocked-by=2").unwrap().stream(512).unwrap();
        assert_eq!(behind.blocked_by, 2);
        let text = "[[stream]]\nrequests = 5\nperiod = \"0.5 s\"\nquality = 0.995\nsize = 65536\nname = \"a\"\n";
        let read = read("s.toml", text).unwrap();
        assert_eq!(read, [Asked { name: "a".into(), place: "s.toml:1: stream 1".into(), ..said.clone() }]);
        let stream = said.stream(512).unwrap();
        assert_eq!((stream.requests, stream.sectors, stream.is_mandatory()), (5, 128, false));
        assert!(line("requests=1,period=1ms,quality=1,size=4k").unwrap().stream(4096).unwrap().is_mandatory());
    }

    #[test]
    fn what_is_wrong_with_a_line_is_said() {
        for (text, said) in [
            (
                "",
                "--stream: stream 3: expected requests=N,period=T,quality=Q,size=S and perhaps kinds=reads, \
                 blocked-by=N, name=X, found \"\"",
            ),
            ("requests=5,perod=1s", "perhaps kinds=reads, blocked-by=N, name=X, found \"perod=1s\""),
            (
                "requests=5,requests=6",
                "expected each of requests, period, quality, size, kinds, blocked-by, name once, found requests twice",
            ),
            ("requests=5,period=1s,size=4k", "--stream: stream 3: expected quality (a share such as 99% or 0.99"),
            (
                "requests=0,period=1s,quality=1,size=4k",
                "--stream: stream 3: requests: expected a whole number of requests in each period, found \"0\"",
            ),
            (
                "requests=5,period=1,quality=1,size=4k",
                "period: expected a time such as 500ms, from 1 ms to 10 s, found \"1\"",
            ),
            ("requests=5,period=11s,quality=1,size=4k", "from 1 ms to 10 s, found \"11s\""),
            (
                "requests=5,period=1s,quality=101%,size=4k",
                "quality: expected a share such as 99% or 0.99, more than 0 and",
            ),
            ("requests=5,period=1s,quality=0,size=4k", "found \"0\""),
            ("requests=5,period=1s,quality=99.99999%,size=4k", "in whole parts per million, found \"99.99999%\""),
            ("requests=5,period=1s,quality=1,size=4k,kinds=both", "kinds: expected any, reads, writes, found \"both\""),
            ("requests=5,period=1s,quality=1,size=4q", "size: expected a number of bytes such as 64k, found \"4q\""),
            ("requests=5,period=1s,quality=1,size=4k,name=\u{1b}[31m", "name: expected 1 to 64 characters"),
        ] {
            let e = line(text).unwrap_err().to_string();
            assert!(e.contains(said) && !e.contains('\u{1b}'), "{text}: {e}");
        }
        let odd = line("requests=5,period=1s,quality=1,size=1000").unwrap().stream(512).unwrap_err().to_string();
        assert_eq!(odd, "--stream: stream 3: size: expected whole sectors of 512 bytes, found 1000 bytes");
        let many = line("requests=10001,period=1s,quality=1,size=4k").unwrap().stream(512).unwrap_err().to_string();
        assert!(many.contains("requests per period: expected 1 to 10000, found 10001"), "{many}");
    }

    #[test]
    fn two_streams_of_one_name_are_refused_also_where_one_has_its_number() {
        let named = |name: &str, nth| parse(&format!("requests=5,period=1s,quality=1,size=4k{name}"), "here", nth);
        let all = [named(",name=2", 1).unwrap(), named("", 2).unwrap(), named("", 3).unwrap()];
        let said = distinct(&all).unwrap_err().to_string();
        assert_eq!(said, "here: name: expected another for each stream, found \"2\" twice");
        assert_eq!(distinct(&all[1..]), Ok(()));
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said_with_its_line() {
        let good = "[[stream]]\nrequests = 5\nperiod = \"1s\"\nquality = 1\nsize = \"4k\"\n";
        for (text, said) in [
            ("".to_string(), "s.toml: expected one [[stream]] or more, found none"),
            ("stream = 3\n".into(), "s.toml:1: expected [[stream]] tables only, found stream"),
            ("stream = [3]\n".into(), "s.toml:1: expected a table [[stream]], found another value"),
            (good.replace("[[stream]]", "[[streams]]"), "s.toml:1: expected [[stream]] tables only, found streams"),
            (good.replace("[[stream]]", "[[stream]"), "s.toml:1: expected TOML, found"),
            (
                good.replace("size", "sise"),
                "s.toml:5: expected one of requests, period, quality, size, kinds, blocked-by, name, \
                 found the key sise",
            ),
            (
                good.replace("\"1s\"", "true"),
                "s.toml:3: period: expected a number or text in quotes, found another value",
            ),
            (good.replace("\"1s\"", "\"1h\""), "s.toml:3: period: expected a time such as 500ms"),
            (good.replace("quality = 1\n", ""), "s.toml:1: stream 1: expected quality"),
            (good.replace("quality = 1\n", "quality = 2\n"), "s.toml:4: quality: expected a share"),
        ] {
            let e = read("s.toml", &text).unwrap_err().to_string();
            assert!(e.starts_with(said), "{text}: {e}");
        }
        // The second stream's errors are located in it.
        let e = read("s.toml", &(good.to_owned() + &good.replace("5\n", "0\n"))).unwrap_err().to_string();
        assert!(e.starts_with("s.toml:7: requests: "), "{e}");
    }
}
