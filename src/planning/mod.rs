//! From the words of a command line or a plan to cases that can be weighed.

pub mod cases;
pub mod conduct;
pub mod forecast;
pub mod known;
pub mod lanes;
pub mod material;
pub mod options;
pub mod preflight;
