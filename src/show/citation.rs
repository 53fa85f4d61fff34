//! The citation of the program, from `CITATION.cff` and `Cargo.toml`, as a BibTeX entry.

use weigh_report::exports::latex::escaped;

/// The fields of a citation of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Software {
    /// Its title.
    pub title: String,
    /// Its authors.
    pub authors: Vec<String>,
    /// The date of the release, `2026-11-21`; `None` if it is not released.
    pub released: Option<String>,
    /// Its DOI; `None` if it has none.
    pub doi: Option<String>,
    /// The URL of its repository; `None` if the package has none.
    pub repository: Option<String>,
    /// Its licence (SPDX).
    pub license: String,
}

impl Software {
    /// This program.
    pub fn own() -> Software {
        Software::of(CITATION, env!("CARGO_PKG_REPOSITORY"), env!("CARGO_PKG_LICENSE"))
    }

    fn of(citation: &str, repository: &str, license: &str) -> Software {
        let value = |key: &str| {
            let line = citation.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
            line.map(unquoted).filter(|value| !value.is_empty())
        };
        Software {
            title: value("title").unwrap_or_default(),
            authors: authors(citation),
            released: value("date-released"),
            doi: value("doi"),
            repository: Some(repository.to_owned()).filter(|url| !url.is_empty()),
            license: license.to_owned(),
        }
    }

    /// The entry, with a comment before it for what is not known. `year` is that of the run, for a
    /// version without a release date.
    pub fn bibtex(&self, version: &str, commit: Option<&str>, year: &str) -> String {
        let released = self.released.as_deref().and_then(|date| date.split('-').next());
        let authors: Vec<String> =
            self.authors.iter().map(|name| format!("{{{}}}", escaped(name))).collect();
        let fields = [
            ("title", Some(format!("{{{}}}", escaped(&self.title)))),
            ("author", Some(authors.join(" and "))),
            ("year", Some(released.unwrap_or(year).to_owned())),
            ("version", Some(escaped(version))),
            ("license", Some(escaped(&self.license))),
            ("doi", self.doi.clone()),
            ("url", self.repository.clone()),
            ("note", commit.map(|commit| format!("Commit {}", escaped(commit)))),
        ];
        let fields = fields.into_iter().filter_map(|(key, value)| Some((key, value?)));
        let lines: String =
            fields.map(|(key, value)| format!("  {key:<7} = {{{value}}},\n")).collect();
        let comment = if self.doi.is_none() { NO_DOI } else { "" };
        let key: String =
            version.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        format!("{comment}@software{{weighbridge_{key},\n{lines}}}\n")
    }
}

/// The names below `authors`.
fn authors(citation: &str) -> Vec<String> {
    let list = citation.lines().skip_while(|line| *line != "authors:").skip(1);
    let own = list.take_while(|line| line.starts_with([' ', '-']));
    own.filter_map(|line| {
        Some(unquoted(line.trim_start_matches([' ', '-']).strip_prefix("name:")?))
    })
    .collect()
}

fn unquoted(value: &str) -> String {
    value.trim().trim_matches(['"', '\'']).to_owned()
}

const CITATION: &str = include_str!("../../CITATION.cff");

/// BibTeX ignores text outside of entries.
const NO_DOI: &str = "\
% There is no DOI. To have one, archive the version that you used,
% add the line `doi: ...` to CITATION.cff, and build again.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_has_what_is_known_and_nothing_else() {
        let own = Software::own();
        assert_eq!(own.authors, ["The Weighbridge authors"]);
        assert!(own.title.starts_with("Weighbridge: "), "{}", own.title);
        let text =
            Software::of("title: A_b & c\nauthors:\n  - name: \"X\"\n  - name: Y\n", "", "MIT")
                .bibtex("0.1.0", Some("abc123"), "2026");
        assert!(text.starts_with("% There is no DOI"), "{text}");
        assert_eq!(
            &text[text.find('@').unwrap()..],
            "@software{weighbridge_0_1_0,\n  title   = {{A\\_b \\& c}},\n  \
             author  = {{X} and {Y}},\n  year    = {2026},\n  version = {0.1.0},\n  \
             license = {MIT},\n  note    = {Commit abc123},\n}\n"
        );
    }

    #[test]
    fn a_doi_a_date_and_an_address_are_taken_over() {
        let citation = "title: W\ndoi: 10.1/2\ndate-released: '2025-01-02'\nauthors:\n- name: X\n";
        let own = Software::of(citation, "https://example.org/w", "MIT");
        let text = own.bibtex("1.0.0", None, "2026");
        assert!(text.starts_with("@software{weighbridge_1_0_0,"), "{text}");
        for line in ["  doi     = {10.1/2},", "  url     = {https://example.org/w},"] {
            assert!(text.contains(line), "{text}");
        }
        assert!(text.contains("  year    = {2025},") && !text.contains("note"), "{text}");
    }
}
