//! The file that an object is read from while it is sent: checked before anything starts, and read
//! piece by piece.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;

/// A file whose bytes are sent. It is never whole in memory.
#[derive(Debug)]
pub struct ObjectFile {
    path: String,
    bytes: u64,
    file: File,
}

/// Reason for which a file cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// It cannot be opened.
    #[error("{0} cannot be read: {1}")]
    Unreadable(String, std::io::Error),
    /// It is a directory, a device, a pipe.
    #[error("{0} is {1}, and only a plain file has a size")]
    NoFile(String, &'static str),
    /// There is nothing to send.
    #[error("{0} is empty: there is nothing to move")]
    Empty(String),
}

impl ObjectFile {
    /// Opens the file at `path`, and takes the size it has now for the size it will have.
    ///
    /// # Errors
    /// See [`ObjectError`].
    pub fn open(path: &str) -> Result<ObjectFile, ObjectError> {
        let unreadable = |error| ObjectError::Unreadable(path.to_owned(), error);
        // The kind comes first: opening a pipe would wait for another process to write into it.
        let kind = std::fs::metadata(path).map_err(unreadable)?;
        if kind.is_dir() {
            return Err(ObjectError::NoFile(path.to_owned(), "a directory"));
        }
        if !kind.is_file() {
            return Err(ObjectError::NoFile(path.to_owned(), "a device, a pipe or a socket"));
        }
        let file = File::open(path).map_err(unreadable)?;
        let bytes = file.metadata().map_err(unreadable)?.len();
        match bytes {
            0 => Err(ObjectError::Empty(path.to_owned())),
            _ => Ok(ObjectFile { path: path.to_owned(), bytes, file }),
        }
    }

    /// Its size when it was opened, bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Fills `place` with what stands in the file from `at` on.
    ///
    /// # Errors
    /// In words, with the fix: it was cut short while it was sent, or cannot be read any more.
    pub fn read(&self, at: u64, place: &mut [u8]) -> Result<(), String> {
        self.file.read_exact_at(place, at).map_err(|error| {
            let (path, bytes) = (&self.path, self.bytes);
            let now = self.file.metadata().map_or(0, |metadata| metadata.len());
            match error.kind() {
                ErrorKind::UnexpectedEof => format!(
                    "{path} shrank from {bytes} to {now} bytes while it was sent: send a copy to \
                     which no process writes"
                ),
                _ => format!(
                    "{path} cannot be read from byte {at} on: {error}: send a copy on a disk that \
                     can be read"
                ),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that cannot be sent is reported before anything starts; later changes are reported
    /// with name and size.
    #[test]
    fn what_cannot_be_sent_is_told() {
        let folder = std::env::temp_dir().join(format!("weigh-object-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("object");
        let name = path.to_str().unwrap();
        let error = |name: &str| ObjectFile::open(name).unwrap_err().to_string();
        assert!(error(name).contains("cannot be read"));
        assert!(error(folder.to_str().unwrap()).contains("is a directory"));
        assert!(error("/dev/null").contains("is a device"));
        std::fs::write(&path, b"").unwrap();
        assert!(error(name).contains("is empty"));
        std::fs::write(&path, b"0123456789").unwrap();
        let object = ObjectFile::open(name).unwrap();
        let mut place = [0; 4];
        object.read(6, &mut place).unwrap();
        assert_eq!((object.bytes(), &place), (10, b"6789"));
        std::fs::write(&path, b"0123456").unwrap();
        let said = object.read(6, &mut place).unwrap_err();
        assert!(said.contains("shrank from 10 to 7 bytes"), "{said}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
