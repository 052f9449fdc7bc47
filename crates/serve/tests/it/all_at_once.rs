//! The clients of the example `all-at-once`: their counters, and a server with the example's
//! configuration.

#[path = "../../examples/all-at-once/load.rs"]
mod load;

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use headtime_disk::{DriveConfig, Dur, Model, profile};
use headtime_sched::streams::{Disk, GuaranteeConfig, Quality, Stream};
use headtime_sched::{Algorithm, Config as CoreConfig, Core, FillConfig, Order};
use headtime_serve::config::Config;
use headtime_serve::device::virtual_drive::VirtualDrive;
use headtime_serve::net::exports::Exports;
use headtime_serve::server::{CAPACITY, Server, Service};
use headtime_serve::streams;

const EXAMPLE: &str = include_str!("../../../../examples/all-at-once.toml");

/// Starts a server with the example's configuration, whose paths are in `dir`; returns the names of
/// its exports and its streams.
fn server(dir: &Path) -> (Server, Vec<String>, Vec<(u32, Stream)>) {
    let config = Config::read(EXAMPLE, &dir.join("all-at-once.toml")).unwrap();
    let profile = profile::builtin(&config.disk.drive).unwrap();
    let model = Model::new(&profile).unwrap();
    let (sectors, sector_bytes) = (model.geometry.capacity(), profile.sector_bytes);
    let exports = Exports::new(config.exports(sectors, sector_bytes).unwrap(), sectors, sector_bytes).unwrap();
    let exports = exports.with_requests_up_to(1 << 20);
    let wanted = config.streams(sector_bytes).unwrap();
    let disk = Disk::of(&profile, &model, 2).unwrap();
    let setup = GuaranteeConfig::of(disk.clone(), &profile, &model, config.scheduler.exhausted).unwrap();
    let fill = Some(FillConfig::new(Algorithm::Headtime));
    let core = CoreConfig::new(Order::Sptf).with_capacity(CAPACITY).with_fill(fill);
    let mut core = Core::new(core, model).admitting(&config.policy()).guaranteeing(&setup);
    streams::begin(&mut core, &exports, &wanted).unwrap();
    let file = tempfile::tempfile().unwrap();
    file.set_len(sectors * u64::from(sector_bytes)).unwrap();
    let drive = VirtualDrive::new(&profile, DriveConfig::default(), file.into()).unwrap();
    let names = exports.specs.iter().map(|s| s.name.clone()).collect();
    let mut service = Service::new(config.addresses(), exports, Arc::new(|_, _| ()));
    service.streams = Some(Arc::new(disk));
    (Server::start(core, drive, service).unwrap(), names, wanted)
}

#[test]
fn everybody_of_the_example_is_served() {
    let dir = tempfile::tempdir().unwrap();
    let (server, names, wanted) = server(dir.path());
    let socket = dir.path().join("nbd.sock");
    let began = Instant::now();
    let until = began + Duration::from_secs(1);
    thread::scope(|scope| {
        let socket = &*socket;
        let clients = wanted.iter().map(|(owner, stream)| {
            let (owner, name) = (*owner, &names[*owner as usize]);
            (owner, scope.spawn(move || load::stream(socket, name, stream, stream.sectors * 512, 2, owner.into())))
        });
        let clients: Vec<_> = clients.collect();
        let program = scope.spawn(|| load::shell(socket, "shell", (began, until), 1));
        let progress = load::application(socket, "application-4", (began, until), 2).unwrap();
        // A start is eighteen reads, and each takes some rotational latency.
        assert!(progress.start > Duration::from_millis(18), "{progress:?}");
        assert!(progress.seconds.iter().sum::<u64>().is_multiple_of(128 << 10), "{progress:?}");
        let starts = program.join().unwrap().unwrap();
        assert!(!starts.is_empty() && starts.iter().all(|s| *s > Duration::from_millis(18)), "{starts:?}");
        for (owner, client) in clients {
            let had = client.join().unwrap().unwrap();
            // The server's counters of the same stream. Answers that are late because this machine
            // stalls do not matter here.
            let snapshot = server.snapshot().unwrap();
            let tally = snapshot.streams.iter().find(|s| s.owner == owner).unwrap().tally;
            assert_eq!(had.asked, tally.asked, "{owner}");
            assert!(had.in_time > 0 && had.given_up <= tally.given_up, "{owner}: {had:?}, {tally:?}");
        }
    });
    let e = load::shell(&socket, "none", (began, until), 1).unwrap_err();
    assert!(e.to_string().contains("export \"none\": expected one that is served"), "{e}");
    server.stop().unwrap();
}

/// The answer of a scripted server to a request.
#[derive(Clone, Copy)]
enum Answer {
    Data,
    Error(u32),
    /// With data, a period and a half after all other requests were answered.
    Late,
    Never,
}

const PERIOD_MS: u64 = 200;

fn reply(client: &mut UnixStream, cookie: usize, error: u32) {
    let head = [&0x6744_6698_u32.to_be_bytes()[..], &error.to_be_bytes(), &(cookie as u64).to_be_bytes()].concat();
    client.write_all(&head).unwrap();
    if error == 0 {
        client.write_all(&[0; 64 << 10]).unwrap();
    }
}

/// Serves one client that reads 64 KiB for each of these answers. Its requests must arrive in
/// order.
fn scripted(listener: &UnixListener, answers: &[Answer]) -> UnixStream {
    let (mut client, _) = listener.accept().unwrap();
    client.write_all(&[0; 18]).unwrap();
    // The client's flags, the option's head, and a name of six letters.
    client.read_exact(&mut [0; 4 + 16 + 6]).unwrap();
    client.write_all(&[&(1u64 << 30).to_be_bytes()[..], &[0; 2]].concat()).unwrap();
    for (cookie, answer) in answers.iter().enumerate() {
        let mut request = [0; 28];
        client.read_exact(&mut request).unwrap();
        assert_eq!(request[8..16], (cookie as u64).to_be_bytes());
        assert_eq!(request[24..], (64u32 << 10).to_be_bytes());
        match answer {
            Answer::Data => reply(&mut client, cookie, 0),
            Answer::Error(number) => reply(&mut client, cookie, *number),
            Answer::Late | Answer::Never => {}
        }
    }
    thread::sleep(Duration::from_millis(PERIOD_MS * 3 / 2));
    let late = answers.iter().enumerate().filter(|(_, a)| matches!(a, Answer::Late));
    late.for_each(|(cookie, _)| reply(&mut client, cookie, 0));
    client
}

/// Returns the counters of a stream with two groups of requests, answered like this.
fn counted(answers: [Answer; 6]) -> std::io::Result<load::Had> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("nbd");
    let listener = UnixListener::bind(&path).unwrap();
    let server = thread::spawn(move || scripted(&listener, &answers));
    let stream = Stream::new(3, Dur::from_ms(PERIOD_MS), Quality::from_ppm(500_000).unwrap(), 128).unwrap();
    let had = load::stream(&path, "stream", &stream, 64 << 10, 2, 1);
    drop(server.join().unwrap());
    had
}

#[test]
fn requests_in_time_are_distinguished_from_late_expired_and_lost_ones() {
    use Answer::{Data, Error, Late, Never};
    // The late one belongs to the first group, which is due one period after the second was
    // requested.
    let had = counted([Data, Late, Error(5), Data, Never, Error(5)]).unwrap();
    assert_eq!((had.asked, had.in_time, had.given_up, had.late()), (6, 2, 2, 2));
    let e = counted([Data, Error(22), Never, Never, Never, Never]).unwrap_err();
    assert!(e.to_string().ends_with("found error 22"), "{e}");
}
