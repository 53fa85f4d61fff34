//! The targets that an agent may load.

/// A list of targets: HOST:PORT, HOST:*, *:PORT, networks (10.0.0.0/8, 10.0.0.0/8:1883).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowList {}

impl AllowList {
    /// Reads entries as written after `--may-load`.
    ///
    /// # Errors
    /// The entry that is wrong, and what was expected.
    pub fn parse<S: AsRef<str>>(_entries: &[S]) -> Result<AllowList, String> {
        panic!("not there yet")
    }
}
