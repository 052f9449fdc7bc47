//! A plain, slow drive: it walks the platter sector by sector with exact ratios, one command at a
//! time, no cache.
//!
//! The fast drive computes the same accesses in closed form; with noise off, both must agree to the
//! nanosecond. They share these rules. The arm moves for a whole number of nanoseconds. The head is
//! over a sector's edge at the first whole nanosecond at which the edge has come (an edge that
//! passed less than 1e-6 revolution ago counts as just there). k sectors have passed after the
//! least whole number of nanoseconds that is not below k periods over n. Rounding up tolerates
//! 2^-16 ns.

use headtime_disk::internals::JUST_PASSED;
use headtime_disk::profile::Profile;
use headtime_disk::{Angle, Command, Dur, Geometry, Kind, Mechanics, Position, Time};

/// value / unit nanoseconds, rounded up with a tolerance of 2^-16 ns.
fn round_up(value: u128, unit: u128) -> Dur {
    Dur(value.saturating_sub(unit >> 16).div_ceil(unit) as u64)
}

/// The slow drive.
pub struct SlowDrive {
    geometry: Geometry,
    mechanics: Mechanics,
    profile: Profile,
    /// The period in nanoseconds, as a ratio.
    period: (u64, u64),
    arm: (u32, u16),
    last_was_read: bool,
    media_free: Time,
}

impl SlowDrive {
    /// Returns a drive at time zero, head on cylinder 0, surface 0, angle 0. The profile's cache is
    /// ignored.
    pub fn new(profile: &Profile) -> SlowDrive {
        let geometry = Geometry::new(&profile.geometry).expect("a valid geometry");
        let mechanics = Mechanics::new(&profile.mechanics, geometry.cylinders()).expect("valid mechanics");
        SlowDrive {
            period: mechanics.rotation.period_ratio(),
            geometry,
            mechanics,
            profile: profile.clone(),
            arm: (0, 0),
            last_was_read: true,
            media_free: Time::ZERO,
        }
    }

    /// The angle under the head at `t`: the fractional part of t times the speed, in revolutions,
    /// times 2^64.
    fn angle_at(&self, t: Time) -> u64 {
        let (num, den) = self.period;
        let left = (t.0 as u128 * den as u128) % num as u128;
        ((left << 64) / num as u128) as u64
    }

    /// Whole nanoseconds until the head at `here` is over the angle `target`.
    fn wait(&self, here: u64, target: u64) -> Dur {
        let away = target.wrapping_sub(here);
        if away > 0u64.wrapping_sub(JUST_PASSED.0) {
            return Dur::ZERO;
        }
        let (num, den) = self.period;
        // away / 2^64 of num / den nanoseconds, rounded up, without overflow: num < 2^50.
        let unit = (den as u128) << 64;
        round_up(away as u128 * num as u128, unit)
    }

    /// Whole nanoseconds in which `k` of `n` sectors per revolution pass.
    fn pass(&self, k: u64, n: u64) -> Dur {
        let (num, den) = self.period;
        round_up((k as u128 * num as u128) << 24, (n as u128 * den as u128) << 24)
    }

    /// Serves one command that arrives at `now`, after its predecessor has completed; returns its
    /// completion time.
    pub fn serve(&mut self, command: &Command, now: Time) -> Time {
        let o = self.profile.electronics.overheads;
        let bus = self.profile.electronics.bus;
        let blocks = (self.profile.sector_bytes / 512) as u64;
        let by = |p: headtime_disk::profile::ByLast| if self.last_was_read { p.after_read } else { p.after_write };
        let read = command.kind == Kind::Read;
        let overhead = by(if read { o.read_miss } else { o.write_miss });
        let asked = now + o.per_request + overhead;
        let begin = asked.max(self.media_free);
        let fed = asked + o.data_preparation + bus.arbitration;
        let bus_sector_ps = blocks * if read { bus.read_block_ps } else { bus.write_block_ps };

        let there = |n: usize| fed + Dur((bus_sector_ps * n as u64).div_ceil(1000));
        let (passed, at) = self.pass_all(command, begin, |n| if read { Time::ZERO } else { there(n) });
        self.media_free = at;
        self.last_was_read = read;
        if !read {
            let data_in = fed + Dur((bus_sector_ps * command.count as u64).div_ceil(1000));
            return at.max(data_in) + o.reselect + o.write_completion;
        }
        // The bus transfers sectors in LBN order, each when it is in the buffer and its predecessor
        // has left. Kept in picoseconds, rounded up once at the end.
        let ready = passed[0] + o.reselect + o.data_preparation + bus.arbitration;
        let mut left_ps = ready.0 as u128 * 1000;
        for t in &passed {
            left_ps = left_ps.max(t.0 as u128 * 1000) + bus_sector_ps as u128;
        }
        Time(left_ps.div_ceil(1000) as u64) + o.read_completion
    }

    /// Serves reads that are all sent at `now`, first come, first served, by a drive that reads
    /// ahead; returns their completion times. A read that continues its predecessor is read on,
    /// sector by sector, from its end; other cache contents are ignored.
    pub fn serve_queued(&mut self, commands: &[Command], now: Time) -> Vec<Time> {
        let o = self.profile.electronics.overheads;
        let bus = self.profile.electronics.bus;
        let bus_sector_ps = (self.profile.sector_bytes / 512) as u64 * bus.read_block_ps;
        let arrived = now + o.per_request;
        let (mut bus_free, mut i) = (Time::ZERO, 0);
        let mut done = vec![];
        while i < commands.len() {
            let follows = |c: &[Command]| c[1].lbn == c[0].lbn + c[0].count as u64;
            let more = commands[i..].windows(2).take_while(|c| follows(c)).count();
            let (first, rest) = (commands[i], &commands[i + 1..=i + more]);
            let by = |p: headtime_disk::profile::ByLast| if self.last_was_read { p.after_read } else { p.after_write };
            let (asked, between) = (arrived + by(o.read_miss), if i > 0 { o.queued.read_read } else { Dur::ZERO });
            let (mut passed, at) = self.pass_all(&first, asked.max(self.media_free + between), |_| Time::ZERO);
            let mut ready = passed[0];
            (self.media_free, self.last_was_read) = (at, true);
            if let Some(next) = rest.first() {
                let whole = Command { count: rest.iter().map(|c| c.count).sum(), ..*next };
                let (more, at) = self.in_order(&whole, self.media_free);
                passed.extend(more);
                self.media_free = at;
            }
            for command in &commands[i..=i + more] {
                let (own, behind) = passed.split_at(command.count as usize);
                ready = ready + o.reselect + o.data_preparation + bus.arbitration;
                let mut left_ps = ready.max(bus_free).0 as u128 * 1000;
                for t in own {
                    left_ps = left_ps.max(t.0 as u128 * 1000) + bus_sector_ps as u128;
                }
                bus_free = Time(left_ps.div_ceil(1000) as u64);
                done.push(bus_free + o.read_completion);
                // The next one of the run starts when the last sector of this one has passed.
                ready = (arrived + o.read_miss.after_read + o.read_disconnect.after_read).max(own[own.len() - 1]);
                passed = behind.to_vec();
            }
            i += more + 1;
        }
        done
    }

    /// Reads a command from front to back although the drive may read on arrival.
    fn in_order(&mut self, command: &Command, begin: Time) -> (Vec<Time>, Time) {
        let on_arrival = std::mem::take(&mut self.profile.mechanics.read_on_arrival);
        let passed = self.pass_all(command, begin, |_| Time::ZERO);
        self.profile.mechanics.read_on_arrival = on_arrival;
        passed
    }

    /// Moves the arm from its position and lets the sectors of a command pass, with the mechanism
    /// starting at `begin`. `there`: when a number of its sectors are in the buffer. Returns when
    /// each has passed, and when the mechanism is free.
    fn pass_all(&mut self, command: &Command, begin: Time, there: impl Fn(usize) -> Time) -> (Vec<Time>, Time) {
        let read = command.kind == Kind::Read;
        // Time at which each sector of the command has passed under the head.
        let mut passed: Vec<Time> = vec![Time::ZERO; command.count as usize];
        let mut at = begin;
        let mut i = 0usize;
        while i < command.count as usize {
            let first = self.geometry.locate(command.lbn + i as u64).expect("in range");
            let mut stretch = vec![first];
            while i + stretch.len() < command.count as usize {
                let p = self.geometry.locate(command.lbn + (i + stretch.len()) as u64).expect("in range");
                let last = stretch[stretch.len() - 1];
                if (p.cylinder, p.surface) != (last.cylinder, last.surface) || p.sector != last.sector + 1 {
                    break;
                }
                stretch.push(p);
            }
            let track = (first.cylinder, first.surface);
            let mut moved = self.mechanics.reposition(self.arm, track, command.kind);
            if !read && i == 0 {
                moved = moved.max(self.profile.electronics.overheads.minimum_seek);
            }
            self.arm = track;
            at += moved;
            let m = &self.profile.mechanics;
            let on_arrival =
                if read { m.read_on_arrival } else { m.write_on_arrival && there(i + stretch.len()) <= at };
            at = if on_arrival {
                self.walk_from_arrival(&stretch, at, &mut passed[i..])
            } else {
                self.walk_in_order(&stretch, at, &mut passed[i..], |k| there(i + k + 1))
            };
            i += stretch.len();
        }
        (passed, at)
    }

    /// Follows a gap: the arm is on `from`; a command begins when `begins` says, given its
    /// predecessor's end on the media (`None` for the first), and its data is always available.
    /// Returns the last end on the media.
    pub fn follow(
        &mut self,
        from: (u32, u16),
        commands: &[Command],
        mut begins: impl FnMut(usize, Option<Time>) -> Time,
    ) -> Option<Time> {
        self.arm = from;
        let mut ended = None;
        for (i, command) in commands.iter().enumerate() {
            ended = Some(self.pass_all(command, begins(i, ended), |_| Time::ZERO).1);
        }
        ended
    }

    /// Waits for the first sector, then continues sector by sector; waits for another revolution if
    /// a sector's data is not available.
    fn walk_in_order(
        &self,
        stretch: &[Position],
        arrived: Time,
        passed: &mut [Time],
        there: impl Fn(usize) -> Time,
    ) -> Time {
        let n = stretch[0].spt as u64;
        let mut start = arrived + self.wait(self.angle_at(arrived), stretch[0].angle.0);
        let mut from = 0usize;
        for (k, p) in stretch.iter().enumerate() {
            let since = |q: &Position| (q.sector - stretch[from].sector) as u64;
            let mut begins = start + self.pass(since(p), n);
            while there(k) > begins {
                start = begins + self.mechanics.rotation.period();
                from = k;
                begins = start;
            }
            let since = (p.sector - stretch[from].sector) as u64;
            passed[k] = start + self.pass(since + 1, n);
        }
        passed[stretch.len() - 1]
    }

    /// Checks every sector of the track in turn from the head's landing position, for at most two
    /// revolutions, and takes the wanted ones as they come.
    fn walk_from_arrival(&self, stretch: &[Position], arrived: Time, passed: &mut [Time]) -> Time {
        let n = stretch[0].spt as u64;
        let step = Angle::fraction(1, n).0;
        let here = self.angle_at(arrived);
        let past = here.wrapping_sub(stretch[0].angle.0);
        let span = (stretch[stretch.len() - 1].sector - stretch[0].sector + 1) as u64;
        // The first complete sector of the range, if the head landed inside.
        let inside = past > JUST_PASSED.0 && past < step.saturating_mul(span);
        let landed = past.div_ceil(step);
        if !inside || landed >= span {
            return self.walk_in_order(stretch, arrived, passed, |_| Time::ZERO);
        }
        let edge = stretch[0].angle.0.wrapping_add(step.wrapping_mul(landed));
        let start = arrived + self.wait(here, edge);
        let again = arrived + self.wait(here, stretch[0].angle.0);
        for (k, p) in stretch.iter().enumerate() {
            let offset = (p.sector - stretch[0].sector) as u64;
            passed[k] = if offset >= landed {
                start + self.pass(offset - landed + 1, n)
            } else {
                again + self.pass(offset + 1, n)
            };
        }
        start + self.mechanics.rotation.period()
    }
}
