//! Follows the journal of a run from any byte on. A late reader, a reconnected one and a replay of
//! a finished run all read in this way.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use weigh_report::journal::JOURNAL;

/// A position in the journal of a run, which moves forward line by line.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    file: File,
    /// End of the last line that was read, bytes from the start.
    offset: u64,
}

/// A complete line of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalLine {
    /// Its end in the journal, bytes from the start: a reader that continues there misses nothing.
    pub end: u64,
    /// Its content without the line end.
    pub text: Vec<u8>,
}

/// Reason for which a journal cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum Lost {
    /// The file was removed.
    #[error("{0}: the run was removed while it was watched")]
    Removed(PathBuf),
    /// The file is shorter than what was read of it.
    #[error("{0}: the journal was cut off or replaced while it was watched\nhelp: start again")]
    CutOff(PathBuf),
    /// A line is longer than any journal has.
    #[error("{0}: no line end within {LINE_BYTES_MAX} bytes, so it is not a journal")]
    NotAJournal(PathBuf),
    /// It cannot be read.
    #[error("{0}: {1}")]
    Unreadable(PathBuf, #[source] io::Error),
}

impl Follower {
    /// Opens the journal of the run in `folder` behind byte `offset`, which is the end of a line
    /// or 0.
    ///
    /// # Errors
    /// If there is no journal, it cannot be opened, or it is shorter than `offset`.
    pub fn open(folder: &Path, offset: u64) -> Result<Follower, Lost> {
        let path = folder.join(JOURNAL);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Lost::Removed(path));
            }
            Err(error) => return Err(Lost::Unreadable(path, error)),
        };
        let follower = Follower { path, file, offset };
        follower.length_bytes()?;
        Ok(follower)
    }

    /// End of the last line that was read, bytes from the start.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Reads the complete lines that follow, at most [`READ_BYTES_MAX`] of them unless the first is
    /// longer. An incomplete last line is left for the next call. Empty if there is nothing new.
    ///
    /// # Errors
    /// If the journal was removed or cut off, or cannot be read.
    pub fn read(&mut self) -> Result<Vec<JournalLine>, Lost> {
        let length = self.length_bytes()?;
        let mut room = READ_BYTES_MAX;
        loop {
            let wanted = (length - self.offset).min(room as u64) as usize;
            let mut block = vec![0; wanted];
            let read = self.read_at(&mut block)?;
            block.truncate(read);
            let lines = self.lines_of(&block);
            let is_all = self.offset + block.len() as u64 >= length;
            if !lines.is_empty() || is_all {
                return Ok(lines);
            }
            if room >= LINE_BYTES_MAX {
                return Err(Lost::NotAJournal(self.path.clone()));
            }
            room *= 4;
        }
    }

    /// The complete lines of a block that begins at the offset, which moves behind them.
    fn lines_of(&mut self, block: &[u8]) -> Vec<JournalLine> {
        let mut lines = Vec::new();
        for line in block.split_inclusive(|byte| *byte == b'\n') {
            let Some(text) = line.strip_suffix(b"\n") else { break };
            self.offset += line.len() as u64;
            if !text.trim_ascii().is_empty() {
                lines.push(JournalLine { end: self.offset, text: text.to_vec() });
            }
        }
        lines
    }

    fn read_at(&self, block: &mut [u8]) -> Result<usize, Lost> {
        let mut read = 0;
        while read < block.len() {
            match self.file.read_at(&mut block[read..], self.offset + read as u64) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Lost::Unreadable(self.path.clone(), error)),
            }
        }
        Ok(read)
    }

    /// Length of the journal. A file that was removed can still be read, but nothing follows.
    fn length_bytes(&self) -> Result<u64, Lost> {
        let unreadable = |error| Lost::Unreadable(self.path.clone(), error);
        let facts = self.file.metadata().map_err(unreadable)?;
        if facts.nlink() == 0 {
            return Err(Lost::Removed(self.path.clone()));
        }
        match facts.len() {
            short if short < self.offset => Err(Lost::CutOff(self.path.clone())),
            length => Ok(length),
        }
    }
}

/// Bytes of one call: a long journal is read in parts, between which a reader can do other things.
pub const READ_BYTES_MAX: usize = 1 << 20;

/// Bytes in which every journal has a line end: the longest lines hold the times of a trial.
const LINE_BYTES_MAX: usize = READ_BYTES_MAX << 8;

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, OpenOptions};
    use std::io::Write;

    fn journal(folder: &Path) -> File {
        OpenOptions::new().create(true).append(true).open(folder.join(JOURNAL)).unwrap()
    }

    fn texts(follower: &mut Follower) -> Vec<String> {
        let lines = follower.read().unwrap().into_iter();
        lines.map(|line| String::from_utf8(line.text).unwrap()).collect()
    }

    #[test]
    fn a_line_is_read_once_it_is_complete_and_only_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = journal(folder.path());
        let mut follower = Follower::open(folder.path(), 0).unwrap();
        assert!(texts(&mut follower).is_empty());
        file.write_all(b"one\ntw").unwrap();
        assert_eq!(texts(&mut follower), ["one"]);
        assert!(texts(&mut follower).is_empty());
        file.write_all(b"o\n\nthree\n").unwrap();
        assert_eq!(texts(&mut follower), ["two", "three"]);
        let end = fs::metadata(folder.path().join(JOURNAL)).unwrap().len();
        assert_eq!(follower.offset(), end);
    }

    /// The end of each line is where another reader continues.
    #[test]
    fn a_reader_that_continues_at_the_end_of_a_line_misses_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let all: Vec<String> = (0..1000).map(|number| format!("line {number}")).collect();
        writeln!(journal(folder.path()), "{}", all.join("\n")).unwrap();
        let lines = Follower::open(folder.path(), 0).unwrap().read().unwrap();
        assert_eq!(lines.len(), 1000);
        for at in [0, 1, 499, 999] {
            let mut later = Follower::open(folder.path(), lines[at].end).unwrap();
            assert_eq!(texts(&mut later), all[at + 1..]);
        }
    }

    #[test]
    fn a_long_journal_is_read_in_parts_and_a_line_may_be_longer_than_one() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = journal(folder.path());
        let long = "x".repeat(3 * READ_BYTES_MAX);
        write!(file, "a\n{long}\nb\n").unwrap();
        let mut follower = Follower::open(folder.path(), 0).unwrap();
        let lengths: Vec<usize> = std::iter::from_fn(|| {
            let texts = texts(&mut follower);
            (!texts.is_empty()).then(|| texts.iter().map(String::len).collect::<Vec<_>>())
        })
        .flatten()
        .collect();
        assert_eq!(lengths, [1, long.len(), 1]);
    }

    #[test]
    fn a_journal_that_is_gone_or_cut_off_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        writeln!(journal(folder.path()), "one").unwrap();
        let mut follower = Follower::open(folder.path(), 0).unwrap();
        follower.read().unwrap();
        journal(folder.path()).set_len(1).unwrap();
        assert!(matches!(follower.read(), Err(Lost::CutOff(_))));
        assert!(matches!(Follower::open(folder.path(), 9), Err(Lost::CutOff(_))));
        fs::remove_file(folder.path().join(JOURNAL)).unwrap();
        assert!(matches!(follower.read(), Err(Lost::Removed(_))));
        assert!(matches!(Follower::open(folder.path(), 0), Err(Lost::Removed(_))));
    }
}
