//! The report as one page of HTML.

pub mod document;
mod facts;
mod limits;
mod methods;
mod metric;
mod modelled;
mod overview;
mod packed;
mod render;
mod stages;
mod stills;
mod thresholds;
mod warnings;
mod wire;

pub use facts::Provenance;
pub use render::page;
