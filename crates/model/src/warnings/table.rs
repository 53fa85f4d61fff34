//! The table of warnings in `docs/guide/warnings.md`, made from the list.

use super::entry::Entry;
use super::list::WARNINGS;
use crate::severity::Severity;

/// The table as Markdown, with a line break at its end.
pub fn table() -> String {
    let head = "| warning | result | found | why it matters | what to do |\n\
                |---|---|---|---|---|\n";
    WARNINGS.iter().map(row).fold(head.to_owned(), |text, row| text + &row)
}

fn row(entry: &Entry) -> String {
    let severity = if entry.severity == Severity::Invalid { "invalid" } else { "stands" };
    let link = match entry.docs.strip_prefix("guide/") {
        Some(page) => page.to_owned(),
        None => format!("../{}", entry.docs),
    };
    let seen = match entry.what {
        "{}" => "see the text of the warning",
        what => what,
    };
    let seen = with_figures(seen);
    let Entry { name, why, fix, .. } = entry;
    format!("| [`{name}`]({link}) | {severity} | {seen} | {why} | {fix} |\n")
}

/// The text with `N` for each figure, and a plural where a figure follows a word.
fn with_figures(what: &str) -> String {
    let mut text = String::new();
    for (at, part) in what.split("{}").enumerate() {
        // A figure right after another one, or after a plural, is a clause that may be empty.
        let is_clause = text.ends_with(['N', 's']) && at > 0;
        if at > 0 && !is_clause {
            text.push(if text.ends_with(|c: char| c.is_ascii_lowercase()) { 's' } else { 'N' });
        }
        text += part;
    }
    text
}

#[cfg(test)]
mod tests {
    use std::{env, fs};

    use super::*;

    #[test]
    fn the_guide_lists_every_warning() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/warnings.md");
        let text = fs::read_to_string(path).unwrap();
        let (open, close) = ("<!-- warnings -->\n", "<!-- end -->");
        let (before, rest) = text.split_once(open).unwrap();
        let made = format!("{before}{open}{}{}", table(), &rest[rest.find(close).unwrap()..]);
        if env::var_os("WEIGH_WRITE_DOCS").is_some() {
            fs::write(path, made).unwrap();
        } else {
            let advice = "WEIGH_WRITE_DOCS=1 cargo test -p weigh-model makes it anew";
            assert!(text == made, "out of date: {advice}");
        }
    }

    #[test]
    fn an_entry_is_complete_and_its_page_exists() {
        for entry in WARNINGS {
            let Entry { name, what, why, fix, docs, .. } = entry;
            for text in [what, why, fix] {
                assert!(!text.is_empty() && !text.ends_with('.'), "{name}: {text}");
            }
            assert!(why.len() > 20 && why != fix, "{name}: {why}");
            let (page, heading) = docs.split_once('#').unwrap_or((docs, ""));
            let path = format!("{}/../../docs/{page}", env!("CARGO_MANIFEST_DIR"));
            let page = fs::read_to_string(&path).unwrap_or_else(|_| panic!("{name}: no {path}"));
            let anchor = |line: &str| {
                let kept = |c: &char| c.is_ascii_alphanumeric() || *c == ' ' || *c == '-';
                let text = line.trim_start_matches('#').trim().to_lowercase();
                text.chars().filter(kept).collect::<String>().replace(' ', "-")
            };
            let is_there = page.lines().any(|l| l.starts_with('#') && anchor(l) == heading);
            assert!(heading.is_empty() || is_there, "{name}: no heading {docs}");
        }
    }
}
