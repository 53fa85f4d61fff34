//! Sealed objects: the files that they and their keys are in, and how they are shown.

pub mod files;
pub mod text;
