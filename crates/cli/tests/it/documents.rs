//! The pages: each is in the book, and no link points to a file that does not exist.

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
