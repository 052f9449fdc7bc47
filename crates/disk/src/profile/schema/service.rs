//! `[[service_times]]`: keys of measured service times.

use super::forms::{Described, Form, Text, Units, Whole};
use super::{Key, Presence, Reader, SECOND, Schema, US, Written, key};
use crate::profile::fault::ProfileError;
use crate::profile::places::Places;
use crate::profile::service::{ALL_PPM, MOST_BINS, place};
use crate::profile::table::Item;
use crate::profile::{Run, ServiceLoad, ServiceTimes};
use crate::time::Dur;

const COMMANDS: Whole = Whole(1, u32::MAX as i64);
const COUNT: Whole = Whole(0, u32::MAX as i64);

/// An entry of `service_times`.
pub(in super::super) static SERVICE_TIMES: Schema<ServiceTimes> = Schema {
    title: "service times",
    written_first: &[],
    blank: || ServiceTimes {
        sectors: 0,
        load: ServiceLoad {
            words: String::new(),
            reads_ppm: 0,
            waiting: 0,
            candidates: 0,
            order: String::new(),
            outstanding: 0,
        },
        samples: 0,
        bin: Dur::ZERO,
        runs: Vec::new(),
    },
    keys: &[
        key! { ServiceTimes, sectors, "sectors", Required, COMMANDS, "sectors of each command" },
        key! {
            ServiceTimes, load.words, "workload", Required, Text,
            "description of the load: which requests, and where"
        },
        key! {
            ServiceTimes, load.reads_ppm, "reads", Required, Units { places: 6, min: 0, max: ALL_PPM as i64 },
            "share of reads; the others were writes"
        },
        key! {
            ServiceTimes, load.waiting, "waiting", Required, COMMANDS,
            "number of requests that were always in the system, those at the drive included; or, where \
                requests came in batches, the size of the largest batch"
        },
        Key {
            name: "candidates",
            presence: Presence::Optional,
            form: || COMMANDS.words(),
            default: "`waiting` less `outstanding`, plus one",
            doc: "number of requests that each command was chosen from, not counting those at the drive. When it \
                is left out, a constant number of requests waited, and this number is `waiting` - `outstanding` \
                + 1. A smaller number given here means that requests came in batches, each of which was served \
                to its end",
            read: |reader, times| {
                let item = reader.find("candidates", Presence::Optional)?;
                times.load.candidates = item.map_or(Ok(0), |item| COMMANDS.read(&item))?;
                Ok(())
            },
            write: |times| (!times.load.is_steady()).then(|| Written::Value(times.load.candidates.to_string())),
        },
        key! {
            ServiceTimes, load.order, "order", Required, Text,
            "the order that selected the next command, as `headtime simulate --order` takes it"
        },
        key! {
            ServiceTimes, load.outstanding, "outstanding", Required, COMMANDS,
            "maximum number of commands at the drive"
        },
        key! {
            ServiceTimes, samples, "samples", Required, Whole(1, i64::MAX),
            "number of commands measured"
        },
        key! {
            ServiceTimes, bin, "bin_us", Required, Units { places: US, min: 0, max: SECOND },
            "width of a bin; the same for all sizes"
        },
        Key {
            name: "histogram",
            presence: Presence::Required,
            form: || "list of `[first, count, count, ...]`".into(),
            default: "",
            doc: "runs: the numbers of commands in bin `first` and in the bins after it. Bin n holds times longer \
                than n - 1 bins and no longer than n; bins ascend",
            read: histogram,
            write: |times| {
                // A run is a nested list; its figures are wrapped like items of one.
                let mut figures = Vec::new();
                for run in &times.runs {
                    figures.push(format!("[{}", run.first));
                    figures.extend(run.counts.iter().map(u32::to_string));
                    if let Some(last) = figures.last_mut() {
                        last.push(']');
                    }
                }
                Some(Written::List(figures))
            },
        },
    ],
};

fn histogram(reader: &mut Reader<'_, '_>, times: &mut ServiceTimes) -> Result<(), ProfileError> {
    let Some(list) = reader.find("histogram", Presence::Required)? else { return Ok(()) };
    for run in list.list()? {
        let figures = run.list()?;
        let [first, counts @ ..] = figures.as_slice() else {
            return run.refuse("a list of a first bin and of counts");
        };
        let first = first.int(1, i64::from(MOST_BINS))? as u32;
        let counts = counts.iter().map(|item| COUNT.read(item)).collect::<Result<_, _>>()?;
        times.runs.push(Run { first, counts });
    }
    Ok(())
}

/// Reads the list from a file.
pub(super) fn read(list: &Item<'_>, places: &mut Places) -> Result<Vec<ServiceTimes>, ProfileError> {
    let mut all = Vec::new();
    for (i, item) in list.list()?.iter().enumerate() {
        let mut times = SERVICE_TIMES.read(&item.table(&SERVICE_TIMES)?, &place(i, ""), places)?;
        if times.load.candidates == 0 {
            times.load.candidates = ServiceLoad::all_of(times.load.waiting, times.load.outstanding);
        }
        all.push(times);
    }
    Ok(all)
}
