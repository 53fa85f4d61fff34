//! Small parts of an outcome: links, published cells, axes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Remark on a printed figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlagShown {
    /// What of the table it is about, where that is not the figure itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// As it is printed.
    pub printed: String,
    /// What it is read as.
    pub used: String,
    /// The reason.
    pub reason: String,
    /// How sure that is.
    pub confidence: String,
}

/// A published figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellShown {
    /// The table it stands in.
    pub table: String,
    /// Its series.
    pub series: String,
    /// Where in the series, as printed; empty where there is no such thing.
    pub x: String,
    /// The unit of `x`; empty where there is none.
    pub x_unit: String,
    /// Its value.
    pub value: f64,
    /// As it stands in the table of published figures.
    pub printed: String,
    /// Its unit.
    pub unit: String,
    /// Remark on its printed form.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<FlagShown>,
}

/// Where a figure comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// The run's name in the study: `published/E1-http`; empty for a published figure.
    pub run: String,
    /// The run's folder, relative to that of the study's run; empty for a published figure.
    pub folder: String,
    /// Its cell's name in that run, or the published table and series.
    pub cell: String,
    /// Ids of the cell's trials, as in the run's journal; empty where they are not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trials: Vec<String>,
}

/// An axis of a picture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AxisShown {
    /// What it shows.
    pub label: String,
    /// Its unit; empty where there is none.
    pub unit: String,
    /// True for a logarithmic one.
    pub is_log: bool,
}
