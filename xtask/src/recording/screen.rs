//! A terminal's screen as `tmux capture-pane -e` prints it: rows of characters, with colours as SGR
//! sequences (ECMA-48, section 8.3.117).

/// A row of the screen: its parts in one style each, without blank ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Row(pub(super) Vec<Span>);

/// Characters of a row in one style.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Span {
    /// Its first column, from 0.
    pub(super) column: usize,
    /// Its characters, each one column wide.
    pub(super) text: String,
    /// Its style.
    pub(super) style: Style,
}

/// Colour and weight of characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Style {
    /// One of the 16 colours of a terminal; `None` is its ordinary one.
    pub(super) colour: Option<u8>,
    /// True for bold characters.
    pub(super) is_bold: bool,
}

/// The rows of a capture. A style lasts until the next sequence, also into the next row.
pub(super) fn rows(capture: &str) -> Vec<Row> {
    let mut style = Style::default();
    capture.lines().map(|line| row(line, &mut style)).collect()
}

fn row(line: &str, style: &mut Style) -> Row {
    let mut spans = Vec::new();
    let mut column = 0;
    for (place, part) in line.split("\u{1b}[").enumerate() {
        let text = match part.split_once('m') {
            Some((codes, text)) if place > 0 => {
                style.apply(codes);
                text
            }
            _ => part,
        };
        let text = text.trim_end_matches(' ');
        let shown = text.trim_start_matches(' ');
        let start = column + text.chars().count() - shown.chars().count();
        if !shown.is_empty() {
            spans.push(Span { column: start, text: shown.to_owned(), style: *style });
        }
        column += part_width(part, place > 0);
    }
    Row(spans)
}

/// Columns of a part of a line, of which a sequence may be the beginning.
fn part_width(part: &str, has_sequence: bool) -> usize {
    let text = part.split_once('m').filter(|_| has_sequence).map_or(part, |(_, text)| text);
    text.chars().count()
}

impl Style {
    /// Applies the parameters of one sequence; what is not a colour of the 16 or bold is ignored.
    fn apply(&mut self, codes: &str) {
        let mut codes = codes.split(';').map(|code| code.parse().unwrap_or(0));
        while let Some(code) = codes.next() {
            match code {
                0 => *self = Style::default(),
                1 => self.is_bold = true,
                22 => self.is_bold = false,
                39 => self.colour = None,
                30..=37 => self.colour = Some((code - 30) as u8),
                90..=97 => self.colour = Some((code - 90 + 8) as u8),
                // 38;5;N is one of 256 colours, of which the first 16 are the terminal's.
                38 if codes.next() == Some(5) => {
                    let number: Option<u32> = codes.next();
                    self.colour = number.and_then(|own| u8::try_from(own).ok());
                    self.colour = self.colour.filter(|own| *own < 16);
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(row: &Row) -> Vec<(usize, &str, Option<u8>, bool)> {
        let own = |span: &Span| (span.column, span.style.colour, span.style.is_bold);
        let spans = row.0.iter().map(|span| (own(span), span.text.as_str()));
        spans.map(|((column, colour, is_bold), text)| (column, text, colour, is_bold)).collect()
    }

    #[test]
    fn a_style_lasts_into_the_next_row_until_it_is_changed() {
        let capture = "\u{1b}[1mrun\u{1b}[0m plain\n\u{1b}[38;5;4m  ██\n ██\u{1b}[39m 3 m\n";
        let rows = rows(capture);
        assert_eq!(texts(&rows[0]), [(0, "run", None, true), (4, "plain", None, false)]);
        assert_eq!(texts(&rows[1]), [(2, "██", Some(4), false)]);
        assert_eq!(texts(&rows[2]), [(1, "██", Some(4), false), (4, "3 m", None, false)]);
    }

    #[test]
    fn the_16_colours_are_read_in_both_forms_and_others_are_not() {
        let rows = rows("\u{1b}[31ma\u{1b}[91mb\u{1b}[38;5;9mc\u{1b}[38;5;200md\u{1b}[me");
        let colours: Vec<_> = rows[0].0.iter().map(|span| span.style.colour).collect();
        assert_eq!(colours, [Some(1), Some(9), Some(9), None, None]);
    }
}
