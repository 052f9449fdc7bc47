use super::*;

fn all_of(b: &Budget, owner: u32, client: ClientId, bytes: u64) -> Vec<Share> {
    std::iter::from_fn(|| b.try_share(owner, client, bytes)).collect()
}

#[tokio::test]
async fn a_share_is_there_again_when_it_was_given_back() {
    let b = Budget::new(16, 16 * UNIT, 1);
    let [client, other] = [b.client(), b.client()];
    // Half of its owner's part, and half of the shared one.
    let mut shares = all_of(&b, 0, client, UNIT);
    assert_eq!(shares.len(), 8);
    assert!(b.try_share(0, client, 0).is_none(), "requests are counted, too");
    shares.pop();
    assert!(b.try_share(0, client, 2 * UNIT).is_none());
    assert!(b.try_share(0, client, UNIT).is_some());
    drop(shares);
    // Larger than the budget: it waits until the shared part is unused and takes all of it.
    let small = (0..8).map(|_| b.try_share(0, other, UNIT).expect("room")).collect::<Vec<_>>();
    let large = tokio::spawn({
        let b = b.clone();
        async move { b.share(0, client, 1 << 40).await }
    });
    tokio::task::yield_now().await;
    assert!(!large.is_finished());
    drop(small);
    let large = large.await.unwrap();
    assert_eq!(all_of(&b, 0, other, UNIT).len(), 4, "its owner's part is left");
    drop(large);
    assert_eq!(all_of(&b, 0, other, UNIT).len(), 8);
}

#[tokio::test]
async fn an_endless_client_leaves_others_their_shares_and_keeps_its_own() {
    let b = Budget::new(8_000, 8_000 * UNIT, 4);
    let greedy: Vec<Vec<Share>> = (0..9).map(|_| all_of(&b, 0, b.client(), UNIT)).collect();
    // 4,000 are shared, and 1,000 are their owner's. Each client holds as much as it leaves
    // free, so the first has half, and later ones have half of what they find.
    assert_eq!(greedy[0].len(), 2_500);
    // Another client of the same owner still finds room, and one of another owner half of its
    // part.
    assert!(b.try_share(0, b.client(), UNIT).is_some());
    assert!(all_of(&b, 1, b.client(), UNIT).len() >= 500);
    // While a client that holds nothing of the shared part waits for it, others take nothing
    // from it.
    let large = tokio::spawn({
        let (b, new) = (b.clone(), b.client());
        async move { b.share(2, new, 1_500 * UNIT).await }
    });
    tokio::task::yield_now().await;
    let before = b.lock().parts[4].free;
    assert!(!all_of(&b, 1, b.client(), UNIT).is_empty(), "its owner's part is there for it");
    assert!(!large.is_finished() && b.lock().parts[4].free == before);
    let patient = b.client();
    let mine = all_of(&b, 0, patient, UNIT).len();
    let waits = tokio::spawn({
        let b = b.clone();
        async move { b.share(0, patient, 64 * UNIT).await }
    });
    tokio::task::yield_now().await;
    assert!(!waits.is_finished() && mine < 64);
    // Room is not kept for a waiter that has been cancelled.
    let gone = tokio::spawn({
        let b = b.clone();
        async move { b.share(0, patient, 2_000 * UNIT).await }
    });
    tokio::task::yield_now().await;
    gone.abort();
    drop(greedy);
    waits.await.unwrap();
    drop(large.await.unwrap());
    assert!(gone.await.is_err());
    let inner = b.lock();
    assert!(inner.waiting.is_empty() && inner.parts.iter().all(|p| p.free == p.all && p.held.is_empty()));
}

#[tokio::test]
async fn an_owner_with_a_limit_holds_its_own_part_and_a_quarter_of_the_shared_one_at_most() {
    // 4,000 are shared, and 1,000 are each owner's.
    let b = Budget::new(8_000, 8_000 * UNIT, 4);
    b.set_limited([true, false, true].into_iter());
    let slow: Vec<Vec<Share>> = (0..20).map(|_| all_of(&b, 0, b.client(), UNIT)).collect();
    assert!((990..=1_000).contains(&slow.iter().map(Vec::len).sum::<usize>()), "its own part");
    // A request that waits for its own part holds up none that waits for the shared one.
    let waits = tokio::spawn({
        let (b, client) = (b.clone(), b.client());
        async move { b.share(0, client, 900 * UNIT).await }
    });
    tokio::task::yield_now().await;
    assert_eq!(all_of(&b, 1, b.client(), UNIT).len(), 2_500, "as if there were no other");
    // Requests that their own part could not hold take from the shared part, in turn.
    let large = b.try_share(0, b.client(), 1_001 * UNIT).expect("room");
    assert_eq!(b.lock().all_limited.units, 1_000);
    let next = tokio::spawn({
        let (b, client) = (b.clone(), b.client());
        async move { b.share(2, client, 1_500 * UNIT).await }
    });
    tokio::task::yield_now().await;
    assert!(!next.is_finished() && !waits.is_finished());
    assert!(b.try_share(1, b.client(), 1_400 * UNIT).is_some(), "others have the rest");
    drop(large);
    drop(next.await.unwrap());
    drop(slow);
    drop(waits.await.unwrap());
    let inner = b.lock();
    assert_eq!((inner.all_limited, inner.shared[2]), (Amount::default(), Amount::default()));
    assert!(inner.waiting.is_empty() && inner.parts.iter().all(|p| p.free == p.all && p.held.is_empty()));
}

#[tokio::test]
async fn a_large_request_of_an_owner_with_a_limit_is_not_passed_over_for_ever() {
    let b = Budget::new(8_000, 8_000 * UNIT, 4);
    b.set_limited([true].into_iter());
    // Four clients without a limit leave a fifth of the shared part, and each takes again what
    // becomes free.
    let clients: Vec<ClientId> = (0..4).map(|_| b.client()).collect();
    let mut held: VecDeque<Share> = clients.iter().flat_map(|&client| all_of(&b, 1, client, UNIT)).collect();
    let large = tokio::spawn({
        let (b, client) = (b.clone(), b.client());
        async move { b.share(0, client, 1_200 * UNIT).await }
    });
    tokio::task::yield_now().await;
    assert!(!large.is_finished());
    for _ in 0..2 * held.len() {
        held.pop_front();
        held.extend(clients.iter().filter_map(|&client| b.try_share(1, client, UNIT)));
        tokio::task::yield_now().await;
        if large.is_finished() {
            return;
        }
    }
    panic!("others took what became free");
}

#[tokio::test]
async fn what_an_owner_took_before_it_got_a_limit_stalls_no_other() {
    let b = Budget::new(8_000, 8_000 * UNIT, 4);
    let held: Vec<Vec<Share>> = (0..9).map(|_| all_of(&b, 0, b.client(), UNIT)).collect();
    // More than its part: it would wait until the shared part is unused.
    let large = tokio::spawn({
        let (b, client) = (b.clone(), b.client());
        async move { b.share(1, client, 1_500 * UNIT).await }
    });
    tokio::task::yield_now().await;
    assert!(!large.is_finished());
    b.set_limited([true].into_iter());
    let large = large.await.unwrap();
    assert!(b.try_share(1, b.client(), 1_500 * UNIT).is_none(), "one at a time");
    b.set_limited([false].into_iter());
    assert_eq!(b.lock().all_limited, Amount::default());
    drop((held, large));
    let inner = b.lock();
    assert!(inner.parts.iter().all(|p| p.free == p.all) && inner.shared.iter().all(|s| *s == Amount::default()));
}
