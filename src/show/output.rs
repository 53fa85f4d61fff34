//! Standard output, which may be a terminal, a full disk or a pipe that was closed.

use std::io::{ErrorKind, Write};
use std::path::Path;

use weigh_model::visible::visible;
use weigh_report::Style;
use weigh_report::terminal::fold::folded;
use weigh_report::terminal::{Extent, ascii_signs};

use crate::show::terminal::style;
use weigh_runner::exit::{Exit, Stop};

/// Writes a text for people to standard output, with lines that fit the width of the terminal.
/// Control characters are made visible, because names in it may come from elsewhere: runs, targets,
/// questions.
///
/// # Errors
/// Standard output cannot be written. A pipe that was closed (`| head`) is not an error.
pub fn put(text: &str) -> Result<(), Stop> {
    put_bytes(fitting(&visible(text)).as_bytes())
}

/// Writes a table, whose colours stay.
///
/// # Errors
/// Those of [`put`].
pub fn put_table(text: &str) -> Result<(), Stop> {
    put_bytes(fitting(&visible_in_colour(text)).as_bytes())
}

/// Writes a table with its notes; one that is meant to be wider than the terminal stays whole, and
/// one of Markdown, whose rows are lines.
///
/// # Errors
/// Those of [`put`].
pub fn put_table_of(text: &str, style: Style) -> Result<(), Stop> {
    match style.is_markdown || style.extent == Extent::Wide {
        true => put_bytes(visible_in_colour(text).as_bytes()),
        false => put_table(text),
    }
}

/// The text as the terminal can show it: its width, its characters.
fn fitting(text: &str) -> String {
    let style = style();
    let text = if style.is_ascii { ascii_signs(text) } else { text.to_owned() };
    folded(&text, usize::from(style.width))
}

/// Writes lines that another program reads, such as JSON: they stay whole.
///
/// # Errors
/// Those of [`put`].
pub fn put_document(text: &str) -> Result<(), Stop> {
    put_bytes(visible(text).as_bytes())
}

/// Makes control characters visible, except those of colours and weights.
fn visible_in_colour(text: &str) -> String {
    let mut parts = text.split(COLOUR);
    let mut shown = visible(parts.next().unwrap_or_default()).into_owned();
    for part in parts {
        let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        let is_colour = digits <= 2 && part[digits..].starts_with('m');
        shown += if is_colour { COLOUR } else { "\\u001b[" };
        shown += &visible(part);
    }
    shown
}

/// Start of a colour or a weight (ECMA-48, SGR).
const COLOUR: &str = "\u{1b}[";

/// Writes bytes that need not be text.
///
/// # Errors
/// Those of [`put`].
pub fn put_bytes(bytes: &[u8]) -> Result<(), Stop> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Stop::new(
            Exit::Record,
            format!(
                "standard output cannot be written: {error}\nhelp: redirect it to another \
                     file or program"
            ),
        )),
        _ => Ok(()),
    }
}

/// Adds the folder of the runs to the command in `text` that shows run `id`, unless it is the one
/// that the command takes by itself.
pub fn elsewhere(text: &str, id: &str, runs: &Path) -> String {
    if runs == Path::new("runs") {
        return text.to_owned();
    }
    let command = format!("weigh report {id} --wide");
    text.replace(&command, &format!("{command} --runs {}", runs.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_stay_and_nothing_else_that_a_terminal_obeys() {
        assert_eq!(visible_in_colour("\u{1b}[1mbold\u{1b}[0m"), "\u{1b}[1mbold\u{1b}[0m");
        assert_eq!(visible_in_colour("a\u{1b}[2Jb\u{7}"), "a\\u001b[2Jb\\u0007");
    }
}
