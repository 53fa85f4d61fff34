//! Shows what was weighed. Everything here is made from the events of a run: live or read back
//! from its journal, the result is the same.

pub mod cells;
pub mod comparisons;
pub mod figures;
mod notes;
mod shape;
pub mod summary;
pub mod table;

pub use summary::Summary;
