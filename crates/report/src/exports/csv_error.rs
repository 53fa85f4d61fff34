//! Errors of the CSV writer as errors of I/O.

/// The error of the operating system in `error`, if there is one.
pub(crate) fn csv_into_io(error: csv::Error) -> std::io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => std::io::Error::other(format!("{other:?}")),
    }
}
