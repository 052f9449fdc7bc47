//! One point of a grid: its settings applied to the scenario and to the profile.

use std::collections::BTreeMap;

use headtime_disk::profile::{self, Profile};
use headtime_sim::scenario::{self, DEFAULT_DISK, Outcome, Prepared, Scenario};
use toml::{Table, Value};

use super::axis::of_profile;
use super::{Grid, GridError, error};

/// One point: its number, and its values of the grid's keys, in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Its number, from 0.
    pub index: u64,
    /// The values.
    pub values: Vec<Value>,
}

/// Profiles of disks, loaded once each.
#[derive(Debug, Default)]
pub struct Profiles {
    loaded: BTreeMap<String, Loaded>,
}

impl Loaded {
    /// Returns the profile with other figures. An error has the path of the last one that was set.
    fn with<'a>(&self, figures: impl Iterator<Item = (&'a str, &'a Value)>) -> Result<Profile, (String, String)> {
        let (mut table, mut last) = (self.table.clone(), "");
        for (path, value) in figures {
            set(&mut table, path, value).map_err(|why| (path.to_owned(), why))?;
            last = path;
        }
        let text = table.to_string();
        let read = profile::load("profile.toml", &|_| Ok(text.clone()));
        // The line of a generated text says nothing.
        read.map(|l| l.profile).map_err(|e| (last.to_owned(), e.reason.to_string()))
    }
}

/// The most disks that are kept; a sweep over more files loads them again.
const MOST_KEPT: usize = 256;

/// A disk's profile, and as a table what its file would be.
#[derive(Debug)]
struct Loaded {
    profile: Profile,
    table: Table,
}

impl Profiles {
    fn of(&mut self, disk: &str, place: &str) -> Result<&Loaded, GridError> {
        let fault = |why: String| GridError::at(place, why);
        if !self.loaded.contains_key(disk) {
            let profile = scenario::load_disk(disk).map_err(|e| fault(e.to_string()))?.profile;
            let text = profile::write(&profile);
            let table = text.parse().map_err(|e| fault(format!("disk {disk}: {e}")))?;
            if self.loaded.len() >= MOST_KEPT {
                self.loaded.clear();
            }
            self.loaded.insert(disk.to_owned(), Loaded { profile, table });
        }
        Ok(&self.loaded[disk])
    }
}

impl Point {
    /// Runs the point, as `simulate` would run its scenario.
    ///
    /// # Errors
    /// The point's settings exclude each other, or the drive cannot be built.
    pub fn run(&self, grid: &Grid, profiles: &mut Profiles) -> Result<Outcome, GridError> {
        let scenario = self.scenario(grid)?;
        let profile = self.profile(grid, &scenario, profiles)?;
        Ok(Prepared::new(&scenario, profile, None)?.run(None, &mut ())?)
    }

    /// Returns the scenario of the point.
    ///
    /// # Errors
    /// The point's settings exclude each other.
    pub fn scenario(&self, grid: &Grid) -> Result<Scenario, GridError> {
        let mut settings = grid.base.clone();
        let place = format!("{}: point {}", grid.file(), self.index);
        for (key, value) in grid.keys().zip(&self.values).filter(|(key, _)| of_profile(key).is_none()) {
            set(&mut settings, key, value).map_err(|why| GridError::at(format!("{place}: {key}"), why))?;
        }
        Ok(Scenario::from_table(settings, grid.folder(), &place)?)
    }

    /// Returns the profile of the scenario's disk with the point's figures.
    fn profile(&self, grid: &Grid, scenario: &Scenario, profiles: &mut Profiles) -> Result<Profile, GridError> {
        let place = format!("{}: point {}", grid.file(), self.index);
        let disk = scenario.disk.as_deref().unwrap_or(DEFAULT_DISK);
        let loaded = profiles.of(disk, &place)?;
        let changed = || grid.keys().zip(&self.values).filter_map(|(key, value)| Some((of_profile(key)?, value)));
        if changed().next().is_none() {
            return Ok(loaded.profile.clone());
        }
        let changed = loaded.with(changed());
        changed.map_err(|(path, why)| GridError::at(format!("{place}: profile.{path}"), why))
    }

    /// Checks that value `column` can be that of a point. Whether it goes with the others of one is
    /// seen when that is run.
    pub(super) fn check_value(&self, grid: &Grid, column: usize, profiles: &mut Profiles) -> Result<(), GridError> {
        let (key, value) = (grid.keys().nth(column).unwrap_or_default(), &self.values[column]);
        let place = format!("{}: {key} = {value}", grid.file());
        let fault = |why: String| GridError::at(place.as_str(), why);
        let Some(path) = of_profile(key) else {
            let mut settings = grid.base.clone();
            set(&mut settings, key, value).map_err(fault)?;
            if let Err(why) = Scenario::check_each(settings.clone(), &place) {
                // A key of whole numbers takes the whole part.
                let whole = value.as_float().filter(|v| v.fract() != 0.0).map(|v| Value::Integer(v as i64));
                let takes_whole = whole.is_some_and(|whole| {
                    set(&mut settings, key, &whole).is_ok() && Scenario::check_each(settings, &place).is_ok()
                });
                return match takes_whole {
                    true => Err(fault(format!("expected a whole number, found {value}"))),
                    false => Err(why.into()),
                };
            }
            return self.check_files(grid, key, value, &place, profiles);
        };
        let loaded = profiles.of(&self.disk(grid), &place)?;
        let mut known = Vec::new();
        flatten("", &Value::Table(loaded.table.clone()), &mut known);
        let known_as = |why: String| match known.iter().any(|k| k == path) {
            true => fault(why),
            false => fault(error::unknown(path, known.iter().map(String::as_str))),
        };
        loaded.with([(path, value)].into_iter()).map(|_| ()).map_err(|(_, why)| known_as(why))
    }

    /// Checks that a disk or a trace is there.
    pub(super) fn check_files(
        &self,
        grid: &Grid,
        key: &str,
        value: &Value,
        place: &str,
        profiles: &mut Profiles,
    ) -> Result<(), GridError> {
        match (key, value.as_str()) {
            ("disk", Some(_)) => profiles.of(&self.disk(grid), place).map(|_| ()),
            ("trace", Some(name)) => {
                let path = grid.folder().join(name);
                let there = std::fs::metadata(&path);
                there.map(|_| ()).map_err(|e| GridError::at(place, format!("{}: {e}", path.display())))
            }
            _ => Ok(()),
        }
    }

    /// Returns the disk of the point, before its scenario is made.
    fn disk(&self, grid: &Grid) -> String {
        let varied = grid.keys().zip(&self.values).find(|(key, _)| *key == "disk").map(|(_, value)| value);
        let disk = varied.or(grid.base.get("disk")).and_then(Value::as_str).unwrap_or(DEFAULT_DISK);
        scenario::beside(grid.folder(), disk.to_owned())
    }
}

/// Sets the value at a path of keys and of numbers of items, separated by dots.
fn set(table: &mut Table, path: &str, value: &Value) -> Result<(), String> {
    let Some((first, rest)) = path.split_once('.') else {
        table.insert(path.to_owned(), value.clone());
        return Ok(());
    };
    let found = table.get_mut(first).ok_or_else(|| format!("expected a table {first}, found none"))?;
    set_in(found, rest, value)
}

fn set_in(at: &mut Value, path: &str, value: &Value) -> Result<(), String> {
    match at {
        Value::Table(table) => set(table, path, value),
        Value::Array(items) => {
            let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
            let most = items.len();
            let item = first.parse::<usize>().ok().and_then(|i| items.get_mut(i));
            let item = item.ok_or_else(|| format!("expected the number of one of {most} items, found {first}"))?;
            match rest {
                Some(rest) => set_in(item, rest, value),
                None => {
                    *item = value.clone();
                    Ok(())
                }
            }
        }
        _ => Err(format!("expected a table or a list before .{path}, found a value")),
    }
}

/// Lists the paths of all values.
fn flatten(prefix: &str, value: &Value, paths: &mut Vec<String>) {
    let below = |key: &str| if prefix.is_empty() { key.to_owned() } else { format!("{prefix}.{key}") };
    match value {
        Value::Table(table) => table.iter().for_each(|(key, v)| flatten(&below(key), v, paths)),
        Value::Array(items) => items.iter().enumerate().for_each(|(i, v)| flatten(&below(&i.to_string()), v, paths)),
        _ => paths.push(prefix.to_owned()),
    }
}
