//! Sealed objects: reads the files of objects and keys, and shows objects.

pub mod files;
pub mod text;
