//! When which message is handed over, noted between the engine and the connection.

use std::sync::{Arc, Mutex};

use weigh_model::Nanos;
use weigh_model::connection::{Connection, Emit, Fault, Op, Outbox, Reply};
use weigh_model::mark::{Mark, Reading};
use weigh_model::protocol::Seat;

use crate::rig::{Seen, Setup};

/// Runs on virtual time and tells when which message was sent.
pub fn sends(mut setup: Setup) -> (Vec<(Nanos, Mark)>, Seen) {
    let marks = Marks::default();
    let noted = Arc::clone(&marks);
    setup.wrap =
        Some(Arc::new(move |_: Seat, inner| Box::new(Noting { inner, marks: Arc::clone(&noted) })));
    let seen = setup.on_virtual_time();
    let marks = std::mem::take(&mut *marks.lock().unwrap());
    (marks, seen)
}

type Marks = Arc<Mutex<Vec<(Nanos, Mark)>>>;

struct Noting {
    inner: Box<dyn Connection>,
    marks: Marks,
}

impl Connection for Noting {
    fn open(&mut self, now: Nanos, out: &mut Outbox, emit: Emit<'_>) {
        self.inner.open(now, out, emit);
    }

    fn room(&self) -> u32 {
        self.inner.room()
    }

    fn send(&mut self, op: &Op<'_>, now: Nanos, out: &mut Outbox) -> Reply {
        let Reading::Whole(mark) = Mark::read_any(op.body) else { panic!("no mark") };
        self.marks.lock().unwrap().push((now, mark));
        self.inner.send(op, now, out)
    }

    fn receive(
        &mut self,
        input: &[u8],
        now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<usize, Fault> {
        self.inner.receive(input, now, out, emit)
    }
}
