//! Finds the limit of a target. A search requests one trial after another and receives its result
//! ([`Selector`]); its answer is two bounds, never one number. Further: descriptions of the curve
//! around the limit (plateau, knee, Universal Scalability Law), the tolerance of bursts, and which
//! resource is the limit. The crate only computes: it does not run trials or read a clock.
//!
//! The terms are those of M. Konstantynowicz and V. Polák, "Multiple Loss Ratio Search",
//! draft-ietf-bmwg-mlrsearch-15 (RFC 9971), called "the draft" below.

pub mod answer;
pub mod attribution;
pub mod axis;
mod bounds;
pub mod burst;
pub mod classification;
pub mod curve;
pub mod goal;
pub mod knee;
mod pursuit;
mod quantity;
pub mod scalability;
pub mod second_generator;
pub mod selector;
mod standing;
pub mod trial;

pub use answer::{Answer, Bound, GoalAnswer, Outcome, Stop};
pub use axis::{Axis, AxisKind};
pub use classification::{Classification, Standing};
pub use goal::Goal;
pub use quantity::Quantity;
pub use selector::{ReplayError, Search, Selector, Unusable};
pub use standing::Remaining;
pub use trial::{Purpose, TrialEnd, TrialRequest, TrialResult};
