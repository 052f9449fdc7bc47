//! The known word that an unknown one was probably meant to be.

/// Returns the known word with the fewest changed, missing or additional characters, if these are
/// at most half of it.
pub(super) fn closest<'a>(unknown: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.into_iter().map(|word| (distance(unknown, word), word));
    scored.filter(|(d, word)| d * 2 <= word.len()).min_by_key(|(d, _)| *d).map(|(_, word)| word)
}

/// Returns the number of characters to change, remove or insert.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    // Nobody mistypes a word of this length, and the work grows with it.
    for (i, from) in a.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_word_is_recognised_and_another_word_is_not() {
        let known = ["unreadable", "slow", "after", "after-commands"];
        let found = |word: &str| closest(word, known);
        assert_eq!(["unredable", "slwo", "aftr", "after_commands"].map(found).map(Option::unwrap), known);
        assert_eq!(["", "colour", &"x".repeat(100_000)].map(found), [None; 3]);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
