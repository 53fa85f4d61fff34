//! The commit from which the program was built, for the journals of its runs.

use std::sync::OnceLock;

static COMMIT: OnceLock<String> = OnceLock::new();

/// Sets the commit, once per process; an empty name is that of a build without one.
pub fn set(name: &str) {
    if !name.is_empty() {
        // A second call would be from the same program.
        let _ = COMMIT.set(name.to_owned());
    }
}

/// The commit; `None` if the program does not know it.
pub fn own() -> Option<String> {
    COMMIT.get().cloned()
}
