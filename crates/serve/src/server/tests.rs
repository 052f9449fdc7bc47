use super::*;

#[test]
fn a_cache_that_failed_is_not_a_good_end() {
    let said = Mutex::new(Vec::new());
    let note = |export, what: String| said.lock().unwrap().push((export, what));
    let good = Left { flushed: true, ..Left::default() };
    assert!(written_out(&[(0, Some(good))], note).is_ok());
    assert!(said.lock().unwrap().is_empty());
    assert!(matches!(written_out(&[(0, Some(good)), (3, None)], note), Err(ServeError::CacheFailed)));
    assert!(matches!(&said.lock().unwrap()[..], [(3, what)] if what.contains("may be lost")));
    let bad = Left { bytes: 4096, ..Left::default() };
    assert!(matches!(written_out(&[(0, None), (1, Some(bad))], note), Err(ServeError::Lost(4096))));
}
