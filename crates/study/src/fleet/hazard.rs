//! Hazards: how often drives fail, by age, from a file in Backblaze's daily format or as a figure.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use headtime_sim::traces;

use super::durability::YEAR_HOURS;
use super::estimate::Estimate;
use super::random::Draws;
use super::study::Failures;

/// Years of age with a rate of their own; older drives count as of the last.
pub const AGES: usize = 10;
const YEAR_DAYS: f64 = 365.25;

/// Failures per drive and year, by age in years.
#[derive(Clone, Debug, PartialEq)]
pub struct Hazard([f64; AGES]);

/// Drive-days and failures of a model, by age in years.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// Days on which a drive was seen.
    pub days: [u64; AGES],
    /// Failures.
    pub failures: [u64; AGES],
}

/// How often a study's drives fail.
#[derive(Clone, Debug, PartialEq)]
pub struct FailureRates {
    /// By age.
    pub by_age: Hazard,
    /// Failures per drive and year, of all ages.
    pub per_year: Estimate,
}

impl FailureRates {
    /// Returns those of a study's table: a constant, or what a file has.
    ///
    /// # Errors
    /// The file cannot be used.
    pub fn of(failures: &Failures) -> Result<FailureRates, HazardError> {
        match &failures.file {
            None => {
                let per_year = failures.per_year.unwrap_or(0.0);
                Ok(FailureRates { by_age: Hazard::constant(per_year), per_year: Estimate::exact(per_year) })
            }
            Some(path) => {
                let observed = select(path, &read(path)?, failures.model.as_deref())?;
                Ok(FailureRates { by_age: observed.hazard(), per_year: observed.annual() })
            }
        }
    }
}

/// Why a file of daily states cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HazardError {
    /// It cannot be read.
    #[error("{}: {why}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A line is wrong.
    #[error("{}:{line}: expected {expected}, found {found}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// What was expected.
        expected: String,
        /// What was found.
        found: String,
    },
    /// There is no drive in it.
    #[error("{}: expected a heading and a line per drive and day, found no drive", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// There is no drive of this model, or none failed.
    #[error("{}: expected {expected}, found models {known}", path.display())]
    Model {
        /// The file.
        path: PathBuf,
        /// What was expected.
        expected: String,
        /// The models with the most drive-days.
        known: String,
    },
}

impl Observed {
    /// Returns the failures per drive and year, of all ages.
    pub fn annual(&self) -> Estimate {
        Estimate::rate(self.failures.iter().sum(), self.days.iter().sum::<u64>() as f64 / YEAR_DAYS)
    }

    /// Returns the hazard. Ages at which no drive was seen, or too few to tell, have that of all.
    pub fn hazard(&self) -> Hazard {
        /// Drive-years below which an age has the hazard of all.
        const LEAST_YEARS: f64 = 100.0;
        let all = self.annual().value;
        let mut rates = [all; AGES];
        for (age, rate) in rates.iter_mut().enumerate() {
            let years = self.days[age] as f64 / YEAR_DAYS;
            if years >= LEAST_YEARS {
                *rate = self.failures[age] as f64 / years;
            }
        }
        Hazard(rates)
    }

    fn add(&mut self, other: &Observed) {
        for age in 0..AGES {
            self.days[age] += other.days[age];
            self.failures[age] += other.failures[age];
        }
    }
}

impl Hazard {
    /// A constant rate of failures per drive and year.
    pub fn constant(per_year: f64) -> Hazard {
        Hazard([per_year; AGES])
    }

    /// Draws how many years a drive of this age still works.
    pub(super) fn lifetime(&self, age: f64, draws: &mut Draws) -> f64 {
        let mut left = draws.exponential();
        let mut at = age.max(0.0);
        loop {
            let year = (at as usize).min(AGES - 1);
            let rate = self.0[year];
            let until = if year == AGES - 1 { f64::INFINITY } else { (year + 1) as f64 - at };
            if left <= rate * until {
                return if rate > 0.0 { at + left / rate - age } else { f64::INFINITY };
            }
            left -= rate * until;
            at = (year + 1) as f64;
        }
    }
}

/// Reads a file of daily states: columns `date`, `serial_number`, `model`, `failure`, and if it is
/// there `smart_9_raw`, the hours of operation, which give the age. It may be compressed with gzip
/// or zstd. Returns what was observed of each model.
///
/// # Errors
/// File, line, what was expected and found.
pub fn read(path: &Path) -> Result<BTreeMap<String, Observed>, HazardError> {
    let unreadable = |why: String| HazardError::Unreadable { path: path.to_owned(), why };
    let text = traces::open_text(path).map_err(|e| unreadable(e.to_string()))?;
    let mut columns: Option<Columns> = None;
    let mut observed: BTreeMap<String, Observed> = BTreeMap::new();
    for (number, line) in text.enumerate() {
        let line = line.map_err(|e| unreadable(e.to_string()))?;
        let at = |expected: &str, found: &str| HazardError::Line {
            path: path.to_owned(),
            line: number as u64 + 1,
            expected: expected.to_owned(),
            found: format!("\"{}\"", found.chars().take(60).collect::<String>().escape_debug()),
        };
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let Some(c) = &columns else {
            let found = Columns::find(&fields);
            columns = Some(found.ok_or_else(|| at("a heading with date, serial_number, model and failure", &line))?);
            continue;
        };
        if line.trim().is_empty() {
            continue;
        }
        if fields.len() != c.count {
            return Err(at(&format!("{} columns", c.count), &line));
        }
        if !is_date(fields[c.date]) {
            return Err(at("a day such as 2026-01-31 in the column date", fields[c.date]));
        }
        let failed = match fields[c.failure] {
            "0" => 0,
            "1" => 1,
            other => return Err(at("0 or 1 in the column failure", other)),
        };
        let age = match c.hours.map(|i| fields[i]) {
            None | Some("") => 0,
            Some(hours) => {
                let figure = hours.parse::<f64>().ok().filter(|h| *h >= 0.0 && h.is_finite());
                let figure = figure.ok_or_else(|| at("hours of 0 or more in the column smart_9_raw", hours))?;
                ((figure / YEAR_HOURS) as usize).min(AGES - 1)
            }
        };
        let model = fields[c.model];
        if !observed.contains_key(model) {
            observed.insert(model.to_owned(), Observed::default());
        }
        let of = observed.get_mut(model).expect("inserted above");
        of.days[age] += 1;
        of.failures[age] += failed;
    }
    match observed.is_empty() {
        true => Err(HazardError::Empty { path: path.to_owned() }),
        false => Ok(observed),
    }
}

/// Returns whether a text is a day as `2026-01-31`.
fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let digits = |part: &str, count: usize| part.len() == count && part.bytes().all(|b| b.is_ascii_digit());
    let [year, month, day] = parts[..] else { return false };
    if !(digits(year, 4) && digits(month, 2) && digits(day, 2)) {
        return false;
    }
    let number = |part: &str| part.parse::<u32>().unwrap_or(0);
    let year = number(year);
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match number(month) {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    (1..=days).contains(&number(day))
}

/// Returns what was observed of one model, or of all.
///
/// # Errors
/// There is no such model, or no drive failed.
pub fn select(
    path: &Path,
    observed: &BTreeMap<String, Observed>,
    model: Option<&str>,
) -> Result<Observed, HazardError> {
    let mut sum = Observed::default();
    let chosen = observed.iter().filter(|(name, _)| model.is_none_or(|wanted| wanted == name.as_str()));
    chosen.for_each(|(_, o)| sum.add(o));
    if sum.failures.iter().sum::<u64>() > 0 {
        return Ok(sum);
    }
    let mut models: Vec<(&String, u64)> = observed.iter().map(|(name, o)| (name, o.days.iter().sum())).collect();
    models.sort_by_key(|(name, days)| (std::cmp::Reverse(*days), (*name).clone()));
    let known: Vec<&str> = models.iter().take(10).map(|(name, _)| name.as_str()).collect();
    let expected = match model {
        Some(model) => format!("drives of model {model} of which one failed or more"),
        None => "drives of which one failed or more".into(),
    };
    Err(HazardError::Model { path: path.to_owned(), expected, known: known.join(", ") })
}

/// The columns that are used.
struct Columns {
    date: usize,
    model: usize,
    failure: usize,
    hours: Option<usize>,
    count: usize,
}

impl Columns {
    fn find(fields: &[&str]) -> Option<Columns> {
        let at = |name: &str| fields.iter().position(|f| *f == name);
        at("serial_number")?;
        Some(Columns {
            date: at("date")?,
            model: at("model")?,
            failure: at("failure")?,
            hours: at("smart_9_raw"),
            count: fields.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_of_a_fleet_are_binomial() {
        // 20,000 drives for a year at 1.4%: p = 1 - exp(-0.014).
        let hazard = Hazard::constant(0.014);
        let mut draws = Draws::new(1, 0);
        let n = 20_000u32;
        let failed = (0..n).filter(|_| hazard.lifetime(3.2, &mut draws) < 1.0).count() as f64;
        let p = -libm::expm1(-0.014);
        let (mean, sd) = (f64::from(n) * p, (f64::from(n) * p * (1.0 - p)).sqrt());
        assert!((failed - mean).abs() < 4.0 * sd, "{failed} of {n}, expected {mean}");
    }

    #[test]
    fn lifetimes_follow_the_hazard_of_each_age() {
        let mut rates = [0.0; AGES];
        (rates[1], rates[2]) = (0.5, 0.1);
        rates[AGES - 1] = 0.2;
        let hazard = Hazard(rates);
        let mut draws = Draws::new(2, 0);
        let n = 100_000;
        let lives: Vec<f64> = (0..n).map(|_| hazard.lifetime(0.5, &mut draws)).collect();
        let until = |age: f64| lives.iter().filter(|l| **l < age - 0.5).count() as f64 / f64::from(n);
        assert_eq!(until(1.0), 0.0);
        for (age, expected) in
            [(1.5, 1.0 - (-0.25f64).exp()), (2.0, 1.0 - (-0.5f64).exp()), (3.0, 1.0 - (-0.6f64).exp())]
        {
            assert!((until(age) - expected).abs() < 0.006, "{age}: {}, expected {expected}", until(age));
        }
        assert_eq!(until(3.0), until(8.9));
        assert!((until(14.0) - (1.0 - (-1.6f64).exp())).abs() < 0.006);
    }

    fn file(text: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("headtime-hazard-{}-{}", std::process::id(), text.len()));
        std::fs::write(&path, text).unwrap();
        path
    }

    #[test]
    fn a_file_of_daily_states_gives_rates_by_model_and_age() {
        let mut text = String::from("date,serial_number,model,capacity_bytes,failure,smart_9_raw\n");
        for day in 0..100 {
            for drive in 0..20 {
                let failure = u8::from(day == 99 && drive < 2);
                text += &format!("2026-01-01,S{drive},A,20000588955648,{failure},{}\n", 10_000 + day * 24);
            }
            text += "2026-01-01,T,B,20000588955648,0,\n";
        }
        let path = file(&text);
        let observed = read(&path).unwrap();
        let a = select(&path, &observed, Some("A")).unwrap();
        assert_eq!((a.days[1], a.failures[1]), (2000, 2));
        let rate = a.annual();
        assert!((rate.value - 2.0 / (2000.0 / 365.25)).abs() < 1e-9 && rate.low < rate.value && rate.value < rate.high);
        let e = select(&path, &observed, Some("B")).unwrap_err().to_string();
        assert!(e.contains("model B") && e.contains("models A, B"), "{e}");
        assert_eq!(select(&path, &observed, None).unwrap().days[0], 100);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn wrong_files_name_line_and_expectation() {
        for (text, expected) in [
            ("a,b\n", ":1: expected a heading"),
            ("date,serial_number,model,failure\n2026-01-31,s,m,2\n", ":2: expected 0 or 1 in the column failure"),
            ("date,serial_number,model,failure\n2026,s,m\n", ":2: expected 4 columns"),
            ("date,serial_number,model,failure,smart_9_raw\n2026-01-31,s,m,0,x\n", ":2: expected hours"),
            (
                "date,serial_number,model,failure,smart_9_raw\n2026-01-31,s,m,0,-5.0\n",
                ":2: expected hours of 0 or more",
            ),
            ("date,serial_number,model,failure\n2024-02-29,s,m,0\n2023-02-29,s,m,0\n", ":3: expected a day such as"),
            ("date,serial_number,model,failure\n2023-13-45,s,m,0,\n", ":2: expected 4 columns"),
            ("date,serial_number,model,failure\n2023-13-45,s,m,00\n", ":2: expected a day such as"),
            ("date,serial_number,model,failure\n", "found no drive"),
            ("", "found no drive"),
        ] {
            let path = file(text);
            let e = read(&path).unwrap_err().to_string();
            assert!(e.contains(expected), "{e}");
            std::fs::remove_file(path).unwrap();
        }
    }
}
