//! What advice needs of the machine: dry trials on virtual time, options with what is known of
//! them, cells from runs, and the calibration.

pub mod calibration;
mod dry;
mod heard;
pub mod observed;
pub mod offers;
pub mod shipped;

pub use offers::Offers;
