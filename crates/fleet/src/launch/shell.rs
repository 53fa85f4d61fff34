//! Words of a POSIX shell.

use weigh_model::protocol::Invalid;

/// Returns the words in one line, each quoted so that a shell takes it as it is.
pub(super) fn line<'w>(words: impl IntoIterator<Item = &'w str>) -> Result<String, Invalid> {
    shlex::try_join(words).map_err(|error| {
        Invalid::new("a word of a script", error.to_string(), "leave the character NUL out")
    })
}
