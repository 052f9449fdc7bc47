//! The shares of drives that miss targets.

use serde::{Serialize, Serializer};

use super::estimate::Estimate;

/// The share of drives whose scan takes longer, by target in days, the shortest first. In JSON it
/// is an object with the days as keys, in this order.
#[derive(Clone, Debug, PartialEq)]
pub struct Missed(Vec<(f64, Estimate)>);

impl Missed {
    /// Makes it of some targets, each of which counts once.
    pub fn new(targets: &[f64], share: impl Fn(f64) -> Estimate) -> Missed {
        let mut targets = targets.to_vec();
        targets.sort_by(f64::total_cmp);
        targets.dedup();
        Missed(targets.into_iter().map(|days| (days, share(days))).collect())
    }

    /// Returns the targets in days.
    pub fn targets(&self) -> impl Iterator<Item = f64> {
        self.0.iter().map(|(days, _)| *days)
    }

    /// Returns the shares, in the order of the targets.
    pub fn shares(&self) -> impl Iterator<Item = &Estimate> {
        self.0.iter().map(|(_, share)| share)
    }
}

impl Serialize for Missed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(days, share)| (days.to_string(), share)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_in_the_order_of_their_numbers() {
        let missed = Missed::new(&[30.0, 7.0, 14.0, 7.0, 3.5, 100.0], Estimate::exact);
        let order = [3.5, 7.0, 14.0, 30.0, 100.0];
        assert_eq!(missed.targets().collect::<Vec<_>>(), order);
        assert_eq!(missed.shares().map(|share| share.value).collect::<Vec<_>>(), order);
        let json = serde_json::to_string(&missed).unwrap();
        let at = |days: &str| json.find(&format!("\"{days}\":{{")).unwrap_or_else(|| panic!("no {days} in {json}"));
        assert!(order.map(|days| at(&days.to_string())).is_sorted(), "{json}");
    }
}
