//! The frame of every page: it loads nothing and forbids the browser to, it draws its pictures by
//! itself, and it works in light, dark and on paper.

use std::fmt::Write as _;
use std::io::Write as _;

use crate::charts::BUNDLE;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

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
        let mut page = String::with_capacity(BUNDLE.len() + self.body.len() + (1 << 16));
        let _ = write!(
            page,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{}\
             <noscript><p class=\"warning\">{}</p></noscript>\n\
             <script type=\"text/plain\" id=\"run\">{}</script>\n<script>{BUNDLE}</script>\n\
             <script>{SCRIPT}</script>\n</body>\n</html>\n",
            escape(self.title),
            self.body,
            escape(self.without_scripts),
            packed(&self.data),
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

/// A place for one picture, which the script draws.
pub fn figure(name: &str, title: &str, note: &str) -> String {
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

/// JSON, compressed (RFC 1952) and in base64, because the data of two hundred cells would take two
/// megabytes. Browsers unpack it by themselves since 2023.
fn packed(data: &Value) -> String {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    let written = packed.write_all(data.to_string().as_bytes());
    let packed = written.and_then(|()| packed.finish()).expect("memory takes everything");
    STANDARD.encode(packed)
}

/// Nothing is loaded, whatever the data contain: W3C, "Content Security Policy Level 3".
const POLICY: &str =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:";

/// Nothing is loaded and nothing runs.
const STILL_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// The style of the pages of runs and audits.
pub const STYLE: &str = include_str!("style.css");

const SCRIPT: &str = include_str!("script.js");
