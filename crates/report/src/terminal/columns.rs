//! Rows under headings that fit the width: side by side, or row by row where a terminal is too
//! narrow for that.

use std::fmt::Write as _;
use std::ops::RangeInclusive;

use super::fold::{shown_width, wrapped};

/// The rows, the first of which has the headings, with two blanks between columns; those in `right`
/// end where their headings end. In fewer columns than that takes, every row is its first cell and
/// below it a line for each other one.
pub fn columns(rows: &[Vec<String>], right: &RangeInclusive<usize>, width: usize) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widest =
        |at: usize| rows.iter().filter_map(move |row| row.get(at)).map(|own| shown_width(own));
    let widths: Vec<usize> = (0..count).map(|at| widest(at).max().unwrap_or(0)).collect();
    let all = widths.iter().map(|width| width + 2).sum::<usize>().saturating_sub(2);
    if all > width {
        return records(rows, width);
    }
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, width))| {
            let gap = " ".repeat(width - shown_width(cell));
            if right.contains(&at) { gap + cell } else { cell.clone() + &gap }
        });
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}

fn records(rows: &[Vec<String>], width: usize) -> String {
    let Some((headings, rows)) = rows.split_first() else { return String::new() };
    let widest = headings.iter().skip(1).map(|own| shown_width(own)).max().unwrap_or(0);
    let mut text = String::new();
    for row in rows {
        let mut cells = row.iter().zip(headings);
        if let Some((first, _)) = cells.next() {
            let _ = writeln!(text, "{}", wrapped(first, width).join("\n  "));
        }
        for (cell, heading) in cells.filter(|(cell, _)| !cell.is_empty()) {
            let gap = " ".repeat(widest - shown_width(heading));
            let room = width.saturating_sub(widest + 4).max(ROOM_MIN);
            let below = format!("\n{:1$}", "", widest + 4);
            let _ = writeln!(text, "  {heading}{gap}  {}", wrapped(cell, room).join(&below));
        }
    }
    text
}

/// Columns for words where a terminal is very narrow.
const ROOM_MIN: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_side_by_side_where_they_fit_and_below_each_other_elsewhere() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let rows = [
            row(["way", "measured farms", "ends at"]),
            row(["mqtt", "12 ±", "the processor of the server"]),
            row(["https", "1,234", ""]),
        ];
        let wide = "way    measured farms  ends at\n\
                    mqtt             12 ±  the processor of the server\n\
                    https           1,234\n";
        assert_eq!(columns(&rows, &(1..=1), 80), wide);
        let narrow = [
            "mqtt",
            "  measured farms  12 ±",
            "  ends at         the processor of the",
            "                  server",
            "https",
            "  measured farms  1,234",
        ];
        let shown = columns(&rows, &(1..=1), 38);
        assert_eq!(shown.lines().collect::<Vec<_>>(), narrow);
        assert_eq!(columns(&[], &(1..=1), 38), "");
    }
}
