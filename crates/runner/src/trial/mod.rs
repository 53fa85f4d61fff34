//! One trial: its target, its load, what is seen of it, and its record.

pub mod context;
pub mod followed;
pub mod identity;
pub mod live;
pub mod measure;
pub mod news;
pub mod series;
pub mod ticks;
pub mod unanswered;
