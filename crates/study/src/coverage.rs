//! Which published figures a study uses: each stands in a claim, in a picture, or in the list of
//! parameters.

use std::collections::BTreeSet;

use crate::quantity::Quantity;
use crate::study::Study;

/// The published figures that stand nowhere, as indices of `Published::cells`.
pub(crate) fn unused(study: &Study) -> Vec<usize> {
    let mut used: BTreeSet<usize> = BTreeSet::new();
    for claim in &study.claims {
        used.extend(&claim.cells);
        claim.quantities.values().for_each(|quantity| match quantity {
            Quantity::Published { cell } => drop(used.insert(*cell)),
            Quantity::PublishedAlong { cells, .. } => used.extend(cells),
            _ => {}
        });
    }
    used.extend(study.figures.iter().flat_map(|one| &one.theirs).flat_map(|one| &one.cells));
    used.extend(study.parameters.iter().flat_map(|one| &one.cells));
    (0..study.published.cells.len()).filter(|at| !used.contains(at)).collect()
}
