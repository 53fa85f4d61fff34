//! Text on a terminal or in Markdown: width, colours, ruled tables. Independent of runs.

mod aligned;
mod columns;
pub mod fold;
mod ruled;
mod style;
mod wrap;

pub use columns::columns;

pub(crate) use aligned::aligned;
pub(crate) use ruled::{drawn, in_parts, ruled};
pub(crate) use style::{BOLD, RED, RESET, to_ascii};
pub use style::{Extent, Style, WIDTH_MAX, ascii_signs};
pub(crate) use wrap::wrap;
