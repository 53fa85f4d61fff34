//! Turns the events of a run into results: events of a live run and those read back from its
//! journal give the same result.
//!
//! ```text
//!   events ──► journal ──► events             one event a line, folders of runs and studies
//!     │
//!     ▼
//!  summary ──► Summary                        cells, estimates, comparisons, thresholds, limits
//!     │           │
//!     │           ├──► diff ────► checks      two runs compared; results for programs
//!     │           ├──► exports                CSV, LaTeX, JTL, OpenMetrics, Parquet, HDR
//!     │           ├──► pictures ──┐           options of the chart library
//!     │           ├──► answer ────┤           a title and at most six lines
//!     │           └──► view ──────┼──► page   rows and sentences that table and page share
//!     │                   └───────┴──► table
//!     ▼
//!  results ──► summary.json, report.html, cells.csv, histograms/ in the folder of the run
//! ```
//!
//! The modules share only [`Summary`]. Below all of them are `figures` (numbers as text) and
//! `terminal` (width, colours, ruled tables), which are independent of runs.

pub mod answer;
pub mod charts;
pub mod checks;
pub mod diff;
pub mod exports;
pub mod figures;
pub mod history;
pub mod journal;
pub mod page;
pub mod pictures;
mod results;
pub mod summary;
pub mod table;
pub mod terminal;
mod view;

pub use journal::{Journal, Reader, RecordError, RunFolder, StudyFolder, Writer};
pub use summary::Summary;
pub use terminal::Style;
