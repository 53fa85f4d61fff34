//! The cells that all predictions are made from.

use std::fs;
use std::path::Path;

use anyhow::Context;
use weigh_advice::cells::Cells;

/// The cells of a folder.
pub(crate) fn cells(folder: &Path) -> anyhow::Result<Cells> {
    let file = folder.join(CELLS);
    let text = fs::read_to_string(&file).with_context(|| {
        format!("{}: make it with weigh advise --calibrate --save-cells", file.display())
    })?;
    Ok(Cells::read(CELLS, &text)?)
}

/// Their file.
pub(crate) const CELLS: &str = "cells.json";
