//! A store on a disk that is scripted: what is written and synced when, and what fails.

use std::io::{Error, ErrorKind};
use std::sync::{Arc, Mutex};

use weigh_model::Nanos;
use weigh_model::server::Record;

use super::store::UNWRITTEN_BYTES_MAX;
use super::*;

/// What was done to a disk, and what it does next.
#[derive(Default)]
pub(crate) struct Scripted {
    pub(crate) written: Vec<u8>,
    /// Bytes of `written` that a sync covered.
    pub(crate) synced: usize,
    pub(crate) syncs: u32,
    /// Bytes that fit.
    pub(crate) room: Option<usize>,
    pub(crate) fails_to_sync: bool,
    /// Most bytes taken by one write.
    pub(crate) bite: Option<usize>,
}

#[derive(Clone, Default)]
pub(crate) struct TestDisk(pub(crate) Arc<Mutex<Scripted>>);

impl Disk for TestDisk {
    fn write(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        let mut own = self.0.lock().unwrap();
        let room = own.room.map_or(usize::MAX, |room| room - own.written.len());
        let taken = bytes.len().min(room).min(own.bite.unwrap_or(usize::MAX));
        if taken == 0 {
            return Err(Error::from(ErrorKind::StorageFull));
        }
        own.written.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn sync(&mut self) -> Result<(), Error> {
        let mut own = self.0.lock().unwrap();
        if own.fails_to_sync {
            // As on Linux: the next one succeeds, although the pages are gone.
            own.fails_to_sync = false;
            return Err(Error::other("Input/output error"));
        }
        own.syncs += 1;
        own.synced = own.written.len();
        Ok(())
    }

    fn name(&self) -> String {
        "the test's disk".to_owned()
    }
}

impl TestDisk {
    pub(crate) fn bodies(&self) -> Vec<Vec<u8>> {
        let mut bodies = Vec::new();
        messages(&self.0.lock().unwrap().written, |_, body| bodies.push(body.to_vec())).unwrap();
        bodies
    }
}

fn store(policy: StorePolicy) -> (Store, TestDisk) {
    let disk = TestDisk::default();
    (Store::new(Box::new(disk.clone()), policy), disk)
}

fn message(body: &[u8]) -> Record<'_> {
    Record::Message { name: b"t", body }
}

#[test]
fn one_write_and_one_sync_cover_a_turn() {
    let (mut store, disk) = store(StorePolicy::Each);
    for turn in 0..3 {
        (0..10).for_each(|_| store.put(message(b"hello")));
        store.commit(Nanos(turn)).unwrap();
    }
    store.commit(Nanos(9)).unwrap();
    let counts = store.counts();
    assert_eq!((counts.records, counts.writes, counts.syncs), (30, 3, 3));
    assert_eq!(disk.bodies().len(), 30);
    let own = disk.0.lock().unwrap();
    assert_eq!((own.synced, own.syncs), (own.written.len(), 3));
    assert_eq!(counts.bytes, own.written.len() as u64);
}

#[test]
fn the_page_cache_is_never_synced() {
    let (mut store, disk) = store(StorePolicy::Never);
    store.put(message(b"hello"));
    store.commit(Nanos(0)).unwrap();
    store.finish(Nanos(1)).unwrap();
    assert_eq!((disk.bodies().len(), store.counts().syncs), (1, 0));
}

#[test]
fn an_interval_counts_from_the_first_record_that_is_not_synced() {
    let (mut store, _) = store(StorePolicy::Every(Nanos(100)));
    assert_eq!(store.next_due(), None);
    for at in [10, 50, 90] {
        store.put(message(b"hello"));
        store.commit(Nanos(at)).unwrap();
        store.sync_if_due(Nanos(at)).unwrap();
        assert_eq!((store.next_due(), store.counts().syncs), (Some(Nanos(110)), 0));
    }
    store.sync_if_due(Nanos(110)).unwrap();
    assert_eq!((store.next_due(), store.counts().syncs), (None, 1));
    store.put(message(b"hello"));
    store.finish(Nanos(120)).unwrap();
    assert_eq!(store.counts().syncs, 2);
}

#[test]
fn a_full_disk_is_an_error_once_and_nothing_is_written_after_it() {
    let (mut store, disk) = store(StorePolicy::Never);
    disk.0.lock().unwrap().room = Some(40);
    store.put(message(b"fits"));
    store.commit(Nanos(0)).unwrap();
    store.put(message(&[b'x'; 100]));
    let said = store.commit(Nanos(1)).unwrap_err();
    assert!(said.starts_with("cannot write to the test's disk: "), "{said}");
    disk.0.lock().unwrap().room = None;
    store.put(message(b"later"));
    store.commit(Nanos(2)).unwrap();
    assert!(store.has_failed());
    assert_eq!(disk.bodies(), [b"fits".to_vec()]);
    assert_eq!(disk.0.lock().unwrap().written.len(), 40, "a torn record stays at the end");
}

#[test]
fn a_failed_sync_is_never_tried_again() {
    for policy in [StorePolicy::Each, StorePolicy::Every(Nanos(5))] {
        let (mut store, disk) = store(policy);
        disk.0.lock().unwrap().fails_to_sync = true;
        store.put(message(b"hello"));
        let said = store.commit(Nanos(0)).and_then(|()| store.sync_if_due(Nanos(5))).unwrap_err();
        assert!(said.contains("Input/output error") && said.contains("help: "), "{said}");
        store.put(message(b"again"));
        store.commit(Nanos(9)).unwrap();
        store.finish(Nanos(10)).unwrap();
        assert_eq!((disk.0.lock().unwrap().syncs, store.next_due()), (0, None));
    }
}

#[test]
fn large_records_are_written_early_and_short_writes_continue() {
    let (mut store, disk) = store(StorePolicy::Each);
    disk.0.lock().unwrap().bite = Some(700_000);
    let large = vec![7; UNWRITTEN_BYTES_MAX];
    store.put(message(&large));
    assert_eq!((store.counts().writes, store.counts().syncs), (2, 0));
    store.put(message(b"end"));
    store.commit(Nanos(0)).unwrap();
    assert_eq!((store.counts().writes, store.counts().syncs), (3, 1));
    assert_eq!(disk.bodies(), [large, b"end".to_vec()]);
}

#[test]
fn each_start_has_a_file_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let on_failure: Arc<dyn Fn(&str) + Send + Sync> = Arc::new(|_| {});
    let folder = folder.path().join("made");
    let spec = StoreSpec { folder: folder.clone(), policy: StorePolicy::Never, on_failure };
    for start in 0..2 {
        let mut store = Store::new(Box::new(FileDisk::create(&spec, 3).unwrap()), spec.policy);
        store.put(message(b"hello"));
        store.commit(Nanos(0)).unwrap();
        let file = std::fs::read(folder.join(format!("store-3-{start}.log"))).unwrap();
        assert_eq!(Records::of(&file).unwrap().count(), 1);
    }
    let is_file = StoreSpec { folder: folder.join("store-3-0.log"), ..spec };
    let error = FileDisk::create(&is_file, 0).unwrap_err().to_string();
    assert!(error.starts_with("cannot store in ") && error.contains("help: "), "{error}");
}

#[test]
fn memory_is_no_medium() {
    let folder = "/dev/shm";
    if !std::path::Path::new(folder).is_dir() {
        return eprintln!("SKIPPED: there is no {folder}");
    }
    let on_failure: Arc<dyn Fn(&str) + Send + Sync> = Arc::new(|_| {});
    let spec = StoreSpec { folder: folder.into(), policy: StorePolicy::Each, on_failure };
    let error = FileDisk::create(&spec, 9).unwrap_err();
    assert_eq!(error, StoreError::InMemory { path: folder.to_owned() });
}
