//! Axes: the values that one key takes.

use rand_core::Rng;
use toml::{Table, Value};

/// The most values of one axis that are written as a range.
const MOST_VALUES: u64 = 1 << 40;

/// Values of a range of numbers that are checked before a run, besides one in the middle and the
/// last.
const SAMPLES: u64 = 8;

/// The values of one key, numbered from 0.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Values {
    /// As listed.
    List(Vec<Value>),
    /// `first + i * step`.
    Whole { first: i64, step: i64, count: u64 },
    /// From `first` to `last`, both included, at equal distances or equal ratios.
    Real { first: f64, last: f64, count: u64, log: bool },
}

/// What a random design draws from.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Draw {
    /// One of these.
    Choice(Vec<Value>),
    /// A whole number from the first to the second.
    Whole(i64, i64),
    /// A number from the first to the second, uniformly or with uniform logarithm.
    Real { first: f64, last: f64, log: bool },
}

/// Returns whether a value may be one of an axis: text, a number, true or false.
fn is_plain(value: &Value) -> bool {
    matches!(value, Value::String(_) | Value::Integer(_) | Value::Boolean(_))
        || matches!(value, Value::Float(f) if f.is_finite())
}

fn list(values: &[Value]) -> Result<Vec<Value>, String> {
    if values.is_empty() {
        return Err("expected one value or more, found none".into());
    }
    match values.iter().find(|v| !is_plain(v)) {
        Some(v) => Err(format!("expected text, numbers, true or false in a list, found {v}")),
        None => Ok(values.to_vec()),
    }
}

/// The keys `from`, `to`, `step`, `count` and `scale` of a range.
struct Range<'a> {
    from: &'a Value,
    to: &'a Value,
    step: Option<&'a Value>,
    count: Option<u64>,
    log: bool,
}

impl<'a> Range<'a> {
    fn new(table: &'a Table, keys: &[&str]) -> Result<Range<'a>, String> {
        if let Some(key) = table.keys().find(|k| !keys.contains(&k.as_str())) {
            return Err(format!("expected the keys {} in a range, found {key}", keys.join(", ")));
        }
        let bound = |key: &str| table.get(key).ok_or_else(|| format!("expected {key} in a range, found none"));
        let count = match table.get("count") {
            None => None,
            Some(Value::Integer(n)) if (1..=MOST_VALUES as i64).contains(n) => Some(*n as u64),
            Some(other) => {
                return Err(format!("count: expected a whole number from 1 to {MOST_VALUES}, found {other}"));
            }
        };
        let log = match table.get("scale").map(Value::as_str) {
            None | Some(Some("linear")) => false,
            Some(Some("log")) => true,
            Some(_) => return Err("scale: expected \"linear\" or \"log\"".into()),
        };
        Ok(Range { from: bound("from")?, to: bound("to")?, step: table.get("step"), count, log })
    }

    /// Both bounds as whole numbers, if they are and nothing asks for others.
    fn whole(&self) -> Option<(i64, i64)> {
        Some((self.from.as_integer()?, self.to.as_integer()?)).filter(|_| !self.log)
    }

    fn real(&self) -> Result<(f64, f64), String> {
        let figure = |v: &Value| v.as_float().or(v.as_integer().map(|n| n as f64)).filter(|f| f.is_finite());
        let both = figure(self.from).zip(figure(self.to));
        let (first, last) = both.ok_or_else(|| format!("expected numbers, found {} and {}", self.from, self.to))?;
        if self.log && !(first > 0.0 && last > 0.0) {
            return Err(format!("scale log: expected bounds above 0, found {first} and {last}"));
        }
        Ok((first, last))
    }
}

impl Values {
    /// Reads an axis: a list, one value, or a range.
    pub(super) fn read(value: &Value) -> Result<Values, String> {
        let table = match value {
            Value::Array(values) => return list(values).map(Values::List),
            Value::Table(table) => table,
            one => return list(std::slice::from_ref(one)).map(Values::List),
        };
        let range = Range::new(table, &["from", "to", "step", "count", "scale"])?;
        if range.step.is_some() && range.count.is_some() {
            return Err("expected step or count, found both".into());
        }
        if let (Some((first, last)), None) = (range.whole(), range.count) {
            let step = match range.step {
                None => 1,
                Some(Value::Integer(step)) if *step > 0 => *step,
                Some(other) => return Err(format!("step: expected a whole number above 0, found {other}")),
            };
            let span = u64::try_from(i128::from(last) - i128::from(first));
            let span = span.map_err(|_| format!("expected from below to, found {first} and {last}"))?;
            let count = u128::from(span / step as u64) + 1;
            return match u64::try_from(count).ok().filter(|n| *n <= MOST_VALUES) {
                Some(count) => Ok(Values::Whole { first, step, count }),
                None => Err(format!("expected at most {MOST_VALUES} values, found {count}")),
            };
        }
        let (first, last) = range.real()?;
        let count = match (range.count, range.step) {
            (Some(count), _) => count,
            (None, None) => return Err("expected count or step in a range of numbers, found none".into()),
            (None, Some(step)) => {
                let size = step.as_float().or(step.as_integer().map(|n| n as f64)).filter(|s| *s > 0.0 && !range.log);
                let size = size.ok_or_else(|| format!("step: expected a number above 0, found {step}"))?;
                // A last value that is missed by rounding alone belongs to the range.
                let count = ((last - first) / size + 1e-9).floor() + 1.0;
                if !(1.0..=MOST_VALUES as f64).contains(&count) {
                    return Err(format!("expected 1 to {MOST_VALUES} values, found {count}"));
                }
                return Ok(Values::Real { first, last: first + size * (count - 1.0), count: count as u64, log: false });
            }
        };
        Ok(Values::Real { first, last, count, log: range.log })
    }

    /// Returns the number of values, at least 1.
    pub(super) fn len(&self) -> u64 {
        match self {
            Values::List(values) => values.len() as u64,
            Values::Whole { count, .. } | Values::Real { count, .. } => *count,
        }
    }

    /// Returns value `i`, which must exist.
    pub(super) fn get(&self, i: u64) -> Value {
        assert!(i < self.len(), "value {i} of {}", self.len());
        match *self {
            Values::List(ref values) => values[i as usize].clone(),
            Values::Whole { first, step, .. } => {
                // Some products are larger than any of the values.
                Value::Integer((i128::from(first) + i128::from(step) * i128::from(i)) as i64)
            }
            Values::Real { first, count: 1, .. } => Value::Float(first),
            Values::Real { last, count, .. } if i + 1 == count => Value::Float(last),
            Values::Real { first, last, count, log } => {
                let part = i as f64 / (count - 1) as f64;
                Value::Float(between(first, last, part, log))
            }
        }
    }

    /// Returns the values to check before a run: all of a list; the ends of a range, and of numbers
    /// some between them, which may have fractions where the ends have none.
    pub(super) fn samples(&self) -> Vec<Value> {
        match self {
            Values::List(values) => values.clone(),
            Values::Real { count, .. } => {
                (0..(*count).min(SAMPLES)).chain([count / 2, count - 1]).map(|i| self.get(i)).collect()
            }
            Values::Whole { .. } => vec![self.get(0), self.get(self.len() - 1)],
        }
    }
}

impl Draw {
    /// Reads what a key draws from: a list, or a range.
    pub(super) fn read(value: &Value) -> Result<Draw, String> {
        match value {
            Value::Array(values) => list(values).map(Draw::Choice),
            Value::Table(table) => {
                let range = Range::new(table, &["from", "to", "scale"])?;
                match range.whole() {
                    Some((first, last)) if first <= last => Ok(Draw::Whole(first, last)),
                    Some((first, last)) => Err(format!("expected from below to, found {first} and {last}")),
                    None => range.real().map(|(first, last)| Draw::Real { first, last, log: range.log }),
                }
            }
            other => Err(format!("expected a list or a range to draw from, found {other}")),
        }
    }

    /// Draws a value.
    pub(super) fn draw(&self, rng: &mut impl Rng) -> Value {
        let bits = rng.next_u64();
        let up_to = |n: u128| ((u128::from(bits) * n) >> 64) as u64;
        match self {
            Draw::Choice(values) => values[up_to(values.len() as u128) as usize].clone(),
            Draw::Whole(first, last) => {
                let span = (i128::from(*last) - i128::from(*first)) as u128 + 1;
                Value::Integer((i128::from(*first) + i128::from(up_to(span))) as i64)
            }
            Draw::Real { first, last, log } => {
                // 53 bits, as many as a number has.
                Value::Float(between(*first, *last, (bits >> 11) as f64 / (1u64 << 53) as f64, *log))
            }
        }
    }

    /// Returns the values to check before a run: all of a list; the ends of a range, and of numbers
    /// one between them.
    pub(super) fn samples(&self) -> Vec<Value> {
        match *self {
            Draw::Choice(ref values) => values.clone(),
            Draw::Whole(first, last) => vec![Value::Integer(first), Value::Integer(last)],
            Draw::Real { first, last, log } => {
                // Of the golden section: no fraction with a small denominator.
                let between = between(first, last, 0.618_033_988_75, log);
                [first, last, between].map(Value::Float).to_vec()
            }
        }
    }
}

fn between(first: f64, last: f64, part: f64, log: bool) -> f64 {
    match log {
        true => libm::exp(libm::log(first) + (libm::log(last) - libm::log(first)) * part),
        false => first + (last - first) * part,
    }
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Whole numbers.
    Whole,
    /// Numbers.
    Real,
    /// True or false.
    Truth,
    /// Text, or values of several kinds.
    Text,
}

/// Returns the form that holds all of these values.
pub(super) fn form<'a>(values: impl Iterator<Item = &'a Value>) -> Form {
    let mut found: Option<Form> = None;
    for value in values {
        let form = match value {
            Value::Integer(_) => Form::Whole,
            Value::Float(_) => Form::Real,
            Value::Boolean(_) => Form::Truth,
            _ => Form::Text,
        };
        found = Some(match (found, form) {
            (None, form) => form,
            (Some(before), form) if before == form => form,
            (Some(Form::Whole | Form::Real), Form::Whole | Form::Real) => Form::Real,
            _ => Form::Text,
        });
    }
    found.unwrap_or(Form::Text)
}

/// Returns whether a key is a figure of the profile, and its path there.
pub(super) fn of_profile(key: &str) -> Option<&str> {
    key.strip_prefix("profile.")
}
