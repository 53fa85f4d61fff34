//! Text on a terminal or in Markdown: width, colours, ruled tables. Independent of runs.

mod ruled;
mod style;
mod wrap;

pub(crate) use ruled::{drawn, ruled};
pub use style::Style;
pub(crate) use style::{BOLD, RED, RESET, to_ascii};
pub(crate) use wrap::wrap;
