//! L21: what a confirmation means on the servers of two cells. Reasons:
//! `docs/decisions/0058-durability.md`.

use weigh_model::plan::Plan;
use weigh_model::trial::Point;
use weigh_model::warnings::WarningRecord;
use weigh_model::{Durability, Rule, Warning};

use super::asked::{Asked, are_alike};
use crate::summary::Cell;

/// Why two cells must not be compared: different durabilities are known of them, and that is not
/// the one thing in which they differ. In a fixed order, so that it is one reason whichever cell is
/// on the left.
pub(super) fn refusal(left: &Cell, right: &Cell) -> Option<String> {
    let mut both = [left.durability?, right.durability?];
    let are_known = both.into_iter().all(Durability::is_known);
    if !are_known || both[0] == both[1] || is_the_question(&left.point, &right.point) {
        return None;
    }
    both.sort();
    let [one, other] = both.map(Durability::words);
    Some(format!("durability differs: {one} and {other}"))
}

/// True if two points differ in durability alone, set by its key or by the profile of one server;
/// and for entries of the pipeline, which all end in one store.
fn is_the_question(left: &Point, right: &Point) -> bool {
    let rest = |point: &Point| {
        let mut rest = point.clone();
        rest.remove(KEY);
        let target = rest.remove(TARGET).unwrap_or_default();
        let target = target.as_str().unwrap_or_default();
        let name = match target.contains("://") {
            true => target,
            false => target.split('@').next().unwrap_or_default(),
        };
        (name.to_owned(), rest)
    };
    let (left, right) = (rest(left), rest(right));
    left == right || (left.0 == PIPELINE && right.0 == PIPELINE)
}

/// L21 for cells of an unknown durability that are compared with a cell of another target: the
/// cell's index, and the warning.
pub(super) fn unknown(cells: &[Cell], plan: &Plan) -> Vec<(usize, WarningRecord)> {
    let asked: Vec<Asked> = cells.iter().map(|cell| Asked::of(&cell.point, plan)).collect();
    let is_unknown = |cell: &Cell| cell.durability == Some(Durability::Unknown);
    let mut warnings = Vec::new();
    for (index, cell) in cells.iter().enumerate().filter(|(_, cell)| is_unknown(cell)) {
        let other = cells.iter().zip(&asked).find(|(other, of_other)| {
            other.guarantee == cell.guarantee
                && other.point.get(TARGET) != cell.point.get(TARGET)
                && are_alike(of_other.pattern, asked[index].pattern)
        });
        let Some((other, _)) = other else { continue };
        let own = other.durability.map_or("of another server".to_owned(), |own| match own {
            Durability::Unknown => "also unknown of the other".to_owned(),
            own => format!("{} on the other", own.words()),
        });
        let seen = format!(
            "what a confirmation of {} means is unknown, and it is compared with {} ({own})",
            cell.target, other.name
        );
        let record = Warning::Broken(Rule::L21, seen).record();
        warnings.push((index, WarningRecord { advice: ADVICE.to_owned(), ..record }));
    }
    warnings
}

/// Key of the durability in a point.
pub(crate) const KEY: &str = "target.durability";

const TARGET: &str = "target";

const PIPELINE: &str = "pipeline";

const ADVICE: &str = "state what you know of it: type --durability memory, page-cache, fsync or \
                      fsync=1s (in a plan target.durability)";
