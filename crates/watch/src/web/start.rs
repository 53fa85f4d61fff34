//! Where a stream of events begins: behind the last line that the browser has.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use weigh_report::journal::JOURNAL;

/// The place behind which a browser wants to continue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// The run of the study; `None` where a single run is watched.
    pub run: Option<String>,
    /// End of its last line in the journal, bytes from the start.
    pub offset: u64,
}

/// Where a stream begins, from the header `Last-Event-ID` of a reconnected browser or else from
/// `?from=`: `OFFSET`, or of a study `RUN:OFFSET`. The start without either.
///
/// # Errors
/// If the offset is not a number.
pub fn asked(last_event_id: Option<&str>, query: Option<&str>) -> Result<Start, String> {
    let mut parts = query.unwrap_or_default().split('&');
    let from = parts.find_map(|part| part.strip_prefix("from="));
    let Some(text) = last_event_id.filter(|id| !id.is_empty()).or(from) else {
        return Ok(Start::default());
    };
    let (run, number) = match text.rsplit_once(':') {
        Some((run, number)) => (Some(run.to_owned()), number),
        None => (None, text),
    };
    let offset = number.parse().map_err(|_| {
        format!("{text:?}: expected the id of an event, which is a number of bytes, or 0")
    })?;
    Ok(Start { run, offset })
}

/// Checks that a line of the journal ends at `offset`. A journal that is gone passes: the stream
/// reports that.
///
/// # Errors
/// If the journal is shorter, or `offset` is within a line.
pub fn check(folder: &Path, offset: u64) -> Result<(), String> {
    let Ok(journal) = File::open(folder.join(JOURNAL)) else { return Ok(()) };
    let Some(before) = offset.checked_sub(1) else { return Ok(()) };
    let mut byte = [0];
    match journal.read_at(&mut byte, before) {
        Ok(1) if byte == [b'\n'] => Ok(()),
        Ok(1) => Err(format!("no line of the journal ends at byte {offset}; begin at 0")),
        Ok(_) => Err(format!("the journal is shorter than {offset} bytes; begin at 0")),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            Err(format!("no journal has {offset} bytes; begin at 0"))
        }
        Err(error) => Err(format!("the journal cannot be read: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reconnected_browser_continues_where_it_was_whatever_its_url_has() {
        let offset = |id, query| asked(id, query).unwrap().offset;
        assert_eq!(asked(None, None), Ok(Start::default()));
        assert_eq!(offset(None, Some("token=a&from=12")), 12);
        assert_eq!(offset(Some("40"), Some("from=12")), 40);
        assert_eq!(offset(Some(""), Some("from=12")), 12);
        let of_study = Start { run: Some("right-cost".to_owned()), offset: 7 };
        assert_eq!(asked(Some("right-cost:7"), None), Ok(of_study));
        for wrong in ["-1", "x", "1.5", "99999999999999999999999"] {
            assert!(asked(Some(wrong), None).unwrap_err().contains("number of bytes"), "{wrong}");
        }
    }

    #[test]
    fn a_stream_begins_only_at_the_end_of_a_line() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(check(folder.path(), 5), Ok(()), "the stream reports that it is gone");
        std::fs::write(folder.path().join(JOURNAL), "one\ntwo\nth").unwrap();
        for right in [0, 4, 8] {
            assert_eq!(check(folder.path(), right), Ok(()), "{right}");
        }
        for wrong in [1, 3, 9, 10, 11, 1 << 40, u64::MAX] {
            assert!(check(folder.path(), wrong).is_err(), "{wrong}");
        }
    }
}
