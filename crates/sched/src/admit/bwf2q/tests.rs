//! Order and fairness of budgets, on cases worked out by hand.

use super::*;

/// Serves `budgets` whole budgets; returns the sectors of each application.
fn serve(q: &mut Bwf2q, applications: &[(u64, u64)], budgets: usize) -> Vec<u64> {
    let mut got = vec![0; applications.len()];
    for _ in 0..budgets {
        let a = q.choose().unwrap() as usize;
        let (weight, budget) = applications[a];
        q.served(budget);
        got[a] += budget;
        q.expire(budget, Some((weight, budget)));
    }
    got
}

#[test]
fn service_is_in_proportion_to_weights_whatever_the_budgets() {
    let mut q = Bwf2q::new();
    let applications = [(1, 64), (2, 1024), (3, 8), (4, 256), (10, 100)];
    for (a, &(weight, budget)) in applications.iter().enumerate() {
        q.activate(a as u32, weight, budget, Since::Idle);
    }
    let got = serve(&mut q, &applications, 20_000);
    let all: u64 = got.iter().sum();
    for (a, &(weight, _)) in applications.iter().enumerate() {
        let due = all as f64 * weight as f64 / 20.0;
        // One budget of its own ahead, or one of the largest behind.
        assert!((got[a] as f64 - due).abs() <= 1024.0 + 64.0, "{a}: {} of {due}", got[a]);
    }
}

#[test]
fn of_those_that_have_begun_the_first_to_end_goes_and_small_budgets_go_first() {
    let mut q = Bwf2q::new();
    q.activate(1, 100, 1_000, Since::Idle);
    q.activate(2, 100, 10, Since::Idle);
    q.activate(3, 300, 1_500, Since::Idle);
    assert_eq!(q.choose(), Some(2));
    q.served(10);
    q.expire(10, Some((100, 10)));
    // Its next budget has not started in the ideal system: it is ahead of its ideal service.
    assert_eq!(q.choose(), Some(3));
}

/// Two applications of equal weight: the first was served its 10 sectors and is idle; the
/// second is in service.
fn one_has_gone() -> Bwf2q {
    let mut q = Bwf2q::new();
    q.activate(1, 1, 10, Since::Idle);
    q.activate(2, 1, 1_000, Since::Idle);
    assert_eq!(q.choose(), Some(1));
    q.served(10);
    q.expire(10, None);
    assert_eq!(q.choose(), Some(2));
    q
}

#[test]
fn an_idle_application_loses_its_time_and_a_deceptively_idle_one_does_not() {
    let start = |since| {
        let mut q = one_has_gone();
        q.served(1_000);
        q.activate(1, 1, 10, since);
        (q.stamps(1).unwrap().start, q.now())
    };
    let (idle, now) = start(Since::Idle);
    assert_eq!(idle, now);
    let (deceptive, now) = start(Since::Deceptively { most: 10_000 });
    assert_eq!(deceptive, Virtual(10 << 32));
    assert!(deceptive < now);
    let (bounded, now) = start(Since::Deceptively { most: 100 });
    assert_eq!(bounded.0 + (100 << 32), now.0);
}

#[test]
fn virtual_time_waits_for_a_deceptively_idle_application() {
    let mut q = one_has_gone();
    assert_eq!(q.now(), Virtual(5 << 32));
    // The first counts until 10, which takes 10 sectors, and not from there to 40.
    q.served(40);
    assert_eq!(q.now(), Virtual(40 << 32));
    q.activate(1, 1, 50, Since::Deceptively { most: 100 });
    q.served(30);
    assert_eq!(q.now(), Virtual(40 << 32));
    // The same value as if both had been served throughout.
    q.served(20);
    assert_eq!(q.now(), Virtual(50 << 32));
}

#[test]
fn virtual_time_does_not_wait_for_what_is_lost() {
    let mut q = one_has_gone();
    q.served(40);
    q.activate(1, 1, 50, Since::Deceptively { most: 8 });
    q.served(10);
    assert_eq!(q.now(), Virtual(41 << 32));
}

#[test]
fn an_application_that_is_charged_more_comes_later() {
    let mut q = Bwf2q::new();
    for a in [1, 2] {
        q.activate(a, 1, 100, Since::Idle);
    }
    assert_eq!(q.choose(), Some(1));
    q.served(20);
    q.expire(100, Some((1, 100)));
    assert_eq!(q.choose(), Some(2));
    q.served(20);
    q.expire(20, Some((1, 100)));
    assert_eq!((q.choose(), q.stamps(1).unwrap().start), (Some(2), Virtual(100 << 32)));
}

#[test]
fn a_backlogged_application_is_always_served() {
    let mut q = Bwf2q::new();
    assert_eq!(q.choose(), None);
    q.activate(1, 1, 10, Since::Idle);
    assert_eq!(q.choose(), Some(1));
    q.served(10);
    // The charge far exceeds the service: its start is far in the future, and no other
    // application is backlogged.
    q.expire(1_000, Some((1, 10)));
    assert!(q.stamps(1).unwrap().start > q.now());
    assert_eq!(q.choose(), Some(1));
    assert_eq!(q.now(), Virtual(1_000 << 32));
}

#[test]
fn a_withdrawn_application_takes_its_weight_along() {
    let mut q = Bwf2q::new();
    q.activate(1, 3, 10, Since::Idle);
    q.activate(2, 1, 10, Since::Idle);
    q.withdraw(1);
    assert_eq!((q.backlogged(), q.choose()), (1, Some(2)));
    q.served(8);
    assert_eq!(q.now(), Virtual(8 << 32));
    q.expire(8, None);
    q.forget(2);
    q.forget(1);
    assert_eq!((q.backlogged(), q.choose()), (0, None));
}
