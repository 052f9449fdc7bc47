//! The list of experiments, and their selection by name.

use crate::b1::B1;
use crate::b2::B2;
use crate::b3::B3;
use crate::b4::B4;
use crate::b5::B5;
use crate::b6::B6;
use crate::b7::B7;
use crate::b8::B8;
use crate::b9::B9;
use crate::b10::B10;
use crate::b11::B11;
use crate::b12::B12;
use crate::b13::B13;
use crate::b14::B14;
use crate::b15::B15;
use crate::b16::B16;
use crate::d1::D1;
use crate::d2::D2;
use crate::d3a::D3a;
use crate::d3b::D3b;
use crate::d4::D4;
use crate::d5::D5;
use crate::d6::D6;
use crate::d7::D7;
use crate::d8::D8;
use crate::d9::D9;
use crate::d10::D10;
use crate::d11::D11;
use crate::d12::D12;
use crate::d13::D13;
use crate::d14::D14;
use crate::d15::D15;
use crate::d16::D16;
use crate::d17::D17;
use crate::experiment::{Claim, Experiment};
use crate::f1::F1;
use crate::f2::F2;
use crate::f3::F3;
use crate::f4::F4;
use crate::f5::F5;
use crate::f6::F6;
use crate::f7::F7;
use crate::f8::F8;
use crate::f9::F9;
use crate::f10::F10;
use crate::f11::F11;
use crate::p1::{P1, P2, P3, P4, P5, P6, P7, P9};
use crate::p8::P8;
use crate::s1::S1;
use crate::s2::S2;
use crate::s3::S3;
use crate::s4::S4;
use crate::s5::S5;
use crate::s6::S6;
use crate::s7::S7;
use crate::s8::S8;
use crate::s9::S9;
use crate::s10::S10;
use crate::s11::S11;
use crate::s12::S12;
use crate::s13::S13;
use crate::s14::S14;
use crate::s15::S15;
use crate::s16::S16;
use crate::x1::X1;
use crate::x2::X2;
use crate::x3::X3;
use crate::x4::X4;
use crate::x8::X8;
use crate::x9::X9;
use crate::x10::X10;
use crate::x11::X11;

/// Every experiment, in the order of the report.
pub fn all() -> Vec<&'static dyn Experiment> {
    vec![
        //
        &F1, &F2, &F3, &F4, &F5, &F6, &F7, &F8, &F9, &F10, &F11, &S1, &S2, &S3, &S4, &S5, &S6, &S7, &S8, &S9, &S10,
        &S11, &S12, &S13, &S14, &S15, &S16, &B1, &B2, &B3, &B4, &B5, &B6, &B7, &B8, &B9, &B10, &B11, &B12, &B13, &B14,
        &B15, &B16, &D1, &D2, &D3a, &D3b, &D4, &D5, &D6, &D7, &D8, &D9, &D10, &D11, &D12, &D13, &D14, &D15, &D16, &D17,
        &P1, &P2, &P3, &P4, &P5, &P6, &P7, &P8, &P9, &X1, &X2, &X3, &X4, &X8, &X9, &X10, &X11,
    ]
}

/// An experiment, and the selected claims.
#[derive(Clone)]
pub struct Selected {
    /// The experiment.
    pub experiment: &'static dyn Experiment,
    /// Ids of the claims; `None`: all of them.
    only: Option<Vec<&'static str>>,
}

impl Selected {
    /// The experiment with all its claims.
    pub fn whole(experiment: &'static dyn Experiment) -> Selected {
        Selected { experiment, only: None }
    }

    /// The selected claims; in a shortened run, those that it can show.
    pub fn claims(&self, quick: bool) -> impl Iterator<Item = &'static Claim> + '_ {
        self.experiment
            .spec()
            .claims
            .iter()
            .filter(move |c| c.quick || !quick)
            .filter(|c| self.only.as_ref().is_none_or(|only| only.contains(&c.id)))
    }
}

/// An unknown name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no experiment, claim or group is called '{name}'; known: {known}")]
pub struct UnknownName {
    /// The requested name.
    pub name: String,
    /// All valid names, separated by commas.
    pub known: String,
}

/// Selects the experiments of some names, in the registry's order, each once. A name is an
/// experiment's id (`F1`), a claim's (`F1a`) or a group's (`F`: all experiments whose id is that
/// and a number); case-insensitive. No names: everything.
pub fn select(experiments: &[&'static dyn Experiment], names: &[String]) -> Result<Vec<Selected>, UnknownName> {
    if names.is_empty() {
        return Ok(experiments.iter().map(|e| Selected::whole(*e)).collect());
    }
    let mut chosen: Vec<Option<Selected>> = vec![None; experiments.len()];
    for name in names {
        let mut found = false;
        for (slot, experiment) in chosen.iter_mut().zip(experiments) {
            let spec = experiment.spec();
            if name.eq_ignore_ascii_case(spec.id) || name.eq_ignore_ascii_case(group(spec.id)) {
                *slot = Some(Selected::whole(*experiment));
                found = true;
            } else if let Some(claim) = spec.claims.iter().find(|c| name.eq_ignore_ascii_case(c.id)) {
                let selected = slot.get_or_insert_with(|| Selected { experiment: *experiment, only: Some(Vec::new()) });
                if let Some(only) = &mut selected.only {
                    only.push(claim.id);
                }
                found = true;
            }
        }
        if !found {
            return Err(UnknownName { name: name.clone(), known: known(experiments) });
        }
    }
    Ok(chosen.into_iter().flatten().collect())
}

/// The letters before an id's number.
pub fn group(id: &str) -> &str {
    id.split(|c: char| c.is_ascii_digit()).next().unwrap_or(id)
}

fn known(experiments: &[&'static dyn Experiment]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for e in experiments {
        let spec = e.spec();
        if !names.contains(&group(spec.id)) {
            names.push(group(spec.id));
        }
        names.push(spec.id);
        names.extend(spec.claims.iter().map(|c| c.id).filter(|c| *c != spec.id));
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Test;
    use crate::runner::tests::Fake;

    fn pick(names: &[&str]) -> Result<Vec<Selected>, UnknownName> {
        let names: Vec<String> = names.iter().map(|s| (*s).to_string()).collect();
        select(&[&Fake], &names)
    }

    fn ids(selected: &[Selected]) -> Vec<&'static str> {
        selected.iter().flat_map(|s| s.claims(false).map(|c| c.id)).collect()
    }

    #[test]
    fn experiments_are_found_by_id_by_group_and_by_claim() {
        assert_eq!(ids(&pick(&[]).unwrap()), ["T1a", "T1b"]);
        assert_eq!(ids(&pick(&["T1"]).unwrap()), ["T1a", "T1b"]);
        assert_eq!(ids(&pick(&["t"]).unwrap()), ["T1a", "T1b"]);
        assert_eq!(ids(&pick(&["T1b"]).unwrap()), ["T1b"]);
        assert_eq!(ids(&pick(&["T1b", "T1"]).unwrap()), ["T1a", "T1b"]);
        assert_eq!(ids(&pick(&["T1", "T1b"]).unwrap()), ["T1a", "T1b"]);
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let e = pick(&["T9"]).err().unwrap().to_string();
        assert!(e.contains("'T9'") && e.contains("T, T1, T1a, T1b"), "{e}");
        assert!(pick(&[""]).is_err());
    }

    #[test]
    fn every_claim_has_a_name_of_its_own_under_its_experiments() {
        let mut seen = Vec::new();
        for e in all() {
            let spec = e.spec();
            assert!(!spec.claims.is_empty() && e.steps() > 0, "{}", spec.id);
            for c in spec.claims {
                assert!(c.id.starts_with(spec.id), "{} in {}", c.id, spec.id);
                assert!(!c.checks.is_empty(), "{}", c.id);
                assert!(!seen.contains(&c.id), "{} twice", c.id);
                seen.push(c.id);
            }
        }
    }

    /// Each rule exists as text and as code; the two must agree.
    #[test]
    fn every_limit_of_a_condition_stands_in_the_rules_text() {
        for c in all().iter().flat_map(|e| e.spec().claims) {
            for check in c.checks {
                let limits = match check.test {
                    Test::Between(a, b) => vec![a, b],
                    Test::AtLeast(a) | Test::AtMost(a) | Test::Below(a) => vec![a],
                    Test::Never => vec![],
                };
                for limit in limits {
                    // "Within" refers to both sides.
                    let said =
                        c.rule.contains(&limit.abs().to_string()) || (limit == 90.0 && c.rule.contains("nine in ten"));
                    assert!(said, "{}: {limit} is not in \"{}\"", c.id, c.rule);
                }
            }
        }
    }
}
