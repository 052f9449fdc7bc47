//! A file system on an attached export.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Server, finish, headtime, noise, run, scratch};
use crate::support::{self, Mount};

/// An attachment that is removed with the test on every path.
struct Attached {
    name: String,
    device: PathBuf,
}

impl Attached {
    fn new(server: &Server, more: &[&str]) -> Attached {
        let name = format!("test-{}-{}", std::process::id(), more.len());
        let uri = server.uri("");
        let device = run(headtime().args(["attach", &uri, "--name", &name, "--method", "fuse"]).args(more));
        Attached { name, device: device.trim().into() }
    }

    fn device(&self) -> &str {
        self.device.to_str().unwrap()
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // Usually it is detached already, and the command says so.
        let _ = headtime().args(["detach", &self.name]).stderr(Stdio::null()).status();
    }
}

fn git(at: &Path) -> Command {
    let mut git = Command::new("git");
    git.current_dir(at).env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", at).env_remove("GIT_DIR");
    git.args(["-c", "user.name=test", "-c", "user.email=test@headtime.invalid", "-c", "commit.gpgsign=false"]);
    git
}

#[test]
fn ext4_on_an_attached_drive_keeps_what_real_programs_put_there() {
    const NAME: &str = "ext4_on_an_attached_drive_keeps_what_real_programs_put_there";
    let programs =
        ["losetup", "nbdfuse", "fusermount3", "setsid", "mkfs.ext4", "fsck.ext4", "mount", "umount", "tar", "git"];
    if let Some(why) = support::missing(&programs) {
        return support::skipped(NAME, &why);
    }
    let dir = scratch("ext4");
    // The contents: a tree with a large file, and a repository.
    let source = dir.directory("source");
    for n in 0..40u64 {
        fs::create_dir_all(source.join(format!("d{}", n % 5))).unwrap();
        fs::write(source.join(format!("d{}/f{n}", n % 5)), noise(1 + (n as usize) * 700, n)).unwrap();
    }
    fs::write(source.join("large"), noise(4 << 20, 99)).unwrap();
    let archive = dir.path().join("source.tar");
    run(Command::new("tar").arg("-cf").arg(&archive).arg("-C").arg(&source).arg("."));
    run(git(&source).args(["init", "--quiet", "--initial-branch=main"]));
    run(git(&source).args(["add", "."]));
    run(git(&source).args(["commit", "--quiet", "-m", "all"]));

    let server = Server::disk(dir.path());
    let attached = Attached::new(&server, &[]);
    run(Command::new("mkfs.ext4").args(["-q", attached.device()]));
    let at = dir.directory("at");
    let mount = Mount::new(&attached.device, at.clone());
    fs::create_dir(at.join("tree")).unwrap();
    run(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(at.join("tree")));
    run(git(&at).args(["clone", "--quiet", "--no-hardlinks"]).arg(&source).arg(at.join("clone")));
    run(git(&at.join("clone")).args(["fsck", "--full"]));
    // In use, it stays.
    let (status, _, err) = finish(headtime().args(["detach", &attached.name]));
    assert_eq!((status.code(), err.lines().count()), (Some(2), 1), "{err}");
    drop(mount);
    run(Command::new("fsck.ext4").args(["-f", "-n", attached.device()]));
    run(headtime().args(["detach", attached.device()]));

    // The server restarts; the data comes from the drive.
    assert!(server.stop().0.success());
    let server = Server::disk(dir.path());
    let attached = Attached::new(&server, &["--read-only"]);
    let written = fs::OpenOptions::new().write(true).open(&attached.device).and_then(|mut f| f.write_all(&[1; 512]));
    assert!(written.is_err(), "it is read-only");
    let list = run(headtime().args(["attach", "--list"]));
    let line = list.lines().find(|l| l.starts_with(&attached.name)).expect("it is listed");
    assert!(line.contains(attached.device()) && line.contains("working"), "{line}");
    run(Command::new("mount").args(["-o", "ro"]).arg(attached.device()).arg(&at));
    let mount = Mount(at.clone());
    for tree in ["tree", "clone"] {
        run(Command::new("diff").args(["-r", "--exclude=.git"]).arg(&source).arg(at.join(tree)));
    }
    drop(mount);
    run(headtime().args(["detach", &attached.name]));
    let (status, _, err) = finish(headtime().args(["detach", &attached.name]));
    assert!(status.code() == Some(2) && err.contains("is attached"), "{err}");
}

#[test]
fn what_cannot_be_attached_is_said_in_one_line() {
    for (args, said) in [
        (&["attach", "data", "--socket", "/no/such", "--sector-size", "513", "--method", "fuse"][..], "513"),
        (&["attach", "nbd://host/x", "--socket", "/s"], "--socket"),
        (&["attach", "a/b", "--socket", "/s"], "a/b"),
        (&["detach", "no-such-attachment"], "no-such-attachment"),
    ] {
        let (status, out, err) = finish(headtime().args(args));
        assert_eq!((status.code(), out.as_str(), err.lines().count()), (Some(2), "", 1), "{err}");
        assert!(err.contains(said), "{err}");
    }
}
