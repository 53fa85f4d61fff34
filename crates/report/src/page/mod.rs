//! The report as one page of HTML.

mod answer;
pub mod document;
mod ends;
mod facts;
mod limits;
mod methods;
mod modelled;
mod overview;
mod render;
mod stages;
mod thresholds;
mod warnings;
mod wire;

pub use facts::Provenance;
pub use render::page;
