//! Figures of a profile on which a stream's guarantee rests, and whether they are known.
//!
//! *Mandatory* streams are admitted by w alone (condition 2), so each figure of w must have been
//! measured, bounded or stated: a zero for a figure that was never measured would be a guarantee
//! that the drive cannot keep. *Optional* streams are admitted by X (condition 3), which includes
//! whatever the drive did while it was measured; for them w only decides which commands are
//! eligible beside the reservations. If w is too small, a best-effort request occasionally exceeds
//! the time set aside for it, as rarely as the missing figure takes effect. So they need X only.
//!
//! A guarantee rests on *all* commands of the drive: the worst case of a read includes another
//! client's write in flight when it arrives. Unknown figures of writes are harmless only if there
//! are no writes.

use headtime_disk::profile::{Figure, Figures, Profile};

use super::stream::Stream;

/// Commands of the drive while guarantees hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Traffic {
    /// Only reads: neither a stream nor any other client writes.
    Reads,
    /// Reads and writes.
    #[default]
    Any,
}

/// Returns the figures on which w rests for this traffic.
pub fn needed_figures(traffic: Traffic) -> Figures {
    let of_writes = |f: &Figure| matches!(f, Figure::WriteSettle | Figure::WriteOverheads);
    Figure::ALL.into_iter().filter(|f| traffic == Traffic::Any || !of_writes(f)).collect()
}

/// Returns those of them that `profile` does not know and w requires.
pub fn unknown_figures(profile: &Profile, traffic: Traffic) -> Figures {
    let missing = profile.known.unknown();
    needed_figures(traffic).iter().filter(|f| f.is_needed() && missing.contains(*f)).collect()
}

/// A mandatory stream whose worst case rests on unknown figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "mandatory: expected a profile that knows what the worst case rests on, found unknown: {}",
    list_figures(*.unknown)
)]
pub struct UnknownFigures {
    /// The figures.
    pub unknown: Figures,
}

/// Checks whether `stream` can be guaranteed if these figures are unknown.
///
/// # Errors
/// It is mandatory, and there are such figures.
pub fn check_figures(unknown: Figures, stream: &Stream) -> Result<(), UnknownFigures> {
    match stream.is_mandatory() && !unknown.is_empty() {
        true => Err(UnknownFigures { unknown }),
        false => Ok(()),
    }
}

/// Lists figures in words, grouped by the command that finds them.
pub fn list_figures(figures: Figures) -> String {
    let mut groups: Vec<(Option<&str>, Vec<String>)> = Vec::new();
    for figure in figures.iter() {
        let by = figure.found_by();
        match groups.iter_mut().find(|g| g.0 == by) {
            Some(group) => group.1.push(figure.to_string()),
            None => groups.push((by, vec![figure.to_string()])),
        }
    }
    let words = |(by, names): (Option<&str>, Vec<String>)| match by {
        Some(by) => format!("{} (`{by}` finds that)", names.join("; ")),
        None => names.join("; "),
    };
    groups.into_iter().map(words).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use headtime_disk::Dur;
    use headtime_disk::profile::{Knowledge, builtin};

    use super::super::stream::Quality;
    use super::*;

    #[test]
    fn a_mandatory_stream_needs_every_figure_of_its_traffic_and_an_optional_one_none() {
        let asked = |quality| Stream::new(1, Dur::from_ms(500), quality, 128).expect("a stream");
        let (all, most) = (asked(Quality::MANDATORY), asked(Quality::from_ppm(999_999).expect("a quality")));
        let known = builtin("ultrastar36z15").expect("a built-in drive");
        for traffic in [Traffic::Reads, Traffic::Any] {
            assert!(unknown_figures(&known, traffic).is_empty());
        }
        for figure in Figure::ALL {
            let mut profile = known.clone();
            profile.known.set(figure, Knowledge::Unknown);
            let of_writes = matches!(figure, Figure::WriteSettle | Figure::WriteOverheads);
            let is_needed = figure.is_needed();
            for (traffic, refused) in [(Traffic::Any, is_needed), (Traffic::Reads, is_needed && !of_writes)] {
                let unknown = unknown_figures(&profile, traffic);
                assert_eq!(check_figures(unknown, &all).is_err(), refused, "{figure} {traffic:?}");
                assert_eq!(check_figures(unknown, &most), Ok(()));
            }
            let said = check_figures(unknown_figures(&profile, Traffic::Any), &all).err().map(|e| e.to_string());
            let names = |said: String| {
                said.contains(&figure.to_string()) && said.contains(figure.found_by().expect("a command"))
            };
            assert_eq!(said.map(names), is_needed.then_some(true), "{figure}");
        }
    }
}
