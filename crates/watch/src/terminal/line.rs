//! A line of the screen with its meaning, and figures in it.

use weigh_model::numbers::{exact, time};

/// Meaning of a line, shown as its colour where there are colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// Nothing special.
    Plain,
    /// The heading of a part.
    Head,
    /// Less important.
    Dim,
    /// As wanted.
    Good,
    /// Not as wanted.
    Bad,
    /// To be looked at.
    Caution,
    /// A row of a chart.
    Chart,
}

/// Lines of a part.
pub type Lines = Vec<(Mood, String)>;

/// A time, or a sign for an unknown or infinite one.
pub fn time_text(nanoseconds: Option<f64>) -> String {
    nanoseconds.map_or_else(unknown, |own| match own.is_finite() {
        true => time(own, false),
        false => "∞".to_owned(),
    })
}

/// A rate.
pub fn rate_text(per_s: f64) -> String {
    let rounded = if per_s >= 10.0 { per_s.round() } else { (per_s * 10.0).round() / 10.0 };
    format!("{}/s", exact(rounded))
}

/// The sign of a figure that is not known.
pub fn unknown() -> String {
    "–".to_owned()
}
