//! Writes the page of a study that never was, and that of the audit of the studies in `studies/`,
//! for tests of pages in a browser.
//!
//! `cargo run -p weigh-study --example paper -- PAPER AUDIT`

use std::path::Path;
use std::{env, fs};

use weigh_study::audit::{Audit, Source, audit, facts};
use weigh_study::audit_page::{self, Audited};
use weigh_study::page;

#[path = "../tests/sample/mod.rs"]
mod sample;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = env::args().skip(1);
    let mut file = |default: &str| arguments.next().unwrap_or_else(|| default.to_owned());
    let (paper, audited) = (file("paper.html"), file("audit.html"));
    fs::write(paper, page::page(&sample::study(), &sample::outcome()))?;
    let mut together = Audit::default();
    let studies = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    let mut folders: Vec<_> =
        fs::read_dir(studies)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    folders.sort();
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read_to_string(folder.join("published.csv"))?;
        let facts = fs::read_to_string(folder.join("facts.toml")).unwrap_or_default();
        let source = Source { name: format!("{name}/published.csv"), text };
        together.add(audit(&[source], &facts::read("facts.toml", &facts)?)?);
    }
    let page = Audited { about: &[], audit: &together };
    fs::write(audited, audit_page::page(&page, "weigh audit --study all --page audit.html"))?;
    Ok(())
}
