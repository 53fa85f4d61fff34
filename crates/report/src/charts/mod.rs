//! Charts by Apache ECharts, the same on a page and from the command line: the page embeds
//! [`BUNDLE`], and an artist runs the same bundle in an embedded engine to make SVG for the page
//! and for files. `docs/decisions/0008-charts.md` has the reasons.

#[cfg(feature = "pictures")]
mod artist;
#[cfg(feature = "plots")]
mod raster;

#[cfg(feature = "pictures")]
pub use artist::{Artist, Failed};
#[cfg(feature = "plots")]
pub use raster::Raster;

/// The parts of ECharts in use and Weighbridge's formatters, as one script that defines
/// `WeighCharts`: `WeighCharts.draw(element, picture, shared, theme)` on a page; anywhere
/// `WeighCharts.svg(picture, shared, theme, width)` for a file, and
/// `WeighCharts.inline(picture, shared, width)` for a page. Made by `echarts/build.mjs`; it
/// contains no closing tag, so it can be in a script element. `echarts/LICENCES.txt` has the
/// licences of its parts.
pub const BUNDLE: &str = include_str!("../../echarts/weigh-charts.js");

/// The background on which a picture is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// Dark on white: for paper and most pages.
    Light,
    /// Light on black.
    Dark,
}

impl Theme {
    /// Name in the bundle.
    pub fn name(self) -> &'static str {
        match self {
            Theme::Light => "light",
            Theme::Dark => "dark",
        }
    }
}
