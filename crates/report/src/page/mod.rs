//! The report as one page of HTML.

mod answer;
mod definitions;
pub mod document;
mod doubts;
mod emulated_words;
mod ends;
mod facts;
mod limits;
mod modelled;
mod overview;
mod path_words;
mod render;
mod stage_words;
mod stages;
mod thresholds;
mod wire;
mod wire_words;

pub use facts::Provenance;
pub use render::page;
