//! Reads the live file of a run: the seconds that were written since the last look.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use weigh_model::live::{LIVE, SLOT_BYTES, SLOTS, Second};

/// A reader of the live file in a run's folder, which need not exist.
#[derive(Debug)]
pub struct LiveReader {
    path: PathBuf,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    file: File,
    /// The last second that was read; 0 before the first.
    number: u64,
}

impl LiveReader {
    /// Reads in `folder`.
    pub fn new(folder: &Path) -> LiveReader {
        LiveReader { path: folder.join(LIVE), open: None }
    }

    /// The seconds since the last call, ascending; at the first call all that the file has. A
    /// resumed run begins a new file, which is read from its start.
    pub fn read(&mut self) -> Vec<Second> {
        if self.open.as_ref().is_some_and(|open| open.is_gone()) {
            self.open = None;
        }
        match &mut self.open {
            Some(open) => open.next(),
            None => match File::open(&self.path) {
                Ok(file) => self.open.insert(Open { file, number: 0 }).all(),
                Err(_) => Vec::new(),
            },
        }
    }
}

impl Open {
    /// True once another file has its place, or none.
    fn is_gone(&self) -> bool {
        self.file.metadata().is_ok_and(|facts| facts.nlink() == 0)
    }

    fn all(&mut self) -> Vec<Second> {
        let mut content = vec![0; SLOT_BYTES * SLOTS as usize];
        let read = self.file.read_at(&mut content, 0).unwrap_or(0);
        let seconds = Second::newest_last(&content[..read]);
        self.number = seconds.last().map_or(0, |second| second.number);
        seconds
    }

    /// The seconds behind the last one: one read for each, and one that finds none.
    fn next(&mut self) -> Vec<Second> {
        let mut seconds = Vec::new();
        let mut slot = [0; SLOT_BYTES];
        loop {
            let at = Second::slot_at(self.number + 1);
            let read = self.file.read_at(&mut slot, at).unwrap_or(0);
            match Second::newest_last(&slot[..read]).pop() {
                Some(second) if second.number == self.number + 1 => seconds.push(second),
                // A reader that was away for longer than the file reaches back.
                Some(second) if second.number > self.number + 1 => return self.all(),
                _ => return seconds,
            }
            self.number += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, OpenOptions};

    fn write(folder: &Path, numbers: std::ops::RangeInclusive<u64>) {
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).open(folder.join(LIVE));
        let file = file.unwrap();
        for number in numbers {
            let slot = Second { number, end: number, ..Second::default() }.to_slot().unwrap();
            file.write_all_at(&slot, Second::slot_at(number)).unwrap();
        }
    }

    fn numbers(reader: &mut LiveReader) -> Vec<u64> {
        reader.read().into_iter().map(|second| second.number).collect()
    }

    #[test]
    fn every_second_is_read_once_across_the_end_of_the_ring() {
        let folder = tempfile::tempdir().unwrap();
        let mut reader = LiveReader::new(folder.path());
        assert!(numbers(&mut reader).is_empty());
        write(folder.path(), 1..=597);
        assert_eq!(numbers(&mut reader), (1..=597).collect::<Vec<_>>());
        write(folder.path(), 598..=603);
        assert_eq!(numbers(&mut reader), (598..=603).collect::<Vec<_>>());
        assert!(numbers(&mut reader).is_empty());
        write(folder.path(), 604..=1900);
        assert_eq!(numbers(&mut reader).last(), Some(&1900), "a reader that was away catches up");
    }

    #[test]
    fn a_resumed_run_begins_a_new_file() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), 1..=5);
        let mut reader = LiveReader::new(folder.path());
        numbers(&mut reader);
        fs::remove_file(folder.path().join(LIVE)).unwrap();
        assert!(numbers(&mut reader).is_empty());
        write(folder.path(), 1..=2);
        assert_eq!(numbers(&mut reader), [1, 2]);
    }
}
