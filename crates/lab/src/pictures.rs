//! The pictures of docs/freeblock.md, drawn from the model and from simulated runs. After an
//! intended change, run this with `HEADTIME_BLESS=1`.

use headtime_disk::profile::{self, Profile};
use headtime_disk::{Access, Dur, Head, Kind, Model, Place, Time};
use headtime_plot::{Axis, Lane, Panel, Series, Span, Style, Timeline, XyChart};
use headtime_sched::{Algorithm, FillConfig, Order, TaskEvent};
use headtime_sim::background::Jobs;
use headtime_sim::observe::Observer;
use headtime_sim::run::Limits;
use headtime_sim::simulate::{Setup, Simulation};
use headtime_sim::workload::{Population, oltp};

use headtime_sim::scaled_drives::narrowed;

/// Compares a picture with the one in docs, or replaces that.
fn is_in_docs(name: &str, drawn: &str) {
    let path = format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("HEADTIME_BLESS").is_some() {
        std::fs::write(&path, drawn).unwrap();
    }
    let same = std::fs::read_to_string(&path).is_ok_and(|there| there == drawn);
    assert!(same, "docs/{name} is another picture; if the change is meant, HEADTIME_BLESS=1");
}

fn atlas() -> Profile {
    profile::builtin("atlas10k").unwrap()
}

/// A request of 4 KiB on cylinder 5,100, after one on cylinder 5,000: a seek of 100 cylinders, and
/// a wait of more than half a revolution.
struct Gap {
    model: Model,
    source: Head,
    request: Place,
    alone: Access,
}

/// Sectors of a free block at a time, 8 KiB.
const UNIT: u32 = 16;

impl Gap {
    fn new() -> Gap {
        let model = Model::new(&atlas()).unwrap();
        let first = |cylinder| model.geometry.track(cylinder, 2).unwrap();
        let place = |lbn, count| model.place(lbn, count, Kind::Read).unwrap();
        let source = place(first(5_000).first_lbn, 8);
        let at =
            |p: &Place| Head { cylinder: p.end_cylinder, surface: p.end_surface, angle: p.end_angle, at: Time::ZERO };
        let source = at(&source);
        let track = first(5_100);
        // The sector for which the head waits nearly four milliseconds.
        let request = (0..track.lbns - 8)
            .map(|i| place(track.first_lbn + u64::from(i), 8))
            .min_by_key(|p| model.access(&source, p, Kind::Read).latency.0.abs_diff(3_900_000));
        let request = request.unwrap();
        let alone = model.access(&source, &request, Kind::Read);
        Gap { model, source, request, alone }
    }

    /// The most sectors of a track that can be read in the gap, in whole units, as one command.
    fn best_on(&self, cylinder: u32, surface: u16) -> Option<(Access, Place)> {
        let track = self.model.geometry.track(cylinder, surface)?;
        let mut best: Option<(Access, Place)> = None;
        for first in (0..track.lbns).step_by(UNIT as usize) {
            // Longer ones fit at fewer places.
            let mut count = best.map_or(UNIT, |(_, p)| p.count + UNIT);
            while first + count <= track.lbns {
                let Some(found) = self.fits(track.first_lbn + u64::from(first), count) else { break };
                best = Some(found);
                count += UNIT;
            }
        }
        best
    }

    fn fits(&self, lbn: u64, count: u32) -> Option<(Access, Place)> {
        let place = self.model.place(lbn, count, Kind::Read)?;
        let free = self.model.access_in_order(&self.source, &place, Kind::Read);
        let then = self.model.access(&free.end, &self.request, Kind::Read);
        // Angles are finer than nanoseconds.
        (then.end.at.0.abs_diff(self.alone.end.at.0) < 1_000).then_some((free, place))
    }

    /// The longest that the head can stay on a cylinder: the gap less the two moves.
    fn bound(&self, cylinder: u32) -> Option<Dur> {
        let move_time = |from, to| self.model.mechanics.reposition(from, to, Kind::Read);
        let from = move_time((self.source.cylinder, self.source.surface), (cylinder, 2));
        let to = move_time((cylinder, 2), (self.request.cylinder, self.request.surface));
        self.alone.positioning().0.checked_sub(from.0 + to.0).map(Dur)
    }
}

/// Kinds of spans of the first picture.
const MOVES: usize = 0;
const WAITS: usize = 1;
const READS: usize = 2;
const FREE: usize = 3;

fn spans(from: Time, a: &Access, kind: usize) -> Vec<Span> {
    let ms = |t: Time| t.since(Time::ZERO).0 as f64 / 1e6;
    let parts = [(a.seek, MOVES, "arm moves"), (a.latency, WAITS, "waits"), (a.transfer, kind, "reads")];
    let mut at = from;
    let mut all = Vec::new();
    for (lasts, kind, what) in parts {
        let hint = format!("{what}, {:.2} ms", lasts.0 as f64 / 1e6);
        all.push(Span { from: ms(at), to: ms(at + lasts), kind, hint });
        at += lasts;
    }
    all
}

#[test]
fn a_gap_and_what_fits_into_it() {
    let gap = Gap::new();
    let surfaces = gap.model.geometry.surfaces();
    let all = (4_700..5_400).flat_map(|c| (0..surfaces).map(move |s| (c, s)));
    let found: Vec<(u32, u16, Access, Place)> =
        all.filter_map(|(c, s)| gap.best_on(c, s).map(|(a, p)| (c, s, a, p))).collect();
    let most = |which: &dyn Fn(u32, u16) -> bool| {
        *found.iter().filter(|f| which(f.0, f.1)).max_by_key(|f| f.3.count).expect("the gap is long enough")
    };
    // The most on a third cylinder; and the most on the request's own track, without a second move.
    let third = most(&|c, _| c != gap.source.cylinder && c != gap.request.cylinder);
    let own = most(&|c, s| (c, s) == (gap.request.cylinder, gap.request.surface));
    let lane = |label: String, note: String, spans| Lane { label, note, spans };
    let with = |f: &(u32, u16, Access, Place)| {
        let then = gap.model.access(&f.2.end, &gap.request, Kind::Read);
        [spans(Time::ZERO, &f.2, FREE), spans(f.2.end.at, &then, READS)].concat()
    };
    let kib = |f: &(u32, u16, Access, Place)| format!("{} KiB free", f.3.count / 2);
    let end = gap.alone.end.at.since(Time::ZERO).0 as f64 / 1e6;
    let picture = Timeline {
        title: "One gap: the same request, at the same time, with and without free blocks before it".into(),
        subtitle: format!(
            "Atlas 10K, head free at cylinder {}, request of 4 KiB at cylinder {}: of {end:.2} ms, {:.2} are latency.",
            gap.source.cylinder,
            gap.request.cylinder,
            gap.alone.latency.0 as f64 / 1e6
        ),
        kinds: [("arm moves", false), ("waits", true), ("reads the request", false), ("reads free blocks", false)]
            .map(|(name, thin)| (name.into(), thin))
            .to_vec(),
        panels: vec![Panel {
            title: "the head".into(),
            axis: Axis::range("ms since the head was free", 0.0, (end * 10.0).ceil() / 10.0),
            lane_height: 26.0,
            lanes: vec![
                lane("alone".into(), String::new(), spans(Time::ZERO, &gap.alone, READS)),
                lane("on its track".into(), kib(&own), with(&own)),
                lane(format!("by cylinder {}", third.0), kib(&third), with(&third)),
            ],
        }],
    };
    assert!(own.3.count > UNIT && third.3.count > UNIT, "{} {}", own.3.count, third.3.count);
    is_in_docs("gap.svg", &picture.to_svg());

    let mut best = std::collections::BTreeMap::new();
    for (cylinder, _, _, place) in &found {
        let most = best.entry(*cylinder).or_insert(0);
        *most = place.count.max(*most);
    }
    let window = |cylinder: u32| {
        let track = gap.model.geometry.track(cylinder, 2).unwrap();
        let turn = gap.model.mechanics.rotation.period().0 as f64;
        gap.bound(cylinder).map(|d| d.0 as f64 / turn * f64::from(track.spt) / 2.0)
    };
    let cylinders = 4_700..5_400u32;
    let bound: Vec<(f64, f64)> = cylinders.clone().filter_map(|c| window(c).map(|kib| (f64::from(c), kib))).collect();
    let fits = cylinders.map(|c| (f64::from(c), f64::from(best.get(&c).copied().unwrap_or(0)) / 2.0)).collect();
    assert!(bound.len() > 100 && bound.len() < 700, "the reach ends within the picture");
    let picture = XyChart {
        title: "The same gap by cylinder: how long the head could stay, and what it would read".into(),
        subtitle: "All blocks are wanted. The bound is the gap less the moves there and on, in KiB of the track; the \
                   rest is waiting for a block's first sector."
            .into(),
        x: Axis::range("cylinder", 4_700.0, 5_400.0),
        y: Axis::from_zero("KiB"),
        series: vec![
            Series { name: "bound".into(), style: Style::Line, points: bound },
            Series { name: "the most on one of its tracks".into(), style: Style::Line, points: fits },
        ],
    };
    is_in_docs("search.svg", &picture.to_svg());
}

/// The time at which each sector was brought.
#[derive(Default)]
struct Brought(Vec<(Time, u64)>);

impl Observer for Brought {
    fn background(&mut self, event: &TaskEvent, now: Time) {
        if let TaskEvent::Delivered { range, .. } = event {
            self.0.push((now, range.count));
        }
    }
}

/// The share of the disk read over time, in percent at each second.
fn scanned(order: Order) -> Vec<(f64, f64)> {
    // One cylinder in sixteen, over the same stroke: seeks are as long as on the whole drive.
    let profile = narrowed(&atlas(), 16).unwrap();
    let fill = FillConfig::new(Algorithm::Headtime);
    let setup = Setup::new(&profile, order, 1).filled(fill);
    let simulation = Simulation::new(&setup).unwrap();
    let capacity = simulation.target().capacity;
    let mut load = Population::of(&oltp(), simulation.target(), 1).unwrap();
    let (mut jobs, mut brought) = (Jobs::scan(capacity, 8), Brought::default());
    let limits = Limits { until: Some(Time::ZERO + Dur::from_secs(600)), until_scanned: true, ..Limits::default() };
    simulation.run_with(&mut load, &mut jobs, limits, None, &mut brought).unwrap();
    let (mut read, mut points, mut second) = (0, vec![(0.0, 0.0)], 1);
    for (at, sectors) in brought.0 {
        while at >= Time::ZERO + Dur::from_secs(second) {
            points.push((second as f64, 100.0 * read as f64 / capacity as f64));
            second += 1;
        }
        read += sectors;
    }
    assert_eq!(read, capacity, "the scan is complete");
    points.push((second as f64, 100.0));
    points
}

#[test]
fn a_scan_and_its_tail() {
    let named = [("sptf", Order::Sptf), ("sptf-joint", Order::SptfJoint)];
    let lines = named.map(|(name, order)| (name, scanned(order)));
    let last = |line: &[(f64, f64)]| line[line.len() - 1].0;
    let until = |line: &[(f64, f64)], percent| line.iter().find(|p| p.1 >= percent).expect("it is complete").0;
    for (name, line) in &lines {
        assert!(last(line) > 3.0 * until(line, 50.0), "{name}: the second half takes longer");
    }
    let [sptf, joint] = lines.each_ref().map(|(_, line)| last(line));
    assert!(joint < sptf, "{joint} {sptf}");
    let series = |(name, points): &(&str, Vec<(f64, f64)>)| Series {
        name: (*name).into(),
        style: Style::Line,
        points: points.iter().map(|(at, percent)| (*at, 100.0 - percent)).filter(|p| p.1 > 0.0).collect(),
    };
    let picture = XyChart {
        title: "A scan beside a busy foreground, and its tail".into(),
        subtitle: format!(
            "Atlas 10K with a sixteenth of its cylinders, oltp: half read in {:.0} and {:.0} s, 99% in {:.0} and \
             {:.0} s, all in {sptf:.0} and {joint:.0} s.",
            until(&lines[0].1, 50.0),
            until(&lines[1].1, 50.0),
            until(&lines[0].1, 99.0),
            until(&lines[1].1, 99.0)
        ),
        x: Axis::from_zero("virtual time, s"),
        y: Axis::log("left to read, % of the disk"),
        series: lines.iter().map(series).collect(),
    };
    is_in_docs("tail.svg", &picture.to_svg());
}
