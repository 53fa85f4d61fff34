//! The structure of a run's cells: which keys of the plan are axes, which cells make a line along
//! them, and the colour and label of each cell in all pictures.

use std::collections::BTreeMap;

use serde_json::Value;
use weigh_model::trial::Point;
use weigh_model::units::{parse_duration, parse_rate, parse_size};

use super::cell::{Cell, is_reference};

/// The cells of a run in their order along the axes of the plan.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Matrix {
    /// The axes of pictures, the one with most places first.
    pub(crate) axes: Vec<Axis>,
    /// A short name for every cell, unique in the run.
    pub(crate) labels: Vec<String>,
    /// A number below [`COLOURS`] for every cell: cells of one line have the same.
    pub(crate) colours: Vec<usize>,
    /// Cells to be drawn together: those at one place of the first axis, in plan order.
    pub(crate) groups: Vec<Group>,
}

/// A key of the plan with numbers for values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    /// Its number among the axes.
    pub(crate) number: usize,
    /// The key (`load.connections`).
    pub(crate) key: String,
    /// The unit of its values (`ns`, `B`, `1/s`), empty for plain numbers.
    pub(crate) unit: &'static str,
    /// One line for each combination of the other keys.
    pub(crate) lines: Vec<Line>,
}

/// The cells that differ in one key only.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    /// What they have in common.
    pub(crate) name: String,
    /// The key's value and the cell's number, by value.
    pub(crate) places: Vec<(f64, usize)>,
}

/// Cells to be drawn together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    /// What they have in common (`connections=100`); empty where there is one group.
    pub(crate) name: String,
    /// Their numbers.
    pub(crate) cells: Vec<usize>,
}

impl Matrix {
    /// Finds the axes among `cells`.
    pub(crate) fn new(cells: &[Cell]) -> Matrix {
        let labels = labels(cells);
        let axes = axes(cells, &labels);
        let mut colours: Vec<usize> = (0..cells.len()).map(|cell| cell % COLOURS).collect();
        if let Some(axis) = axes.first() {
            for (index, line) in axis.lines.iter().enumerate() {
                line.places.iter().for_each(|(_, cell)| colours[*cell] = index % COLOURS);
            }
        }
        let groups = groups(cells, axes.first());
        Matrix { axes, labels, colours, groups }
    }

    /// The key as in the names of cells (`connections`).
    pub(crate) fn short(key: &str) -> &str {
        key.strip_prefix("load.").unwrap_or(key)
    }
}

/// A point as a unique text, for look-ups.
pub(crate) fn point_key(point: &Point) -> String {
    serde_json::to_string(point).unwrap_or_default()
}

/// The names of cells without what all of them share: the reference target, and keys with the same
/// value.
fn labels(cells: &[Cell]) -> Vec<String> {
    let all_reference = cells.iter().all(is_reference);
    let label = |cell: &Cell| {
        let short = cell.name.strip_suffix(" on reference").filter(|_| all_reference);
        short.unwrap_or(&cell.name).to_owned()
    };
    shortened(cells.iter().map(label).collect())
}

/// Labels without the words `key=value` that all of them have.
fn shortened(labels: Vec<String>) -> Vec<String> {
    if labels.len() < 2 {
        return labels;
    }
    let is_shared = |word: &str| {
        word.contains('=') && labels.iter().all(|label| label.split(' ').any(|own| own == word))
    };
    let shorten = |label: &String| {
        let words: Vec<&str> = label.split(' ').filter(|word| !is_shared(word)).collect();
        words.join(" ")
    };
    labels.iter().map(shorten).collect()
}

fn axes(cells: &[Cell], labels: &[String]) -> Vec<Axis> {
    let mut keys: Vec<&String> = cells.iter().flat_map(|cell| cell.point.keys()).collect();
    keys.sort();
    keys.dedup();
    let mut axes: Vec<Axis> = keys.iter().filter_map(|key| axis(key, cells, labels)).collect();
    axes.sort_by_key(|axis| std::cmp::Reverse(places(axis).len()));
    axes.iter_mut().enumerate().for_each(|(number, axis)| axis.number = number);
    axes
}

/// The values of an axis, ascending.
fn places(axis: &Axis) -> Vec<f64> {
    let all = axis.lines.iter().flat_map(|line| line.places.iter().map(|(value, _)| *value));
    let mut values: Vec<f64> = all.collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}

/// True if `key` is for quantities and `value` is one: only such keys are axes.
pub(crate) fn is_quantity(key: &str, value: &Value) -> bool {
    QUANTITIES.iter().any(|prefix| key.starts_with(prefix)) && number_and_unit(value).is_some()
}

/// A value of the plan as a number in its base unit.
pub(crate) fn quantity(value: &Value) -> Option<f64> {
    number_and_unit(value).map(|(number, _)| number)
}

/// `key` as an axis: numbers in every cell that has it, and a line of two places at least. The
/// protocols' own keys (`mqtt.qos`) are choices, not quantities.
fn axis(key: &str, cells: &[Cell], labels: &[String]) -> Option<Axis> {
    if !QUANTITIES.iter().any(|prefix| key.starts_with(prefix)) {
        return None;
    }
    let mut unit = "";
    let mut lines: BTreeMap<String, (usize, Line)> = BTreeMap::new();
    for (index, cell) in cells.iter().enumerate() {
        let Some(value) = cell.point.get(key) else { continue };
        let (number, of) = number_and_unit(value)?;
        unit = of;
        let mut rest = cell.point.clone();
        rest.remove(key);
        let name = without(&labels[index], key, value);
        let new = || (index, Line { name, places: Vec::new() });
        lines.entry(point_key(&rest)).or_insert_with(new).1.places.push((number, index));
    }
    let mut lines: Vec<(usize, Line)> = lines.into_values().collect();
    lines.sort_by_key(|(first, _)| *first);
    let mut lines: Vec<Line> = lines.into_iter().map(|(_, line)| line).collect();
    for line in &mut lines {
        line.places.sort_by(|left, right| left.0.total_cmp(&right.0));
    }
    let has_two = lines.iter().any(|line| line.places.len() > 1);
    has_two.then(|| Axis { number: 0, key: key.to_owned(), unit, lines })
}

/// A value of the plan as a number in its base unit, and its unit.
fn number_and_unit(value: &Value) -> Option<(f64, &'static str)> {
    if let Some(number) = value.as_f64() {
        return Some((number, ""));
    }
    let text = value.as_str()?;
    if let Ok(time) = parse_duration(text) {
        return Some((time.0 as f64, "ns"));
    }
    if let Ok(size) = parse_size(text) {
        return Some((size as f64, "B"));
    }
    parse_rate(text).ok()?;
    let number: String = text.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    Some((number.parse().ok()?, "1/s"))
}

/// A label without the words `key=value`.
fn without(label: &str, key: &str, value: &Value) -> String {
    let plain = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let word = format!("{}={plain}", Matrix::short(key));
    let words: Vec<&str> = label.split(' ').filter(|each| *each != word).collect();
    words.join(" ")
}

/// Cells at the same place of the axis together; all together without one.
fn groups(cells: &[Cell], axis: Option<&Axis>) -> Vec<Group> {
    let everything = || Group { name: String::new(), cells: (0..cells.len()).collect() };
    let Some(axis) = axis else { return vec![everything()] };
    let mut groups: Vec<Group> = Vec::new();
    let on_axis = |value: f64| {
        let of = axis.lines.iter().flat_map(move |line| {
            line.places.iter().filter(move |place| place.0 == value).map(|place| place.1)
        });
        let mut numbers: Vec<usize> = of.collect();
        numbers.sort_unstable();
        numbers
    };
    for value in places(axis) {
        let numbers = on_axis(value);
        let text = numbers.first().and_then(|cell| cells[*cell].point.get(&axis.key));
        let plain = text.map_or_else(String::new, |text| {
            text.as_str().map_or_else(|| text.to_string(), str::to_owned)
        });
        groups.push(Group {
            name: format!("{} = {plain}", Matrix::short(&axis.key)),
            cells: numbers,
        });
    }
    let others: Vec<usize> = (0..cells.len())
        .filter(|cell| groups.iter().all(|group| !group.cells.contains(cell)))
        .collect();
    if !others.is_empty() {
        groups.push(Group { name: format!("no {}", Matrix::short(&axis.key)), cells: others });
    }
    groups
}

/// Number of colours in the bundle for lines.
pub(crate) const COLOURS: usize = 8;

/// Tables of the plan with quantities; everything else is a choice.
const QUANTITIES: [&str; 5] = ["load.", "path.", "background.", "device.", "target."];

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_of_the_plan_are_numbers_in_their_base_unit() {
        assert_eq!(number_and_unit(&json!(20)), Some((20.0, "")));
        assert_eq!(number_and_unit(&json!("30ms")), Some((30e6, "ns")));
        assert_eq!(number_and_unit(&json!("2KiB")), Some((2048.0, "B")));
        assert_eq!(number_and_unit(&json!("1000/s")), Some((1000.0, "1/s")));
        assert_eq!(number_and_unit(&json!("closed")), None);
    }

    #[test]
    fn what_all_cells_share_is_not_in_their_labels() {
        let labels = |texts: &[&str]| shortened(texts.iter().map(|t| (*t).to_owned()).collect());
        let short = labels(&["mqtt overload=none qos=0", "mqtt overload=none qos=1"]);
        assert_eq!(short, ["mqtt qos=0", "mqtt qos=1"]);
        assert_eq!(labels(&["mqtt qos=1", "http1"]), ["mqtt qos=1", "http1"]);
        assert_eq!(labels(&["mqtt qos=1"]), ["mqtt qos=1"]);
    }

    #[test]
    fn a_line_is_named_by_what_its_cells_share() {
        let label = "mqtt connections=20 qos=1 on nginx";
        assert_eq!(without(label, "load.connections", &json!(20)), "mqtt qos=1 on nginx");
    }
}
