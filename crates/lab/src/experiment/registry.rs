//! The list of experiments, and their selection by name.

use super::{Claim, Experiment};
use crate::{characterisation, combined, fair_queueing, freeblock_lumb, freeblock_thereska, guarantees};

/// The groups, in the order of the report.
const GROUPS: [&[Experiment]; 6] = [
    freeblock_lumb::ALL,
    freeblock_thereska::ALL,
    fair_queueing::ALL,
    guarantees::ALL,
    characterisation::ALL,
    combined::ALL,
];

/// Every experiment, in the order of the report.
pub fn all() -> Vec<&'static Experiment> {
    GROUPS.into_iter().flatten().collect()
}

/// An experiment, and the selected claims.
#[derive(Clone)]
pub struct Selected {
    /// The experiment.
    pub experiment: &'static Experiment,
    /// Ids of the claims; `None`: all of them.
    only: Option<Vec<&'static str>>,
}

impl Selected {
    /// The experiment with all its claims.
    pub fn whole(experiment: &'static Experiment) -> Selected {
        Selected { experiment, only: None }
    }

    /// The selected claims; in a shortened run, those that it can show.
    pub(crate) fn claims(&self, quick: bool) -> impl Iterator<Item = &'static Claim> + '_ {
        self.experiment
            .spec
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
pub fn select(experiments: &[&'static Experiment], names: &[String]) -> Result<Vec<Selected>, UnknownName> {
    if names.is_empty() {
        return Ok(experiments.iter().map(|e| Selected::whole(e)).collect());
    }
    let mut chosen: Vec<Option<Selected>> = vec![None; experiments.len()];
    for name in names {
        let mut found = false;
        for (slot, experiment) in chosen.iter_mut().zip(experiments) {
            let spec = experiment.spec;
            if name.eq_ignore_ascii_case(spec.id) || name.eq_ignore_ascii_case(group(spec.id)) {
                *slot = Some(Selected::whole(experiment));
                found = true;
            } else if let Some(claim) = spec.claims.iter().find(|c| name.eq_ignore_ascii_case(c.id)) {
                let selected = slot.get_or_insert_with(|| Selected { experiment, only: Some(Vec::new()) });
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

fn known(experiments: &[&'static Experiment]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for e in experiments {
        let spec = e.spec;
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
    use crate::experiment::runner::tests::FAKE;

    fn pick(names: &[&str]) -> Result<Vec<Selected>, UnknownName> {
        let names: Vec<String> = names.iter().map(|s| (*s).to_string()).collect();
        select(&[&FAKE], &names)
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
            let spec = e.spec;
            assert!(!spec.claims.is_empty() && e.steps > 0, "{}", spec.id);
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
        for c in all().iter().flat_map(|e| e.spec.claims) {
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

    /// Each group's page of documentation begins with the list of its experiments.
    #[test]
    fn the_table_of_each_group_agrees_with_its_list() {
        let tables = [
            include_str!("../freeblock_lumb/mod.rs"),
            include_str!("../freeblock_thereska/mod.rs"),
            include_str!("../fair_queueing/mod.rs"),
            include_str!("../guarantees/mod.rs"),
            include_str!("../characterisation/mod.rs"),
            include_str!("../combined/mod.rs"),
        ];
        for (text, group) in tables.into_iter().zip(GROUPS) {
            let rows: Vec<Vec<&str>> = text
                .lines()
                .filter_map(|line| line.strip_prefix("//! | ")?.strip_suffix(" |"))
                .filter(|row| !row.starts_with("id "))
                .map(|row| row.split(" | ").collect())
                .collect();
            let ids: Vec<&str> = group.iter().map(|e| e.spec.id).collect();
            assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), ids);
            for (row, experiment) in rows.iter().zip(group) {
                let [id, source, file] = row[..] else { panic!("{row:?}") };
                assert!(experiment.spec.source.contains(source), "{id}: {source}");
                let file = file.trim_matches('`');
                let number = file[1..].trim_start_matches('0');
                assert!(format!("{}{number}_", &file[..1]).starts_with(&format!("{}_", id.to_lowercase())), "{file}");
                assert!(text.contains(&format!("\nmod {file};\n")), "{file}");
                assert!(text.contains(&format!("    {file}::{},\n", id.to_uppercase())), "{file}");
            }
        }
    }
}
