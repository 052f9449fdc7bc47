//! B-WF²Q+ against an implementation that examines every application, decision by decision.
//! `admit_fluid.rs` compares it with the ideal system.

use headtime_sched::internals::bwf2q::{Bwf2q, Since};
use headtime_testkit::fair::Naive;
use proptest::prelude::*;

/// An event of an application, or of the one being served.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// It becomes backlogged, if it is idle.
    Arrives { number: u32, weight: u64, budget: u64, since: Since },
    /// Its requests are withdrawn, if it is waiting.
    Withdraws { number: u32 },
    /// It is removed, if it is idle.
    Goes { number: u32 },
    /// The active one is served this number of sectors, or one is chosen.
    Served { sectors: u64 },
    /// It is served next if it is waiting and no other is served, in place of the first by the
    /// order of budgets.
    Chosen { number: u32 },
    /// The active one's budget ends: this number of sectors is charged beyond those served.
    Over { more: u64, next: Option<(u64, u64)> },
}

const MAX_SERVICE: u64 = 5_000;

fn since() -> impl Strategy<Value = Since> {
    prop_oneof![Just(Since::Idle), (0..4 * MAX_SERVICE).prop_map(|most| Since::Deceptively { most })]
}

/// Few weights and budgets, so that finish times are often equal; or all of them.
fn weight_and_budget() -> impl Strategy<Value = (u64, u64)> {
    prop_oneof![((1..=2_u64).prop_map(|w| w * 100), (1..=3_u64).prop_map(|b| b * 64)), (1..=1_000_u64, 1..=MAX_SERVICE)]
}

fn step(applications: u32) -> impl Strategy<Value = Step> {
    let n = 0..applications;
    prop_oneof![
        4 => (n.clone(), weight_and_budget(), since())
            .prop_map(|(number, (weight, budget), since)| Step::Arrives { number, weight, budget, since }),
        1 => n.clone().prop_map(|number| Step::Withdraws { number }),
        1 => n.clone().prop_map(|number| Step::Goes { number }),
        2 => n.prop_map(|number| Step::Chosen { number }),
        5 => (0..MAX_SERVICE).prop_map(|sectors| Step::Served { sectors }),
        3 => (prop_oneof![Just(0), 0..MAX_SERVICE], prop::option::weighted(0.6, weight_and_budget()))
            .prop_map(|(more, next)| Step::Over { more, next }),
    ]
}

/// Runs both; fails where they differ.
fn compare(applications: u32, steps: &[Step]) -> Result<(), TestCaseError> {
    let (mut quick, mut naive) = (Bwf2q::new(), Naive::default());
    let mut served = 0;
    for (i, &step) in steps.iter().enumerate() {
        let idle = |q: &Bwf2q, number| q.stamps(number).is_none();
        match step {
            Step::Arrives { number, weight, budget, since } if idle(&quick, number) => {
                quick.activate(number, weight, budget, since);
                naive.activate(number, weight, budget, since);
            }
            Step::Withdraws { number } if !idle(&quick, number) && quick.active() != Some(number) => {
                quick.withdraw(number);
                naive.withdraw(number);
            }
            Step::Goes { number } if idle(&quick, number) => {
                quick.forget(number);
                naive.forget(number);
            }
            Step::Served { sectors } if quick.active().is_some() => {
                quick.served(sectors);
                naive.served(sectors);
                served += sectors;
            }
            Step::Served { .. } => {
                let next = quick.choose();
                prop_assert_eq!(next, naive.choose(), "step {}", i);
                served = 0;
            }
            Step::Chosen { number } if quick.active().is_none() && !idle(&quick, number) => {
                quick.choose_this(number);
                naive.choose_this(number);
                served = 0;
            }
            Step::Over { more, next } if quick.active().is_some() => {
                quick.served(more);
                naive.served(more);
                quick.expire(served + more, next);
                naive.expire(served + more, next);
            }
            _ => {}
        }
        prop_assert_eq!(quick.now().0, naive.now(), "step {}: {:?}", i, step);
        let within = quick.within(MAX_SERVICE / 4).collect::<Vec<_>>();
        prop_assert_eq!(within, naive.within(MAX_SERVICE / 4), "step {}: {:?}", i, step);
    }
    let waiting = (0..applications).filter(|a| quick.stamps(*a).is_some()).count();
    prop_assert_eq!(quick.backlogged(), waiting);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_decision_is_that_of_looking_at_everybody(
        (applications, steps) in (2..40_u32).prop_flat_map(|n| (Just(n), prop::collection::vec(step(n), 1..600)))
    ) {
        compare(applications, &steps)?;
    }
}
