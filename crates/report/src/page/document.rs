//! The frame of every page: it loads nothing and forbids the browser to, it draws its pictures by
//! itself, and it works in light, dark and on paper.

use std::fmt::Write as _;
use std::sync::OnceLock;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::packed::packed;
use crate::charts::BUNDLE;
use crate::pictures::Picture;

/// A page: its content, and what its script draws.
#[derive(Clone, Debug, PartialEq)]
pub struct Document<'d> {
    /// The title, as plain text.
    pub title: &'d str,
    /// Content of the body, as HTML.
    pub body: &'d str,
    /// Text shown without scripts, as plain text.
    pub without_scripts: &'d str,
    /// Data of the script: `shared`, `pictures` and others.
    pub data: Value,
}

impl Document<'_> {
    /// The page as one file.
    pub fn to_html(&self) -> String {
        static LIBRARY: OnceLock<String> = OnceLock::new();
        let library = LIBRARY.get_or_init(|| packed(BUNDLE.as_bytes()));
        let data = self.data.to_string();
        let nonce = nonce(&data);
        let mut page = String::with_capacity(library.len() + self.body.len() + (1 << 16));
        let _ = write!(
            page,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY} 'nonce-{nonce}'\">\n\
             <title>{}</title>\n<style>{}</style>\n</head>\n<body>\n{}\
             <noscript><p class=\"warning\">{}</p></noscript>\n\
             <script type=\"text/plain\" id=\"run\">{}</script>\n\
             <script type=\"text/plain\" id=\"library\">{library}</script>\n\
             <script nonce=\"{nonce}\">{}</script>\n</body>\n</html>\n",
            escape(self.title),
            dense(STYLE),
            self.body,
            escape(self.without_scripts),
            packed(data.as_bytes()),
            dense(SCRIPT),
        );
        page
    }
}

/// A page without a script, in its own style: complete in print, with scripts off, and in a
/// screenshot. `title` is plain text, `body` is HTML, `style` is CSS.
pub fn still(title: &str, body: &str, style: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{STILL_POLICY}\">\n\
         <title>{}</title>\n<style>{style}</style>\n</head>\n<body>\n{body}</body>\n</html>\n",
        escape(title),
    )
}

/// A section with its heading; `content` is HTML.
pub fn section(id: &str, title: &str, content: &str) -> String {
    format!(
        "<section id=\"{id}\" aria-labelledby=\"{id}-title\">\n<h2 id=\"{id}-title\">{}</h2>\n\
         {content}</section>\n",
        escape(title)
    )
}

/// A section that folds under its heading, open at first or not; `content` is HTML.
pub(crate) fn fold(id: &str, title: &str, is_open: bool, content: &str) -> String {
    let open = if is_open { " open" } else { "" };
    format!(
        "<section id=\"{id}\" aria-labelledby=\"{id}-title\">\n<details class=\"fold\"{open}>\
         <summary><h2 id=\"{id}-title\">{}</h2></summary>\n{content}</details></section>\n",
        escape(title)
    )
}

/// Places for pictures, one below the other.
pub(crate) fn figures<'p>(pictures: impl IntoIterator<Item = &'p Picture>) -> String {
    let one = |picture: &Picture| {
        let part = match picture.part.as_str() {
            "" => String::new(),
            part => format!(" ({part})"),
        };
        figure(&picture.name, &format!("{}{part}", picture.title), &picture.note)
    };
    pictures.into_iter().map(one).collect()
}

/// A place for one picture.
pub(crate) fn figure(name: &str, title: &str, note: &str) -> String {
    format!(
        "<figure><h3>{}</h3><div class=\"picture\" role=\"img\" aria-label=\"{}\" \
         data-picture=\"{}\"></div><figcaption>{}</figcaption></figure>\n",
        escape(title),
        escape(title),
        escape(name),
        escape(note)
    )
}

/// `text` escaped for HTML, between tags and in quoted attributes.
pub fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;")
}

/// `text` without indentation, and without lines that are comments.
fn dense(text: &str) -> String {
    let lines = text.lines().map(str::trim_start).filter(|line| !line.starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// What marks the scripts of this page: data in the page cannot contain it, because it is made from
/// all of them.
fn nonce(data: &str) -> String {
    let digest = Sha256::digest(data.as_bytes());
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// Nothing is loaded, whatever the data contain, and only scripts with the nonce that follows run:
/// W3C, "Content Security Policy Level 3".
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src";

/// Nothing is loaded and nothing runs.
const STILL_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// The style of the pages of runs and audits.
pub const STYLE: &str = include_str!("style.css");

const SCRIPT: &str = include_str!("script.js");

#[cfg(test)]
mod tests {
    use super::*;

    /// The colours of a picture in the page are those of the chart that takes its place.
    #[test]
    fn the_page_has_the_colours_of_its_charts() {
        let entry = include_str!("../../echarts/entry.mjs");
        for (theme, number) in [("const LIGHT = {", 2), ("const DARK = {", 1)] {
            let (_, palette) = entry.split_once(theme).unwrap();
            let (palette, _) = palette.split_once("};").unwrap();
            let colours =
                palette.split([',', '\n']).filter_map(|one| one.trim().split_once(": '#"));
            let colours: Vec<(&str, &str)> =
                colours.map(|(name, hex)| (name, hex.trim_end_matches('\''))).collect();
            assert!(colours.len() >= 15, "{colours:?}");
            for (name, hex) in colours.iter().filter(|(name, _)| name.starts_with('c')) {
                let set = format!("--{name}: #{hex};");
                assert_eq!(STYLE.matches(&set).count(), number, "{theme} {set}");
            }
            for (name, hex) in colours.iter().filter(|(name, _)| !name.starts_with('c')) {
                let short = if *hex == "ffffff" { "fff" } else { hex };
                let set = format!("--{name}: #{short};");
                assert!(STYLE.contains(&set), "{theme} {set}");
            }
        }
    }

    #[test]
    fn a_dense_text_has_its_lines_without_what_is_for_its_authors() {
        assert_eq!(dense("a {\n  // why\n  b\n}"), "a {\nb\n}");
    }
}
