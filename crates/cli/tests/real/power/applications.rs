//! Images, journals and catalogues: after a power failure each is complete or absent, and a
//! restarted application completes.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{fs, thread};

use super::{Op, Place, each_failure, number_of_failures, place};
use crate::real::{SMALL, SMALL_BYTES, Server, finish, headtime, noise, run};

/// Size of the export: a third of a second of reading.
const BYTES: usize = 8 << 20;
/// Reading time after which an application is stopped.
const STOPPED_AFTER: Duration = Duration::from_millis(250);

/// A server with one read-only export, and that export's data.
fn served(place: &Place) -> (Server, Vec<u8>) {
    let dir = place.dir.path();
    let data = noise(SMALL_BYTES as usize, 31);
    fs::write(dir.join("disk.img"), &data).unwrap();
    let config = dir.join("serve.toml");
    let text = format!(
        "[disk]\ndrive = \"{SMALL}\"\nbacking = \"disk.img\"\n[listen]\nnbd = [\"unix:nbd.sock\"]\n\
         control = \"control.sock\"\n[[export]]\nname = \"data\"\nsize = \"8 MiB\"\nread-only = true\n"
    );
    fs::write(&config, text).unwrap();
    let mut command = headtime();
    command.arg("serve").arg(config);
    (Server::start(dir, command), data[..BYTES].to_vec())
}

/// An application whose files are in a directory.
struct Application<'a> {
    control: PathBuf,
    words: &'a [&'a str],
}

impl Application<'_> {
    fn command(&self, dir: &Path) -> Command {
        let mut command = headtime();
        command.current_dir(dir).env("XDG_STATE_HOME", dir).args(self.words.first());
        // `./NAME` stands for the absolute path.
        for word in &self.words[1..] {
            match word.strip_prefix("./") {
                Some(name) => command.arg(dir.join(name)),
                None => command.arg(word),
            };
        }
        command.args(["--export", "data", "--control"]).arg(&self.control).arg("--json");
        command
    }

    /// Runs it, and stops it when it has read a part.
    fn stopped(&self, dir: &Path, more: &[&str]) {
        let mut command = self.command(dir);
        command.args(more).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child: Child = command.spawn().unwrap();
        thread::sleep(STOPPED_AFTER);
        run(Command::new("kill").arg("-INT").arg(child.id().to_string()));
        assert_eq!(child.wait().unwrap().code(), Some(130), "it ended before it was stopped, so nothing is tested");
    }

    fn complete(&self, dir: &Path, said: &str) -> serde_json::Value {
        let (status, out, err) = finish(&mut self.command(dir));
        assert_eq!(status.code(), Some(0), "{said}: {out}{err}");
        serde_json::from_str(&out).unwrap()
    }
}

/// Stops an application, starts it anew, stops it again and lets it complete. It must also complete
/// from the state after each power failure.
fn goes_on(test: &str, words: &[&str], check: impl Fn(&Path, &serde_json::Value, &[u8], &str)) {
    let Some(place) = place(test) else { return };
    let (server, data) = served(&place);
    let application = Application { control: place.dir.path().join("control.sock"), words };
    // Always under one path: a journal contains its catalogue's path.
    let files = place.dir.path().join("files");
    symlink(&place.recorded, &files).unwrap();
    application.stopped(&files, &[]);
    application.stopped(&files, &["--restart"]);
    let report = application.complete(&files, "with no failure");
    place.recorder.note(0);
    check(&files, &report, &data, "with no failure");
    let log = place.recorder.finish();
    let ended = log.iter().position(|op| matches!(op, Op::Note(_))).expect("the note is in the account");
    let failures = number_of_failures(16);
    let (mut whole, mut gone_on) = (0, 0);
    each_failure(&log, failures, |at, disk| {
        let left = tempfile::tempdir().unwrap();
        disk.save(left.path()).unwrap();
        fs::remove_file(&files).unwrap();
        symlink(left.path(), &files).unwrap();
        let said = format!("after {at} of {} operations", log.len());
        let finished = at > ended;
        if finished {
            check(&files, &report, &data, &said);
            whole += 1;
            return;
        }
        if fs::exists(files.join("image")).unwrap() {
            assert!(fs::read(files.join("image")).unwrap() == data, "a damaged image has its name, {said}");
            whole += 1;
            return;
        }
        let report = application.complete(&files, &said);
        check(&files, &report, &data, &said);
        gone_on += 1;
    });
    println!(
        "{failures} power failures in {} operations: {whole} times whole, {gone_on} times gone on with",
        log.len()
    );
    assert!(whole > 0 && gone_on > 0);
    assert!(server.stop().0.success());
}

#[test]
fn an_image_is_whole_or_gone_on_with_after_a_power_failure() {
    goes_on("power-backup", &["backup", "image"], |dir, report, data, said| {
        assert_eq!(report["moment"], "read-only", "{said}");
        assert!(fs::read(dir.join("image")).is_ok_and(|image| image == *data), "the image is not the disk, {said}");
    });
}

#[test]
fn a_catalogue_is_whole_or_gone_on_with_after_a_power_failure() {
    let words = ["scrub", "--catalogue", "./sums", "--journal", "./journal"];
    goes_on("power-scrub", &words, |dir, report, data, said| {
        let compared = &report["catalogue"];
        let wrong = [&compared["changed_units"], &compared["catalogue_damaged_units"]];
        assert!(wrong == [&serde_json::json!(0); 2], "{said}: {report}");
        let length = fs::metadata(dir.join("sums")).map(|m| m.len());
        assert_eq!(length.ok(), Some(4096 + data.len() as u64 / 8192 * 16), "{said}");
    });
}
