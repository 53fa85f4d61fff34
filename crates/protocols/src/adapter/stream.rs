//! The transport as a library sees it: bytes in memory, written and taken away by the owner of the
//! socket.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// The library's end of a connection. It never waits to write: what it may write at once is bounded
/// by the protocol's own flow control.
pub struct Stream {
    ends: Arc<Mutex<Ends>>,
}

/// Wakes a task when bytes arrive that it does not read itself.
pub struct Watch {
    ends: Arc<Mutex<Ends>>,
}

/// The other end, which passes on the bytes of the socket and takes those to be sent.
pub(crate) struct Transport {
    ends: Arc<Mutex<Ends>>,
}

/// Both directions.
#[derive(Default)]
struct Ends {
    incoming: Vec<u8>,
    /// Number of bytes of `incoming` that the library has taken.
    taken: usize,
    /// True at the end of the input.
    has_ended: bool,
    outgoing: Vec<u8>,
    reader: Option<Waker>,
    /// Woken after the reader.
    watcher: Option<Waker>,
}

/// Both ends of a new connection.
pub(crate) fn pair() -> (Stream, Transport) {
    let ends: Arc<Mutex<Ends>> = Arc::default();
    (Stream { ends: Arc::clone(&ends) }, Transport { ends })
}

impl Stream {
    /// Passes arrived bytes to `put`, at most `bytes_max` of them; none at the end of the
    /// connection. Waits while there are none.
    pub fn poll_take(
        &mut self,
        context: &mut Context<'_>,
        bytes_max: usize,
        put: impl FnOnce(&[u8]),
    ) -> Poll<()> {
        let mut ends = lock(&self.ends);
        let ends = &mut *ends;
        let waiting = &ends.incoming[ends.taken..];
        if waiting.is_empty() && !ends.has_ended {
            ends.reader = Some(context.waker().clone());
            return Poll::Pending;
        }
        let taken = waiting.len().min(bytes_max);
        put(&waiting[..taken]);
        ends.taken += taken;
        if ends.taken == ends.incoming.len() {
            ends.taken = 0;
            ends.incoming.clear();
            ends.incoming.shrink_to(BUFFER_KEPT_BYTES);
        }
        Poll::Ready(())
    }

    /// For one more task, which is polled after the one that reads.
    pub fn watch(&self) -> Watch {
        Watch { ends: Arc::clone(&self.ends) }
    }

    /// Writes `bytes`.
    pub fn put(&mut self, bytes: &[u8]) {
        lock(&self.ends).outgoing.extend_from_slice(bytes);
    }
}

impl Watch {
    /// Makes the task of this context wake when more has arrived.
    pub fn register(&self, context: &Context<'_>) {
        lock(&self.ends).watcher = Some(context.waker().clone());
    }
}

impl Transport {
    /// Adds arrived bytes.
    pub(crate) fn feed(&self, bytes: &[u8]) {
        self.change(|ends| ends.incoming.extend_from_slice(bytes));
    }

    /// Ends the input.
    pub(crate) fn end(&self) {
        self.change(|ends| ends.has_ended = true);
    }

    fn change(&self, change: impl FnOnce(&mut Ends)) {
        let mut ends = lock(&self.ends);
        change(&mut ends);
        let woken = [ends.reader.take(), ends.watcher.take()];
        drop(ends);
        woken.into_iter().flatten().for_each(Waker::wake);
    }

    /// Moves the library's output to the end of `out`. Returns the number of bytes.
    pub(crate) fn drain(&self, out: &mut Vec<u8>) -> usize {
        let mut ends = lock(&self.ends);
        let bytes = ends.outgoing.len();
        out.append(&mut ends.outgoing);
        ends.outgoing.shrink_to(BUFFER_KEPT_BYTES);
        bytes
    }
}

// A panic elsewhere leaves valid bytes.
pub(crate) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Memory that an idle direction of a connection keeps.
const BUFFER_KEPT_BYTES: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn take(stream: &mut Stream, bytes_max: usize) -> Option<Vec<u8>> {
        let mut taken = Vec::new();
        let mut context = Context::from_waker(Waker::noop());
        let polled = stream.poll_take(&mut context, bytes_max, |bytes| taken.extend(bytes));
        polled.is_ready().then_some(taken)
    }

    #[test]
    fn bytes_come_in_order_and_the_end_comes_after_them() {
        let (mut stream, transport) = pair();
        assert_eq!(take(&mut stream, 9), None);
        transport.feed(b"abc");
        transport.feed(b"de");
        transport.end();
        assert_eq!(take(&mut stream, 4).as_deref(), Some(&b"abcd"[..]));
        assert_eq!(take(&mut stream, 4).as_deref(), Some(&b"e"[..]));
        assert_eq!(take(&mut stream, 4).as_deref(), Some(&b""[..]));
        stream.put(b"xy");
        stream.put(b"z");
        let mut out = b"w".to_vec();
        assert_eq!((transport.drain(&mut out), out), (3, b"wxyz".to_vec()));
    }
}
