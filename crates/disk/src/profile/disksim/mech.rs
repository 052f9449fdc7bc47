//! Mechanics g1: speed, head switch, settling, and the kinds of seek curve.
//!
//! Where DiskSim 4.0's own code for a kind of curve is broken (`constant`, `curve`, `linear`, and
//! `hpl`'s first value), the textbook form is used: `curve` is Lee's three-point equation, `linear`
//! two straight lines through the single-cylinder, average (a third of all cylinders) and
//! full-stroke times.

use crate::profile::check::MAX_HEAD_SWITCH;
use crate::profile::decimal::Decimal;
use crate::profile::fault::{At, ProfileError, Reason, WarningKind, Warnings, excerpt};
use crate::profile::places::Places;
use crate::profile::{MechanicsSpec, Resolver};
use crate::rotation::Rotation;
use crate::time::Dur;

use super::lexer::beside;
use super::params::{self, Params};
use super::parser::{Block, Node, Value};

/// Points of a curve given by an equation: every distance up to here, then every
/// `STEP_CYLINDERS`th.
const DENSE_CYLINDERS: u32 = 8192;
const STEP_CYLINDERS: usize = 16;

/// Reads the `Mechanical Model` of a `dm_disk` block. `cylinders` is the drive's number of
/// cylinders.
///
/// Records the locations of the seek table's points in `places`; the caller checks the table.
pub(super) fn mechanics(
    model: &mut Params,
    cylinders: u32,
    (main_file, resolver): (&str, &Resolver),
    places: &mut Places,
    warnings: &mut Warnings,
) -> Result<MechanicsSpec, ProfileError> {
    let node = model.need("Mechanical Model")?;
    let block = match &node.value {
        Value::Block(b) if b.kind == "dm_mech_g1" => b,
        other => {
            return Err(ProfileError::expected(&node.at, "mechanics of type dm_mech_g1", other.describe()));
        }
    };
    let mut p = Params::new(block);
    let rpm_node = p.need("Rotation speed (in rpms)")?;
    let rpm = params::real(rpm_node)?;
    let rpm = rpm
        .ratio()
        .filter(|&(num, den)| Rotation::from_rpm(num, den).is_some())
        .ok_or_else(|| ProfileError::range(&rpm_node.at, "the speed", rpm, "60 to 60000 rpm"))?;
    p.without_effect("Access time type", "trackSwitchPlusRotation", "DiskSim reads it and always simulates rotation");
    p.without_effect("Percent error in rpms", "0", "DiskSim reads it and turns the platter at the exact speed");
    let head_switch = p.time("Head switch time")?;
    if head_switch > MAX_HEAD_SWITCH {
        let at = &p.need("Head switch time")?.at;
        return Err(ProfileError::range(at, "Head switch time", head_switch, "between 0 and 100 ms"));
    }
    let settle_node = p.get("Add. write settling delay");
    let write_settle_ns = match settle_node {
        None => 0,
        Some(node) => {
            places.remember_at("mechanics.write_settle_ms", &node.at);
            let ms = params::real(node)?;
            ms.scaled(6).filter(|ns| ns.abs() <= 100_000_000).ok_or_else(|| {
                let what = "Add. write settling delay";
                ProfileError::range(&node.at, what, ms, "between -100 and 100 ms")
            })?
        }
    };
    let (seek, lines) = Curve { block, cylinders, main_file, resolver }.read(&mut p)?;
    places.seek = lines;
    places.remember_at("mechanics.seek_ms", &p.need("Seek type")?.at);
    places.remember_at("mechanics.rpm", &rpm_node.at);
    // Each kind of curve uses some of these; DiskSim files contain all of them.
    p.skip(&[
        "Single cylinder seek time",
        "Average seek time",
        "Full strobe seek time",
        "Full seek curve",
        "HPL seek equation values",
        "First ten seek times",
        "Constant seek time",
    ]);
    p.finish(warnings);
    Ok(MechanicsSpec {
        rpm,
        seek,
        write_seek: None,
        head_switch,
        write_settle_ns,
        read_on_arrival: false,
        write_on_arrival: false,
        keep_passing: false,
    })
}

type Points = Vec<(u32, Dur)>;

struct Curve<'a> {
    block: &'a Block,
    cylinders: u32,
    main_file: &'a str,
    resolver: &'a Resolver<'a>,
}

impl Curve<'_> {
    /// Returns the points, with their locations where they have any.
    fn read(&self, p: &mut Params) -> Result<(Points, Vec<At>), ProfileError> {
        let node = p.need("Seek type")?;
        match params::word(node)? {
            "extracted" => self.table(p),
            kind => Ok((self.equation(p, node, kind)?, Vec::new())),
        }
    }

    fn equation(&self, p: &mut Params, node: &Node, kind: &str) -> Result<Points, ProfileError> {
        let at = &node.at;
        match kind {
            "hplplus10" => {
                let ten = p.list("First ten seek times")?;
                if ten.len() != 10 {
                    let found = format!("{} times", ten.len());
                    return Err(ProfileError::expected(at, "ten seek times", found));
                }
                let mut first = Vec::new();
                for node in ten {
                    first.push(params::time("a seek time", node, params::real(node)?)?);
                }
                self.hpl(p, &first)
            }
            "hpl" => self.hpl(p, &[]),
            "constant" => {
                let t = p.time("Constant seek time")?;
                self.by_formula(at, (1, 1), |_| t.as_ms_f64())
            }
            "curve" => {
                let (min, mean, max) = self.three(p)?;
                let n = f64::from(self.cylinders);
                let a = (-10.0 * min + 15.0 * mean - 5.0 * max) / (3.0 * n.sqrt());
                let b = (7.0 * min - 15.0 * mean + 8.0 * max) / (3.0 * n);
                self.by_formula(at, (self.cylinders, 1), |d| {
                    let x = f64::from(d - 1);
                    a * x.sqrt() + b * x + min
                })
            }
            "linear" => {
                let (min, mean, max) = self.three(p)?;
                let corner = (self.cylinders / 3).max(2);
                let middle = f64::from(corner);
                let end = f64::from(self.cylinders - 1).max(middle + 1.0);
                self.by_formula(at, (1, corner), |d| {
                    let x = f64::from(d);
                    if x <= middle {
                        min + (mean - min) * (x - 1.0) / (middle - 1.0)
                    } else {
                        mean + (max - mean) * (x - middle) / (end - middle)
                    }
                })
            }
            other => Err(ProfileError {
                at: at.clone(),
                reason: Reason::UnknownName {
                    what: "seek type".into(),
                    found: other.into(),
                    known: "extracted, hplplus10, hpl, constant, curve, linear".into(),
                },
            }),
        }
    }

    fn three(&self, p: &mut Params) -> Result<(f64, f64, f64), ProfileError> {
        Ok((
            p.time("Single cylinder seek time")?.as_ms_f64(),
            p.time("Average seek time")?.as_ms_f64(),
            p.time("Full strobe seek time")?.as_ms_f64(),
        ))
    }

    /// The HP seek equation: distances below V1 take V2 + V3 * sqrt(d), others V4 + V5 * d; `first`
    /// overrides the shortest distances, and without it V6 is the time for one cylinder unless it
    /// is -1.
    fn hpl(&self, p: &mut Params, first: &[Dur]) -> Result<Points, ProfileError> {
        let node = p.need("HPL seek equation values")?;
        let values = p.list("HPL seek equation values")?;
        if values.len() != 6 {
            let found = format!("{} values", values.len());
            return Err(ProfileError::expected(&node.at, "six values V1 to V6", found));
        }
        let mut v = [0.0; 6];
        for (value, node) in v.iter_mut().zip(values) {
            *value = params::real(node)?.to_f64();
        }
        let single = (first.is_empty() && v[5] != -1.0).then_some(v[5]);
        let bend = (v[0].clamp(0.0, 1e7).ceil() as u32).max(first.len() as u32 + 1);
        self.by_formula(&node.at, (bend, bend), |d| match (first.get(d as usize - 1), single) {
            (Some(t), _) => t.as_ms_f64(),
            (None, Some(t)) if d == 1 => t,
            _ if f64::from(d) < v[0] => v[1] + v[2] * f64::from(d).sqrt(),
            _ => v[3] + v[4] * f64::from(d),
        })
    }

    /// Returns the points of an equation: at each distance up to `bent` (every 16th beyond 8,192),
    /// then at `corner` and at the longest distance, between which the equation is linear.
    fn by_formula(&self, at: &At, (bent, corner): (u32, u32), ms: impl Fn(u32) -> f64) -> Result<Points, ProfileError> {
        let last = self.cylinders.max(2) - 1;
        let bent = bent.min(last);
        let mut distances: Vec<u32> = (1..=bent.min(DENSE_CYLINDERS)).collect();
        distances.extend((DENSE_CYLINDERS + 1..=bent).step_by(STEP_CYLINDERS));
        distances.extend([corner.min(last), last]);
        distances.sort_unstable();
        distances.dedup();
        let mut points: Points = Vec::with_capacity(distances.len());
        for d in distances {
            let t = ms(d);
            if !(0.0..=1000.0).contains(&t) {
                return Err(ProfileError::range(
                    at,
                    format!("the seek time over {d} cylinders"),
                    format!("{t:.3} ms"),
                    "between 0 and 1000 ms",
                ));
            }
            points.push((d, Dur::from_ms_f64(t)));
        }
        Ok(points)
    }

    /// Reads a `.seek` file: lines of `distance, ms[, deviation]`, optionally after a line with
    /// their number.
    fn table(&self, p: &mut Params) -> Result<(Points, Vec<At>), ProfileError> {
        let node = p.need("Full seek curve")?;
        let name = params::word(node)?;
        let (path, text) = self.find(node, name)?;
        let whole = At::file(&path);
        let mut stated = None;
        let mut points: Vec<(u32, Dur, At)> = Vec::new();
        for (i, line) in text.lines().enumerate() {
            let at = whole.with_line(i as u32 + 1);
            let line = line.split('#').next().unwrap_or("").trim();
            if line.is_empty() {
                continue;
            }
            if points.is_empty() && stated.is_none() && line.starts_with("Seek distances measured") {
                let count = line.rsplit(':').next().unwrap_or("").trim();
                let count: u64 = count.parse().map_err(|_| {
                    ProfileError::expected(&at, "a number of seek distances", format!("`{}`", excerpt(count)))
                })?;
                stated = Some((count, at));
                continue;
            }
            points.push(table_line(line, at)?);
        }
        if points.is_empty() {
            return Err(ProfileError::expected(&whole, "lines of `distance, ms`", "none"));
        }
        if let Some((stated, at)) = stated
            && stated != points.len() as u64
        {
            let found = points.len() as u64;
            if found * 10 < stated * 9 {
                // The end of the file is missing; a difference of one or two points is a miscount.
                return Err(ProfileError::expected(
                    &at,
                    format!("{stated} points of the seek table, as this line says"),
                    format!("{found}"),
                ));
            }
            p.note(&at, WarningKind::SeekCount { stated, found });
        }
        Ok(self.tidy(points, p))
    }

    fn find(&self, node: &Node, name: &str) -> Result<(String, String), ProfileError> {
        let near = beside(&node.at.file, name);
        let why = match (self.resolver)(&near) {
            Ok(text) => return Ok((near, text)),
            Err(why) => why,
        };
        // DiskSim resolves names from its working directory, usually that of the main file.
        let from_main = beside(self.main_file, name);
        match (self.resolver)(&from_main) {
            Ok(text) if from_main != near => Ok((from_main, text)),
            _ => Err(ProfileError { at: node.at.clone(), reason: Reason::Unreadable(format!("{near}: {why}")) }),
        }
    }

    fn tidy(&self, mut points: Vec<(u32, Dur, At)>, p: &mut Params) -> (Points, Vec<At>) {
        if let Some(w) = points.windows(2).find(|w| w[1].0 < w[0].0) {
            let kind = WarningKind::SeekOrder { found: w[1].0, after: w[0].0 };
            p.note(&w[1].2, kind);
            points.sort_by_key(|x| x.0);
        }
        let mut out: Points = Vec::with_capacity(points.len());
        let mut lines = Vec::with_capacity(points.len());
        for (d, t, at) in points {
            if out.last().is_some_and(|last| last.0 == d) {
                p.note(&at, WarningKind::SeekRepeated(d));
                continue;
            }
            if d == 0 {
                if t > Dur::ZERO {
                    let kind = WarningKind::NoEffect {
                        key: "distance 0".into(),
                        value: format!("{t}"),
                        why: "staying on a cylinder takes no time",
                    };
                    p.note(&at, kind);
                }
                continue;
            }
            out.push((d, t));
            lines.push(at);
        }
        if out.is_empty() {
            let text = "the seek table holds only distance 0; seeks take no time".to_string();
            p.note(&self.block.at, WarningKind::Assumed(text));
            out.push((1, Dur::ZERO));
        }
        (out, lines)
    }
}

fn table_line(line: &str, at: At) -> Result<(u32, Dur, At), ProfileError> {
    let mut columns = line.split(|c: char| c == ',' || c.is_whitespace()).filter(|c| !c.is_empty());
    let fail = || ProfileError::expected(&at, "`distance, ms`", format!("`{}`", excerpt(line)));
    let (Some(distance), Some(ms)) = (columns.next(), columns.next()) else {
        return Err(fail());
    };
    let distance: u32 = distance.parse().map_err(|_| fail())?;
    let ms = Decimal::parse(ms).ok_or_else(fail)?;
    match ms.scaled(6) {
        Some(ns) if (0..=1_000_000_000).contains(&ns) => Ok((distance, Dur(ns as u64), at)),
        _ => Err(ProfileError::range(
            &at,
            format!("the seek time over {distance} cylinders"),
            format!("{ms} ms"),
            "between 0 and 1000 ms",
        )),
    }
}
