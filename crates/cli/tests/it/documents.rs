//! The pages: each is in the book, and no link or path of a file points to one that does not exist.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The Markdown files of a directory, not of those in it.
fn pages(directory: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<_> = files.filter(|path| path.extension().is_some_and(|e| e == "md")).collect();
    pages.sort();
    assert!(!pages.is_empty(), "{}: no page", directory.display());
    pages
}

/// The targets of a page's links to files, without the section.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    links.map(|link| link.split('#').next().unwrap_or(link)).filter(|file| !file.is_empty() && !file.contains("://"))
}

#[test]
fn each_page_is_in_the_book_once() {
    let docs = root().join("docs");
    let summary = std::fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let mut listed: Vec<_> = targets(&summary).map(|file| docs.join(file)).collect();
    listed.sort();
    let written: Vec<_> = pages(&docs).into_iter().filter(|page| !page.ends_with("SUMMARY.md")).collect();
    assert_eq!(listed, written, "docs/SUMMARY.md against the files of docs/");
}

#[test]
fn links_lead_to_files() {
    let mut directories = vec![root(), root().join("docs"), root().join("fuzz")];
    let crates = std::fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    directories.extend(crates.filter(|path| path.join("README.md").exists()));
    for page in directories.iter().flat_map(|directory| pages(directory)) {
        let text = std::fs::read_to_string(&page).unwrap();
        for file in targets(&text) {
            let target = page.parent().unwrap().join(file);
            assert!(target.exists(), "{}: no file for the link to {file}", page.display());
        }
    }
}

/// The files of a directory and of those in it.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The paths in backticks, such as `fill/gap`.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    let in_code = text.split('`').skip(1).step_by(2);
    let is_path = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-./".contains(c);
    let paths = in_code.filter(move |code| code.contains('/') && !code.starts_with('/') && code.chars().all(is_path));
    paths.filter(|path| !path.ends_with(".sock"))
}

/// Source files are named by their module: `fill/gap` is `crates/sched/src/fill/gap.rs`.
#[test]
fn paths_of_the_code_lead_to_files() {
    let crates = root().join("crates").canonicalize().unwrap();
    let below = |path: PathBuf| path.strip_prefix(&crates).unwrap().to_string_lossy().into_owned();
    let code: Vec<String> = files(&crates).into_iter().map(below).collect();
    // With and without `src`, so that `host/state` is found, too.
    let code: Vec<String> =
        code.iter().flat_map(|f| [format!("/{f}"), format!("/{}", f.replace("/src/", "/"))]).collect();
    let begins = |first: &str| code.iter().any(|f| f.contains(&format!("/{first}/")));
    let exists = |path: &str| {
        let path = format!("/{}", path.trim_end_matches('/'));
        code.iter().any(|f| f.ends_with(&path) || f.contains(&format!("{path}.rs")) || f.contains(&format!("{path}/")))
    };
    assert!(exists("fill/gap") && exists("host/state") && !exists("fill/forward"));
    let mut checked = 0;
    for page in [root(), root().join("docs")].iter().flat_map(|directory| pages(directory)) {
        if page.ends_with("CHANGELOG.md") {
            continue;
        }
        let text = std::fs::read_to_string(&page).unwrap();
        let of_code = paths(&text).filter(|path| path.split('/').next().is_some_and(begins));
        for path in of_code {
            assert!(exists(path) || root().join(path).exists(), "{}: no file for {path}", page.display());
            checked += 1;
        }
    }
    assert!(checked > 50, "{checked} paths");
}
