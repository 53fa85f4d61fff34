//! Style of text: width, characters and colours of the terminal, or Markdown.

/// Style of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal; a table that is wider is drawn in parts.
    pub width: u16,
    /// Only characters of ASCII.
    pub is_ascii: bool,
    /// Headings and invalid results in colour (ANSI).
    pub has_colour: bool,
    /// As a table of Markdown.
    pub is_markdown: bool,
    /// Columns of the table of a run.
    pub extent: Extent,
}

/// Columns of the table of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// Those that answer most questions, in at most [`WIDTH_MAX`] columns of the terminal.
    Key,
    /// All, in as many tables as the width needs.
    #[default]
    All,
    /// All in one table, whatever its width.
    Wide,
}

impl Style {
    /// The style for an environment: ASCII if the locale is not UTF-8 (`LC_ALL`, `LC_CTYPE`, `LANG`
    /// in this order, as in POSIX), no colour with `NO_COLOR` set, in a dumb terminal or without
    /// one. `terminal_width` is `None` without a terminal; `COLUMNS` takes precedence over it.
    pub fn from_environment(
        terminal_width: Option<u16>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Style {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let columns = set("COLUMNS").and_then(|columns| columns.parse::<u16>().ok());
        let width = columns.or(terminal_width).unwrap_or(WIDTH_WITHOUT_TERMINAL);
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).unwrap_or_default();
        let locale = locale.to_lowercase();
        let is_dumb = set("TERM").is_some_and(|terminal| terminal == "dumb");
        Style {
            width: width.max(WIDTH_MIN),
            is_ascii: !(locale.contains("utf-8") || locale.contains("utf8")),
            has_colour: terminal_width.is_some() && set("NO_COLOR").is_none() && !is_dumb,
            is_markdown: false,
            extent: Extent::Key,
        }
    }

    /// Plain text of this width: for files and tests.
    pub const fn plain(width: u16) -> Style {
        let extent = Extent::All;
        Style { width, is_ascii: false, has_colour: false, is_markdown: false, extent }
    }

    /// Markdown, for a README or an issue.
    pub fn markdown() -> Style {
        Style { is_markdown: true, ..Style::plain(u16::MAX) }
    }
}

pub(crate) fn to_ascii(text: &str) -> String {
    ascii_signs(text).chars().map(|c| if c.is_ascii() { c } else { '?' }).collect()
}

/// The text with its signs in ASCII, for a locale without UTF-8; names in it stay as they are.
pub fn ascii_signs(text: &str) -> String {
    let signs = [('≤', "<="), ('…', "..."), ('µ', "u"), ('±', "+-"), ('∞', "inf"), ('–', "-")];
    signs.into_iter().fold(text.to_owned(), |text, (sign, ascii)| text.replace(sign, ascii))
}

pub(crate) const BOLD: &str = "\x1b[1m";

pub(crate) const RED: &str = "\x1b[31m";

pub(crate) const RESET: &str = "\x1b[0m";

const WIDTH_WITHOUT_TERMINAL: u16 = 100;

/// Columns of the widest table that is shown without being asked for.
pub const WIDTH_MAX: u16 = 100;

const WIDTH_MIN: u16 = 60;
