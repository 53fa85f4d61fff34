//! The rules L01 to L20 on our own results. L01, L13 and L17 are asked where trials and cells are
//! put together; the others here, from the events alone. What is a plain description, such as an
//! open loop's rate that is a setting (L03), is the reason of a refused comparison and no warning:
//! a clean run raises nothing. `docs/methodology.md` says where each rule is asked.

pub(crate) mod asked;
pub mod cells;
pub mod pair;
pub mod saturation;
pub mod trial;
pub mod verdict;
