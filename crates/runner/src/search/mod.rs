//! The search for a limit: its request, its trials, and its result.

pub mod axis_load;
pub mod backlog;
pub mod goals;
pub mod length;
pub mod needs;
pub mod request;
pub mod result;
pub mod second_generator;
pub mod trials;
