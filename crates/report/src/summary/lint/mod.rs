//! The rules of `docs/methodology.md` that a program can check: on a trial, a cell, a pair of cells,
//! and the answer of a search.

pub(crate) mod asked;
pub mod cells;
pub mod pair;
pub mod saturation;
pub mod trial;
pub mod verdict;
