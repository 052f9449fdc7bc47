//! Tests of a job's progress and its journal.

use super::*;

fn progress(disk: &str, len: u64) -> Progress {
    let units = Units::new(vec![TaskRange { lbn: 16, count: len * 8 - 3 }], 8, 1 << 20, 512).unwrap();
    Progress::new("scrub", disk, 1 << 20, 512, "data", units)
}

#[test]
fn what_is_left_is_what_was_not_marked() {
    let mut p = progress("d", 200);
    for i in (0..200).filter(|i| !(70..=130).contains(i) && i % 50 != 0) {
        assert!(p.mark(i) && !p.mark(i));
    }
    let left = p.left(100);
    let expect = |i: u64, n: u64| TaskRange { lbn: 16 + i * 8, count: n * 8 };
    assert_eq!(left, [expect(0, 1), expect(50, 1), expect(70, 61), expect(150, 1)]);
    assert_eq!(p.bytes(), ((200 - 64) * 4096 - 3 * 512, 200 * 4096 - 3 * 512));
    assert_eq!(p.next_left(199), None);
}

#[test]
fn what_is_too_fragmented_is_taken_together() {
    let mut p = progress("d", 2000);
    (0..2000).filter(|i| i % 2 == 1).for_each(|i| _ = p.mark(i));
    let left = p.left(10);
    assert!(left.len() <= 10);
    for i in (0..2000).step_by(2) {
        let r = p.units().range(i);
        assert!(left.iter().any(|l| l.lbn <= r.lbn && r.end() <= l.end()));
    }
    assert_eq!(p.left(1000).len(), 1000);
}

#[test]
fn a_journal_brings_everything_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("j");
    let mut p = progress("d", 130);
    assert!(!p.resume(&path).unwrap());
    [0, 63, 64, 129].into_iter().for_each(|i| _ = p.mark(i));
    p.unreadable(TaskRange { lbn: 40, count: 2 });
    p.notes.promoted_bytes = 7;
    p.save(&path).unwrap();
    let mut q = progress("d", 130);
    assert!(q.resume(&path).unwrap());
    assert_eq!((q.done(), q.bytes(), q.left(9)), (4, p.bytes(), p.left(9)));
    assert_eq!((q.unreadable_ranges(), &q.notes), (p.unreadable_ranges(), &p.notes));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else is left beside it");
}

#[test]
fn what_is_longer_than_a_journal_is_not_read_to_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("j");
    let mut p = progress("d", 130);
    p.save(&path).unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
    let e = p.resume(&path).unwrap_err().to_string();
    assert!(e.contains("longer than one of this job can be"), "{e}");
}

/// A link that another user may have created, to a journal that says which units to skip.
#[test]
fn no_link_is_followed_to_a_journal() {
    let dir = tempfile::tempdir().unwrap();
    let (path, theirs) = (dir.path().join("j"), dir.path().join("theirs"));
    let mut p = progress("d", 130);
    p.mark(5);
    p.save(&theirs).unwrap();
    std::os::unix::fs::symlink(&theirs, &path).unwrap();
    let e = progress("d", 130).resume(&path).unwrap_err().to_string();
    assert!(e.contains("expected a file, found a symbolic link"), "{e}");
    assert!(may_begin_anew(&path).is_err());
    std::fs::remove_file(&path).unwrap();
    std::fs::hard_link(&theirs, &path).unwrap();
    assert!(progress("d", 130).resume(&path).is_err() && may_begin_anew(&path).is_err());
}

#[test]
fn a_journal_of_another_job_is_refused_and_says_how_it_differs() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("j");
    progress("d", 130).save(&path).unwrap();
    let e = progress("e", 130).resume(&path).unwrap_err();
    assert!(matches!(&e, JournalError::Foreign { how, .. } if how == "disk: expected e, found d"), "{e}");
    assert!(matches!(progress("d", 131).resume(&path), Err(JournalError::Foreign { .. })));
}

#[test]
fn a_journal_with_any_byte_changed_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("j");
    let mut p = progress("d", 130);
    p.mark(5);
    p.save(&path).unwrap();
    let whole = std::fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut text = whole.clone();
        text[at] ^= 1;
        std::fs::write(&path, &text).unwrap();
        assert!(matches!(p.resume(&path), Err(JournalError::Damaged { .. })), "byte {at}");
        std::fs::write(&path, &whole[..at]).unwrap();
        assert!(matches!(p.resume(&path), Err(JournalError::Damaged { .. })), "cut at {at}");
    }
    assert_eq!(p.done(), 1, "and nothing was changed by it");
}
