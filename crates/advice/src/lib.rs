//! From a situation and measured cells to a set of options that one can act on.
//!
//! ```text
//!  situation.toml ─► Situation ┐
//!                              ├─► exclusion: what cannot do it, with the reason
//!  protocols ─► Choice, Choice ┤
//!  dry trials ─► Session       ├─► account: bytes by layer        exact, acknowledgements bounded
//!  cells ─► Family             ├─► figures: CPU, memory, latency, energy, each with draws
//!                              │
//!                              └─► advised: set and order ─► break-even, regions ─► text, page
//! ```
//!
//! Pure: no file, no socket, no clock, no trial. The runner makes dry trials and measures cells,
//! the binary parses and prints.

pub mod account;
pub mod advised;
pub mod answer;
pub mod break_even;
pub mod cells;
pub mod choice;
pub mod cost;
pub mod criterion;
pub mod deciding;
pub mod drawn;
pub mod exclusion;
pub mod family;
pub mod figures;
pub mod link;
pub mod page;
pub mod questions;
pub mod refusal;
pub mod regions;
pub mod residuals;
pub mod session;
pub mod situation;
pub mod sizing;
pub mod text;

pub use answer::{Advice, Inputs, advise};
pub use choice::Choice;
pub use criterion::Criterion;
pub use refusal::Wrong;
pub use situation::Situation;
