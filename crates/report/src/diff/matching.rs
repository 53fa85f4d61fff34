//! Matches the cells of two runs: those at the same point of the matrix.

use weigh_model::trial::Point;

use crate::summary::{Cell, Summary};

/// Matched cells of two runs.
pub(crate) struct Matched<'r> {
    /// Cells that both runs have: of A and of B, in the order of B.
    pub(crate) pairs: Vec<(&'r Cell, &'r Cell)>,
    pub(crate) only_in_a: Vec<&'r Cell>,
    pub(crate) only_in_b: Vec<&'r Cell>,
}

impl<'r> Matched<'r> {
    pub(crate) fn of(a: &'r Summary, b: &'r Summary) -> Matched<'r> {
        let keys: Vec<&String> =
            [a, b].iter().flat_map(|run| &run.cells).flat_map(|cell| cell.point.keys()).collect();
        let of_a: Vec<(Point, &Cell)> =
            a.cells.iter().map(|cell| (completed(cell, a, &keys), cell)).collect();
        let mut is_taken = vec![false; of_a.len()];
        let (mut pairs, mut only_in_b) = (Vec::new(), Vec::new());
        for cell in &b.cells {
            let point = completed(cell, b, &keys);
            match of_a.iter().position(|(other, _)| *other == point) {
                Some(index) => {
                    is_taken[index] = true;
                    pairs.push((of_a[index].1, cell));
                }
                None => only_in_b.push(cell),
            }
        }
        let only_in_a = of_a.iter().zip(&is_taken).filter(|(_, is_taken)| !**is_taken);
        Matched { pairs, only_in_a: only_in_a.map(|((_, cell), _)| *cell).collect(), only_in_b }
    }
}

/// The cell's point, completed with the plan's value of keys that only other points have: a run
/// with an axis can be compared with one without it.
fn completed(cell: &Cell, run: &Summary, keys: &[&String]) -> Point {
    let load = serde_json::to_value(&run.run.plan.load).unwrap_or_default();
    let mut point = cell.point.clone();
    for key in keys {
        let of_plan = key.strip_prefix("load.").and_then(|key| load.get(key));
        if let Some(value) = of_plan.filter(|_| !cell.point.contains_key(*key)) {
            point.insert((*key).clone(), value.clone());
        }
    }
    // A point without subscribers has none.
    point.retain(|key, value| key != "load.subscribers" || value.as_u64() != Some(0));
    point
}
