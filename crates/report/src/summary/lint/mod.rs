//! The rules L01 to L21 on Weighbridge's own results. L01, L13 and L17 are checked where trials and
//! cells are built; the others here, from the events alone. A plain description, such as an open
//! loop whose rate is a setting (L03), is the reason of a refused comparison and not a warning: a
//! clean run gives none. `docs/methodology.md` lists where each rule is checked.

pub(crate) mod asked;
pub mod cells;
pub mod pair;
pub mod saturation;
pub(crate) mod storing;
pub mod trial;
pub mod verdict;
