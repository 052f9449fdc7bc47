//! One random read on a virtual Quantum Atlas 10K, with the times of its parts.
//!
//!     cargo run -p headtime-disk --example one_request

use std::error::Error;

use headtime_disk::{Command, Completion, Drive, DriveConfig, Kind, Time, profile};

/// Reads eight sectors at `lbn` from an idle drive.
fn read(drive: &mut Drive, lbn: u64, now: Time) -> Result<Completion, Box<dyn Error>> {
    drive.submit(Command { id: lbn, kind: Kind::Read, lbn, count: 8, fua: false }, now)?;
    // Virtual time passes only as far as the drive is asked to advance.
    while let Some(event) = drive.next_event() {
        if let Some(completion) = drive.advance(event) {
            return Ok(completion);
        }
    }
    Err("the drive never answered".into())
}

fn main() -> Result<(), Box<dyn Error>> {
    let profile = profile::builtin("atlas10k")?;
    let mut drive = Drive::new(&profile, DriveConfig::default())?;
    let (begun, middle) = (Time(0), drive.capacity() / 2);
    let done = read(&mut drive, middle, begun)?;
    println!("{}: {:.3} ms in all", profile.title, done.at.since(begun).as_ms_f64());
    let media = done.media.ok_or("a read of an idle drive reaches the media")?;
    println!("{media:?}");
    // The next one is a hit: the drive has read ahead.
    let begun = done.at;
    let hit = read(&mut drive, middle + 8, begun)?;
    println!("the next eight sectors: {:.3} ms", hit.at.since(begun).as_ms_f64());
    assert!(hit.at.since(begun) < done.at.since(Time(0)));
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
