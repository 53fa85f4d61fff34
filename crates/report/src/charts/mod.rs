//! Pictures by Apache ECharts, the same ones on a page and from the command line: the page embeds
//! [`BUNDLE`], and [`Artist`] runs the same bundle in an embedded engine to make SVG and PNG.
//! `docs/decisions/0008-charts.md` says why.

#[cfg(feature = "plots")]
mod artist;

#[cfg(feature = "plots")]
pub use artist::{Artist, Failed};

/// The parts of ECharts in use and our formatters, as one script that defines `WeighCharts`:
/// `WeighCharts.draw(element, picture, shared, theme)` on a page, `WeighCharts.svg(picture,
/// shared, theme, width)` anywhere. Made by `echarts/build.mjs`; it holds no closing tag, so it
/// can stand in a script element.
pub const BUNDLE: &str = include_str!("../../echarts/weigh-charts.js");

/// The licences of what [`BUNDLE`] is made of.
pub const BUNDLE_LICENCES: &str = include_str!("../../echarts/LICENCES.txt");

/// On which ground a picture is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// Dark on white: for paper and most pages.
    Light,
    /// Light on black.
    Dark,
}

impl Theme {
    /// The word that the bundle knows.
    pub fn name(self) -> &'static str {
        match self {
            Theme::Light => "light",
            Theme::Dark => "dark",
        }
    }
}
