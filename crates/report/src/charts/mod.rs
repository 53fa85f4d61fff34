//! Charts by Apache ECharts, the same on a page and from the command line: the page embeds
//! [`BUNDLE`], and [`Artist`] runs the same bundle in an embedded engine to make SVG and PNG.
//! `docs/decisions/0008-charts.md` has the reasons.

#[cfg(feature = "plots")]
mod artist;

#[cfg(feature = "plots")]
pub use artist::{Artist, Failed};

/// The parts of ECharts in use and Weighbridge's formatters, as one script that defines
/// `WeighCharts`: `WeighCharts.draw(element, picture, shared, theme)` on a page,
/// `WeighCharts.svg(picture, shared, theme, width)` anywhere. Made by `echarts/build.mjs`; it
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
