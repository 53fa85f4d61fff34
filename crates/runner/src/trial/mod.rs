//! One trial: its target, its load, what is seen of it, and its record.

pub mod context;
pub mod followed;
pub mod identity;
pub mod measure;
pub mod series;
pub mod unanswered;
