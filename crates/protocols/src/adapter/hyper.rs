//! The traits of transport and executor that hyper needs.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::rt::{Executor, Read, ReadBufCursor, Write};

use crate::adapter::stream::Stream;
use crate::adapter::tasks::Tasks;

impl Read for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let bytes_max = into.remaining();
        self.get_mut().poll_take(context, bytes_max, |bytes| into.put_slice(bytes)).map(Ok)
    }
}

impl Write for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().put(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// The owner of the socket closes it.
    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let stream = self.get_mut();
        pieces.iter().for_each(|piece| stream.put(piece));
        Poll::Ready(Ok(pieces.iter().map(|piece| piece.len()).sum()))
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Tasks {
    fn execute(&self, task: F) {
        self.spawn(task);
    }
}
