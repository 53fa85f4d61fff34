//! The file of a stage's hops: records are buffered, and one thread writes them.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use weigh_model::Nanos;
use weigh_model::hop::{HOP_BYTES, Hop, HopStage};
use weigh_model::mark::{Mark, Reading};

use crate::failed::Failed;
use crate::queue::Piece;

/// Records a stage's hops; does nothing without a file. Dropping it writes the rest.
pub(crate) struct HopFile {
    stage: HopStage,
    writing: Option<Writing>,
}

struct Writing {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Makes a stage write its hops at once.
pub(crate) struct Urge(Option<Arc<Shared>>);

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    /// Notified to write without waiting for more.
    woken: Condvar,
    /// Notified when all buffered records are written.
    written: Condvar,
}

/// Records that are not in the file yet.
#[derive(Default)]
struct Waiting {
    bytes: Vec<u8>,
    is_over: bool,
    /// Number of requests to write everything, and of those done.
    asked: u64,
    answered: u64,
    /// True once nothing is written any more.
    is_closed: bool,
}

impl HopFile {
    /// Appends to the file at `path`, which is made if absent.
    ///
    /// # Errors
    /// A file that cannot be written, or holds other data.
    pub(crate) fn open(stage: HopStage, path: Option<&Path>) -> Result<HopFile, Failed> {
        let Some(path) = path else { return Ok(HopFile { stage, writing: None }) };
        let file = open(path)
            .map_err(|error| Failed::Found(format!("--hops {}: {error}", path.display())))?;
        let shared = Arc::new(Shared::default());
        let (theirs, name) = (Arc::clone(&shared), path.to_owned());
        let thread = std::thread::Builder::new()
            .name("hops".to_owned())
            .spawn(move || write_out(file, &name, &theirs))
            .map_err(|error| Failed::Found(format!("no thread for hops: {error}")))?;
        Ok(HopFile { stage, writing: Some(Writing { shared, thread: Some(thread) }) })
    }

    /// Records the pieces with a complete mark; `repeated` is true for the numbers of those that
    /// the store already had.
    pub(crate) fn note(&self, pieces: &[Piece], left: Nanos, repeated: impl Fn(usize) -> bool) {
        let Some(writing) = &self.writing else { return };
        let batch = pieces.len() as u32;
        let mut bytes = Vec::with_capacity(pieces.len() * HOP_BYTES);
        for (number, piece) in pieces.iter().enumerate() {
            if let Reading::Whole(mark) = Mark::read_any(&piece.body) {
                let hop = Hop::of(&mark, self.stage, piece.arrived, left, batch);
                bytes.extend(Hop { repeated: repeated(number), ..hop }.encode());
            }
        }
        lock(&writing.shared.waiting).bytes.append(&mut bytes);
    }

    /// A handle to write the records at once, without the file.
    pub(crate) fn urge(&self) -> Urge {
        Urge(self.writing.as_ref().map(|writing| Arc::clone(&writing.shared)))
    }
}

impl Urge {
    /// Returns when all records so far are in the file.
    pub(crate) fn write_out(&self) {
        let Some(shared) = &self.0 else { return };
        let mut waiting = lock(&shared.waiting);
        waiting.asked += 1;
        let own = waiting.asked;
        shared.woken.notify_one();
        let is_unwritten = |waiting: &mut Waiting| waiting.answered < own && !waiting.is_closed;
        drop(shared.written.wait_while(waiting, is_unwritten));
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        lock(&self.shared.waiting).is_over = true;
        self.shared.woken.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Opens the file after its last complete record; a partial one is removed.
fn open(path: &Path) -> std::io::Result<File> {
    let mut file = File::options().create(true).read(true).append(true).open(path)?;
    let length = file.metadata()?.len();
    if (1..HOP_BYTES as u64).contains(&length) {
        return Err(std::io::Error::other("it is not a file of hops; choose another file"));
    }
    let mut first = [0; HOP_BYTES];
    if length >= HOP_BYTES as u64 {
        file.read_exact(&mut first)?;
        Hop::decode(&first).map_err(|error| {
            std::io::Error::other(format!(
                "it is not a file of hops ({error}); choose another \
                                           file"
            ))
        })?;
    }
    file.set_len(length - length % HOP_BYTES as u64)?;
    Ok(file)
}

fn write_out(mut file: File, path: &Path, shared: &Shared) {
    loop {
        let (bytes, asked, is_over) = {
            let waiting = lock(&shared.waiting);
            let awaits =
                |waiting: &mut Waiting| !waiting.is_over && waiting.asked == waiting.answered;
            let (mut waiting, _) = shared
                .woken
                .wait_timeout_while(waiting, FLUSH_EVERY, awaits)
                .unwrap_or_else(PoisonError::into_inner);
            (std::mem::take(&mut waiting.bytes), waiting.asked, waiting.is_over)
        };
        if !bytes.is_empty()
            && let Err(error) = file.write_all(&bytes)
        {
            eprintln!("weigh serve: {}: {error}; hops are lost", path.display());
        }
        let mut waiting = lock(&shared.waiting);
        (waiting.answered, waiting.is_closed) = (asked, is_over);
        shared.written.notify_all();
        if is_over {
            return;
        }
    }
}

fn lock(of: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A stage that is killed loses the hops of at most this time.
const FLUSH_EVERY: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use bytes::Bytes;
    use weigh_model::mark::{JSON_END, MARK_BYTES};

    use super::*;

    fn piece(sequence: u64) -> Piece {
        let start = b"{\"mark\":\"";
        let mut body = [&start[..], &[0; MARK_BYTES], JSON_END].concat();
        let mark = Mark {
            tag: 7,
            warmup: sequence == 0,
            producer: 3,
            sequence,
            due: Nanos(1),
            lag: Nanos(2),
            own_lag: Nanos(2),
        };
        mark.seal(&mut body, start.len());
        Piece { body: Bytes::from(body), arrived: Nanos(100 + sequence) }
    }

    fn read(path: &Path) -> Vec<Hop> {
        let bytes = std::fs::read(path).unwrap();
        assert_eq!(bytes.len() % HOP_BYTES, 0);
        bytes.chunks(HOP_BYTES).map(|one| Hop::decode(one.try_into().unwrap()).unwrap()).collect()
    }

    fn place(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("weigh-hops-{}-{name}", std::process::id()))
    }

    #[test]
    fn what_carries_a_mark_is_in_the_file_and_a_cut_record_is_not() {
        let path = place("whole");
        let foreign = Piece { body: Bytes::from_static(b"{}"), arrived: Nanos(1) };
        let hops = HopFile::open(HopStage::Store, Some(&path)).unwrap();
        hops.note(&[piece(0), foreign, piece(1)], Nanos(500), |number| number == 2);
        drop(hops);
        // A kill in the middle of a record.
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(&[1, 2, 3]).unwrap();
        let hops = HopFile::open(HopStage::Store, Some(&path)).unwrap();
        hops.note(&[piece(2)], Nanos(600), |_| false);
        drop(hops);
        let seen: Vec<_> = read(&path)
            .iter()
            .map(|hop| {
                (hop.sequence, hop.warmup, hop.repeated, hop.arrived.0, hop.left.0, hop.batch)
            })
            .collect();
        std::fs::remove_file(&path).unwrap();
        let expected = [
            (0, true, false, 100, 500, 3),
            (1, false, true, 101, 500, 3),
            (2, false, false, 102, 600, 1),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn who_is_asked_writes_out_what_was_noted_before() {
        let path = place("urged");
        let hops = HopFile::open(HopStage::Api, Some(&path)).unwrap();
        let urge = hops.urge();
        for sequence in 1..=50 {
            hops.note(&[piece(sequence)], Nanos(500), |_| false);
            urge.write_out();
            assert_eq!(read(&path).len() as u64, sequence, "not one is held back");
        }
        drop(hops);
        // The writer has ended, and no call waits for it.
        urge.write_out();
        assert_eq!(read(&path).len(), 50);
        std::fs::remove_file(&path).unwrap();
        HopFile::open(HopStage::Api, None).unwrap().urge().write_out();
    }

    #[test]
    fn a_file_of_something_else_is_left_alone() {
        let path = place("else");
        for text in ["a diary, and a long one, of more than forty bytes", "a short one", "x"] {
            std::fs::write(&path, text).unwrap();
            let error = HopFile::open(HopStage::Api, Some(&path)).map(|_| ()).unwrap_err();
            assert!(error.to_string().contains("it is not a file of hops"), "{error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        std::fs::remove_file(&path).unwrap();
    }
}
