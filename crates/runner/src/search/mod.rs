//! The search for a limit: what is asked, its trials, and its result.

pub mod asked;
pub mod axis_load;
pub mod goals;
pub mod length;
pub mod needs;
pub mod result;
pub mod second_generator;
pub mod trials;
