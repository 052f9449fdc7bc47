//! Admission: whether a set of streams can be had, with the numbers (Reuther and Pohlack 2003, sections 2 and 3.1).
//!
//! # Mandatory streams: condition 2
//!
//! > sum of c_i w_i / t_i <= 1
//!
//! with the worst case of each stream's own request size. With one period for all that is the paper's condition. With several it
//! is enough, too, because [`super::subset`] looks at the deadlines of all of them: taking the demand of a stream behind the end of its period as
//! growing evenly by c w in each t is never too little, since it is released in steps that the line touches from below. If all
//! are released at once, what must be done by the end of the period of stream i is then t_i times U_i, the sum over the streams with
//! shorter periods or the same, which is t_i at most.
//!
//! But a command that was begun is not taken back, so with several periods one thing more is needed: that a request of a longer period finds
//! room between those of the shorter ones,
//!
//! > t_i (1 - U_i) >= w_k   for all streams k with t_k > t_i
//!
//! Then the disk is never idle while a mandatory request waits. Let k be the stream with the earliest deadline of those that wait,
//! and d an earlier deadline of streams that wait for nothing, whose next periods begin now or later. With m the longest period of these, d is
//! at least t_m away, and the slack there at least t_m (1 - U), U being theirs alone. If t_m < t_k that is w_k by the condition; else U_k is not
//! in it, and t_m U_k is c_k w_k at least.
//!
//! # Optional streams: condition 3
//!
//! [`super::reserve`] has the maths of one of them. Here is what V is, the time for which others keep the drive busy in a
//! period of stream i, in the worst order: everybody else first. It is the sum, as of independent times, of
//!
//! * `c_j n_ij` requests of each mandatory stream j, at their real times X, not their worst ones (section 2: so optional streams
//!   may be admitted although mandatory ones fill the period by their worst cases),
//! * `n_ij` times what each other optional stream takes with its reservation, the last request's overrun included,
//! * what is still at the drive when the period begins: a request that was begun with a chance x to be done by then takes no longer
//!   beyond it than X - x; one for each command that may be outstanding.
//!
//! `n_ij` is how many periods of j one period of i has to do with ([`Stream::touched_by`]). When the mandatory streams have less than a
//! worst case to spare, nothing else is begun shortly before they are released; that is taken off the period.
//!
//! More reservation for one stream is less room for the others, so reservations are looked for from below: each is the least that the
//! others' leave room for, again until none grows. That gives the least of all sets that are possible, or shows that none is.
//!
//! Best-effort requests are not in V, because the subset begins none that could, in the worst case, keep a stream from
//! its reservation.

use headtime_disk::time::Dur;

use super::distribution::{CERTAIN, Distribution};
use super::reserve::{Room, Sums, Work};
use super::stream::{Quality, Stream};

/// A request must have this chance to be done before its period ends, in parts per million, or it is not begun (the x of
/// [`super::reserve`] is this quantile of X).
pub const LIKELY: u32 = 900_000;

/// Fine bins that a period has at most, and wide ones: sums of many times are kept in the wide ones.
const FINE: usize = 1 << 14;
const WIDE: usize = 1 << 11;

/// Commands at the drive at most: one in service and one that waits (section 3.3.3). Of more it could choose, and what has been promised for
/// one that waits there would be in its hands.
pub const MOST_OUTSTANDING: u32 = 2;

/// What is known of a drive's times for requests of up to some size (the D of definition 4).
#[derive(Clone, Debug)]
pub struct Service {
    /// Sectors of the largest request that it holds for.
    pub sectors: u32,
    /// w.
    pub worst: Dur,
    /// X, in this drive's bin.
    pub times: Distribution,
}

/// What is known of a drive's times.
#[derive(Clone, Debug)]
pub struct Disk {
    services: Vec<Service>,
    outstanding: u32,
}

/// Figures of a drive that do not go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiskError {
    /// No size is known.
    #[error("service times: expected those of one request size or more, found none")]
    NoSizes,
    /// Sizes do not ascend.
    #[error("service times: expected sizes and worst cases that ascend, found {found} sectors behind {after}")]
    Order {
        /// The size.
        found: u32,
        /// The one before.
        after: u32,
    },
    /// Bins differ.
    #[error("service times for {sectors} sectors: expected bins of {expected}, found {found}")]
    Bins {
        /// The size.
        sectors: u32,
        /// The bin of the first size.
        expected: Dur,
        /// Its bin.
        found: Dur,
    },
    /// A distribution reaches beyond the worst case.
    #[error("service times for {sectors} sectors: expected none beyond the worst case of {worst}, found {found}")]
    Beyond {
        /// The size.
        sectors: u32,
        /// Its worst case.
        worst: Dur,
        /// Its longest time, rounded up to a bin.
        found: Dur,
    },
    /// Nothing could ever be sent, or a drive with an order of its own could leave a command waiting behind others that came later.
    #[error("outstanding commands: expected 1 to {MOST_OUTSTANDING}, found {found}")]
    Outstanding {
        /// Commands at a time.
        found: u32,
    },
}

impl Disk {
    /// A drive that is given up to `outstanding` commands at a time; `services` by ascending sizes.
    ///
    /// # Errors
    /// No sizes, sizes out of order, bins that differ, times beyond the worst case.
    pub fn new(services: Vec<Service>, outstanding: u32) -> Result<Disk, DiskError> {
        let first = services.first().ok_or(DiskError::NoSizes)?;
        if !(1..=MOST_OUTSTANDING).contains(&outstanding) {
            return Err(DiskError::Outstanding { found: outstanding });
        }
        let expected = first.times.bin();
        for pair in services.windows(2) {
            let (after, s) = (&pair[0], &pair[1]);
            if s.sectors <= after.sectors || s.worst < after.worst {
                return Err(DiskError::Order { found: s.sectors, after: after.sectors });
            }
        }
        for s in &services {
            let (found, longest) = (s.times.bin(), s.times.end().saturating_sub(1) as u64);
            if found != expected {
                return Err(DiskError::Bins { sectors: s.sectors, expected, found });
            }
            if longest > s.worst.0.div_ceil(expected.0) {
                let found = Dur(longest * expected.0);
                return Err(DiskError::Beyond { sectors: s.sectors, worst: s.worst, found });
            }
        }
        Ok(Disk { services, outstanding })
    }

    /// Commands at the drive at most.
    pub fn outstanding(&self) -> u32 {
        self.outstanding
    }

    /// What holds for requests of so many sectors; `None`: they are larger than any known.
    pub fn service(&self, sectors: u32) -> Option<&Service> {
        self.services.iter().find(|s| s.sectors >= sectors)
    }

    /// What holds for the largest requests.
    pub fn largest(&self) -> &Service {
        self.services.last().expect("one at least")
    }
}

impl Service {
    /// x: with so much time left a request is likely to be done.
    pub fn likely(&self) -> Dur {
        self.times.quantile(LIKELY).min(self.worst)
    }
}

/// A set of streams that is had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// r of each stream, in the order in which they were given; `None` of a mandatory one.
    pub reservations: Vec<Option<Dur>>,
    /// How much of the drive is taken.
    pub load: Load,
}

/// How much of a drive a set of streams takes, in parts per million of its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// The left side of condition 2: mandatory requests at their worst.
    pub worst_ppm: u64,
    /// All requests that are expected to be done, at their mean times.
    pub expected_ppm: u64,
}

impl Load {
    /// What is left for best effort on the average.
    pub fn left_ppm(&self) -> u64 {
        1_000_000u64.saturating_sub(self.expected_ppm)
    }
}

/// Why a set cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// Nothing is known of requests of this size.
    #[error("stream {stream}: expected requests of at most {most} sectors, found {found}")]
    Size {
        /// Which stream.
        stream: usize,
        /// The largest size that is known.
        most: u32,
        /// What it asks for.
        found: u32,
    },
    /// Condition 2 does not hold.
    #[error("mandatory streams would take {} of the time at their worst, expected at most 100%", percent(*needed_ppm))]
    Worst {
        /// The left side of the condition, in parts per million.
        needed_ppm: u64,
    },
    /// Between mandatory streams with short periods there is no room for a request of another with a longer one.
    #[error("stream {stream}: expected room for {worst} beside mandatory streams with shorter periods, found {free}")]
    Between {
        /// The stream with the longer period.
        stream: usize,
        /// Its worst case.
        worst: Dur,
        /// What the others leave free in one of their periods.
        free: Dur,
    },
    /// Condition 3 does not hold: this stream, the new one or another beside it, would not have its quality.
    #[error("stream {stream}: expected a quality of {}, found at most {}", percent(u64::from(asked.ppm())), percent(*reached_ppm))]
    Quality {
        /// Which stream.
        stream: usize,
        /// What it asks for.
        asked: Quality,
        /// What it could have.
        reached_ppm: u64,
    },
}

fn percent(ppm: u64) -> String {
    format!("{}.{:02}%", ppm / 10_000, ppm / 100 % 100)
}

/// The answer no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}{}", said(nearest))]
pub struct Refusal {
    /// Why.
    pub why: Why,
    /// What the last of the streams could have instead.
    pub nearest: Nearest,
}

/// What is nearest to a stream that cannot be had; `None`: nothing of the kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nearest {
    /// The same stream with so many requests in a period.
    pub requests: Option<u32>,
    /// The same stream at this quality.
    pub quality: Option<Quality>,
}

fn said(nearest: &Nearest) -> String {
    let requests = nearest.requests.map(|n| format!("{n} requests in a period"));
    let quality = nearest.quality.map(|q| format!("a quality of {}", percent(u64::from(q.ppm()))));
    let either: Vec<String> = [requests, quality].into_iter().flatten().collect();
    if either.is_empty() { String::new() } else { format!("; possible: {}", either.join(", or ")) }
}

/// Whether all of these streams can be had. The last of them is the one that is asked for: if it cannot be had beside the others, what
/// could be had of it is said.
///
/// # Errors
/// Why not.
pub fn admit(disk: &Disk, streams: &[Stream]) -> Result<Admitted, Refusal> {
    let known = &mut Known::new(disk, streams);
    test(known, streams).map_err(|why| Refusal { why, nearest: nearest(known, streams, why) })
}

/// What is worked out once for all questions about streams with the same periods.
struct Known<'a> {
    disk: &'a Disk,
    /// So many of the drive's bins are one of the fine ones.
    merged: usize,
    /// Sums of each size's times, in fine bins.
    sums: Vec<Sums>,
}

impl Known<'_> {
    fn new<'a>(disk: &'a Disk, streams: &[Stream]) -> Known<'a> {
        let longest = streams.iter().map(|s| s.period.0).max().unwrap_or(0);
        let bins = longest / disk.largest().times.bin().0;
        let merged = bins.div_ceil(FINE as u64).max(1) as usize;
        let limit = bins as usize / merged;
        let sums = disk.services.iter().map(|s| Sums::new(s.times.coarser(merged), limit)).collect();
        Known { disk, merged, sums }
    }

    /// X in fine bins.
    fn times(&self, size: usize) -> &Distribution {
        self.sums[size].service()
    }
}

fn nearest(known: &mut Known, streams: &[Stream], why: Why) -> Nearest {
    let Some((&last, others)) = streams.split_last() else { return Nearest::default() };
    if matches!(why, Why::Size { .. }) {
        return Nearest::default();
    }
    let mut fits = |instead: Stream| test(known, &[others, &[instead]].concat()).is_ok();
    let requests = most(last.requests - 1, |requests| fits(Stream { requests, ..last }));
    let quality = |ppm| Quality::from_ppm(ppm).expect("between 1 and all");
    let lower = most(last.quality.ppm() - 1, |ppm| fits(Stream { quality: quality(ppm), ..last }));
    Nearest { requests, quality: lower.map(quality) }
}

/// The largest number from 1 to `upto` that fits, if those below one that fits do, too.
fn most(upto: u32, mut fits: impl FnMut(u32) -> bool) -> Option<u32> {
    let (mut good, mut bad) = (0, upto + 1);
    while bad - good > 1 {
        let mid = good + (bad - good) / 2;
        if fits(mid) { good = mid } else { bad = mid }
    }
    (good > 0).then_some(good)
}

/// The left side of condition 2 for one stream, in 2^-32, rounded up.
pub(super) fn worst_rate(requests: u32, worst: Dur, period: Dur) -> u64 {
    let work = (u128::from(requests) * u128::from(worst.0)) << 32;
    u64::try_from(work.div_ceil(u128::from(period.0))).unwrap_or(u64::MAX)
}

/// One stream with what is known of its requests, in bins that suit its period.
struct Candidate<'a> {
    stream: &'a Stream,
    service: &'a Service,
    /// Which of the drive's sizes that is.
    size: usize,
}

fn test(known: &mut Known, streams: &[Stream]) -> Result<Admitted, Why> {
    let disk = known.disk;
    let mut all = Vec::with_capacity(streams.len());
    for (at, stream) in streams.iter().enumerate() {
        let (most, found) = (disk.largest().sectors, stream.sectors);
        let size = disk.services.iter().position(|s| s.sectors >= found);
        let size = size.ok_or(Why::Size { stream: at, most, found })?;
        all.push(Candidate { stream, service: &disk.services[size], size });
    }
    let worst_ppm = condition_2(&all)?;
    let reservations = condition_3(known, &all)?;
    let expected = all.iter().map(|c| {
        let done = c.stream.wanted_millionths();
        (u128::from(done) * u128::from(c.service.times.mean().0)).div_ceil(u128::from(c.stream.period.0)) as u64
    });
    Ok(Admitted { load: Load { worst_ppm, expected_ppm: expected.sum() }, reservations })
}

fn condition_2(all: &[Candidate]) -> Result<u64, Why> {
    let mandatory = || all.iter().filter(|c| c.stream.is_mandatory());
    let ppm = |c: &Candidate| {
        let work = u128::from(c.stream.requests) * u128::from(c.service.worst.0) * 1_000_000;
        work.div_ceil(u128::from(c.stream.period.0)) as u64
    };
    let needed_ppm = mandatory().map(ppm).sum();
    if demanded(mandatory(), Dur(u64::MAX)) > 1 << 32 {
        return Err(Why::Worst { needed_ppm });
    }
    for (stream, c) in all.iter().enumerate().filter(|c| c.1.stream.is_mandatory()) {
        let shorter = mandatory().map(|o| o.stream.period).filter(|p| *p < c.stream.period);
        let free = shorter.map(|period| left_free(mandatory(), period)).min();
        if let Some(free) = free.filter(|free| *free < c.service.worst) {
            return Err(Why::Between { stream, worst: c.service.worst, free });
        }
    }
    Ok(needed_ppm)
}

/// U: what mandatory streams with periods up to `period` demand, in 2^-32. Rounded up for each stream, as [`super::sweep`] has it, unless all
/// have one period and no rate counts.
fn demanded<'a, 'b: 'a>(mandatory: impl Iterator<Item = &'a Candidate<'b>>, period: Dur) -> u64 {
    let all: Vec<&Candidate> = mandatory.filter(|c| c.stream.period <= period).collect();
    let Some(first) = all.first().map(|c| c.stream.period) else { return 0 };
    if all.iter().all(|c| c.stream.period == first) {
        let work = |c: &&Candidate| c.service.worst.0.saturating_mul(u64::from(c.stream.requests));
        return worst_rate(1, Dur(all.iter().map(work).fold(0, u64::saturating_add)), first);
    }
    let rate = |c: &&Candidate| worst_rate(c.stream.requests, c.service.worst, c.stream.period);
    all.iter().map(rate).fold(0, u64::saturating_add)
}

/// t (1 - U): what mandatory streams with periods up to `period` leave of it.
fn left_free<'a, 'b: 'a>(mandatory: impl Iterator<Item = &'a Candidate<'b>>, period: Dur) -> Dur {
    let taken = (u128::from(period.0) * u128::from(demanded(mandatory, period))).div_ceil(1 << 32);
    Dur(period.0.saturating_sub(u64::try_from(taken).unwrap_or(u64::MAX)))
}

/// For how long before mandatory streams are released, at most, nothing else with a worst case of `worst` may be begun: what they leave
/// free is less than that.
fn kept_free(all: &[Candidate], worst: Dur) -> Dur {
    let mandatory = || all.iter().filter(|c| c.stream.is_mandatory());
    let least = mandatory().map(|c| left_free(mandatory(), c.stream.period)).min();
    least.map_or(Dur::ZERO, |least| worst.saturating_sub(least))
}

/// One optional stream while its reservation is looked for.
struct Sought {
    at: usize,
    work: Work,
    /// X in fine bins.
    service: Distribution,
    /// Of those, in its period.
    period: usize,
    factor: usize,
    /// V without the other optional streams.
    given: Distribution,
    chance: usize,
    /// r in fine bins.
    reserved: usize,
}

fn condition_3(known: &mut Known, all: &[Candidate]) -> Result<Vec<Option<Dur>>, Why> {
    let optional = all.iter().enumerate().filter(|c| !c.1.stream.is_mandatory());
    let mut sought: Vec<Sought> = optional.map(|(at, _)| seek(known, all, at)).collect();
    loop {
        let mut grown = false;
        for i in 0..sought.len() {
            let reserved = least(&sought, all, i)?;
            assert!(reserved >= sought[i].reserved, "a reservation that others leave less room for became smaller");
            grown |= reserved > sought[i].reserved;
            sought[i].reserved = reserved;
        }
        if !grown {
            break;
        }
    }
    let mut reservations = vec![None; all.len()];
    for s in &sought {
        reservations[s.at] = Some(Dur(s.service.bin().0 * s.reserved as u64));
    }
    Ok(reservations)
}

fn seek(known: &mut Known, all: &[Candidate], at: usize) -> Sought {
    let Candidate { stream, service, size } = &all[at];
    let work = Work::new(&mut known.sums[*size], stream.requests);
    let times = known.times(*size).clone();
    let bin = times.bin().0;
    assert!(bin == known.disk.largest().times.bin().0 * known.merged as u64);
    let period = (stream.period.0 / bin) as usize;
    let factor = period.div_ceil(WIDE).max(1);
    let (limit, wide) = (period, period / factor + 1);
    // What is still at the drive: of whichever size is worst.
    let optional = || all.iter().filter(|c| !c.stream.is_mandatory());
    let late = |c: &Candidate| known.times(c.size).beyond((c.service.likely().0 / bin) as usize);
    let late = optional().map(late).reduce(|a, b| a.longer_of(&b)).expect("this one is optional");
    let mut given = late.coarser(factor).times(u64::from(known.disk.outstanding), wide);
    let free = kept_free(all, service.worst);
    for c in all.iter().filter(|c| c.stream.is_mandatory()) {
        let often = stream.touched_by(c.stream);
        let requests = often * u64::from(c.stream.requests);
        given = given.plus(&known.times(c.size).times(requests, limit).coarser(factor), wide);
        // The release at the period's own end is in `chance`.
        let aligned =
            stream.period.0.is_multiple_of(c.stream.period.0) || c.stream.period.0.is_multiple_of(stream.period.0);
        let releases = often - u64::from(aligned);
        let idle = (free.0 * releases).div_ceil(bin * factor as u64) as usize;
        given = given.plus(&Distribution::certain(given.bin(), idle), wide);
    }
    let chance = service.likely().max(free).0.div_ceil(bin) as usize;
    Sought { at, work, service: times, period, factor, given, chance, reserved: 0 }
}

/// The least reservation of one of them beside the others as they are now.
fn least(sought: &[Sought], all: &[Candidate], i: usize) -> Result<usize, Why> {
    let me = &sought[i];
    let stream = all[me.at].stream;
    let wide = me.period / me.factor + 1;
    let mut others = me.given.clone();
    for other in sought.iter().filter(|o| o.at != me.at) {
        let takes = other.work.stopped(other.reserved).coarser(me.factor);
        let often = stream.touched_by(all[other.at].stream);
        others = others.plus(&takes.times(often, wide), wide);
    }
    let room = Room::new(me.period, me.factor, &others, &me.service, me.chance);
    let wanted = (u128::from(stream.wanted_millionths()) * u128::from(CERTAIN)).div_ceil(1_000_000);
    me.work.reservation(wanted, |used| room.after(used)).map_err(|reached| {
        let reached_ppm = ((reached * 1_000_000) >> 62) as u64 / u64::from(stream.requests);
        Why::Quality { stream: me.at, asked: stream.quality, reached_ppm }
    })
}
