//! Mean service time of random 4 KiB reads, in order, on two drives, eleven years apart.
//!
//!     cargo run -p headtime-disk --example compare_two_drives

use std::error::Error;

use headtime_disk::{Command, Drive, DriveConfig, Kind, Time, profile};

/// Reads in each run.
const READS: u64 = 1_000;

/// Mean service time of random reads, ms.
fn mean_service_time(name: &str) -> Result<f64, Box<dyn Error>> {
    let profile = profile::builtin(name)?;
    let mut drive = Drive::new(&profile, DriveConfig::default())?;
    let sectors = 4096 / profile.sector_bytes;
    // A multiplicative sequence is random enough to defeat the drive's read-ahead.
    let (mut at, mut now) = (1, Time(0));
    for id in 0..READS {
        at = at * 48_271 % 0x7fff_ffff;
        let lbn = at % (drive.capacity() - u64::from(sectors));
        drive.submit(Command { id, kind: Kind::Read, lbn, count: sectors, fua: false }, now)?;
        while let Some(event) = drive.next_event() {
            if let Some(completion) = drive.advance(event) {
                now = completion.at;
                break;
            }
        }
    }
    Ok(now.as_secs_f64() * 1e3 / READS as f64)
}

fn main() -> Result<(), Box<dyn Error>> {
    let [old, new] = ["atlas10k", "hitachi-7k1000c"];
    let (before, after) = (mean_service_time(old)?, mean_service_time(new)?);
    println!("{old:>16}: {before:.2} ms a read");
    println!("{new:>16}: {after:.2} ms a read");
    // 10,000 rpm beat 7,200 rpm at random reads, whatever else eleven years improved.
    assert!(before < after);
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
