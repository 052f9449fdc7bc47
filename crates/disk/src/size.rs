//! Sizes as users write them, uniformly in configurations, scenarios and flags.

/// Parses bytes, as a number or a number with a unit: `KiB`, `MiB`, `GiB`, `TiB` or their first
/// letters are powers of 1024, as for request sizes; `kB`, `MB`, `GB`, `TB` are powers of 1000, as
/// for capacities. Case is ignored. `None` when it is invalid or too large.
pub fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit = text[digits..].trim_start().to_ascii_lowercase();
    let (power, thousand) = match unit.as_str() {
        "" | "b" => (0, 1u64),
        "k" | "kib" => (1, 1 << 10),
        "m" | "mib" => (2, 1 << 10),
        "g" | "gib" => (3, 1 << 10),
        "t" | "tib" => (4, 1 << 10),
        "kb" => (1, 1_000),
        "mb" => (2, 1_000),
        "gb" => (3, 1_000),
        "tb" => (4, 1_000),
        _ => return None,
    };
    text[..digits].parse::<u64>().ok()?.checked_mul(thousand.pow(power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_is_1024_and_a_unit_of_bytes_is_1000() {
        assert_eq!(
            ["4096", "4k", "4 KiB", "4KB", " 64kb ", "2M", "1 TB"].map(bytes).map(Option::unwrap),
            [4_096, 4_096, 4_096, 4_000, 64_000, 2 << 20, 1_000_000_000_000]
        );
        assert_eq!(["", "k", "4 X", "-4k", "4.5k", "99999999999999999999", "99999999T"].map(bytes), [None; 7]);
    }
}
