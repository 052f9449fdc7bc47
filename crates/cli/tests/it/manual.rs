//! Completions for shells, and pages for `man`: complete, and accepted by the programs that read
//! them.

use std::process::Command;

use crate::common::{Scratch, headtime, names};
use crate::support::{missing_program, skipped};

/// The commands in the help of `words`.
fn commands_of(words: &[&str]) -> Vec<String> {
    let help = headtime(&[words, &["--help"]].concat()).ok();
    let list = help.lines().skip_while(|l| *l != "Commands:").skip(1).take_while(|l| !l.is_empty());
    let names = list.filter(|l| l.starts_with("  ") && !l.starts_with("   "));
    let names = names.filter_map(|l| l.split_whitespace().next()).filter(|name| *name != "help");
    names.map(String::from).collect()
}

#[test]
fn completions_name_each_command_and_shells_accept_them() {
    let dir = Scratch::new("completions");
    let commands = commands_of(&[]);
    assert!(commands.len() > 20, "{commands:?}");
    for (shell, check) in [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")] {
        let text = headtime(&["completions", shell]).ok();
        for command in &commands {
            assert!(text.contains(command.as_str()), "{shell}: no {command}");
        }
        assert!(text.contains("conservatism-us"), "{shell}");
        let file = dir.file(shell, &text);
        if let Some(why) = missing_program(&[shell]) {
            skipped("completions_name_each_command_and_shells_accept_them", &why);
            continue;
        }
        let checked = Command::new(shell).args([check, &file]).output().unwrap();
        assert!(checked.status.success() && checked.stderr.is_empty(), "{shell}: {checked:?}");
    }
    let refused = headtime(&["completions", "tcsh"]);
    assert_eq!(refused.status, Some(2));
    assert!(refused.err.contains("bash"), "{}", refused.err);
}

/// Completes as a user does: with a tab after some letters.
#[test]
fn bash_completes_commands_and_flags() {
    if let Some(why) = missing_program(&["bash"]) {
        return skipped("bash_completes_commands_and_flags", &why);
    }
    let dir = Scratch::new("completes");
    let file = dir.file("headtime.bash", &headtime(&["completions", "bash"]).ok());
    let complete = |words: &[&str]| {
        let line = words.join(" ");
        let script = format!(
            "source {file}\nCOMP_WORDS=({line})\nCOMP_CWORD={}\nCOMPREPLY=()\n_headtime headtime {} {}\n\
             echo \"${{COMPREPLY[@]}}\"",
            words.len() - 1,
            words[words.len() - 1],
            words[words.len() - 2],
        );
        let ran = Command::new("bash").args(["--norc", "-c", &script]).output().unwrap();
        String::from_utf8(ran.stdout).unwrap().trim().to_string()
    };
    assert_eq!(complete(&["headtime", "scr"]), "scrub");
    assert_eq!(complete(&["headtime", "task", "res"]), "resume");
    assert_eq!(complete(&["headtime", "top", "--int"]), "--interval-ms");
}

#[test]
fn each_command_has_a_page_that_man_can_show() {
    let dir = Scratch::new("manual");
    let into = dir.path("man1");
    headtime(&["manual", "-o", &into]).ok();
    let mut expected = vec!["headtime.1".to_string()];
    for command in commands_of(&[]) {
        expected.extend(commands_of(&[&command]).iter().map(|below| format!("headtime-{command}-{below}.1")));
        expected.push(format!("headtime-{command}.1"));
    }
    expected.sort();
    let found = names(into.as_ref());
    assert_eq!(found, expected);
    let page = |name: &str| std::fs::read_to_string(format!("{into}/{name}")).unwrap();
    assert!(page("headtime.1").contains("serve") && page("headtime.1").contains("Exit status"));
    assert!(page("headtime-serve.1").contains(r"\-\-new\-map"), "{}", page("headtime-serve.1"));
    // The same bytes each time.
    let again = dir.path("again");
    headtime(&["manual", "-o", &again]).ok();
    for name in &found {
        assert_eq!(page(name), std::fs::read_to_string(format!("{again}/{name}")).unwrap(), "{name}");
    }
    if let Some(why) = missing_program(&["mandoc"]) {
        skipped("each_command_has_a_page_that_man_can_show", &why);
    } else {
        let pages = found.iter().map(|name| format!("{into}/{name}"));
        let linted = Command::new("mandoc").args(["-T", "lint", "-W", "error"]).args(pages).output().unwrap();
        assert!(linted.status.success(), "{linted:?}");
    }
    let file = dir.file("file", "");
    let refused = headtime(&["manual", "-o", &file]).refused();
    assert!(refused.contains(&file), "{refused}");
}
