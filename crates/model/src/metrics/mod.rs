//! The metrics of a trial: one list, used for the names in conditions, definitions and units in
//! reports, names for OpenMetrics, headings of tables and `docs/methodology.md`.

#[macro_use]
mod metric;
mod list;
mod lookup;
mod quantiles;
mod slots;
mod tables;
mod unit;

pub use list::METRICS;
pub use lookup::{better, definition, find, heading, time_names};
pub use metric::{Better, Metric};
pub use quantiles::{PARTS, QUANTILES, quantile_of, quantile_word};
pub use slots::{LAYERS, PHASES, Word};
pub use tables::{tables, with_tables};
pub use unit::{UNITS, Unit, unit_of};
