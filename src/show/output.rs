//! Standard output, which may be a full disk or a pipe that its reader has closed.

use std::io::{ErrorKind, Write};

use weigh_model::visible::visible;

use crate::show::fold::folded;
use crate::show::terminal::width;
use weigh_runner::exit::{Exit, Stop};

/// Writes `text` to standard output. A closed pipe (`
/// head`) is not an error. Makes control characters visible, because runs, targets and questions
/// are named by others.
///
/// # Errors
/// Standard output that cannot be written; a closed pipe is not an error.
pub fn put(text: &str) -> Result<(), Stop> {
    put_bytes(visible(text).as_bytes())
}

/// Writes a table that may have colours, which are kept.
///
/// # Errors
/// Those of [`put`].
pub fn put_table(text: &str) -> Result<(), Stop> {
    put_bytes(visible_in_colour(text).as_bytes())
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

/// Writes `text` with lines that fit the width of the terminal.
///
/// # Errors
/// Those of [`put`].
pub fn put_folded(text: &str) -> Result<(), Stop> {
    put(&folded(text, width()))
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_stay_and_nothing_else_that_a_terminal_obeys() {
        assert_eq!(visible_in_colour("\u{1b}[1mbold\u{1b}[0m"), "\u{1b}[1mbold\u{1b}[0m");
        assert_eq!(visible_in_colour("a\u{1b}[2Jb\u{7}"), "a\\u001b[2Jb\\u0007");
    }
}
