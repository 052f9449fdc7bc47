//! A gap replayed on a drive: a command, the legs after it, and the request, with two commands
//! outstanding.
//!
//! This is the actual outcome of a plan: the request must not complete later than without the plan,
//! nor the drive be free for the next command later.

use headtime_disk::profile::Profile;
use headtime_disk::{Command, Drive, DriveConfig, Head, Kind, Model, Place, Time};
use headtime_sched::internals::conservatism::Margins;
use headtime_sched::internals::gap::{Gap, Leg};
use headtime_sched::internals::overheads::{between, lead_in};
use headtime_sched::internals::passage::Track;
use headtime_sched::internals::predictor::Predictor;

use crate::slow_drive::SlowDrive;

/// Kind, first LBN and sectors of a command.
pub type Asked = (Kind, u64, u32);

/// A situation: two commands that position the drive, and the request after the gap.
pub struct Situation<'a> {
    /// The drive.
    pub profile: &'a Profile,
    /// Its model.
    pub model: &'a Model,
    /// Served first, to position the head.
    pub before: Asked,
    /// The command before the gap.
    pub last: Asked,
    /// The request.
    pub request: Asked,
    /// The command after the request, which must not be delayed either.
    pub next: Asked,
    /// Whether the planner is inside the drive ([`DriveConfig::inside`]).
    pub inside: bool,
}

/// When the host notices the completions of the request and of the command after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// The request.
    pub request: Time,
    /// The command after it.
    pub next: Time,
}

impl Situation<'_> {
    fn place(&self, (kind, lbn, count): Asked) -> Place {
        self.model.place(lbn, count, kind).expect("it lies on the drive")
    }

    /// The gap that a scheduler sees when the last command has been dispatched, and the track on
    /// which that ends if it is a read. `None` if there is none.
    pub fn gap(&self, margins: &Margins) -> Option<(Gap, Option<Track>)> {
        let sent = self.settle(|_, _| ());
        let mut predictor = Predictor::new(2, self.model);
        let (before, last) = (self.place(self.before), self.place(self.last));
        predictor.sent(self.model, 0, self.before.0, Some(&before), Time::ZERO);
        predictor.completed(self.model, 0, headtime_disk::Outcome::Ok, sent);
        predictor.sent(self.model, 1, self.last.0, Some(&last), sent);
        let heads: (Head, Head) = predictor.next_heads(self.model, sent);
        let heard = self.play(&[])[0];
        let kind = self.request.0;
        // The legs are reads; after a write the request begins later at most if it is not
        // dispatched yet.
        let ready = heard + lead_in(self.model, Kind::Read, kind).max(lead_in(self.model, Kind::Write, kind));
        let gap = Gap::before(self.model, heads, &self.place(self.request), kind, ready, margins)?;
        Some((gap, self.last.0.is_read().then_some((last.end_cylinder, last.end_surface))))
    }

    /// Serves the positioning command; `then` gets the drive and the time of completion.
    fn settle<T>(&self, then: impl FnOnce(&mut Drive, Time) -> T) -> Time {
        let config = DriveConfig::default().with_noise(false).with_sender_inside(self.inside);
        let mut drive = Drive::new(self.profile, config).expect("a drive that works");
        drive.submit(command(0, self.before), Time::ZERO).expect("it takes one");
        let at = drive.next_event().expect("a command is at the drive");
        let mut at = at;
        while drive.advance(at).is_none() {
            at = drive.next_event().expect("a command is at the drive");
        }
        then(&mut drive, at);
        at
    }

    /// Replays the commands from the last on, two outstanding; returns when the host noticed each
    /// completion.
    fn play(&self, legs: &[Leg]) -> Vec<Time> {
        let mut all = vec![self.last];
        let (mut kind, mut lbn, mut count) = self.request;
        for leg in legs {
            match leg.merged {
                false => all.push((leg.kind, leg.lbn, leg.count)),
                true => {
                    (kind, lbn) = (leg.kind, leg.lbn);
                    count += leg.count;
                }
            }
        }
        all.push((kind, lbn, count));
        all.push(self.next);
        let mut heard = vec![Time::ZERO; all.len()];
        self.settle(|drive, mut now| {
            let mut sent = 0;
            let mut open = 0;
            loop {
                while open < 2 && sent < all.len() {
                    drive.submit(command(sent as u64 + 1, all[sent]), now).expect("it takes two");
                    sent += 1;
                    open += 1;
                }
                if open == 0 {
                    return;
                }
                now = drive.next_event().expect("commands are at the drive");
                while let Some(done) = drive.advance(now) {
                    heard[done.id as usize - 1] = done.at;
                    open -= 1;
                }
            }
        });
        heard
    }

    /// Returns when the request ends on the media with these legs before it, on the plain, slow
    /// drive: each command begins where its predecessor ended, as soon as it is available. Nothing
    /// is shared with planners except the overheads between commands.
    pub fn slowly(&self, gap: &Gap, legs: &[Leg]) -> Option<Time> {
        let mut all: Vec<Command> = Vec::new();
        let mut request = command(0, self.request);
        for leg in legs {
            match leg.merged {
                false => all.push(command(0, (leg.kind, leg.lbn, leg.count))),
                true => request = Command { lbn: leg.lbn, count: leg.count + request.count, ..request },
            }
        }
        all.push(request);
        let kinds: Vec<Kind> = all.iter().map(|c| c.kind).collect();
        let mut drive = SlowDrive::new(self.profile);
        drive.follow(gap.source(), &all, |i, ended| match ended {
            None => gap.head(kinds[i]).at,
            Some(ended) => (ended + between(self.model, kinds[i - 1], kinds[i])).max(gap.dest_ready),
        })
    }

    /// Returns when the request and the command after it complete with these legs before them.
    pub fn replay(&self, legs: &[Leg]) -> Heard {
        let heard = self.play(legs);
        Heard { request: heard[heard.len() - 2], next: heard[heard.len() - 1] }
    }
}

fn command(id: u64, (kind, lbn, count): Asked) -> Command {
    Command { id, kind, lbn, count, fua: false }
}
