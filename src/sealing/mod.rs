//! Sealed objects: the files that they and their keys are in, how they are shown, and bodies made
//! of them.

pub mod bodies;
pub mod files;
pub mod text;
