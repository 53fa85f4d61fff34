//! Models what a device would have taken from its battery. Input: coefficients of devices and
//! radios from the literature, each with its source, and measured values (bytes, wake-ups, time,
//! processor time). Output: joules with an interval, and the most important coefficient. Nothing
//! here is measured with a meter, reads a file or a clock.

pub mod answer;
pub mod case;
pub mod catalogue;
pub mod draws;
pub mod keys;
pub mod on_air;
pub mod part;
pub mod quantity;
pub mod work;

pub use answer::{Answer, Figure, Model, Share};
pub use catalogue::Catalogue;
pub use part::{Closes, PartError, PartFile};
pub use quantity::Quantity;
pub use work::{Parts, Work};
