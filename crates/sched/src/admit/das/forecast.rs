//! Throughput of best effort beside a set of streams: a simulation of the active subset on a drive
//! that consists only of the service times of X.
//!
//! The time left by streams is not determined by their shares. Best effort waits if a stream's
//! reservation, or a worst case, does not fit behind it, and the drive is idle during that time;
//! and with the streams' requests it has more candidates and so shorter service times. So the
//! actual eligibility rules ([`super::subset`]) are run: streams that submit all declared requests
//! at the start of their periods, best effort that is always backlogged, and service times drawn
//! from X for the number of candidates at each decision, as under a load that keeps that number
//! waiting.

use std::collections::VecDeque;

use headtime_disk::{Dur, Time};

use super::disk::{Disk, Service};
use super::distribution::Distribution;
use super::stream::{Kinds, Stream};
use super::subset::charge::{STEP, mixed};
use super::subset::{Exhausted, Member, Rules, Sent, Subset};
use super::verdict::Admitted;

/// Length in commands, or in periods of the stream with the longest, whichever ends later.
pub(super) const WHOLE: Length = Length { commands: 20_000, periods: 20 };
/// The same for a short forecast, which may be a few percent off.
pub(super) const GLANCE: Length = Length { commands: 2_000, periods: 5 };
/// Maximum number of commands.
const MAX_COMMANDS: u64 = 200_000;
/// Above this number of streams a decision takes longer, and periods differ less from each other:
/// fewer commands and periods suffice.
const MANY_STREAMS: u64 = 50;

/// Length of a forecast.
#[derive(Clone, Copy, Debug)]
pub(super) struct Length {
    commands: u64,
    periods: u64,
}

/// A best-effort load that is always backlogged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BestEffort {
    /// Number of waiting requests, including those in flight.
    pub waiting: u32,
    /// Sectors of each.
    pub sectors: u32,
    /// Their kinds.
    pub kinds: Kinds,
}

/// Result of a forecast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forecast {
    /// Best-effort requests completed in a thousand seconds.
    pub per_1000_s: u64,
    /// Share of the drive's time for best effort, in parts per million.
    pub best_effort_ppm: u64,
    /// Share for streams; the drive is idle for the rest.
    pub streams_ppm: u64,
}

/// Number of waiting requests under which a profile's X is measured by default (`headtime profiles
/// measure --waiting`).
pub const USUAL_WAITING: u32 = 8;

impl BestEffort {
    /// Returns the default load of a drive: of the largest measured size, and reads unless only
    /// others were measured.
    pub fn usual(disk: &Disk) -> BestEffort {
        let sectors = disk.largest().sectors;
        let known = |kinds: &Kinds| disk.service_for(*kinds, sectors).is_ok();
        let kinds = [Kinds::Reads, Kinds::Any, Kinds::Writes].into_iter().find(known).unwrap_or_default();
        BestEffort { waiting: USUAL_WAITING, sectors, kinds }
    }
}

/// Forecasts the throughput of `best_effort` beside `streams`, admitted as `admitted`; `None`: the
/// service times of its requests, or of a stream's, are not known.
pub fn forecast(
    disk: &Disk,
    streams: &[Stream],
    admitted: &Admitted,
    exhausted: Exhausted,
    best_effort: BestEffort,
) -> Option<Forecast> {
    over(WHOLE, disk, streams, admitted, exhausted, best_effort)
}

/// The same with a run of this length.
pub(super) fn over(
    length: Length,
    disk: &Disk,
    streams: &[Stream],
    admitted: &Admitted,
    exhausted: Exhausted,
    best_effort: BestEffort,
) -> Option<Forecast> {
    let own = disk.service_for(best_effort.kinds, best_effort.sectors).ok()?;
    let rules = Rules {
        outstanding: disk.outstanding(),
        best_effort: own.worst,
        blocker: disk.blocker(),
        exhausted,
        compensates: true,
        crossing: disk.largest().worst,
        crossing_likely: disk.largest().likely(),
        moves_on: disk.moves_on,
    };
    let mut running = Running {
        subset: Subset::new(rules),
        streams: Vec::new(),
        gives_up: exhausted == Exhausted::Skip,
        drive: VecDeque::new(),
        waiting: best_effort.waiting,
        own: Drawn::of(own),
        rng: SplitMix(1),
        now: Time::ZERO,
        busy: [Dur::ZERO; 2],
        done: [0; 2],
    };
    running.subset.set_crossing(admitted.crossing);
    for (number, (&stream, &reservation)) in streams.iter().zip(&admitted.reservations).enumerate() {
        let service = disk.service_of(&stream).ok()?;
        let next = running.subset.open(number as u32, stream, service, reservation, Time::ZERO).ok()?;
        // Reads are the most common requests of a stream that may have either.
        let reads = disk.service_for(Kinds::Reads, stream.sectors);
        let usual = if stream.kinds == Kinds::Any { reads.unwrap_or(service) } else { service };
        running.streams.push(Asking { stream, next, times: Drawn::of(usual) });
    }
    Some(running.run(length, rules.outstanding as usize))
}

/// X of one size, prepared for drawing.
struct Drawn {
    worst: Dur,
    /// Additional time of a command to an idle drive: overhead that otherwise overlaps the service
    /// of another.
    idle: Dur,
    /// Numbers of candidates, ascending, each with its bins and cumulative mass.
    members: Vec<(u32, Vec<(u64, Dur)>)>,
    /// The mean for the largest measured number of candidates, and for half as many or slightly
    /// fewer: each doubling beyond shortens times by that ratio. `None`: no such number was
    /// measured.
    doubled: Option<(Dur, Dur)>,
}

impl Drawn {
    fn of(service: &Service) -> Drawn {
        let member = |(candidates, times): (u32, &Distribution)| {
            let mut upto = 0;
            let bins = times.masses().filter(|m| m.1 > 0).map(|(bin, mass)| {
                upto += mass;
                // A bin has the times from the previous bin's up to its own: its middle is their
                // mean.
                (upto, Dur(bin as u64 * times.bin().0).saturating_sub(Dur(times.bin().0 / 2)))
            });
            (candidates, bins.collect())
        };
        let family = service.steady.as_ref().unwrap_or(&service.times);
        let idle = service.times.fewest().mean().saturating_sub(family.fewest().mean());
        let most = family.members().next_back().map_or(0, |m| m.0);
        let half = family.members().rev().find(|m| (most / 4 + 1..=most / 2).contains(&m.0));
        let doubled = half.map(|half| (family.most().mean(), half.1.mean()));
        Drawn { worst: service.worst, idle, members: family.members().map(member).collect(), doubled }
    }

    fn draw(&self, candidates: u32, rng: &mut SplitMix) -> Dur {
        let behind = self.members.partition_point(|m| m.0 <= candidates.max(1));
        let mut bins = &self.members[behind - 1].1;
        // Between two measured numbers, one or the other, the nearer with higher probability.
        if let Some((more, of_more)) = self.members.get(behind) {
            let less = self.members[behind - 1].0;
            if rng.next() % u64::from(more - less) < u64::from(candidates.max(1) - less) {
                bins = of_more;
            }
        }
        let Some(&(all, longest)) = bins.last() else { return self.worst };
        let at = rng.next() % all.max(1);
        let takes = bins.get(bins.partition_point(|b| b.0 <= at)).map_or(longest, |b| b.1);
        if behind < self.members.len() { takes } else { self.shortened(takes, candidates) }
    }

    /// Returns a time for this number of candidates from one for the largest measured number. Each
    /// doubling is assumed to shorten times by the last measured ratio, but never below the
    /// shortest.
    fn shortened(&self, mut takes: Dur, candidates: u32) -> Dur {
        let (most, bins) = &self.members[self.members.len() - 1];
        let Some((mean, of_half)) = self.doubled.filter(|d| d.0 < d.1) else { return takes };
        let shortest = bins.first().map_or(Dur::ZERO, |b| b.1);
        let once = |t: Dur| Dur((u128::from(t.0) * u128::from(mean.0) / u128::from(of_half.0)) as u64);
        let mut measured = *most;
        while candidates / 2 >= measured {
            (takes, measured) = (once(takes), 2 * measured);
        }
        let part = u64::from(candidates.saturating_sub(measured));
        (takes - Dur((takes - once(takes)).0 * part / u64::from(measured))).max(shortest)
    }
}

/// A small pseudorandom generator.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mixed(self.0)
    }
}

struct Asking {
    stream: Stream,
    next: Time,
    times: Drawn,
}

struct Running {
    subset: Subset,
    streams: Vec<Asking>,
    /// Whether late requests of optional streams expire.
    gives_up: bool,
    /// Commands in flight in order: command, end, and whether it is best effort.
    drive: VecDeque<(u64, Time, bool)>,
    /// Number of best-effort requests not in flight.
    waiting: u32,
    own: Drawn,
    rng: SplitMix,
    now: Time,
    /// Time of the drive for best effort and for streams, and number of completed commands of each.
    busy: [Dur; 2],
    done: [u64; 2],
}

impl Running {
    fn run(mut self, length: Length, outstanding: usize) -> Forecast {
        let longest = self.streams.iter().map(|s| s.stream.period).max().unwrap_or(Dur::ZERO);
        let more = 1 + self.streams.len() as u64 / MANY_STREAMS;
        let until = Time(longest.0 * (length.periods / more).max(2));
        let commands = length.commands / more;
        let mut command = 0;
        while command < MAX_COMMANDS && (command < commands || self.now < until) {
            while self.drive.len() < outstanding && self.send(&mut command) {}
            let asks = self.streams.iter().map(|s| s.next).min();
            let next = [asks, self.drive.front().map(|c| c.1), self.subset.next_wakeup()];
            let Some(next) = next.into_iter().flatten().min() else { break };
            self.now = next.max(self.now);
            self.subset.tick(self.now);
            self.complete();
            self.ask();
        }
        let ppm = |busy: Dur| (u128::from(busy.0) * 1_000_000 / u128::from(self.now.0.max(1))) as u64;
        Forecast {
            per_1000_s: (u128::from(self.done[0]) * 1_000_000_000_000 / u128::from(self.now.0.max(1))) as u64,
            best_effort_ppm: ppm(self.busy[0]).min(1_000_000),
            streams_ppm: ppm(self.busy[1]),
        }
    }

    fn complete(&mut self) {
        while let Some(&(command, _, best_effort)) = self.drive.front().filter(|c| c.1 <= self.now) {
            self.drive.pop_front();
            self.subset.completed(command, self.now);
            self.waiting += u32::from(best_effort);
            self.done[usize::from(!best_effort)] += 1;
        }
        self.subset.events().for_each(drop);
    }

    /// Submits all of a period's requests when it begins. Late requests expire if that is the rule;
    /// else they wait to be served as best effort.
    fn ask(&mut self) {
        for (number, s) in self.streams.iter_mut().enumerate().filter(|s| s.1.next <= self.now) {
            while let Some(late) = self.subset.late_of(number as u32).filter(|_| self.gives_up) {
                self.subset.give_up(late, true);
            }
            for _ in 0..s.stream.requests {
                let member = self.subset.submit(number as u32, self.now);
                self.subset.ready(member);
            }
            s.next = s.stream.period_start(self.now) + s.stream.period;
        }
    }

    /// Makes one decision; returns whether a command was sent. Each eligible request is equally
    /// likely to be the nearest.
    fn send(&mut self, command: &mut u64) -> bool {
        let active = self.subset.decide_for(self.own.worst, self.now).clone();
        let best_effort = if active.best_effort { self.waiting } else { 0 };
        let counted: Vec<(Member, u32)> =
            active.members.iter().map(|&m| (m, self.subset.waiting_of(m).max(1))).collect();
        let all = best_effort + counted.iter().map(|c| c.1).sum::<u32>();
        if all == 0 {
            return false;
        }
        let mut at = (self.rng.next() % u64::from(all)) as u32;
        let chosen = counted.iter().find(|c| {
            let here = at < c.1;
            at = at.saturating_sub(c.1);
            here
        });
        let chosen = chosen.map(|c| c.0);
        let times = chosen.map_or(&self.own, |m| &self.streams[m.stream as usize].times);
        let mut takes = times.draw(all, &mut self.rng);
        if self.drive.is_empty() {
            takes += times.idle;
        }
        *command += 1;
        let what = chosen.map_or(Sent::BestEffort, Sent::Stream);
        self.subset.sent(*command, what, self.own.worst, self.now);
        self.waiting -= u32::from(chosen.is_none());
        self.busy[usize::from(chosen.is_some())] += takes;
        let begins = self.drive.back().map_or(self.now, |c| c.1.max(self.now));
        self.drive.push_back((*command, begins + takes, chosen.is_none()));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::admission::admit;
    use super::super::family::Family;
    use super::super::stream::Quality;
    use super::*;

    /// Requests of 5 ms with a worst case of 30.
    fn disk() -> Disk {
        let times =
            Distribution::from_samples(&[Dur::from_ms(5)], Dur::from_us(10), Dur::from_ms(30)).expect("a sample");
        let service = Service::new(128, Dur::from_ms(30), times);
        Disk::new(vec![service], 2).expect("a drive")
    }

    fn beside(streams: &[Stream]) -> Forecast {
        let disk = disk();
        let admitted = admit(&disk, streams).expect("admitted");
        let best_effort = BestEffort { waiting: 8, sectors: 128, kinds: Kinds::Any };
        forecast(&disk, streams, &admitted, Exhausted::AsBestEffort, best_effort).expect("known")
    }

    fn stream(requests: u32, ms: u64, ppm: u32) -> Stream {
        let quality = Quality::from_ppm(ppm).expect("a quality");
        Stream::new(requests, Dur::from_ms(ms), quality, 128).expect("a stream")
    }

    #[test]
    fn alone_best_effort_has_all_of_the_drive() {
        let alone = beside(&[]);
        // 5 ms are in a bin of 10 us that ends there.
        assert!((200_000..=200_300).contains(&alone.per_1000_s), "{alone:?}");
        assert!(alone.best_effort_ppm > 999_000 && alone.streams_ppm == 0);
    }

    #[test]
    fn beyond_what_was_measured_times_go_on_to_shrink() {
        let bin = Dur::from_us(10);
        let of = |n: u32, ms: u64| {
            let samples = [Dur::from_ms(ms), Dur::from_ms(2 * ms)];
            (n, Distribution::from_samples(&samples, bin, Dur::from_ms(30)).expect("samples"))
        };
        let mut service = Service::new(128, Dur::from_ms(30), of(1, 10).1);
        let mean = |service: &Service, candidates: u32| {
            let (drawn, mut rng) = (Drawn::of(service), SplitMix(1));
            let all: Dur = (0..20_000).map(|_| drawn.draw(candidates, &mut rng)).sum();
            all.0 / 20_000 / 100_000
        };
        // In tenths of a ms. One measured number of candidates alone gives no ratio.
        assert_eq!([1, 2, 100].map(|n| mean(&service, n)), [149, 149, 149]);
        // Nor if the other is w, which stands for one candidate in profiles with times of one
        // number only.
        service.times = Family::new(vec![of(1, 15), of(7, 10)]).expect("a family");
        assert_eq!([7, 100].map(|n| mean(&service, n)), [149, 149]);
        service.times = Family::new(vec![of(1, 10), of(32, 8), of(64, 6)]).expect("a family");
        // From 32 to 64 they shrink to three quarters, 12 to 9 ms; likewise to 128, but no time is
        // below the shortest.
        let [measured, half_way, doubled, far] = [64, 96, 128, 10_000].map(|n| mean(&service, n));
        assert!((88..=90).contains(&measured) && (81..=83).contains(&half_way), "{measured} {half_way}");
        assert!((74..=76).contains(&doubled) && (59..=60).contains(&far), "{doubled} {far}");
    }

    #[test]
    fn a_worst_case_that_hardly_fits_leaves_the_drive_idle() {
        // One request in each 35 ms: only one of best effort fits behind it.
        let beside = beside(&[stream(1, 35, 1_000_000)]);
        assert!(beside.streams_ppm > 140_000 && beside.best_effort_ppm + beside.streams_ppm < 700_000, "{beside:?}");
    }

    /// Late requests expire, or wait as best effort and complete later.
    #[test]
    fn requests_beyond_a_reservation_take_from_best_effort_where_they_wait_on() {
        let disk = disk();
        let streams = [stream(60, 200, 100_000)];
        let admitted = admit(&disk, &streams).expect("a tenth");
        let best_effort = BestEffort { waiting: 8, sectors: 128, kinds: Kinds::Any };
        let rules = [Exhausted::Skip, Exhausted::AsBestEffort, Exhausted::BeforeBestEffort];
        let found = rules.map(|rule| forecast(&disk, &streams, &admitted, rule, best_effort).expect("known"));
        let [skip, beside, before] = found.map(|f| f.per_1000_s);
        // If late requests always expired, the last two would have 35,677 and 9,960.
        assert!(skip > 150_000 && beside < 33_000 && before < 8_800, "{skip}, {beside}, {before}");
    }

    #[test]
    fn an_optional_stream_costs_no_more_than_a_mandatory_one() {
        for ms in [35, 45, 55, 60, 100, 500] {
            let [optional, mandatory] = [500_000, 1_000_000].map(|ppm| beside(&[stream(1, ms, ppm)]));
            // The end of a run makes a difference of a request or two.
            assert!(
                optional.per_1000_s * 1_001 >= mandatory.per_1000_s * 1_000,
                "{ms}: {optional:?} and {mandatory:?}"
            );
        }
        // Without room for a worst case in its period an optional stream does not hold back best
        // effort.
        let short = beside(&[stream(1, 25, 500_000)]);
        assert!(short.best_effort_ppm > 700_000, "{short:?}");
    }
}
