//! Files that a flag names for output. A plain file is written next to its place and then renamed,
//! so that no reader sees half of it. A link is followed. A device, a pipe or a socket receives the
//! bytes and stays what it is.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Output that is written, until [`OutputFile::finish`].
pub struct OutputFile {
    file: File,
    /// Temporary path of the bytes, and the path that they get at the end.
    moved: Option<(PathBuf, PathBuf)>,
}

impl OutputFile {
    /// Opens `path`. A new file gets the mode 0666 less the umask; an existing file keeps its mode.
    ///
    /// # Errors
    /// If it may not be written, or is a folder or a disk.
    pub fn open(path: &Path) -> io::Result<OutputFile> {
        OutputFile::with_mode(path, None)
    }

    /// Opens `path` for content that only its owner may read, whatever mode a file there had.
    ///
    /// # Errors
    /// As [`OutputFile::open`].
    pub fn open_private(path: &Path) -> io::Result<OutputFile> {
        OutputFile::with_mode(path, Some(0o600))
    }

    fn with_mode(path: &Path, mode: Option<u32>) -> io::Result<OutputFile> {
        let there = match fs::metadata(path) {
            Ok(there) => there,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return OutputFile::partial(&followed(path)?, mode.unwrap_or(0o666));
            }
            Err(error) => return Err(error),
        };
        let kind = there.file_type();
        if let Some(file) = standard_stream(&there)? {
            return Ok(OutputFile { file, moved: None });
        }
        if kind.is_file() {
            // A file that may not be written is not replaced either.
            let old = OpenOptions::new().write(true).open(path)?;
            let place = fs::canonicalize(path)?;
            let kept = mode.unwrap_or(there.mode() & 0o7777);
            return match OutputFile::partial(&place, kept) {
                Ok(output) => output.keep(&there, kept),
                // If the file may be written but its folder may not, the file is overwritten in
                // place.
                Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                    if let Some(mode) = mode {
                        old.set_permissions(Permissions::from_mode(mode))?;
                    }
                    old.set_len(0)?;
                    Ok(OutputFile { file: old, moved: None })
                }
                Err(error) => Err(error),
            };
        }
        let file = if kind.is_socket() {
            File::from(std::os::fd::OwnedFd::from(UnixStream::connect(path)?))
        } else if kind.is_dir() || kind.is_block_device() {
            let what = if kind.is_dir() { "it is a folder" } else { "it is a disk" };
            return Err(io::Error::new(ErrorKind::InvalidInput, what));
        } else {
            OpenOptions::new().write(true).open(path)?
        };
        Ok(OutputFile { file, moved: None })
    }

    /// Opens a new file in the folder of `place`.
    fn partial(place: &Path, mode: u32) -> io::Result<OutputFile> {
        let Some(name) = place.file_name() else {
            return Err(io::Error::new(ErrorKind::InvalidInput, "it names no file"));
        };
        let name = format!(".{}.{}.partial", name.to_string_lossy(), std::process::id());
        let partial = place.with_file_name(name);
        let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&partial)?;
        Ok(OutputFile { file, moved: Some((partial, place.to_owned())) })
    }

    /// Gives the new file the owner and the mode of the old one.
    fn keep(self, old: &fs::Metadata, mode: u32) -> io::Result<OutputFile> {
        // Only root may change the owner; without that right the file is written all the same.
        let _ = std::os::unix::fs::fchown(&self.file, Some(old.uid()), Some(old.gid()));
        self.file.set_permissions(Permissions::from_mode(mode))?;
        Ok(self)
    }

    /// Renames the file to its place once all bytes are written.
    ///
    /// # Errors
    /// If the file cannot be renamed.
    pub fn finish(mut self) -> io::Result<()> {
        self.file.flush()?;
        if let Some((partial, place)) = &self.moved {
            fs::rename(partial, place)?;
            self.moved = None;
        }
        Ok(())
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some((partial, _)) = &self.moved {
            let _ = fs::remove_file(partial);
        }
    }
}

/// Writes all of `bytes` to `path`.
///
/// # Errors
/// As [`OutputFile::open`], or if the disk is full.
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    let mut output = OutputFile::open(path)?;
    output.write_all(bytes.as_ref())?;
    output.finish()
}

/// Returns standard output or standard error if that was named (`/dev/stdout`): the stream
/// continues at its position, also if it is a file.
fn standard_stream(there: &fs::Metadata) -> io::Result<Option<File>> {
    for stream in [io::stdout().as_fd(), io::stderr().as_fd()] {
        let file = File::from(stream.try_clone_to_owned()?);
        let own = file.metadata()?;
        if (own.dev(), own.ino()) == (there.dev(), there.ino()) {
            return Ok(Some(file));
        }
    }
    Ok(None)
}

/// Returns the end of a link that does not exist yet; `path` itself if it is not a link.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        match fs::read_link(&path) {
            Ok(to) => path = path.parent().unwrap_or(Path::new("")).join(to),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::new(ErrorKind::InvalidInput, "links lead in a circle"))
}

/// Most links to follow, as in the kernel (path_resolution(7)).
const LINKS_MAX: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("weigh-out-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_keeps_its_mode() {
        let folder = folder("whole");
        let path = folder.join("a.csv");
        write(&path, "first").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let mut output = OutputFile::open(&path).unwrap();
        output.write_all(b"half").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"first", "a reader sees what was there");
        drop(output);
        assert_eq!(
            (fs::read(&path).unwrap(), names(&folder)),
            (b"first".into(), vec!["a.csv".into()])
        );
        write(&path, "second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
        assert_eq!(names(&folder), ["a.csv"]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn links_are_followed_and_stay() {
        let folder = folder("links");
        let (real, link) = (folder.join("real"), folder.join("link"));
        symlink("real", &link).unwrap();
        write(&link, "through a link to nothing").unwrap();
        write(&link, "through a link").unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"through a link");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        symlink("b", folder.join("a")).unwrap();
        symlink("a", folder.join("b")).unwrap();
        assert!(write(&folder.join("a"), "in a circle").is_err());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_pipe_and_a_socket_get_the_bytes() {
        let folder = folder("streams");
        let pipe = folder.join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe).unwrap()
        });
        write(&pipe, "into a pipe").unwrap();
        assert_eq!(reader.join().unwrap(), b"into a pipe");
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
        let socket = folder.join("socket");
        let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        write(&socket, "into a socket").unwrap();
        let mut read = String::new();
        listener.accept().unwrap().0.read_to_string(&mut read).unwrap();
        assert_eq!(read, "into a socket");
        assert!(write(&folder, "into a folder").is_err());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_is_private_is_so_before_the_first_byte() {
        let folder = folder("private");
        let path = folder.join("secret");
        write(&path, "open").unwrap();
        let mut output = OutputFile::open_private(&path).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(&output.moved.as_ref().unwrap().0), 0o600);
        output.write_all(b"secret").unwrap();
        output.finish().unwrap();
        assert_eq!(mode(&path), 0o600);
        fs::remove_dir_all(folder).unwrap();
    }
}
