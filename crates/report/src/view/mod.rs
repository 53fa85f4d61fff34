//! The content of table and page, made from a [`Summary`](crate::Summary) without layout: rows,
//! columns and sentences.

pub(crate) mod columns;
pub(crate) mod energy;
pub(crate) mod fleet;
pub(crate) mod interference;
pub(crate) mod late;
pub(crate) mod meeting;
pub(crate) mod modelled;
pub(crate) mod radio;
pub(crate) mod ranges;
pub(crate) mod refusals;
pub(crate) mod signs;
pub(crate) mod stages;
pub(crate) mod stalled;
pub(crate) mod thresholds;
pub(crate) mod too_early;
pub(crate) mod verdicts;
