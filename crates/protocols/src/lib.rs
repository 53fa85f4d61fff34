//! Placeholder.
pub mod mqtt;
