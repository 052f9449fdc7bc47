//! The scheduling core in an event loop with a virtual drive: four clients that each keep one
//! random read in flight, served in the order of shortest positioning time.
//!
//!     cargo run -p headtime-sched --example event_loop

use std::error::Error;

use headtime_disk::{Drive, DriveConfig, Kind, Model, Time, profile};
use headtime_sched::{Action, Config, Core, Order, Request};

/// Clients, and reads in all.
const CLIENTS: u64 = 4;
const READS: u64 = 2_000;

fn main() -> Result<(), Box<dyn Error>> {
    let profile = profile::builtin("atlas10k")?;
    let mut drive = Drive::new(&profile, DriveConfig::default())?;
    let config = Config::new(Order::Sptf).with_capacity(64);
    let mut core = Core::new(config, Model::new(&profile)?);
    let (capacity, mut id, mut finished, mut now) = (drive.capacity(), 0, 0, Time(0));
    let mut read = |owner: u32| {
        id += 1;
        let lbn = id * 7_919_777 % (capacity - 8);
        Request { id, kind: Kind::Read, lbn, count: 8, fua: false, sync: true, owner }
    };
    for client in 0..CLIENTS {
        core.submit(read(client as u32), now)?;
    }
    loop {
        // After each call to the core: carry out all that it asks for, in that order.
        while let Some(action) = core.poll() {
            match action {
                Action::Issue(command) => drive.submit(command, now)?,
                Action::Finish(f) => {
                    finished += 1;
                    core.submit(read((f.request % CLIENTS) as u32), now)?;
                }
                other => unreachable!("neither background work nor streams: {other:?}"),
            }
        }
        if finished >= READS {
            break;
        }
        // Then wait for whichever comes first: the drive, or the core's own timer.
        let wakeups = [drive.next_event(), core.next_wakeup()];
        now = wakeups.into_iter().flatten().min().ok_or("nothing will ever happen")?;
        match drive.advance(now) {
            Some(done) => core.complete(done.id, done.outcome, now),
            None => core.tick(now),
        }
    }
    println!("{finished} reads in {:.2} s: {:.1} a second", now.as_secs_f64(), finished as f64 / now.as_secs_f64());
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
