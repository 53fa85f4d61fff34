//! A chart of bars in characters, which needs no colour.

/// Draws values as bars of eighths of a row, the newest at the right, with an optional line.
///
/// `values` may have gaps. Returns `height` rows of `width` columns and the value of the top.
pub fn bars(
    values: &[Option<f64>],
    line: Option<f64>,
    (width, height): (usize, usize),
    is_ascii: bool,
) -> (Vec<String>, f64) {
    let shown = squeezed(values, width);
    let largest = shown.iter().flatten().chain(line.iter()).copied().fold(0.0, f64::max);
    let top = if largest > 0.0 { largest } else { 1.0 };
    let signs: &[char] = if is_ascii { &ASCII } else { &EIGHTHS };
    let steps = signs.len() - 1;
    let filled = |value: f64| (value / top * (height * steps) as f64).round() as usize;
    let line_row = line.map(|line| (filled(line).saturating_sub(1)) / steps);
    let row = |from_top: usize| {
        let row = height - 1 - from_top;
        let sign = |value: Option<f64>| {
            let over = value.map_or(0, |value| {
                // A value above 0 is never invisible.
                let filled = filled(value).max(usize::from(value > 0.0));
                filled.saturating_sub(row * steps).min(steps)
            });
            match (over, line_row == Some(row)) {
                (0, true) => {
                    if is_ascii {
                        '-'
                    } else {
                        '─'
                    }
                }
                (over, _) => signs[over],
            }
        };
        let blank = width.saturating_sub(shown.len());
        let blank = std::iter::repeat_n(None, blank);
        blank.chain(shown.iter().copied()).map(sign).collect()
    };
    ((0..height).map(row).collect(), top)
}

/// At most `width` values: of neighbours that share a column the largest. A few values have several
/// columns each.
fn squeezed(values: &[Option<f64>], width: usize) -> Vec<Option<f64>> {
    if width == 0 {
        return Vec::new();
    }
    let columns = width / values.len().max(WIDE_VALUES_MIN);
    if columns > 1 {
        return values.iter().flat_map(|value| std::iter::repeat_n(*value, columns)).collect();
    }
    let each = values.len().div_ceil(width).max(1);
    let largest = |part: &[Option<f64>]| part.iter().flatten().copied().reduce(f64::max);
    // Whole groups from the newest on, so that a column does not change its group at each look.
    let first = values.len() % each;
    let (head, rest) = values.split_at(first);
    let head = (!head.is_empty()).then(|| largest(head));
    head.into_iter().chain(rest.chunks(each).map(largest)).collect()
}

/// Fewer values than this leave the left of a chart empty, so that its scale does not jump.
const WIDE_VALUES_MIN: usize = 20;

const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

const ASCII: [char; 4] = [' ', '.', ':', '#'];

#[cfg(test)]
mod tests {
    use super::*;

    fn some(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().copied().map(Some).collect()
    }

    #[test]
    fn bars_are_as_high_as_their_values() {
        let (rows, top) = bars(&some(&[0.0, 4.0, 8.0, 16.0]), None, (5, 2), false);
        assert_eq!(top, 16.0);
        assert_eq!(rows, ["    █", "  ▄██"]);
    }

    #[test]
    fn a_line_is_drawn_where_no_bar_covers_it() {
        let (rows, top) = bars(&some(&[1.0, 10.0]), Some(5.0), (3, 2), true);
        assert_eq!(top, 10.0);
        assert_eq!(rows, ["  #", "-.#"]);
    }

    #[test]
    fn small_values_and_gaps_are_told_apart() {
        let (rows, _) = bars(&[Some(1e6), Some(1.0), None], None, (3, 1), false);
        assert_eq!(rows, ["█▁ "]);
    }

    #[test]
    fn more_values_than_columns_show_their_peaks() {
        let mut values = vec![1.0; 100];
        values[57] = 9.0;
        let (rows, top) = bars(&some(&values), None, (20, 1), false);
        assert_eq!((rows[0].chars().count(), top), (20, 9.0));
        assert_eq!(rows[0].chars().filter(|sign| *sign == '█').count(), 1);
    }

    #[test]
    fn a_few_values_are_wide() {
        let (rows, _) = bars(&some(&[8.0, 4.0]), None, (60, 1), false);
        assert_eq!(rows[0].trim_start(), "███▄▄▄");
    }

    #[test]
    fn nothing_is_an_empty_chart() {
        assert_eq!(bars(&[], None, (3, 1), false), (vec!["   ".to_owned()], 1.0));
        assert_eq!(bars(&some(&[1.0]), None, (0, 1), false).0, [""]);
    }
}
