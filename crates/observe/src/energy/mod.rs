//! Energy meters: those that the kernel shows below `/sys` (or `WEIGH_SYSFS`), the log of an
//! external meter, and the energy in a window from readings at uneven moments.
//!
//! No energy is estimated here. If a meter cannot measure it, there is no figure but the reason.

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
