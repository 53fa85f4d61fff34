//! Where the programs of a benchmark are.

use std::path::PathBuf;

/// Where the programs and files are that tools are made of.
pub(crate) struct Places {
    /// The repository.
    pub(crate) root: PathBuf,
    /// The floor programs; empty if there is no C compiler.
    pub(crate) floor: PathBuf,
    /// The binary under test.
    pub(crate) weigh: PathBuf,
    /// An earlier build of it, to be held against it.
    pub(crate) before: Option<PathBuf>,
    /// A build that records no times.
    pub(crate) unrecorded: Option<PathBuf>,
    /// Results and scratch files of the tools.
    pub(crate) scratch: PathBuf,
}
