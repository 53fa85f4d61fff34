//! Cells that are built in, from machines that are named in them.

use weigh_advice::Wrong;
use weigh_advice::cells::Cells;

/// The files of `data/cells/`.
const FILES: &[(&str, &str)] =
    &[("data/cells/farms.json", include_str!("../../../../data/cells/farms.json"))];

/// All shipped cells.
///
/// # Errors
/// A file that is not one of cells, which a test excludes.
pub fn cells() -> Result<Vec<Cells>, Wrong> {
    let of = |(file, text): &(&str, &str)| {
        Cells::read(file, text).map(|cells| Cells { is_shipped: true, ..cells })
    };
    FILES.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_cells_can_be_read_and_name_their_machine() {
        for document in cells().unwrap() {
            assert!(!document.machine.architecture.is_empty() && !document.cells.is_empty());
            assert!(document.cells.len() >= 10, "{}", document.source);
        }
    }
}
