//! Files of one crate must not need each other in a ring: to understand one of them, a reader would
//! have to read them all.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::files::{Findings, entries, relative, root};
use crate::modules::{Edge, Modules};
use crate::standing::IN_RINGS;

#[test]
fn no_files_need_each_other_in_a_ring() {
    let mut findings = Findings::default();
    let mut seen = BTreeSet::new();
    for crate_root in crate_roots() {
        let modules = Modules::of(&crate_root);
        let edges = modules.edges();
        let name = |file: usize| relative(&modules.files[file]);
        for ring in rings(modules.files.len(), &edges) {
            seen.extend(ring.iter().map(|file| name(*file)));
            if ring.iter().all(|file| IN_RINGS.contains(&&*name(*file))) {
                continue;
            }
            findings.0.push(format!("{} files need each other in a ring:", ring.len()));
            for edge in edges.iter().filter(|edge| within(&ring, edge)) {
                let (from, line) = (name(edge.from), edge.line + 1);
                let items: Vec<&str> = edge.names.iter().map(String::as_str).collect();
                let text = format!("  {from}:{line} needs {} of ", items.join(", "));
                findings.0.push(text + &name(edge.to));
            }
        }
    }
    for known in IN_RINGS.iter().filter(|known| !seen.contains(**known)) {
        findings.0.push(format!("{known} is in no ring: delete it from IN_RINGS"));
    }
    findings.check();
}

fn crate_roots() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        entries(&root().join("crates")).map(|folder| folder.join("src/lib.rs")).collect();
    found.extend(["src/main.rs", "xtask/src/main.rs"].map(|path| root().join(path)));
    found.sort();
    found
}

fn within(ring: &BTreeSet<usize>, edge: &Edge) -> bool {
    ring.contains(&edge.from) && ring.contains(&edge.to)
}

/// The sets of more than one file of which each needs, over others, every other.
fn rings(files: usize, edges: &[Edge]) -> BTreeSet<BTreeSet<usize>> {
    let needs: Vec<BTreeSet<usize>> = (0..files).map(|file| reached(file, edges)).collect();
    let ring_of = |file: usize| -> BTreeSet<usize> {
        needs[file].iter().copied().filter(|other| needs[*other].contains(&file)).collect()
    };
    (0..files).map(ring_of).filter(|ring| ring.len() > 1).collect()
}

/// All files that `from` needs, directly or over others.
fn reached(from: usize, edges: &[Edge]) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut pending = vec![from];
    while let Some(file) = pending.pop() {
        for edge in edges.iter().filter(|edge| edge.from == file) {
            if found.insert(edge.to) {
                pending.push(edge.to);
            }
        }
    }
    found
}

#[test]
fn a_ring_is_all_files_that_lead_back() {
    let edge = |from, to| Edge { from, to, line: 0, names: BTreeSet::new() };
    let edges = [edge(0, 1), edge(1, 2), edge(2, 1), edge(2, 3), edge(4, 0), edge(3, 5)];
    assert_eq!(rings(6, &edges), BTreeSet::from([BTreeSet::from([1, 2])]));
}

/// The rule stands on paths being followed through re-exports; this crate's own files show it.
#[test]
fn paths_lead_to_the_file_of_an_item() {
    let modules = Modules::of(&root().join("tests/tidy/main.rs"));
    let edges: Vec<String> = modules
        .edges()
        .iter()
        .map(|edge| {
            let name = |file: usize| relative(&modules.files[file]).replace("tests/tidy/", "");
            format!("{} {}", name(edge.from), name(edge.to))
        })
        .collect();
    assert!(edges.contains(&"main.rs files.rs".to_owned()), "{edges:?}");
    assert!(edges.contains(&"files.rs lists.rs".to_owned()), "{edges:?}");
}
