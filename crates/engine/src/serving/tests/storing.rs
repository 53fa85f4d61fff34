//! Confirmations leave after what they confirm is stored, and never after a failure.

use std::sync::Mutex;

use weigh_model::server::Record;

use super::*;
use crate::storage::tests::TestDisk;
use crate::storage::{Store, StorePolicy};

/// Stores each line and answers `ok`.
struct Confirms;

impl Server for Confirms {
    fn accepted(&mut self, _: ConnectionId, _: Nanos, out: &mut dyn Outboxes) {
        assert!(out.stores());
    }

    fn receive(
        &mut self,
        connection: ConnectionId,
        input: &[u8],
        _: Nanos,
        out: &mut dyn Outboxes,
    ) -> Result<usize, Fault> {
        for line in input.split_inclusive(|byte| *byte == b'\n') {
            out.store(Record::Message { name: b"", body: line });
            out.stage(connection).extend_from_slice(b"ok\n");
        }
        Ok(input.len())
    }

    fn closed(&mut self, _: ConnectionId, _: Nanos, _: &mut dyn Outboxes) {}

    fn report(&self) -> ServerReport {
        ServerReport::default()
    }
}

struct Bench {
    io: EpollIo,
    shard: ServerShard,
    disk: TestDisk,
    address: SocketAddr,
    failures: Arc<Mutex<Vec<String>>>,
}

impl Bench {
    fn new(policy: StorePolicy) -> Bench {
        let mut io = EpollIo::new(Instant::now()).unwrap();
        let address = io.listen((Ipv4Addr::LOCALHOST, 0).into(), 16).unwrap();
        let (disk, failures) = (TestDisk::default(), Arc::<Mutex<Vec<String>>>::default());
        let store = Store::new(Box::new(disk.clone()), policy);
        let told = Arc::clone(&failures);
        let on_failure = Arc::new(move |said: &str| told.lock().unwrap().push(said.to_owned()));
        let shard = ServerShard::new(Box::new(Confirms), Transport::Stream, vec![io.waker()]);
        Bench { io, shard: shard.storing(store, on_failure), disk, address, failures }
    }

    fn connect(&mut self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_nonblocking(true).unwrap();
        stream
    }

    /// Steps until the client has an answer or its end.
    fn ask(&mut self, stream: &mut TcpStream, line: &[u8]) -> Vec<u8> {
        // A connection that the server has closed already may refuse it.
        let _ = stream.write_all(line);
        let mut answer = [0; 64];
        loop {
            let soon = self.io.now() + Nanos::from_millis(1);
            self.shard.step(&mut self.io, soon);
            match stream.read(&mut answer) {
                Ok(length) => return answer[..length].to_vec(),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return Vec::new(),
            }
        }
    }
}

#[test]
fn a_confirmed_message_is_synced_first() {
    let mut bench = Bench::new(StorePolicy::Each);
    let mut stream = bench.connect();
    for turn in 1..=3_u32 {
        assert_eq!(bench.ask(&mut stream, b"a\nb\n"), b"ok\nok\n");
        let own = bench.disk.0.lock().unwrap();
        assert_eq!((own.syncs, own.synced), (turn, own.written.len()));
    }
    let counts = bench.shard.report().server.store.unwrap();
    assert_eq!((counts.records, counts.writes, counts.syncs), (6, 3, 3));
}

#[test]
fn an_interval_syncs_without_further_input() {
    let mut bench = Bench::new(StorePolicy::Every(Nanos::from_millis(2)));
    let mut stream = bench.connect();
    assert_eq!(bench.ask(&mut stream, b"a\n"), b"ok\n");
    while bench.disk.0.lock().unwrap().syncs == 0 {
        // Without a limit of its own, a step would wait for input after the sync.
        let later = bench.io.now() + Nanos::from_secs(1);
        bench.shard.step(&mut bench.io, later);
    }
    let own = bench.disk.0.lock().unwrap();
    assert_eq!(own.synced, own.written.len());
}

#[test]
fn after_a_failed_sync_or_a_full_disk_nothing_is_confirmed() {
    let fail_sync = |disk: &TestDisk| disk.0.lock().unwrap().fails_to_sync = true;
    let fill = |disk: &TestDisk| {
        let mut own = disk.0.lock().unwrap();
        own.room = Some(own.written.len() + 5);
    };
    for fail in [fail_sync as fn(&TestDisk), fill] {
        let mut bench = Bench::new(StorePolicy::Each);
        let (mut one, mut other) = (bench.connect(), bench.connect());
        assert_eq!(bench.ask(&mut one, b"a\n"), b"ok\n");
        let synced = bench.disk.0.lock().unwrap().synced;
        fail(&bench.disk);
        assert_eq!(bench.ask(&mut one, b"b\n"), b"");
        assert_eq!(bench.ask(&mut other, b"c\n"), b"");
        let mut late = bench.connect();
        assert_eq!(bench.ask(&mut late, b"d\n"), b"");
        assert_eq!(bench.failures.lock().unwrap().len(), 1, "it is reported once");
        assert_eq!(bench.disk.0.lock().unwrap().synced, synced, "and never tried again");
    }
}
