//! Closed loop of model accesses and fills: how long does a scan take?
use headtime_disk::command::Kind;
use headtime_disk::mechanics::Head;
use headtime_disk::model::{Model, Place};
use headtime_disk::profile;
use headtime_disk::time::{Dur, Time};
use headtime_sched::fill::conservatism::Margins;
use headtime_sched::fill::gap::Gap;
use headtime_sched::fill::headtime::habit::Habit;
use headtime_sched::fill::headtime::visit::Asked;
use headtime_sched::fill::regions::Regions;
use headtime_sched::fill::headtime::{Planner, prices::Prices};
use headtime_sched::fill::placement::Placement;
use headtime_sched::overheads::between;
use headtime_sched::tasks::wanted::Wanted;
use headtime_sched::tasks::{Range, SessionId, Wants, Who};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

struct Bits { unit: u64, n: u64, words: Vec<u64>, left: u64 }
impl Bits {
    fn new(capacity: u64, unit: u64) -> Bits {
        let n = capacity / unit;
        let mut words = vec![u64::MAX; n.div_ceil(64) as usize];
        if n % 64 != 0 { *words.last_mut().unwrap() = (1u64 << (n % 64)) - 1; }
        Bits { unit, n, words, left: n }
    }
    fn get(&self, i: u64) -> bool { self.words[(i / 64) as usize] >> (i % 64) & 1 == 1 }
}
impl Wants for Bits {
    fn wanted(&self, _: Who, kind: Kind, out: &mut Wanted) {
        if !kind.is_read() { return }
        let (a, b) = (out.from().div_ceil(self.unit), (out.end() / self.unit).min(self.n));
        let mut i = a;
        while i < b {
            if self.get(i) {
                let mut j = i + 1;
                while j < b && self.get(j) { j += 1 }
                out.set(i * self.unit, j * self.unit);
                i = j;
            } else if self.words[(i / 64) as usize] >> (i % 64) == 0 { i = (i / 64 + 1) * 64 } else { i += 1 }
        }
    }
    fn any(&self, _: Who, kind: Kind) -> bool { kind.is_read() && self.left > 0 }
}

struct Counts { columns: u16, cells: u32, width: u32, by: Vec<u32> , band_left: Vec<u64>, band_all: Vec<u64>, shift: u32}
impl Counts {
    fn new(m: &Model, bits: &Bits, seek_first: bool, shift: u32) -> Counts {
        let g = &m.geometry;
        let (columns, width) = if seek_first { (g.surfaces(), u32::from(g.surfaces())) } else { (1, 1) };
        let cells = g.cylinders().div_ceil(width);
        let nb = ((g.cylinders() >> shift) + 1) as usize;
        let mut c = Counts { columns, cells, width, by: vec![0; columns as usize * cells as usize], band_left: vec![0; nb], band_all: vec![0; nb], shift };
        for i in 0..bits.n { let p = g.locate(i * bits.unit).unwrap(); let k = c.key(p.cylinder, p.surface); c.by[k] += 1; c.band_left[(p.cylinder >> shift) as usize] += 1; }
        c.band_all = c.band_left.clone();
        c
    }
    fn key(&self, cyl: u32, surface: u16) -> usize {
        let col = if self.columns > 1 { surface as usize } else { 0 };
        col * self.cells as usize + (cyl / self.width) as usize
    }
    fn take(&mut self, cyl: u32, surface: u16) { let k = self.key(cyl, surface); self.by[k] -= 1; self.band_left[(cyl >> self.shift) as usize] -= 1; }
}
struct Req { kind: Kind, place: Place }

fn arg<T: std::str::FromStr>(name: &str, default: T) -> T {
    std::env::args().find_map(|a| a.strip_prefix(&format!("{name}=")).and_then(|v| v.parse().ok())).unwrap_or(default)
}

fn main() {
    let disk: String = arg("disk", "atlas10k".to_string());
    let mut profile = profile::builtin(&disk).unwrap();
    let shrink: u32 = arg("shrink", 1);
    if shrink > 1 {
        // A piece of the drive: every zone narrower, seeks scaled, so that moves take as long.
        let mut next = 0;
        for z in &mut profile.geometry.zones {
            let w = (z.last_cylinder - z.first_cylinder + 1) / shrink;
            z.first_cylinder = next; z.last_cylinder = next + w - 1; next += w;
            if let profile::SpareUnit::Zone = z.sparing.unit { z.sparing.spares /= u64::from(shrink); }
            z.slips.clear(); z.defects.clear();
        }
        profile.geometry.cylinders = next;
        profile.geometry.remaps.clear();
        let full = profile.mechanics.seek.clone();
        // Far seeks stay far in time: distance d of the piece takes as long as d*shrink beyond 1000 cylinders
        let mut seek: Vec<(u32, Dur)> = vec![];
        for (d, t) in full { let d2 = if d <= 100 { d } else { 100 + (d - 100) / shrink }; if seek.last().is_none_or(|l| d2 > l.0) { seek.push((d2, t)); } }
        profile.mechanics.seek = seek;
    }
    let model = Model::new(&profile).unwrap();
    let seek_first = matches!(profile.geometry.layout, profile::Layout::SeekFirst { .. });
    let unit: u64 = arg("unit", 64);
    let margin: u64 = arg("margin", 300);
    let placement: String = arg("placement", "host".into());
    let placement = if placement == "host" { Placement::Host } else { Placement::Firmware };
    let margins = Margins::fixed(Dur::from_us(margin));
    let order: String = arg("order", "sptf".into());
    let seed: u64 = arg("seed", 1);
    let shift: u32 = arg("shift", 7);
    let gain: f64 = arg("gain", 0.0);
    let cap: f64 = arg("cap", 2.0);
    let small: u64 = arg("sectors", 0);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut bits = Bits::new(model.geometry.capacity(), unit);
    let mut counts = Counts::new(&model, &bits, seek_first, shift);
    let fill_with: String = arg("fill", "headtime".into());
    let policy = headtime_sched::fill::Algorithm::named(&fill_with).expect("an algorithm").policy();
    let budget: u64 = arg("budget", 200);
    let mut regions = Regions::new(&model.geometry, 8);
    regions.has_unit(unit as u32);
    regions.add(SessionId(0), &model.geometry, Range { lbn: 0, count: bits.n * unit });
    let mut planner = Planner::default();
    planner.settings.tracks = arg("tracks", planner.settings.tracks);
    planner.settings.beam = arg("beam", planner.settings.beam);
    planner.settings.second = arg("second", planner.settings.second);
    planner.settings.cuts = arg("cuts", planner.settings.cuts);
    planner.settings.slack_permille = arg("slack", planner.settings.slack_permille);
    let mut prices = Prices { bands: vec![256; counts.band_left.len()], shift, crossing: arg("cross", 768) };
    let block = (4096 / model.sector_bytes).max(1) as u64;
    let depth = arg("depth", 10usize);
    let new_req = |rng: &mut Xoshiro256PlusPlus| loop {
        let u = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let count = if small > 0 { small } else { block * ((-(1.0 - u).ln() * 8192.0 / 4096.0).ceil().clamp(1.0, 32.0) as u64) };
        let lbn = rng.next_u64() % (model.geometry.capacity() - count) / block * block;
        let kind = if rng.next_u64() % 3 == 0 { Kind::Write } else { Kind::Read };
        if let Some(place) = model.place(lbn, count as u32, kind) { break Req { kind, place } }
    };
    let mut pool: Vec<Req> = (0..depth).map(|_| new_req(&mut rng)).collect();
    let mut head = Head::default();
    let mut last = Kind::Read;
    let mut last_read: Option<(u32, u16)> = None;
    let total = bits.left;
    let (mut fg, mut searches, mut looked, mut legs, mut gaps, mut gap_ns, mut merged_n, mut bytes_window) = (0u64, 0u64, 0u64, 0u64, 0u64, 0u64, 0u64, 0u64);
    let mut search_ns = 0u128;
    let mut useful_ns = 0u64;
    let mut marks = vec![0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1.0].into_iter().peekable();
    let stop: f64 = arg("stop", 1.0);
    let wall = std::time::Instant::now();
    let mut fills = 0u64; let mut late = 0u64;
    let mut last_mark = (0u64, 0u64, 0u64);
    let fill: bool = arg("filling", true);
    let limit_fg: u64 = arg("requests", u64::MAX);
    while bits.left > 0 && fg < limit_fg {
        let begin = |kind: Kind, head: &Head| {
            let at = head.at + between(&model, last, kind);
            Head { angle: head.angle_at(at, &model.mechanics.rotation), at, ..*head }
        };
        // choose
        let i = match order.as_str() {
            "sstf" => (0..pool.len()).min_by_key(|&i| (pool[i].place.cylinder.abs_diff(head.cylinder), i)).unwrap(),
            "fcfs" => 0,
            _ => (0..pool.len()).min_by_key(|&i| { let r = &pool[i]; (model.access(&begin(r.kind, &head), &r.place, r.kind).positioning(), i) }).unwrap(),
        };
        let z = pool.remove(i);
        pool.push(new_req(&mut rng));
        let without = model.access(&begin(z.kind, &head), &z.place, z.kind).end.at;
        let mut place = z.place;
        let mut n = 0;
        let mut any = false;
        while fill {
            let heads = (begin_at(&model, &head, last, Kind::Read), begin_at(&model, &head, last, Kind::Write));
            let Some(gap) = Gap::before(&model, heads, &z.place, z.kind, Time::ZERO, &margins) else { break };
            if n == 0 { gaps += 1; gap_ns += gap.starts.since(gap.head(z.kind).at).0 }
            let habit = Habit::before(&model, placement, last_read);
            let asked = Asked { model: &model, gap: &gap, habit, wants: &bits, who: Who::Anyone, exclude: &[], prices: &prices };
            let t = std::time::Instant::now();
            let plan = if let Some(policy) = policy {
                use headtime_sched::fill::{candidate::Look, search::{Scene, Search}};
                let look = Look { model: &model, wants: &bits, gap: &gap, exclude: &[], rules: placement.rules(), by_angle: false, not_before: Time::ZERO };
                let scene = Scene { look, regions: &regions, winner: Who::Anyone };
                let mut search = Search::begin(policy, &scene);
                search.step(&scene, budget);
                looked += search.cost();
                search.best()
            } else {
                let found = planner.search(&asked, &regions);
                looked += u64::from(planner.looked_at);
                found.map(|f| f.plan)
            };
            search_ns += t.elapsed().as_nanos();
            searches += 1;
            let Some(plan) = plan else { break };
            any = true;
            let leg = plan.legs()[0];
            legs += 1;
            // take
            let covered = Range { lbn: leg.lbn, count: u64::from(leg.count) + if leg.merged { u64::from(z.place.count) } else { 0 } };
            let end = leg.range().end() + if leg.merged { u64::from(z.place.count) } else { 0 };
            for u in leg.lbn.div_ceil(unit)..end / unit {
                if u < bits.n && bits.get(u) {
                    bits.words[(u / 64) as usize] &= !(1 << (u % 64));
                    bits.left -= 1;
                    let p = model.geometry.locate(u * unit).unwrap();
                    useful_ns += unit * model.mechanics.rotation.sector_fx(p.spt) >> 32;
                    bytes_window += unit * u64::from(model.sector_bytes);
                    counts.take(p.cylinder, p.surface);
                }
            }
            regions.recheck(SessionId(0), &model.geometry, &bits, covered);
            if leg.merged {
                merged_n += 1;
                place = model.place(leg.lbn, leg.count + z.place.count, z.kind).unwrap();
                break;
            }
            let p = model.place(leg.lbn, leg.count, leg.kind).unwrap();
            let a = model.access(&begin_at(&model, &head, last, leg.kind), &p, leg.kind);
            let on = habit.reads_on(&model, leg.kind, &p, &a.end);
            let at = a.end.at + on;
            head = Head { angle: a.end.angle_at(at, &model.mechanics.rotation), at, ..a.end };
            last_read = leg.kind.is_read().then_some((a.end.cylinder, a.end.surface));
            last = leg.kind;
            n += 1;
            if n > 8 { break }
        }
        fills += u64::from(any);
        let a = model.access(&begin_at(&model, &head, last, z.kind), &place, z.kind);
        if fill && a.end.at > without + Dur(2000) { late += 1; }
        let habit = Habit::before(&model, placement, last_read);
        let on = habit.reads_on(&model, z.kind, &place, &a.end);
        let at = a.end.at + on;
        head = Head { angle: a.end.angle_at(at, &model.mechanics.rotation), at, ..a.end };
        last_read = z.kind.is_read().then_some((a.end.cylinder, a.end.surface));
        last = z.kind;
        fg += 1;
        if gain > 0.0 && fg % 256 == 0 {
            let mean = bits.left as f64 / total as f64;
            for (b, p) in prices.bands.iter_mut().enumerate() {
                if counts.band_all[b] == 0 { continue }
                let share = counts.band_left[b] as f64 / counts.band_all[b] as f64;
                *p = (256.0 * (share / mean).powf(gain).clamp(1.0 / cap, cap)) as u32;
            }
        }
        let done = 1.0 - bits.left as f64 / total as f64;
        while marks.peek().is_some_and(|&m| done >= m) {
            let m = marks.next().unwrap();
            let s = head.at.as_secs_f64();
            let (dt, db, df) = (head.at.0 - last_mark.0, bytes_window - last_mark.1, fg - last_mark.2);
            last_mark = (head.at.0, bytes_window, fg);
            println!("{:6.1}% at {s:9.1} s  {:5.2} MB/s now  {:.0} req/s  {:.2} us/search looked {:.1}", m * 100.0, db as f64 / dt as f64 * 1e3, df as f64 / dt as f64 * 1e9, search_ns as f64 / searches as f64 / 1e3, looked as f64 / searches as f64);
            search_ns = 0; searches = 0; looked = 0;
            if m >= stop && arg("leftover", false) {
                for u in (0..bits.n).filter(|&u| bits.get(u)).take(24) {
                    let p = model.place(u * unit, unit as u32, Kind::Read).unwrap();
                    println!("left unit {u} at {}/{} tracks {} needs {:.3} ms of which media {:.3}, turn {:.3}", p.cylinder, p.surface, p.tracks, p.transfer.as_ms_f64(), p.media.as_ms_f64(), model.mechanics.rotation.period().as_ms_f64());
                }
            }
            if m >= stop { return done_print(&model, head.at, fg, gaps, gap_ns, useful_ns, legs, merged_n, fills, late, bytes_window, wall) }
        }
    }
    done_print(&model, head.at, fg, gaps, gap_ns, useful_ns, legs, merged_n, fills, late, bytes_window, wall);
}

#[allow(clippy::too_many_arguments)]
fn done_print(_m: &Model, at: Time, fg: u64, gaps: u64, gap_ns: u64, useful: u64, legs: u64, merged: u64, fills: u64, late: u64, bytes: u64, wall: std::time::Instant) {
    println!("TOTAL {:.1} s, {:.2} MB/s, {:.1} req/s, gap (incl. seek) {:.2} ms, useful share of all time {:.3}, legs/gap {:.2} merged {:.2} filled {:.2} late {late} wall {:.1}", at.as_secs_f64(), bytes as f64 / at.0 as f64 * 1e3, fg as f64 / at.as_secs_f64(), gap_ns as f64 / gaps.max(1) as f64 / 1e6, useful as f64 / at.0 as f64, legs as f64 / gaps.max(1) as f64, merged as f64 / gaps.max(1) as f64, fills as f64 / fg.max(1) as f64, wall.elapsed().as_secs_f64());
}

fn begin_at(model: &Model, head: &Head, last: Kind, kind: Kind) -> Head {
    let at = head.at + between(model, last, kind);
    Head { angle: head.angle_at(at, &model.mechanics.rotation), at, ..*head }
}
