use std::fs;

use super::*;
use crate::scratch::Scratch;

/// A tree with one disk and this process. Regular files do not put brackets around a choice, so a
/// value reads back as written; and they keep the tail of a longer previous value, so values here
/// never get shorter.
struct Tree {
    scratch: Scratch,
    sys: Sys,
}

impl Tree {
    fn new(name: &str) -> Tree {
        let scratch = Scratch::new(&format!("tuning-{name}"));
        let mut sys = Sys::below(scratch.path());
        sys.proc = "/proc".into();
        let tree = Tree { scratch, sys };
        for (name, value) in [
            ("dev", "8:0"),
            ("size", "1024"),
            ("ro", "0"),
            ("diskseq", "5"),
            ("device/model", "ST4000DM000-1F21"),
            ("queue/logical_block_size", "512"),
            ("queue/physical_block_size", "4096"),
            ("queue/rotational", "1"),
            ("queue/write_cache", "write back"),
            ("queue/scheduler", "fifo"),
            ("queue/nomerges", "0"),
        ] {
            tree.set(name, value);
        }
        fs::create_dir_all(tree.sys.sys.join("dev/block")).unwrap();
        std::os::unix::fs::symlink(tree.sys.block("sda"), tree.sys.sys.join("dev/block/8:0")).unwrap();
        tree
    }

    fn set(&self, name: &str, value: &str) {
        self.scratch.file(&format!("sys/class/block/sda/{name}"), value);
    }

    fn get(&self, name: &str) -> String {
        fs::read_to_string(self.sys.block("sda").join(name)).unwrap()
    }

    fn state(&self) -> PathBuf {
        self.scratch.path().join("state")
    }

    fn apply(&self) -> Result<Tuning, TuningError> {
        let device = BlockDevice::with_number(&self.sys, Path::new("/dev/sda"), DeviceNumber { major: 8, minor: 0 });
        Tuning::apply(&self.sys, &device.unwrap(), &self.state())
    }

    /// Leaves what a tuning process leaves when it crashes.
    fn crashed(&self) {
        let tuning = self.apply().unwrap();
        let path = tuning.path().to_path_buf();
        let mut record = state::read::<Record>(&path).unwrap().unwrap();
        std::mem::forget(tuning);
        record.owner.started += 1;
        state::replace(&path, &record).unwrap();
    }

    fn leftovers(&self) -> Vec<Leftover> {
        restore_leftovers(&self.sys, &self.state()).unwrap()
    }

    fn files(&self) -> usize {
        fs::read_dir(self.state()).unwrap().count()
    }
}

#[test]
fn a_queue_is_set_and_put_back() {
    let tree = Tree::new("set");
    let tuning = tree.apply().unwrap();
    assert_eq!((tree.get("queue/scheduler"), tree.get("queue/nomerges")), ("none".into(), "2".into()));
    assert_eq!(tuning.settings().len(), 2);
    assert_eq!(tree.files(), 1);
    let restored = tuning.restore().unwrap();
    assert_eq!(restored.put_back, ["nomerges", "scheduler"]);
    assert!(restored.left.is_empty() && restored.file_left.is_none());
    assert_eq!((tree.get("queue/scheduler"), tree.get("queue/nomerges")), ("fifo".into(), "0".into()));
    assert_eq!(tree.files(), 0);
}

#[test]
fn a_dropped_tuning_puts_the_queue_back() {
    let tree = Tree::new("dropped");
    drop(tree.apply().unwrap());
    assert_eq!((tree.get("queue/scheduler"), tree.get("queue/nomerges")), ("fifo".into(), "0".into()));
    assert_eq!(tree.files(), 0);
}

#[test]
fn a_queue_of_a_living_process_is_refused_and_left_alone() {
    let tree = Tree::new("twice");
    let tuning = tree.apply().unwrap();
    match tree.apply().unwrap_err() {
        TuningError::InUse { disk, pid, .. } => assert_eq!((disk.as_str(), pid), ("sda", std::process::id())),
        e => panic!("{e}"),
    }
    assert!(matches!(&tree.leftovers()[..], [Leftover::InUse { pid, .. }] if *pid == std::process::id()));
    assert_eq!(tree.get("queue/nomerges"), "2");
    drop(tuning);
}

#[test]
fn what_a_crash_left_is_put_back() {
    let tree = Tree::new("crash");
    tree.crashed();
    assert!(matches!(tree.apply().unwrap_err(), TuningError::Leftover { .. }));
    match &tree.leftovers()[..] {
        [Leftover::Restored { disk, restored }] => {
            assert_eq!((disk.as_str(), restored.put_back.len()), ("sda", 2));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!((tree.get("queue/scheduler"), tree.get("queue/nomerges")), ("fifo".into(), "0".into()));
    assert_eq!(tree.files(), 0);
    assert!(tree.leftovers().is_empty());
}

#[test]
fn another_disk_with_the_same_name_is_not_touched() {
    let tree = Tree::new("other");
    tree.crashed();
    tree.set("diskseq", "6");
    assert!(matches!(&tree.leftovers()[..], [Leftover::Gone { disk }] if disk == "sda"));
    assert_eq!((tree.get("queue/scheduler"), tree.get("queue/nomerges")), ("none".into(), "2".into()));
    assert_eq!(tree.files(), 0);
}

#[test]
fn without_disk_numbers_the_model_and_size_must_agree() {
    let tree = Tree::new("old-kernel");
    fs::remove_file(tree.sys.block("sda").join("diskseq")).unwrap();
    tree.crashed();
    tree.set("device/model", "WD40EFRX");
    assert!(matches!(&tree.leftovers()[..], [Leftover::Gone { .. }]));
    tree.set("queue/scheduler", "fifo");
    tree.crashed();
    assert!(matches!(&tree.leftovers()[..], [Leftover::Restored { .. }]));
}

#[test]
fn settings_left_before_the_machine_was_started_are_not_restored() {
    let tree = Tree::new("boot");
    tree.crashed();
    let path = state::files(&tree.state(), PREFIX).unwrap().remove(0);
    let mut record = state::read::<Record>(&path).unwrap().unwrap();
    record.owner.boot = "an earlier start".into();
    state::replace(&path, &record).unwrap();
    assert!(matches!(&tree.leftovers()[..], [Leftover::Gone { .. }]));
    assert_eq!(tree.get("queue/nomerges"), "2");
}

#[test]
fn a_disk_that_is_gone_leaves_nothing_to_do() {
    let tree = Tree::new("gone");
    tree.crashed();
    fs::remove_dir_all(tree.sys.block("sda")).unwrap();
    assert!(matches!(&tree.leftovers()[..], [Leftover::Gone { .. }]));
    assert_eq!(tree.files(), 0);
}

#[test]
fn settings_that_another_program_has_changed_stay() {
    let tree = Tree::new("changed");
    let tuning = tree.apply().unwrap();
    tree.set("queue/scheduler", "kyber");
    let restored = tuning.restore().unwrap();
    assert_eq!((restored.put_back, restored.left), (vec!["nomerges".to_string()], vec!["scheduler".to_string()]));
    assert_eq!((tree.get("queue/scheduler"), tree.get("queue/nomerges")), ("kyber".into(), "0".into()));
}

#[test]
fn a_queue_without_schedulers_is_set_as_far_as_it_goes() {
    let tree = Tree::new("bio");
    tree.set("queue/scheduler", "none");
    let tuning = tree.apply().unwrap();
    assert_eq!(tuning.settings().iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["nomerges"]);
    tuning.restore().unwrap();
    fs::remove_file(tree.sys.block("sda").join("queue/scheduler")).unwrap();
    tree.apply().unwrap().restore().unwrap();
}

#[test]
fn a_disk_that_was_exchanged_is_not_set() {
    let tree = Tree::new("exchanged");
    let number = DeviceNumber { major: 8, minor: 0 };
    let device = BlockDevice::with_number(&tree.sys, Path::new("/dev/sda"), number).unwrap();
    tree.set("diskseq", "6");
    let e = Tuning::apply(&tree.sys, &device, &tree.state()).unwrap_err();
    assert!(matches!(e, TuningError::Exchanged { .. }));
    assert_eq!(tree.get("queue/nomerges"), "0");
}

#[test]
fn a_state_file_that_is_not_ours_is_reported_and_kept() {
    let tree = Tree::new("foreign");
    tree.scratch.file("state/tuning-9-9.json", "{}");
    match &tree.leftovers()[..] {
        [Leftover::Failed { path, error }] => {
            assert!(path.ends_with("tuning-9-9.json") && matches!(error, TuningError::State(_)));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(tree.files(), 1);
}

#[test]
fn a_state_file_cannot_make_us_write_elsewhere() {
    let tree = Tree::new("elsewhere");
    tree.crashed();
    tree.set("queue/read_ahead_kb", "128");
    let path = state::files(&tree.state(), PREFIX).unwrap().remove(0);
    let mut record = state::read::<Record>(&path).unwrap().unwrap();
    record.settings = vec![Setting { name: "read_ahead_kb".into(), before: "999".into(), ours: "128".into() }];
    state::replace(&path, &record).unwrap();
    assert!(matches!(&tree.leftovers()[..], [Leftover::Restored { restored, .. }] if restored.put_back.is_empty()));
    assert_eq!(tree.get("queue/read_ahead_kb"), "128");
}

#[test]
fn of_a_choice_the_one_in_brackets_is_meant() {
    assert_eq!(chosen("none [mq-deadline] bfq\n").as_deref(), Some("mq-deadline"));
    assert_eq!(chosen("[none] mq-deadline").as_deref(), Some("none"));
    assert_eq!(chosen("none\n"), None);
    assert_eq!(chosen("0\n").as_deref(), Some("0"));
    assert_eq!(chosen(""), None);
}
