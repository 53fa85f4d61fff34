//! One trial: its target, its load, its observations, and its record.

pub mod context;
pub mod generate;
pub mod identity;
pub mod live;
pub mod measure;
pub mod news;
pub mod series;
pub mod ticks;
pub mod trial_runner;
pub mod unanswered;
