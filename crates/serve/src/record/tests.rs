use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Mutex;

use headtime_disk::Dur;
use headtime_sim::traces::Recording as Read;
use tokio::sync::mpsc::unbounded_channel;

use super::*;

fn header() -> Header {
    Header { disk: "a\ndrive".into(), sectors: 1_000, sector_bytes: 512, clients: vec!["one".into(), String::new()] }
}

fn ask(kind: Kind, lbn: u64, count: u32, owner: u32) -> Submission {
    Submission { kind, lbn, count, owner, reply: Some((unbounded_channel().0, 0)), ..Submission::flush() }
}

fn at(us: u64) -> Time {
    Time::ZERO + Dur::from_us(us)
}

fn notes() -> (Note, Arc<Mutex<Vec<String>>>) {
    let said: Arc<Mutex<Vec<String>>> = Arc::default();
    let to = Arc::clone(&said);
    (Arc::new(move |_, line| to.lock().unwrap().push(line)), said)
}

#[test]
fn requests_are_recorded_with_their_times_and_whose_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r");
    let (note, said) = notes();
    let (mut recorder, recording) = NewRecording::create(&path, header()).unwrap().begin(note).unwrap();
    let (read, write) = (ask(Kind::Read, 8, 16, 0), Submission { fua: true, ..ask(Kind::Write, 0, 1, 1) });
    recorder.submitted(0, &read, at(5_000));
    recorder.submitted(1, &write, Time(5_000_900));
    recorder.completed(0, &read, true, at(9_000));
    // The engine reuses the number; the recording has a new one.
    recorder.submitted(0, &ask(Kind::Flush, 0, 0, 1), Time(9_000_700));
    // Requests without a client are not recorded.
    recorder.submitted(2, &Submission::flush(), at(9_001));
    recorder.completed(2, &Submission::flush(), true, at(9_002));
    recorder.completed(0, &ask(Kind::Flush, 0, 0, 1), true, Time(9_002_600));
    recorder.completed(1, &write, false, at(9_010));
    drop(recorder);
    recording.finish();
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().filter(|l| !l.starts_with("K ")).collect();
    let expected = [
        "headtime recording 1",
        "disk a drive",
        "sectors 1000 of 512",
        "client 0 one",
        "client 1 ",
        "R 0 0 8 16",
        "V 0 1 0 1",
        "C 4000 0",
        "F 0 1",
        "C 2 2",
        "E 8 1",
        "end 3",
    ];
    assert_eq!(lines, expected);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(*said.lock().unwrap(), [format!("{} holds 3 requests", path.display())]);
    // The simulator reads the recording.
    let read = Read::open(&path).unwrap();
    assert!(read.fits(1_000, 512).is_ok() && read.requests.len() == 3 && read.clients == ["one", ""]);
    let flush = read.requests[2];
    assert_eq!((flush.client, flush.after, flush.done.unwrap().since(flush.submitted)), (1, None, Dur::from_us(2)));
}

#[test]
fn a_recording_of_many_lines_is_read_back() {
    let dir = tempfile::tempdir().unwrap();
    for requests in [1, 127, 128, 129, 1_000] {
        let path = dir.path().join(requests.to_string());
        let (mut recorder, recording) = NewRecording::create(&path, header()).unwrap().begin(notes().0).unwrap();
        for i in 0..requests {
            let read = ask(Kind::Read, i % 900, 8, (i % 2) as u32);
            recorder.submitted(i % 3, &read, at(10 * i));
            recorder.completed(i % 3, &read, true, at(10 * i + 7));
        }
        drop(recorder);
        recording.finish();
        let read = Read::open(&path).unwrap();
        assert_eq!(read.requests.len() as u64, requests);
        let (last, i) = (read.requests.last().unwrap(), requests - 1);
        assert_eq!((last.lbn, last.submitted, last.done), (i % 900, at(10 * i), Some(at(10 * i + 7))));
    }
}

#[test]
fn a_name_that_exists_is_refused_and_a_link_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let (path, target) = (dir.path().join("r"), dir.path().join("t"));
    symlink(&target, &path).unwrap();
    assert!(matches!(NewRecording::create(&path, header()), Err(RecordError::Exists(_))));
    assert!(!target.exists());
    std::fs::write(&target, "kept").unwrap();
    assert!(matches!(NewRecording::create(&target, header()), Err(RecordError::Exists(_))));
    assert_eq!(std::fs::read(&target).unwrap(), b"kept");
    let nowhere = NewRecording::create(&dir.path().join("no/r"), header());
    assert!(matches!(nowhere, Err(RecordError::Io { .. })));
}

#[test]
fn a_recording_that_never_began_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r");
    drop(NewRecording::create(&path, header()).unwrap());
    assert!(!path.exists());
}

#[test]
fn a_writer_that_falls_behind_ends_the_recording_and_never_makes_the_engine_wait() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r");
    let (note, said) = notes();
    let mut new = NewRecording::create(&path, header()).unwrap();
    new.waiting = 4;
    let (mut recorder, recording) = new.begin(note).unwrap();
    // The writer sleeps or writes; it cannot keep up with a tight loop indefinitely.
    let read = ask(Kind::Read, 8, 16, 0);
    let mut sent = 0;
    while recorder.queue.is_some() && sent < 50_000_000 {
        recorder.submitted(sent, &read, at(sent));
        sent += 1;
    }
    assert!(recorder.queue.is_none());
    recorder.completed(0, &read, true, at(sent));
    recording.finish();
    let text = std::fs::read_to_string(&path).unwrap();
    let held = text.lines().filter(|l| l.starts_with("R ")).count();
    assert!(held >= 4 && text.ends_with(&format!("\nend {held}\n")), "{held}");
    let said = said.lock().unwrap();
    assert!(
        said[0].starts_with("recording stopped: ") && said[0].contains(&format!("first {held} requests")),
        "{said:?}"
    );
}

#[test]
fn a_full_disk_ends_the_recording_with_a_note() {
    let (note, said) = notes();
    let file = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let new = NewRecording { file: Some(file), path: "/dev/full".into(), header: header(), waiting: MAX_QUEUED_EVENTS };
    // The header alone would not fill a buffer.
    assert_eq!(new.begin(note).err().map(|e| e.kind()), Some(io::ErrorKind::StorageFull));
    assert!(said.lock().unwrap().is_empty());

    struct Full(u32);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(1).ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut text = Text::new(Full(8), &header()).unwrap();
    let (sender, events) = sync_channel(8);
    for i in 0..4 {
        let (kind, fua) = (Kind::Read, false);
        let event = Event::Submitted { request: i, at: at(i), client: 0, kind, fua, lbn: 0, count: 1 };
        sender.send(event).unwrap();
    }
    assert!(write(&mut text, &events).is_err());
}
