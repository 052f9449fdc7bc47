//! Background applications as one runs them, a server over a block device, and a configuration that is read again.

use std::fs;
use std::path::Path;

use super::nbd_client::{FUA, Nbd};
use super::{SMALL, SMALL_BYTES, Server, finish, headtime, noise, scratch, serve};
use crate::support::{self, Loop, wait_until};

/// Runs an application against the server in a directory; its status and the JSON object that it printed.
fn run(dir: &Path, arguments: &[&str]) -> (Option<i32>, serde_json::Value, String) {
    let mut command = headtime();
    command.current_dir(dir).env("XDG_STATE_HOME", dir).args(arguments).args(["--control", "control.sock", "--json"]);
    let (status, out, err) = finish(&mut command);
    (status.code(), serde_json::from_str(&out).unwrap_or_default(), err)
}

#[test]
fn scrub_backup_and_tasks_do_what_they_say_over_a_server() {
    let dir = scratch("applications");
    let at = dir.path();
    let data = noise(SMALL_BYTES as usize, 7);
    fs::write(at.join("disk.img"), &data).unwrap();
    let server = Server::start(at, serve(at));
    let (status, report, err) = run(at, &["scrub", "--export", "data", "--catalogue", "sums"]);
    assert_eq!((status, &report["complete"], &report["bytes"]), (Some(0), &true.into(), &(16 << 20).into()), "{err}");
    // Again, after one byte was changed behind everybody's back.
    let mut changed = data.clone();
    changed[5_000_000] ^= 1;
    let mut nbd = Nbd::open(&server.socket(), "data").unwrap();
    nbd.write(FUA, 5_000_000 / 4096 * 4096, &changed[5_000_000 / 4096 * 4096..][..4096]).unwrap();
    let (status, report, err) = run(at, &["scrub", "--export", "data", "--catalogue", "sums", "--expect-unchanged"]);
    assert_eq!((status, &report["complete"]), (Some(1), &true.into()), "{report} {err}");
    nbd.write(FUA, 5_000_000 / 4096 * 4096, &data[5_000_000 / 4096 * 4096..][..4096]).unwrap();
    // A journal of one kind of scrub is not another's.
    let (status, report, err) = run(at, &["scrub", "--export", "data", "--catalogue", "sums", "--expect-unchanged"]);
    assert_eq!((status, &report["complete"]), (Some(0), &true.into()), "{report} {err}");

    let (status, report, err) = run(at, &["backup", "image", "--export", "data"]);
    assert_eq!((status, &report["moment"]), (Some(0), &"point-in-time".into()), "{report} {err}");
    assert!(fs::read(at.join("image")).unwrap() == data[..16 << 20], "the image is not the disk");
    let (status, _, err) = run(at, &["backup", "image", "--export", "data"]);
    assert!(status == Some(2) && err.contains("--overwrite"), "{err}");
    assert!(!at.join("image.part").exists() && !at.join("image.sums").exists());

    let ranges = ["task", "read", "--range", "100+8", "--range", "5000+16", "-o", "read"];
    let (status, _, err) = run(at, &ranges);
    assert_eq!(status, Some(0), "{err}");
    let sectors = |lbn: usize, count: usize| &data[lbn * 512..(lbn + count) * 512];
    assert!(fs::read(at.join("read")).unwrap() == [sectors(100, 8), sectors(5000, 16)].concat());
    let (status, _, err) = run(at, &ranges);
    assert!(status == Some(2) && err.contains("--overwrite"), "{err}");
    fs::write(at.join("new"), noise(64 * 512, 9)).unwrap();
    for more in [&[][..], &["--promote"]] {
        let write = ["task", "write", "--range", "2000+64", "--input", "new"];
        let (status, report, err) = run(at, &[&write, more].concat());
        assert_eq!((status, &report["complete"]), (Some(0), &true.into()), "{report} {err}");
        assert!(nbd.read(2000 * 512, 64 * 512).unwrap() == noise(64 * 512, 9));
    }
    drop(nbd);
    assert!(server.stop().0.success());
}

#[test]
fn a_reload_takes_weights_over_and_says_what_it_does_not() {
    let dir = scratch("reload");
    let server = Server::start(dir.path(), serve(dir.path()));
    let config = dir.path().join("serve.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("size = \"16 MiB\"", "size = \"8 MiB\"\nweight = 300")).unwrap();
    server.signal("HUP");
    assert!(wait_until(|| server.said().contains("needs a new start: [[export]]")), "{}", server.said());
    assert!(server.said().contains("weight 100 is now 300"), "{}", server.said());
    fs::write(&config, "nothing of the kind").unwrap();
    server.signal("HUP");
    assert!(wait_until(|| server.said().contains("not reloaded: ")), "{}", server.said());
    assert!(server.stop().0.success());
}

#[test]
fn a_block_device_is_served_and_its_queue_is_put_back() {
    const NAME: &str = "a_block_device_is_served_and_its_queue_is_put_back";
    if let Some(why) = support::missing(&["losetup"]) {
        return support::skipped(NAME, &why);
    }
    let _turn = support::turn();
    let disk = Loop::new("served", 0);
    let file = disk.backing();
    fs::File::options().write(true).open(&file).unwrap().set_len(SMALL_BYTES).unwrap();
    support::run("losetup", &["-c", disk.path()]);
    let scheduler = || fs::read_to_string(disk.queue("scheduler")).unwrap();
    if scheduler().contains("mq-deadline") {
        fs::write(disk.queue("scheduler"), "mq-deadline").unwrap();
    }
    let before = scheduler();
    let dir = scratch("device");
    let config = dir.path().join("serve.toml");
    let text = format!(
        "[disk]\ndrive = \"{SMALL}\"\ndevice = \"{}\"\n[listen]\nnbd = [\"unix:nbd.sock\"]\n[[export]]\nname = \"\"\n",
        disk.path()
    );
    fs::write(&config, text).unwrap();
    let start = || {
        let mut command = headtime();
        command.arg("serve").arg(&config);
        Server::start(dir.path(), command)
    };
    let server = start();
    assert!(scheduler().contains("[none]"), "{}", scheduler());
    let (data, mut nbd) = (noise(1 << 20, 3), Nbd::open(&server.socket(), "").unwrap());
    nbd.write(FUA, 8 << 20, &data).unwrap();
    assert!(nbd.read(8 << 20, 1 << 20).unwrap() == data);
    assert!(fs::read(&file).unwrap()[8 << 20..][..1 << 20] == data, "what was written with FUA is not in the file");
    // Nobody else gets it meanwhile.
    let (status, _, err) = finish(headtime().arg("serve").arg(&config));
    assert!(status.code() == Some(2) && !err.is_empty(), "{err}");
    drop(nbd);
    server.kill();
    let server = start();
    assert!(Nbd::open(&server.socket(), "").unwrap().read(8 << 20, 1 << 20).unwrap() == data);
    assert!(server.stop().0.success());
    assert_eq!(scheduler(), before, "its scheduler was not put back");
}
