//! Requests are dispatched when they are due: not before, and not later than the drive accepts
//! them.

use headtime_disk::{Command, Completion, Dur, Outcome, SubmitError, Time};
use headtime_sched::Firmware;
use headtime_sim::device::Device;
use headtime_sim::observe::Observer;
use headtime_sim::run::{Limits, run};
use headtime_sim::stats::Done;
use headtime_sim::traces::{ReadOptions, Reader, TraceFormat};
use headtime_sim::workload::{Beyond, Mode, Replay, Target};

const SERVICE: Dur = Dur::from_ms(5);

/// One command at a time, 5 ms each.
#[derive(Default)]
struct FiveMs {
    taken: Vec<(u64, Time)>,
    free: Time,
}

impl Device for FiveMs {
    fn capacity(&self) -> u64 {
        1_000_000
    }

    fn submit(&mut self, command: Command, now: Time) -> Result<(), SubmitError> {
        self.free = self.free.max(now) + SERVICE;
        self.taken.push((command.id, self.free));
        Ok(())
    }

    fn next_event(&self) -> Option<Time> {
        self.taken.first().map(|(_, at)| *at)
    }

    fn advance(&mut self, now: Time) -> Option<Completion> {
        let (id, at) = *self.taken.first().filter(|(_, at)| *at <= now)?;
        self.taken.remove(0);
        Some(Completion { id, outcome: Outcome::Ok, at, media: None })
    }
}

#[derive(Default)]
struct Keep(Vec<Done>);

impl Observer for Keep {
    fn finished(&mut self, done: &Done) {
        self.0.push(*done);
    }
}

fn replayed(text: &str) -> Vec<Done> {
    let target = Target { capacity: 1_000_000, sector_bytes: 512, geometry: None };
    let reader = Reader::new(text.as_bytes(), "t".into(), TraceFormat::PlainCsv, ReadOptions::default());
    let mut workload = Replay::new(reader, &target, Mode::Auto, Beyond::Stop).unwrap();
    let mut keep = Keep::default();
    let (mut device, mut firmware) = (FiveMs::default(), Firmware::new(2, 8));
    run(&mut device, &mut firmware, &mut workload, Limits::default(), None, &mut keep).unwrap();
    keep.0
}

fn ms(at: Time) -> f64 {
    at.0 as f64 / 1e6
}

#[test]
fn a_completion_at_the_instant_of_an_arrival_hands_out_nothing_early() {
    // The first completes at 5 ms, exactly when the second arrives; the third is due much later.
    let done = replayed("0,R,0,8\n5,R,8,8\n1000,R,16,8\n2000,R,16,8\n");
    let stamps: Vec<_> = done.iter().map(|d| [d.due, d.submitted, d.dispatched, d.done].map(ms)).collect();
    let at = |t: f64| [t, t, t, t + 5.0];
    assert_eq!(stamps, [at(0.0), at(5.0), at(1000.0), at(2000.0)]);
}

#[test]
fn a_completion_at_the_instant_of_the_last_arrival_ends_the_run_with_both() {
    let done = replayed("0,R,0,8\n5,R,8,8\n");
    assert_eq!(done.iter().map(|d| ms(d.done)).collect::<Vec<_>>(), [5.0, 10.0]);
}
