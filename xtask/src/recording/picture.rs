//! Screens of a terminal as one SVG that shows them one after another. Each row is stored once,
//! however many screens have it.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::screen::{Row, Span, Style};

/// Screens in their order, and how they are shown.
pub(super) struct Picture<'s> {
    /// The screens, each a list of rows.
    pub(super) screens: &'s [Vec<Row>],
    /// Place of the screen that is shown where no motion is wanted.
    pub(super) still: usize,
    /// Size of each screen: columns and rows.
    pub(super) size: (usize, usize),
    /// What it shows, for readers that do not see it.
    pub(super) label: &'s str,
}

impl Picture<'_> {
    /// The SVG.
    pub(super) fn svg(&self) -> String {
        let (width, height) = self.pixels();
        let mut names: HashMap<&Row, usize> = HashMap::new();
        let mut rows = String::new();
        let mut screens = String::new();
        for (place, screen) in self.screens.iter().enumerate() {
            let class = if place + 1 == self.screens.len() { "l" } else { "f" };
            let still = if place == self.still { " s" } else { "" };
            let delay = place as f64 * SHOWN_S;
            let _ = write!(
                screens,
                "<g class=\"{class}{still}\" style=\"animation-delay:{delay:.1}s\">"
            );
            for (number, row) in screen.iter().enumerate().filter(|(_, row)| !row.0.is_empty()) {
                let next = names.len();
                let name = *names.entry(row).or_insert_with(|| {
                    let _ = writeln!(rows, "<g id=\"r{next}\">{}</g>", drawn(row));
                    next
                });
                let y = MARGIN + number * CELL_Y;
                let _ = write!(screens, "<use href=\"#r{name}\" y=\"{y}\"/>");
            }
            screens.push_str("</g>\n");
        }
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" role=\"img\" aria-label=\"{}\">\n\
             <style>{}</style>\n<rect x=\".5\" y=\".5\" width=\"{}\" height=\"{}\" rx=\"8\" \
             fill=\"{PAPER}\" stroke=\"{RIM}\"/>\n<defs>\n{rows}</defs>\n{screens}</svg>\n",
            escaped(self.label),
            self.style(),
            width - 1,
            height - 1
        )
    }

    fn pixels(&self) -> (usize, usize) {
        let (columns, rows) = self.size;
        (columns * CELL_X + 2 * MARGIN, rows * CELL_Y + 2 * MARGIN)
    }

    /// The style sheet: one screen is visible at a time, the last for longer.
    fn style(&self) -> String {
        let others = self.screens.len().saturating_sub(1) as f64 * SHOWN_S;
        let all = others + LAST_SHOWN_S;
        let (each, last) = (100.0 * SHOWN_S / all, 100.0 * LAST_SHOWN_S / all);
        let mut style = format!(
            "text{{font:{FONT_PX}px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans \
             Mono',monospace;white-space:pre;fill:{INK}}}path{{fill:{INK}}}.b{{font-weight:bold}}"
        );
        for (number, colour) in COLOURS.iter().enumerate() {
            let _ = write!(style, ".c{number}{{fill:{colour}}}");
        }
        let _ = write!(
            style,
            ".f,.l{{visibility:hidden}}@media (prefers-reduced-motion:reduce){{.s{{visibility:\
             visible}}}}@media not (prefers-reduced-motion:reduce){{.f{{animation:f {all:.1}s \
             step-end infinite}}.l{{animation:l {all:.1}s step-end infinite}}}}@keyframes \
             f{{0%{{visibility:visible}}{each:.3}%{{visibility:hidden}}}}@keyframes \
             l{{0%{{visibility:visible}}{last:.3}%{{visibility:hidden}}}}"
        );
        style
    }
}

/// A row at height 0.
fn drawn(row: &Row) -> String {
    row.0.iter().map(span).collect()
}

/// Bars and lines become shapes: fonts leave gaps between their rows.
fn span(span: &Span) -> String {
    let mut drawn = String::new();
    let mut column = span.column;
    let mut text = String::new();
    let mut shapes = String::new();
    let mut letters = span.text.chars().peekable();
    while let Some(letter) = letters.next() {
        let Some((top, height)) = shape(letter) else {
            text.push(letter);
            column += 1;
            continue;
        };
        drawn += &words(&std::mem::take(&mut text), column, span.style);
        let mut length = 1;
        while letters.next_if_eq(&letter).is_some() {
            length += 1;
        }
        let (x, width) = (MARGIN + column * CELL_X, length * CELL_X);
        let _ = write!(shapes, "M{x} {top}h{width}v{height}h-{width}z");
        column += length;
    }
    drawn += &words(&text, column, span.style);
    if !shapes.is_empty() {
        let _ = write!(drawn, "<path{} d=\"{shapes}\"/>", class(span.style));
    }
    drawn
}

/// Characters that end before a column.
fn words(text: &str, end: usize, style: Style) -> String {
    let letters = text.trim_start();
    let columns = letters.chars().count();
    let letters = letters.trim_end();
    if letters.is_empty() {
        return String::new();
    }
    let x = MARGIN + (end - columns) * CELL_X;
    let length = letters.chars().count() * CELL_X;
    format!(
        "<text{} x=\"{x}\" y=\"{BASE_Y}\" textLength=\"{length}\" lengthAdjust=\"\
         spacingAndGlyphs\">{}</text>",
        class(style),
        escaped(letters)
    )
}

/// Top and height of a sign that is drawn as a rectangle, pixels within its cell.
fn shape(sign: char) -> Option<(f64, f64)> {
    let whole = CELL_Y as f64;
    match sign {
        '─' => Some((whole / 2.0, 1.0)),
        '▁'..='█' => {
            let height = whole * f64::from(sign as u32 - '▁' as u32 + 1) / 8.0;
            Some((whole - height, height))
        }
        _ => None,
    }
}

fn class(style: Style) -> String {
    let colour = style.colour.map(|number| format!("c{number}"));
    let bold = style.is_bold.then(|| "b".to_owned());
    let all: Vec<String> = colour.into_iter().chain(bold).collect();
    if all.is_empty() { String::new() } else { format!(" class=\"{}\"", all.join(" ")) }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

/// Size of a character, and the rim, pixels.
const CELL_X: usize = 8;
const CELL_Y: usize = 17;
const MARGIN: usize = 12;
const FONT_PX: usize = 13;

/// The line on which letters stand, pixels below the top of their cell.
const BASE_Y: usize = 13;

/// Time for which a screen is shown, and the last one, seconds.
const SHOWN_S: f64 = 0.7;
const LAST_SHOWN_S: f64 = 6.0;

/// Colours that are readable on the paper (contrast 4.5 to 1 or more), whatever page is around it.
const PAPER: &str = "#1f2430";
const RIM: &str = "#4a5263";
const INK: &str = "#d8dee9";
const COLOURS: [&str; 16] = [
    "#8a93a6", "#ff8080", "#87d787", "#ffd75f", "#6cb6ff", "#d7a6ff", "#7fdbe8", "#d8dee9",
    "#99a3b8", "#ff8080", "#87d787", "#ffd75f", "#6cb6ff", "#d7a6ff", "#7fdbe8", "#ffffff",
];

#[cfg(test)]
mod tests {
    use super::super::screen::rows;
    use super::*;

    fn svg(captures: &[&str], still: usize) -> String {
        let screens: Vec<Vec<Row>> = captures.iter().map(|own| rows(own)).collect();
        Picture { screens: &screens, still, size: (10, 2), label: "a & b" }.svg()
    }

    #[test]
    fn a_row_of_several_screens_is_stored_once_and_one_screen_is_for_readers_without_motion() {
        let svg = svg(&["same <row>\n1", "same <row>\n2", "same <row>\n3"], 1);
        assert_eq!(svg.matches("same &lt;row>").count(), 1);
        assert_eq!(svg.matches("href=\"#r0\"").count(), 3);
        assert_eq!(svg.matches("class=\"f s\"").count(), 1);
        assert!(svg.contains("aria-label=\"a &amp; b\""));
    }

    #[test]
    fn bars_are_shapes_and_letters_next_to_them_keep_their_columns() {
        let svg = svg(&["\u{1b}[34mab ██▄ c"], 0);
        assert!(svg.contains("<text class=\"c4\" x=\"12\""), "{svg}");
        assert!(svg.contains("d=\"M36 0h16v17h-16zM52 8.5h8v8.5h-8z\""), "{svg}");
        assert!(svg.contains("x=\"68\" y=\"13\" textLength=\"8\""), "{svg}");
    }
}
