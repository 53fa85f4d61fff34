//! A reference server implemented by a library, on the engine's loop: every connection has its own
//! stream and tasks.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use weigh_model::Nanos;
use weigh_model::connection::Fault;
use weigh_model::server::{ById, ConnectionId, Outboxes, Record, Server, ServerReport};

use crate::adapter::stream::{self, Stream, Transport, lock};
use crate::adapter::tasks::{Pool, Soon, Tasks};

/// Service of a library, for every connection of a shard.
pub trait Service: Send {
    /// Serves one connection to its end.
    fn serve(&mut self, stream: Stream, tasks: &Tasks) -> Soon<Result<(), Fault>>;

    /// Where it puts messages before it confirms them.
    fn kept(&self) -> &Kept;

    /// Counts of this shard.
    fn report(&self) -> ServerReport;
}

/// Messages that a service of one shard confirms, until the loop stores them: before the
/// confirmation leaves.
#[derive(Clone, Debug, Default)]
pub struct Kept(Arc<Mutex<Bodies>>);

#[derive(Debug, Default)]
struct Bodies {
    /// False without a store: then nothing is kept.
    is_stored: bool,
    bodies: Vec<Bytes>,
}

impl Kept {
    /// Keeps a message until it is stored.
    pub fn put(&self, body: &Bytes) {
        let mut own = lock(&self.0);
        if own.is_stored {
            own.bodies.push(body.clone());
        }
    }

    fn store(&self, out: &mut dyn Outboxes) {
        let mut own = lock(&self.0);
        for body in own.bodies.drain(..) {
            out.store(Record::Message { name: &[], body: &body });
        }
    }
}

/// A library's server as a server of the engine.
pub struct LibraryServer<S> {
    service: S,
    lines: ById<Box<Line>>,
}

/// A connection.
struct Line {
    transport: Transport,
    pool: Pool,
    ended: Arc<Mutex<Option<Result<(), Fault>>>>,
}

impl<S: Service> LibraryServer<S> {
    /// A server without connections.
    pub fn new(service: S) -> LibraryServer<S> {
        LibraryServer { service, lines: ById::default() }
    }

    /// Lets the library run for a connection, and stages its bytes.
    fn turn(&mut self, of: ConnectionId, out: &mut dyn Outboxes) -> Result<(), Fault> {
        let line = self.lines.get_mut(of);
        let Some(line) = line else { return Ok(()) };
        line.pool.run();
        self.service.kept().store(out);
        line.transport.drain(out.stage(of));
        let ended = lock(&line.ended).take();
        match ended {
            Some(Ok(())) => {
                out.close(of);
                Ok(())
            }
            Some(fault) => fault,
            None => Ok(()),
        }
    }
}

impl<S: Service> Server for LibraryServer<S> {
    fn accepted(&mut self, connection: ConnectionId, _now: Nanos, out: &mut dyn Outboxes) {
        lock(&self.service.kept().0).is_stored = out.stores();
        let (stream, transport) = stream::pair();
        let pool = Pool::new();
        let ended: Arc<Mutex<Option<Result<(), Fault>>>> = Arc::default();
        let (serving, told) = (self.service.serve(stream, pool.tasks()), Arc::clone(&ended));
        pool.tasks().spawn(async move {
            let how = serving.await;
            *lock(&told) = Some(how);
        });
        self.lines.put(connection, Box::new(Line { transport, pool, ended }));
        if self.turn(connection, out).is_err() {
            out.close(connection);
        }
    }

    fn receive(
        &mut self,
        connection: ConnectionId,
        input: &[u8],
        _now: Nanos,
        out: &mut dyn Outboxes,
    ) -> Result<usize, Fault> {
        if let Some(line) = self.lines.get(connection) {
            line.transport.feed(input);
        }
        self.turn(connection, out).map(|()| input.len())
    }

    fn closed(&mut self, connection: ConnectionId, _now: Nanos, _out: &mut dyn Outboxes) {
        self.lines.remove(connection);
    }

    fn report(&self) -> ServerReport {
        self.service.report()
    }
}
