//! The language of plans: turns the text of a plan into a resolved
//! [`Plan`](weigh_model::plan::Plan) with its cases, or a list of errors with their places. Knows
//! no protocol by name.

pub mod background;
pub mod case;
pub mod contradiction;
pub mod forecast;
pub mod keys;
pub mod kind;
pub mod load;
pub mod load_keys;
pub mod matrix;
pub mod metrics;
pub mod patience;
pub mod problem;
pub mod schema;
pub mod tables;
pub mod world;

mod background_keys;
mod document;
mod emulated;
mod entries;
mod lane_rows;
mod masked;
mod miniature;
pub mod overrides;
mod range;
mod resolve;
mod row;
mod wrong;

pub use case::Case;
pub use contradiction::Contradiction;
pub use load::{BodyWords, LoadWords, PollWords};
pub use problem::{Problem, Problems};
pub use resolve::{Draft, Resolved, read, read_set, read_tables};
pub use tables::Length;
pub use world::{TargetWord, World};
