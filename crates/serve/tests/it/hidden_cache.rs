//! A drive whose write cache is on although its profile says otherwise: the server reports it.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::destaging::{Client, FIRST, SECTORS};
use crate::rig::{SECTOR, core, drive};
use headtime_disk::{DriveConfig, Fault, Time};
use headtime_serve::net::address::Address;
use headtime_serve::net::exports::{ExportSpec, Exports};
use headtime_serve::note::About;
use headtime_serve::server::{CAPACITY, Server, Service};

/// Returns the server's notes on its drive while a client writes and reads at random places.
fn said_of(faults: Vec<Fault>, fua: bool, until: impl Fn(&[String]) -> bool, at_most: Duration) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let (device, _file) = drive(DriveConfig::default().with_faults(faults));
    let (name, description) = ("data".into(), String::new());
    let spec = ExportSpec { name, description, first: FIRST, sectors: SECTORS, read_only: false, weight: 100 };
    let exports = Exports::new(vec![spec], (40 << 30) / SECTOR as u64, 512).unwrap();
    let said: Arc<Mutex<Vec<String>>> = Arc::default();
    let note = Arc::clone(&said);
    let listen = vec![Address::Unix(dir.path().join("nbd"))];
    let service = Service::new(
        listen,
        exports,
        Arc::new(move |about, line| match about {
            About::Visits => {}
            _ => note.lock().unwrap().push(line),
        }),
    );
    let server = Server::start(core(CAPACITY), device, service).unwrap();
    let mut client = Client::new(&dir.path().join("nbd"));
    let began = Instant::now();
    let mut at = 0;
    while began.elapsed() < at_most && !until(&said.lock().unwrap()) {
        for read in [false, true] {
            at = (at + SECTORS * 382 / 1000) % (SECTORS - 8) / 8 * 8;
            match read {
                true => _ = client.read(at, 8).unwrap(),
                false => client.write(at, &[1; 8 * SECTOR], fua).unwrap(),
            }
        }
    }
    drop(client);
    server.stop().unwrap();
    let said = said.lock().unwrap();
    said.clone()
}

#[test]
fn a_write_cache_that_is_on_against_the_profile_is_reported() {
    let on = Fault::WriteCache { at: Time::ZERO, on: true };
    let said = said_of(vec![on], false, |said| !said.is_empty(), Duration::from_secs(30));
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("the drive answers writes before they can be on the disk"), "{said:?}");
}

/// The server's own write cache writes with FUA only, so FUA writes must suffice for the detection.
#[test]
fn so_is_one_that_takes_writes_with_fua_and_one_that_writes_them_first_is_not() {
    let on = Fault::WriteCache { at: Time::ZERO, on: true };
    let ignores = vec![on.clone(), Fault::IgnoresFua];
    let said = said_of(ignores, true, |said| !said.is_empty(), Duration::from_secs(30));
    assert!(said[0].starts_with("the drive answers writes before they can be on the disk"), "{said:?}");
    assert_eq!(said_of(vec![on], true, |_| false, Duration::from_secs(3)), Vec::<String>::new());
}

#[test]
fn a_drive_that_is_as_its_profile_says_is_not_reported() {
    assert_eq!(said_of(vec![], false, |_| false, Duration::from_secs(3)), Vec::<String>::new());
}
