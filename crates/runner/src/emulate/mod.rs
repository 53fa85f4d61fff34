//! What other tools would have told of a trial: their arithmetic, done on an exact record. The load
//! is what it is; only the account of it changes. So the figures of a published table can stand
//! beside the right ones, and whoever comes from another tool finds his own figure and the reason
//! why it differs.
//!
//! Every module names the source of the tool whose arithmetic it follows.

pub mod autocannon;
pub mod beside;
mod counts;
mod figures;
pub mod htop;
pub mod mqtt_stresser;
pub mod times;
pub mod told;
pub mod wrk;

pub use beside::{Beside, Row};
pub use figures::figures;
pub use told::{Client, Told};
