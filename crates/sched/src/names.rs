//! Names of settings as users write them: `sptf-sw:60`, `angle-ep-frag`, `bfq+`.
//!
//! Each enum with such names has `NAMES`, [`std::str::FromStr`] and [`std::fmt::Display`] beside
//! it. Programs parse with these, and make their help and their lists from `NAMES`.

use std::fmt;

/// Longest value that a message repeats, in bytes.
const LONGEST_SHOWN: usize = 40;

/// A text that names no value of a setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// Not one of the names.
    #[error("unknown {what} \"{name}\"; known: {}", known.join(", "))]
    Unknown {
        /// The setting.
        what: &'static str,
        /// The given text.
        name: String,
        /// The known names.
        known: &'static [&'static str],
    },
    /// A known name with a figure out of range.
    #[error("{what}: expected {expected}, found {}", Quoted(found))]
    OutOfRange {
        /// The figure.
        what: &'static str,
        /// The range.
        expected: String,
        /// The given figure.
        found: String,
    },
}

impl NameError {
    /// Makes the error of an unknown name.
    pub fn unknown(what: &'static str, name: &str, known: &'static [&'static str]) -> NameError {
        NameError::Unknown { what, name: name.to_owned(), known }
    }

    /// Makes the error of a figure outside `range`, such as `0 to 1000`.
    pub fn out_of_range(what: &'static str, found: &str, range: impl fmt::Display) -> NameError {
        NameError::OutOfRange { what, expected: range.to_string(), found: found.to_owned() }
    }

    /// Replaces the known names, for a setting that has more of them.
    #[must_use]
    pub fn among(self, names: &'static [&'static str]) -> NameError {
        match self {
            NameError::Unknown { what, name, .. } => NameError::Unknown { what, name, known: names },
            other => other,
        }
    }

    /// Replaces the setting, for a program that calls it by another name.
    #[must_use]
    pub fn of(self, setting: &'static str) -> NameError {
        match self {
            NameError::Unknown { name, known, .. } => NameError::Unknown { what: setting, name, known },
            NameError::OutOfRange { expected, found, .. } => NameError::OutOfRange { what: setting, expected, found },
        }
    }
}

/// A text in quotes, shortened where it is long.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let quoted = format!("\"{}\"", self.0);
        if quoted.len() <= LONGEST_SHOWN {
            return f.write_str(&quoted);
        }
        write!(f, "{}...", quoted.chars().take(LONGEST_SHOWN).collect::<String>())
    }
}

/// Returns the names of both lists, for the constant of a setting that adds some to an enum's.
/// `N` is their number: a wrong one does not compile.
pub const fn joined<const N: usize>(first: &[&'static str], second: &[&'static str]) -> [&'static str; N] {
    assert!(N == first.len() + second.len());
    let mut all = [""; N];
    let mut i = 0;
    while i < N {
        all[i] = if i < first.len() { first[i] } else { second[i - first.len()] };
        i += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admit::Policy;
    use crate::fill::Algorithm;
    use crate::fill::config::Conservatism;
    use crate::fill::placement::Placement;
    use crate::order::Order;
    use headtime_disk::Dur;
    use std::str::FromStr;

    /// Checks that each name, with a figure for its letter, is printed as it was parsed.
    fn round_trip<T: FromStr<Err = NameError> + fmt::Display>(names: &[&str]) {
        for name in names {
            let written = name.replace(":N", ":60").replace(":MS", ":1.5");
            assert_eq!(written.parse::<T>().expect("a known name").to_string(), written);
        }
        match "elevator".parse::<T>() {
            Err(NameError::Unknown { name, known, .. }) => assert_eq!((&*name, known), ("elevator", names)),
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("elevator is a name"),
        }
    }

    #[test]
    fn every_name_is_printed_as_it_is_parsed_and_others_are_refused_with_the_list() {
        round_trip::<Order>(&Order::NAMES);
        round_trip::<Algorithm>(&Algorithm::NAMES);
        round_trip::<Policy>(&Policy::NAMES);
        round_trip::<Placement>(&Placement::NAMES);
    }

    #[test]
    fn switches_of_bfq_are_printed_in_their_order_and_bad_ones_are_named() {
        for (text, printed) in [
            ("bfq+:soft-rt", "bfq+:soft-rt"),
            ("bfq+:merging,bursts", "bfq+:bursts,merging"),
            ("bfq+:bursts,merging,soft-rt", "bfq+:soft-rt,bursts,merging"),
        ] {
            assert_eq!(text.parse::<Policy>().expect("a policy").to_string(), printed);
        }
        for (text, name) in [("bfq+:merge", "merge"), ("bfq+:soft-rt,", ""), ("bfq+: soft-rt", " soft-rt")] {
            match text.parse::<Policy>() {
                Err(NameError::Unknown { name: found, known, .. }) => {
                    assert_eq!((&*found, known), (name, &Policy::SWITCHES[..]));
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(matches!("bfq+:soft-rt,soft-rt".parse::<Policy>(), Err(NameError::OutOfRange { .. })));
        assert!("bfq:soft-rt".parse::<Policy>().is_err());
    }

    #[test]
    fn figures_of_orders_have_a_range() {
        assert_eq!("sptf-sw:60%".parse(), Ok(Order::SptfSw(60)));
        assert_eq!("satf".parse(), Ok(Order::Sptf));
        let fault = |text: &str| text.parse::<Order>().unwrap_err().to_string();
        assert_eq!(fault("sptf-sw:x"), "N of order sptf-sw:N (percent): expected 0 to 1000, found \"x\"");
        assert_eq!(fault("satfuf:-1"), "MS of order satfuf:MS: expected 0 to 1000000, found \"-1\"");
        for unknown in ["sptf-sw", "satfuf", "fcfs:1", "FCFS", "drive"] {
            assert!(fault(unknown).starts_with(&format!("unknown order \"{unknown}\"; known: fcfs, ")), "{unknown}");
        }
        let long = fault(&format!("sptf-sw:{}", "9".repeat(100)));
        assert!(long.ends_with(&format!("found \"{}...", "9".repeat(39))), "{long}");
    }

    #[test]
    fn conservatism_is_a_number_or_adaptive() {
        assert_eq!("300".parse(), Ok(Conservatism::Fixed(Dur::from_us(300))));
        assert_eq!("adaptive".parse(), Ok(Conservatism::Adaptive));
        assert_eq!(
            [Conservatism::Fixed(Dur::from_us(300)), Conservatism::Adaptive].map(|c| c.to_string()),
            ["300", "adaptive"]
        );
        for wrong in ["-1", "0.3", "200000", ""] {
            let e = wrong.parse::<Conservatism>().unwrap_err().of("margin").to_string();
            assert_eq!(e, format!("margin: expected 0 to 100000, or \"adaptive\", found \"{wrong}\""));
        }
    }

    #[test]
    fn a_setting_may_have_more_names_than_its_enum() {
        const MORE: [&str; 9] = joined(&Order::NAMES, &["drive"]);
        let e = "none".parse::<Order>().unwrap_err().among(&MORE).to_string();
        assert!(e.ends_with("satfuf:MS, drive"), "{e}");
    }
}
