//! `[mechanics]`: keys of arm and platter.

use super::forms::{Described, Flag, Form, Narrowed, Units};
use super::{CYLINDERS, Key, MS, Presence, SECOND, Schema, Written, key};
use crate::profile::MechanicsSpec;
use crate::profile::decimal::Decimal;
use crate::profile::fault::{At, ProfileError};
use crate::profile::table::Item;
use crate::time::Dur;

/// A time in milliseconds, of at most a second.
const MILLIS: Units = Units { places: MS, min: 0, max: SECOND };
const SETTLE: Units = Units { places: MS, min: -100_000_000, max: 100_000_000 };

/// `[mechanics]`.
pub(in super::super) static MECHANICS: Schema<MechanicsSpec> = Schema {
    title: "[mechanics]",
    // Seek tables are long: the others come before them.
    written_first: &["rpm", "head_switch_ms", "write_settle_ms", "read_on_arrival", "write_on_arrival", "keep_passing"],
    blank: || MechanicsSpec {
        rpm: (0, 1),
        seek: Vec::new(),
        write_seek: None,
        head_switch: Dur::ZERO,
        write_settle_ns: 0,
        read_on_arrival: false,
        write_on_arrival: false,
        keep_passing: false,
    },
    keys: &[
        key! {
            MechanicsSpec, rpm, "rpm", Required, Speed,
            "revolutions per minute, exact; the range holds also when `speed_error_ppb` and `speed_drift_ppb` \
                are added; a number such as `10025` or `7199.6`, or a ratio such as `\"1000000/67\"`"
        },
        Key {
            name: "seek_ms",
            presence: Presence::Required,
            form: || "list of `[cylinders, ms]`".into(),
            default: "",
            doc: "seek time of reads by distance, linear between the points, from (0, 0) to the first point, and \
                extrapolated beyond the last point by the line through the last two",
            read: |reader, m| {
                if let Some(item) = reader.find("seek_ms", Presence::Required)? {
                    m.seek = points(&item, &mut reader.places.seek)?;
                }
                Ok(())
            },
            write: |m| Some(Written::List(points_written(&m.seek))),
        },
        Key {
            name: "write_seek_ms",
            presence: Presence::Optional,
            form: || "list of `[cylinders, ms]`".into(),
            default: "",
            doc: "the same for writes, settling included, if it was measured separately",
            read: |reader, m| {
                if let Some(item) = reader.find("write_seek_ms", Presence::Optional)? {
                    m.write_seek = Some(points(&item, &mut reader.places.write_seek)?);
                }
                Ok(())
            },
            write: |m| Some(Written::List(points_written(m.write_seek.as_ref()?))),
        },
        key! {
            MechanicsSpec, head_switch, "head_switch_ms", Required, Narrowed(MILLIS, "0 to 100"),
            "to another surface; a move takes the longer of seek and head switch"
        },
        key! {
            MechanicsSpec, write_settle_ns, "write_settle_ms", Optional, SETTLE,
            "added before a write whenever the head moved; may be negative in measured files; not \
             used with `write_seek_ms`"
        },
        key! {
            MechanicsSpec, read_on_arrival, "read_on_arrival", Optional, Flag,
            "zero-latency access: a read begins with the first wanted sector that passes"
        },
        key! {
            MechanicsSpec, write_on_arrival, "write_on_arrival", Optional, Flag,
            "the same for writes"
        },
        key! {
            MechanicsSpec, keep_passing, "keep_passing", Optional, Flag,
            "everything that passes under the head on the track of a read goes to the cache"
        },
    ],
};

fn points(item: &Item<'_>, lines: &mut Vec<At>) -> Result<Vec<(u32, Dur)>, ProfileError> {
    let mut points = Vec::new();
    for item in item.list()? {
        let [distance, ms] = item.tuple("a list of a distance and a time")?;
        points.push((distance.int(1, CYLINDERS)? as u32, MILLIS.read(&ms)?));
        lines.push(item.at);
    }
    Ok(points)
}

fn points_written(points: &[(u32, Dur)]) -> Vec<String> {
    points.iter().map(|&(d, t)| format!("[{d}, {}]", Decimal::from_units(t.0 as i64, MS))).collect()
}

/// A speed of rotation as an exact ratio.
struct Speed;

impl Form<(u64, u64)> for Speed {
    fn read(&self, item: &Item<'_>) -> Result<(u64, u64), ProfileError> {
        let text = item.text_or_number()?;
        let rpm = match text.split_once('/') {
            Some((num, den)) => num.trim().parse().ok().zip(den.trim().parse().ok()),
            None => Decimal::parse(&text).and_then(Decimal::ratio),
        };
        rpm.map_or_else(|| item.refuse("a speed such as 7200, 10025.5 or \"72000/7\""), Ok)
    }

    /// Formats a decimal figure if it equals the ratio, else the ratio.
    fn write(&self, &(num, den): &(u64, u64)) -> Option<Written> {
        for places in 0..=9u32 {
            let scaled = u128::from(num) * 10u128.pow(places);
            if scaled % u128::from(den.max(1)) == 0
                && let Ok(units) = i64::try_from(scaled / u128::from(den.max(1)))
                && Decimal::from_units(units, places).ratio() == Some((num, den))
            {
                return Some(Written::Value(Decimal::from_units(units, places).to_string()));
            }
        }
        Some(Written::Value(format!("\"{num}/{den}\"")))
    }
}

impl Described for Speed {
    fn words(&self) -> String {
        "60 to 60000".into()
    }
}
