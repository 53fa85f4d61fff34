//! Meters of energy: what the kernel shows of them below `/sys` (or `WEIGH_SYSFS`), the log of a
//! meter outside, and what readings at uneven moments come to in a window.
//!
//! Nobody is estimated here. Where a meter cannot say what was drawn there is no figure, and the
//! reason.

mod accuracy;
mod hwmon;
mod meter;
mod pmic;
mod power_supply;
mod powercap;
mod readings;
mod survey;
mod sysfs;
mod track;
mod watch;

pub mod alignment;
pub mod attribution;
pub mod power_log;

pub use accuracy::Accuracy;
pub use meter::{Meter, Sources};
pub use power_supply::{Battery, Supply, supplies};
pub use readings::{Facts, MeterError, Reading, Value};
pub use survey::{Candidate, survey};
pub use track::{Drawn, Refused, Track};
pub use watch::MeterWatch;
