//! An export with a write cache in the server: what becomes of it at the end, and when the disk is gone.

mod destaging;
mod rig;

use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use destaging::{Client, FIRST, SECTORS};
use headtime_disk::drive::DriveConfig;
use headtime_sched::write_cache::Limits;
use headtime_serve::destage::inside::Caches;
use headtime_serve::device::Device;
use headtime_serve::device::faulty::Faulty;
use headtime_serve::net::address::Address;
use headtime_serve::net::exports::{ExportSpec, Exports};
use headtime_serve::server::{CAPACITY, Server, Service};
use rig::{SECTOR, core, drive};

const ESHUTDOWN: u32 = 108;

/// A server of one export with a cache of 1 MiB, and what it says.
fn server(dir: &tempfile::TempDir, device: impl Device + Send + 'static) -> (Server, Arc<Mutex<Vec<String>>>) {
    let (name, description) = ("data".into(), String::new());
    let spec = ExportSpec { name, description, first: FIRST, sectors: SECTORS, read_only: false, weight: 100 };
    let exports = Exports::new(vec![spec], device.sectors(), 512).unwrap();
    let said: Arc<Mutex<Vec<String>>> = Arc::default();
    let note = Arc::clone(&said);
    let listen = vec![Address::Unix(dir.path().join("nbd"))];
    let mut service = Service::new(listen, exports, Arc::new(move |line| note.lock().unwrap().push(line)));
    service.caches = Caches { exports: vec![(0, Limits { memory: 1 << 20 })], fills: true };
    (Server::start(core(CAPACITY), device, service).unwrap(), said)
}

#[test]
fn what_is_dirty_is_on_the_disk_when_the_server_has_ended() {
    let dir = tempfile::tempdir().unwrap();
    let (device, file) = drive(DriveConfig::default());
    let (server, said) = server(&dir, device);
    let mut client = Client::new(&dir.path().join("nbd"));
    let blocks: Vec<u64> = (0..60).map(|i| i * 997 % 4000 * 8).collect();
    for &sector in &blocks {
        client.write(sector, &[sector as u8 | 1; 8 * SECTOR], false).unwrap();
    }
    drop(client);
    server.stop().unwrap();
    for &sector in &blocks {
        let mut found = [0; 8 * SECTOR];
        file.read_exact_at(&mut found, (FIRST + sector) * SECTOR as u64).unwrap();
        assert!(found.iter().all(|&b| b == sector as u8 | 1), "sector {sector}");
    }
    assert!(said.lock().unwrap().is_empty(), "{said:?}");
}

/// A disk that is gone does not come back: clients hear of it, as they do without a cache, and the server ends.
#[test]
fn requests_fail_and_the_server_ends_when_the_disk_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let (device, _file) = drive(DriveConfig::default());
    let (server, said) = server(&dir, Faulty::new(device, []).gone_from(1));
    let mut client = Client::new(&dir.path().join("nbd"));
    client.read(0, 8).unwrap();
    client.write(80, &[1; 8 * SECTOR], false).unwrap();
    assert_eq!(client.flush(), Err(ESHUTDOWN));
    assert_eq!(client.read(8000, 8), Err(ESHUTDOWN));
    assert_eq!(client.write(800, &[1; 8 * SECTOR], false), Err(ESHUTDOWN));
    drop(client);
    let began = Instant::now();
    let _ = server.stop();
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    let said = said.lock().unwrap();
    let lost = "warning: export \"data\": 4096 bytes that clients were told are written are not on the disk";
    assert!(said.iter().any(|line| line.starts_with(lost)), "{said:?}");
    assert!(said.len() <= 4, "each is said once: {said:?}");
}
