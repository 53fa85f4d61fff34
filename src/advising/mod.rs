//! From the words of `weigh advise` and `weigh size` to a situation, its options and their cells.

pub mod ask;
pub mod cells;
pub mod flags;
pub mod reach;
pub mod ready;
