//! Text from clients and servers, made safe to print: names may contain terminal control sequences.

/// Removes control characters and characters that change the direction of text.
pub fn plain(text: &str) -> String {
    let directs = |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().filter(|c| !c.is_control() && !directs(*c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_directs_no_terminal() {
        assert_eq!(plain("a\u{1b}[2J\nb\u{202e}c\u{2028}d \u{e9}"), "a[2Jbcd \u{e9}");
    }
}
