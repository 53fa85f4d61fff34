//! The limit on open files holds per table, not per server. In a process of its own, because it
//! lowers that limit.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, channel};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use weigh_engine::io::descriptors;
use weigh_engine::serving::Serving;
use weigh_model::Nanos;
use weigh_model::connection::Fault;
use weigh_model::protocol::{Host, Transport};
use weigh_model::server::{ConnectionId, Outboxes, Server, ServerReport};

const LIMIT: u64 = 256;

#[test]
fn tables_of_their_own_and_running_out() {
    let hard = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(LIMIT), maximum: hard }).unwrap();
    two_shards_hold_more_than_one_table();
    a_full_table_pauses_accepting();
    let raised = descriptors::raise().unwrap();
    assert_eq!(raised.soft, raised.hard);
    assert_eq!(raised, descriptors::limits());
}

fn two_shards_hold_more_than_one_table() {
    let before = descriptors::open_count().unwrap();
    let serving = start(2);
    let (on, clients) = (serving.address(), 180);
    let hold = || client_thread(on, clients);
    let (first, second) = (hold(), hold());
    let opened = [first.opened.recv().unwrap(), second.opened.recv().unwrap()];
    assert_eq!(opened, [clients, clients]);
    assert!(2 * clients as u64 > LIMIT);
    assert_eq!(serving.report().open_connections, 2 * clients as u64);
    drop((first.release, second.release));
    first.thread.join().unwrap();
    second.thread.join().unwrap();
    let report = serving.stop();
    assert_eq!((report.server.connections, report.accept_pauses), (2 * clients as u64, 0));
    assert_eq!(descriptors::open_count().unwrap(), before, "nothing leaks into this table");
}

fn a_full_table_pauses_accepting() {
    let serving = start(1);
    let on = serving.address();
    let first = client_thread(on, 100);
    assert_eq!(first.opened.recv().unwrap(), 100);
    // These fit into their own table, but not all into the server's together with the first.
    let (release, released) = channel::<()>();
    let second = in_own_table(move || {
        let mut streams: Vec<TcpStream> =
            (0..200).map(|_| TcpStream::connect(on).unwrap()).collect();
        released.recv().unwrap_err();
        streams.iter_mut().for_each(ask);
    });
    while serving.report().accept_pauses == 0 {
        std::thread::yield_now();
    }
    drop(first.release);
    first.thread.join().unwrap();
    drop(release);
    second.join().unwrap();
    let report = serving.stop();
    assert_eq!(report.server.connections, 300);
    assert!(report.accept_pauses > 0);
}

struct Clients {
    thread: std::thread::JoinHandle<()>,
    opened: Receiver<usize>,
    release: std::sync::mpsc::Sender<()>,
}

/// Opens connections, has each answered, and holds them until released.
fn client_thread(on: SocketAddr, count: usize) -> Clients {
    let (tell, opened) = channel();
    let (release, released) = channel::<()>();
    let thread = in_own_table(move || {
        let mut streams: Vec<TcpStream> =
            (0..count).map(|_| TcpStream::connect(on).unwrap()).collect();
        streams.iter_mut().for_each(ask);
        tell.send(streams.len()).unwrap();
        released.recv().unwrap_err();
    });
    Clients { thread, opened, release }
}

fn ask(stream: &mut TcpStream) {
    stream.write_all(b"x").unwrap();
    let mut answer = [0];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"x");
}

fn in_own_table(work: impl FnOnce() + Send + 'static) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        #[expect(unsafe_code, reason = "descriptor tables have to be kept apart by hand")]
        // SAFETY: the thread has just begun and has no descriptors; `work` opens its own.
        unsafe {
            descriptors::own_table(&[]).unwrap();
        }
        assert!(descriptors::open_count().unwrap() <= 3);
        work();
    })
}

fn start(shards: u16) -> Serving {
    let make = |_| -> Box<dyn Server> { Box::new(Mirror(ServerReport::default())) };
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Serving::start(&Host { transport: Transport::Stream, make: Box::new(make) }, any, shards)
        .unwrap()
}

/// Sends back what it gets.
struct Mirror(ServerReport);

impl Server for Mirror {
    fn accepted(&mut self, _: ConnectionId, _: Nanos, _: &mut dyn Outboxes) {
        self.0.connections += 1;
    }

    fn receive(
        &mut self,
        connection: ConnectionId,
        input: &[u8],
        _: Nanos,
        out: &mut dyn Outboxes,
    ) -> Result<usize, Fault> {
        out.stage(connection).extend_from_slice(input);
        Ok(input.len())
    }

    fn closed(&mut self, _: ConnectionId, _: Nanos, _: &mut dyn Outboxes) {}

    fn report(&self) -> ServerReport {
        self.0.clone()
    }
}
