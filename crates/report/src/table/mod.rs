//! The result of a run as text: tables for a terminal or Markdown, with notes below.

mod axes;
mod emulated;
mod legend;
pub mod limits;
mod modelled;
mod notes;
mod overview;
mod stages;

pub use overview::render;
