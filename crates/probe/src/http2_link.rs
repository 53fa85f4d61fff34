//! HTTP/2 by the library h2, on a connection of the probe's own and without a runtime: its futures
//! are polled in turns, until an answer is there or the time is over.

use std::io::{self, ErrorKind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::client::{Connection, SendRequest};
use http::{HeaderMap, Request, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::reach::{Link, Reach, Trouble};

/// A connection that speaks HTTP/2.
pub(crate) struct Session {
    connection: Connection<Turns>,
    sender: SendRequest<Bytes>,
}

/// What a request was answered.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    /// Fields before the body, and those behind it.
    pub(crate) fields: HeaderMap,
    pub(crate) trailers: HeaderMap,
    /// Bytes of the body.
    pub(crate) body_bytes: usize,
}

impl Reply {
    /// A field, wherever it stands; those behind the body come first.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let found = self.trailers.get(name).or_else(|| self.fields.get(name))?;
        found.to_str().ok()
    }
}

impl Session {
    /// Connects, by prior knowledge or, inside TLS, by ALPN, and waits for the server's SETTINGS.
    pub(crate) fn open(reach: &Reach) -> Result<Session, Trouble> {
        let link = reach.open_with(&[b"h2"])?;
        link.set_nonblocking().map_err(|error| Trouble::Foreign(error.to_string()))?;
        let until = reach.until()?;
        let begun = h2::client::handshake(Turns { link });
        let (sender, connection) = turn(begun, until, reach)?.map_err(|e| trouble(&e))?;
        Ok(Session { connection, sender })
    }

    /// How many streams the server allows at once (`SETTINGS_MAX_CONCURRENT_STREAMS`), known after
    /// the first answer; `None` where it sets no limit.
    pub(crate) fn streams(&self) -> Option<u64> {
        let most = self.connection.max_concurrent_send_streams();
        // What h2 has where nothing was said: as many as there are.
        u32::try_from(most).ok().filter(|most| *most < u32::MAX >> 1).map(u64::from)
    }

    /// Sends a request with its whole body, and reads the answer whole.
    pub(crate) fn send(
        &mut self,
        reach: &Reach,
        request: Request<()>,
        body: Bytes,
    ) -> Result<Reply, Trouble> {
        let until = reach.until()?;
        let mut sender = self.sender.clone();
        let exchange = async move {
            sender = sender.ready().await?;
            let is_bare = body.is_empty();
            let (answer, mut stream) = sender.send_request(request, is_bare)?;
            if !is_bare {
                stream.send_data(body, true)?;
            }
            let (head, mut body) = answer.await?.into_parts();
            let mut body_bytes = 0;
            while let Some(piece) = body.data().await {
                let piece = piece?;
                body_bytes += piece.len();
                body.flow_control().release_capacity(piece.len())?;
            }
            let trailers = body.trailers().await?.unwrap_or_default();
            Ok(Reply { status: head.status, fields: head.headers, trailers, body_bytes })
        };
        let mut exchange = pin!(exchange);
        let connection = &mut self.connection;
        let mut over = None;
        // The exchange moves only while the connection does.
        let both = std::future::poll_fn(|context| {
            if over.is_none()
                && let Poll::Ready(ended) = Pin::new(&mut *connection).poll(context)
            {
                over = Some(ended);
            }
            match (exchange.as_mut().poll(context), &over) {
                (Poll::Ready(reply), _) => Poll::Ready(reply.map_err(|error| trouble(&error))),
                (Poll::Pending, Some(Err(error))) => Poll::Ready(Err(trouble(error))),
                (Poll::Pending, Some(Ok(()))) => {
                    let text = "the server closed the connection".to_owned();
                    Poll::Ready(Err(Trouble::Closed(text)))
                }
                (Poll::Pending, None) => Poll::Pending,
            }
        });
        turn(both, until, reach)?
    }
}

/// Polls until it is ready or the time is over. Nobody wakes us: what waits, waits for the socket,
/// which is looked at again after a moment.
fn turn<T>(future: impl Future<Output = T>, until: Instant, reach: &Reach) -> Result<T, Trouble> {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(result) = future.as_mut().poll(&mut context) {
            return Ok(result);
        }
        reach.until()?;
        if Instant::now() >= until {
            return Err(Trouble::Silent(reach.patience));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn trouble(error: &h2::Error) -> Trouble {
    if error.is_io() {
        return Trouble::Closed(format!("the server closed the connection: {error}"));
    }
    // An error of ours means that what came was no HTTP/2; one of theirs is a refusal.
    match error.is_remote() {
        true => Trouble::Refused(error.to_string()),
        false => Trouble::Foreign(format!("its answer is no HTTP/2: {error}")),
    }
}

/// A connection that never waits.
struct Turns {
    link: Link,
}

fn polled(done: io::Result<usize>) -> Poll<io::Result<usize>> {
    match done {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
            Poll::Pending
        }
        done => Poll::Ready(done),
    }
}

impl AsyncRead for Turns {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let unfilled = buffer.initialize_unfilled();
        match polled(self.link.try_read(unfilled)) {
            Poll::Ready(Ok(count)) => {
                buffer.advance(count);
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncWrite for Turns {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        polled(self.link.try_write(bytes))
    }

    fn poll_flush(mut self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        polled(self.link.try_flush().map(|()| 0)).map_ok(|_| ())
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.link.cut();
        Poll::Ready(Ok(()))
    }
}

/// How often a socket is looked at. No time is measured here.
const LOOK_EVERY: Duration = Duration::from_micros(300);
