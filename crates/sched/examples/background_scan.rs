//! A busy drive, and a background session that reads all of it in rotational gaps: its first
//! minute.
//!
//!     cargo run -p headtime-sched --example background_scan

use std::error::Error;

use headtime_disk::{Drive, DriveConfig, Kind, Model, Time, profile};
use headtime_sched::{Action, Algorithm, Config, Core, FillConfig, Order, Request, TaskEvent, TaskRange, TaskSpec};

/// The end of the run.
const END: Time = Time(60_000_000_000);

fn main() -> Result<(), Box<dyn Error>> {
    let profile = profile::builtin("atlas10k")?;
    let mut drive = Drive::new(&profile, DriveConfig::default())?;
    let fill = Some(FillConfig::new(Algorithm::Headtime));
    let config = Config::new(Order::SptfJoint).with_capacity(64).with_fill(fill);
    let mut core = Core::new(config, Model::new(&profile)?);
    let mut now = Time(0);
    let session = core.open(100, now)?;
    let ranges = vec![TaskRange { lbn: 0, count: drive.capacity() }];
    core.register(session, &TaskSpec { kind: Kind::Read, ranges, blksize: 128, min_pickup: 128 }, now)?;
    let (capacity, mut id, mut finished, mut delivered) = (drive.capacity(), 0, 0u64, 0);
    let mut read = || {
        id += 1;
        Request {
            id,
            kind: Kind::Read,
            lbn: id * 7_919_777 % (capacity - 8),
            count: 8,
            fua: false,
            sync: true,
            owner: 0,
        }
    };
    for _ in 0..8 {
        core.submit(read(), now)?;
    }
    while now < END {
        while let Some(action) = core.poll() {
            match action {
                Action::Issue(command) => drive.submit(command, now)?,
                Action::Finish(_) => {
                    finished += 1;
                    core.submit(read(), now)?;
                }
                Action::Background(TaskEvent::Delivered { range, .. }) => {
                    delivered += range.count;
                    // It is out of the way: the session's window has room for more.
                    core.taken(session, range.count, now)?;
                }
                _ => {}
            }
        }
        let wakeups = [drive.next_event(), core.next_wakeup()];
        now = wakeups.into_iter().flatten().min().ok_or("nothing will ever happen")?;
        match drive.advance(now) {
            Some(done) => core.complete(done.id, done.outcome, now),
            None => core.tick(now),
        }
    }
    let megabytes = delivered as f64 * f64::from(profile.sector_bytes) / 1e6;
    println!("{finished} foreground reads, and beside them {:.2} MB/s of the scan", megabytes / now.as_secs_f64());
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
