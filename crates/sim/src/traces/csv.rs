//! Formats of comma-separated columns. A format is a [`Table`]: its columns in the order in which
//! they are checked, with what each holds and what a message calls it.
//!
//! * `msr-csv`: the block traces of MSR Cambridge (their README; Narayanan et al., FAST 2008)
//! * `systor-csv`: the enterprise VDI traces of SYSTOR '17 (their README; Lee et al.)
//! * `tencent-csv`: the cloud block storage traces of Tencent (their README; Zhang et al., ATC 2020)
//! * `plain-csv`: this project's own

use std::collections::VecDeque;

use headtime_disk::command::Kind;
use headtime_disk::time::{Dur, Time};

use super::text::{Bad, Columns, sectors};
use super::{LineFormat, Names, Parsed, Record, Since, range};

/// Most columns of a table.
const MOST: usize = 8;
/// The place of a column that the lines do not have.
const MISSING: usize = usize::MAX;

/// A format.
pub(super) struct Table {
    /// Form of a line, for messages.
    shape: &'static str,
    /// Number of columns of a line without a heading that says otherwise.
    count: usize,
    heading: Heading,
    /// Whether the clock starts with the first request here; otherwise the reader does that.
    starts_clock: bool,
    columns: &'static [Column],
}

/// The first line, which may be a heading.
enum Heading {
    /// It is skipped if its first column is this, in any case.
    Fixed(&'static str),
    /// If it has any of the columns' names, it gives their places.
    Names,
}

/// A column.
struct Column {
    /// Its name in a heading.
    name: &'static str,
    /// Its place without one, from 0.
    at: usize,
    field: Field,
    /// What a message expects in it.
    what: &'static str,
    /// Whether it may be blank, or missing in a heading.
    is_optional: bool,
}

/// What a column holds.
enum Field {
    Arrival(Unit),
    Response(Unit),
    /// Words with their kinds; a line without a kind is skipped.
    Kind {
        words: &'static [(&'static str, Option<Kind>)],
        any_case: bool,
    },
    /// The first sector, before the size.
    Offset,
    /// The size, in the same unit as the offset.
    Size(Space),
    /// The device; also the owner if no column has one.
    Device,
    Owner,
    /// The owner's name. After the other columns, so that only names of valid lines have numbers.
    OwnerName,
    Fua,
}

/// Unit of a time.
#[derive(Clone, Copy)]
enum Unit {
    /// Whole units of this number of nanoseconds.
    Whole(u64),
    /// A decimal number of units of 10^n ns.
    Decimal(u32),
}

/// Unit of offset and size.
#[derive(Clone, Copy)]
enum Space {
    Bytes,
    Sectors,
}

const fn column(at: usize, field: Field, what: &'static str) -> Column {
    Column { name: "", at, field, what, is_optional: false }
}

impl Column {
    const fn named(self, name: &'static str) -> Column {
        Column { name, ..self }
    }

    const fn optional(self) -> Column {
        Column { is_optional: true, ..self }
    }
}

/// Windows filetime in units of 100 ns; `Read` or `Write`; bytes. The owner is the host, numbered in
/// order of appearance.
///
/// `128166372003061629,hm,0,Read,383496192,32768,413`
pub(super) static MSR: Table = Table {
    shape: "7 columns: Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime",
    count: 7,
    heading: Heading::Fixed("timestamp"),
    starts_clock: true,
    columns: &[
        column(0, Field::Arrival(Unit::Whole(100)), "a timestamp in units of 100 ns in column 1"),
        column(2, Field::Device, "a disk number in column 3"),
        column(
            3,
            Field::Kind { words: &[("read", Some(Kind::Read)), ("write", Some(Kind::Write))], any_case: true },
            "Read or Write in column 4",
        ),
        column(4, Field::Offset, "an offset in bytes in column 5"),
        column(5, Field::Size(Space::Bytes), "a size in bytes in column 6"),
        column(6, Field::Response(Unit::Whole(100)), "a response time in units of 100 ns in column 7"),
        column(1, Field::OwnerName, ""),
    ],
};

/// Seconds since 1970 with a fraction; response in seconds; `R`, `W` or blank; bytes. A blank type
/// means that no response was seen, so the type is unknown: such lines are skipped, as the README
/// advises.
///
/// `1456135200.013118000,0.000806000,R,4,8192,4096`
pub(super) static SYSTOR: Table = Table {
    shape: "6 columns: Timestamp,Response,IOType,LUN,Offset,Size",
    count: 6,
    heading: Heading::Fixed("timestamp"),
    starts_clock: true,
    columns: &[
        column(0, Field::Arrival(Unit::Decimal(9)), "a timestamp in seconds in column 1"),
        column(
            2,
            Field::Kind { words: &[("R", Some(Kind::Read)), ("W", Some(Kind::Write)), ("", None)], any_case: false },
            "R, W or nothing in column 3",
        ),
        column(1, Field::Response(Unit::Decimal(9)), "a response time in seconds in column 2").optional(),
        column(3, Field::Device, "a LUN in column 4"),
        column(4, Field::Offset, "an offset in bytes in column 5"),
        column(5, Field::Size(Space::Bytes), "a size in bytes in column 6"),
    ],
};

/// Whole seconds since 1970; sectors of 512 bytes; 0 for a read, 1 for a write. Requests of one
/// second arrive at once, in file order: the trace has no finer times.
///
/// `1538323200,12910952,128,0,1063`
pub(super) static TENCENT: Table = Table {
    shape: "5 columns: Timestamp,Offset,Size,IOType,VolumeID",
    count: 5,
    heading: Heading::Fixed("timestamp"),
    starts_clock: true,
    columns: &[
        column(0, Field::Arrival(Unit::Decimal(9)), "a timestamp in seconds in column 1"),
        column(1, Field::Offset, "an offset in sectors in column 2"),
        column(2, Field::Size(Space::Sectors), "a size in sectors in column 3"),
        column(
            3,
            Field::Kind { words: &[("0", Some(Kind::Read)), ("1", Some(Kind::Write))], any_case: false },
            "0 (read) or 1 (write) in column 4",
        ),
        column(4, Field::Device, "a volume number in column 5"),
    ],
};

/// Milliseconds from any origin; `R` or `W`, `read` or `write`, or `F` or `flush` (its lbn and
/// sectors are ignored); sectors of 512 bytes. With a heading the columns may be in any order, and
/// `device`, `owner`, `response_ms` and `fua` (0 or 1) are accepted as well. Without one they are the
/// first four, in that order.
///
/// `1.5,write,16,1`
pub(super) static PLAIN: Table = Table {
    shape: "4 columns: time_ms,op,lbn,sectors (or a heading that names the columns)",
    count: 4,
    heading: Heading::Names,
    starts_clock: false,
    columns: &[
        column(0, Field::Arrival(Unit::Decimal(6)), "a time in ms in column time_ms").named("time_ms"),
        column(1, Field::Kind { words: PLAIN_KINDS, any_case: false }, "R, W, F, read, write or flush in column op")
            .named("op"),
        column(2, Field::Offset, "a sector number in column lbn").named("lbn"),
        column(3, Field::Size(Space::Sectors), "a count of sectors in column sectors").named("sectors"),
        column(MISSING, Field::Device, "a number in column device").named("device").optional(),
        column(MISSING, Field::Owner, "a number in column owner").named("owner").optional(),
        column(MISSING, Field::Response(Unit::Decimal(6)), "a time in ms in column response_ms")
            .named("response_ms")
            .optional(),
        column(MISSING, Field::Fua, "0 or 1 in column fua").named("fua").optional(),
    ],
};

const PLAIN_KINDS: &[(&str, Option<Kind>)] = &[
    ("R", Some(Kind::Read)),
    ("W", Some(Kind::Write)),
    ("r", Some(Kind::Read)),
    ("w", Some(Kind::Write)),
    ("read", Some(Kind::Read)),
    ("Read", Some(Kind::Read)),
    ("READ", Some(Kind::Read)),
    ("write", Some(Kind::Write)),
    ("Write", Some(Kind::Write)),
    ("WRITE", Some(Kind::Write)),
    ("F", Some(Kind::Flush)),
    ("f", Some(Kind::Flush)),
    ("flush", Some(Kind::Flush)),
    ("Flush", Some(Kind::Flush)),
    ("FLUSH", Some(Kind::Flush)),
];

/// A parser of a table's lines.
pub(super) struct Csv {
    table: &'static Table,
    /// The place of each of the table's columns in a line.
    at: [usize; MOST],
    /// Number of columns of a line.
    count: usize,
    lines: u64,
    clock: Since,
    owners: Names,
}

impl Csv {
    pub(super) fn new(table: &'static Table) -> Csv {
        let mut at = [MISSING; MOST];
        at.iter_mut().zip(table.columns).for_each(|(at, column)| *at = column.at);
        Csv { table, at, count: table.count, lines: 0, clock: Since::default(), owners: Names::default() }
    }

    /// Returns the column of that name.
    fn named(&self, name: &[u8]) -> Option<usize> {
        self.table.columns.iter().position(|column| name.eq_ignore_ascii_case(column.name.as_bytes()))
    }

    /// Takes the columns' places from a heading that names them.
    fn heading(&mut self, c: &Columns) -> Result<(), Bad> {
        self.at = [MISSING; MOST];
        self.count = c.count();
        for i in 0..c.count() {
            let name = c.get(i);
            let Some(k) = self.named(name) else {
                let names: Vec<&str> = self.table.columns.iter().map(|column| column.name).collect();
                return Err(Bad::new(format!("columns named among {}", names.join(", ")), name));
            };
            if self.at[k] != MISSING {
                return Err(Bad::new("each column once", name));
            }
            self.at[k] = i;
        }
        let mut needed = self.table.columns.iter().zip(&self.at).filter(|(column, _)| !column.is_optional);
        match needed.find(|(_, at)| **at == MISSING) {
            Some((column, _)) => Err(Bad::new(format!("a column {} in the heading", column.name), c.line())),
            None => Ok(()),
        }
    }

    /// Checks the number of columns and takes a heading; returns whether the line is one.
    fn is_heading(&mut self, c: &Columns) -> Result<bool, Bad> {
        let is_first = self.lines == 0;
        match self.table.heading {
            Heading::Fixed(name) => {
                c.exactly(self.count, self.table.shape)?;
                self.lines += 1;
                Ok(is_first && c.get(0).eq_ignore_ascii_case(name.as_bytes()))
            }
            Heading::Names => {
                self.lines += 1;
                if is_first && (0..c.count()).any(|i| self.named(c.get(i)).is_some()) {
                    return self.heading(c).map(|()| true);
                }
                if c.count() == self.count {
                    return Ok(false);
                }
                let shape = match self.count == self.table.count {
                    true => self.table.shape.to_owned(),
                    false => format!("{} columns as in the heading", self.count),
                };
                Err(Bad::new(shape, c.line()))
            }
        }
    }
}

impl LineFormat for Csv {
    fn line(&mut self, line: &[u8], number: u64, out: &mut VecDeque<Record>) -> Result<Parsed, Bad> {
        let c = Columns::by_comma(line);
        if self.is_heading(&c)? {
            return Ok(Parsed::Taken);
        }
        let mut r = Record {
            arrival: None,
            gap: None,
            kind: Kind::Read,
            fua: false,
            lbn: 0,
            count: 0,
            device: 0,
            owner: 0,
            response: None,
            line: number,
        };
        let (mut arrival, mut owner) = ((0, 1), None);
        for (column, &at) in self.table.columns.iter().zip(&self.at) {
            let (text, what) = (c.get(at), column.what);
            if column.is_optional && text.is_empty() {
                continue;
            }
            match column.field {
                Field::Arrival(Unit::Whole(ns)) => arrival = (c.whole(at, what)?, ns),
                Field::Arrival(Unit::Decimal(digits)) => arrival = (c.scaled(at, digits, what)?, 1),
                Field::Response(Unit::Whole(ns)) => r.response = Some(Dur(c.whole(at, what)?.saturating_mul(ns))),
                Field::Response(Unit::Decimal(digits)) => r.response = Some(Dur(c.scaled(at, digits, what)?)),
                Field::Kind { words, any_case } => {
                    let is = |word: &str| match any_case {
                        true => text.eq_ignore_ascii_case(word.as_bytes()),
                        false => text == word.as_bytes(),
                    };
                    match words.iter().find(|(word, _)| is(word)) {
                        Some((_, Some(kind))) => r.kind = *kind,
                        Some((_, None)) => return Ok(Parsed::Skipped),
                        None => return Err(Bad::new(what, text)),
                    }
                }
                Field::Offset | Field::Size(_) if r.kind == Kind::Flush => {}
                Field::Offset => r.lbn = c.whole(at, what)?,
                Field::Size(space) => {
                    let (mut lbn, mut count) = (r.lbn, c.whole(at, what)?);
                    if let Space::Bytes = space {
                        lbn = sectors(lbn, "an offset of whole sectors")?;
                        count = sectors(count, "a size of whole sectors")?;
                    }
                    (r.lbn, r.count) = range(lbn, count, "1 to 2^32-1 sectors from a sector below 2^54")?;
                }
                Field::Device => r.device = c.whole32(at, what)?,
                Field::Owner => owner = Some(c.whole32(at, what)?),
                Field::OwnerName => owner = Some(self.owners.number(text)),
                Field::Fua => {
                    r.fua = match text {
                        b"0" => false,
                        b"1" => true,
                        other => return Err(Bad::new(what, other)),
                    }
                }
            }
        }
        r.owner = owner.unwrap_or(r.device);
        r.arrival = Some(match self.table.starts_clock {
            true => self.clock.first(arrival.0, arrival.1),
            false => Time(arrival.0),
        });
        out.push_back(r);
        Ok(Parsed::Taken)
    }

    fn shape(&self) -> &'static str {
        self.table.shape
    }
}

#[cfg(test)]
mod tests;
