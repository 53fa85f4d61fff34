//! HTTP/2 (RFC 9113) by hyper, on a stream of the adapter: common code of `http2` and of the
//! protocols inside HTTP/2.

use std::error::Error;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, Connection, SendRequest};
use hyper::service::HttpService;
use weigh_model::connection::{Fault, STREAM_ERROR};

use crate::adapter::client::{Answer, Recognised};
use crate::adapter::stream::{Stream, lock};
use crate::adapter::tasks::{Soon, Tasks};

/// The client's end of a connection: sends requests, as many at once as the server allows.
pub struct Requests<B>
where
    B: Body + Send + Unpin + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    sender: SendRequest<B>,
    /// Polled by a task of its own until it is over, and asked what the server allows.
    connection: Arc<Mutex<Option<Connection<Stream, B, Tasks>>>>,
}

/// Begins to speak HTTP/2 with prior knowledge (RFC 9113, section 3.3).
///
/// # Errors
/// If the library cannot begin.
pub async fn connect<B>(stream: Stream, tasks: Tasks) -> Result<Requests<B>, Fault>
where
    B: Body + Send + Unpin + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let watch = stream.watch();
    let begun = Builder::new(tasks.clone()).handshake(stream).await;
    let (sender, connection) = begun.map_err(|error| Fault::Ended(words(&error)))?;
    let connection = Arc::new(Mutex::new(Some(connection)));
    let polled = Arc::clone(&connection);
    tasks.spawn(async move {
        // Open calls report how it ended. The library notices GOAWAY only when it is polled, and
        // nothing
        // in it asks for that.
        poll_fn(|context| {
            watch.register(context);
            let mut place = lock(&polled);
            let Some(connection) = &mut *place else { return Poll::Ready(()) };
            Pin::new(connection).poll(context).map(|_| drop(place.take()))
        })
        .await;
    });
    Ok(Requests { sender, connection })
}

impl<B> Clone for Requests<B>
where
    B: Body + Send + Unpin + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    fn clone(&self) -> Requests<B> {
        Requests { sender: self.sender.clone(), connection: Arc::clone(&self.connection) }
    }
}

impl<B> Requests<B>
where
    B: Body + Send + Unpin + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    /// Number of streams that the server allows (`SETTINGS_MAX_CONCURRENT_STREAMS`); `u32::MAX`
    /// means no limit, and 0 a connection that has ended.
    fn granted(&self) -> u32 {
        let connection = lock(&self.connection);
        let streams = connection.as_ref().map_or(0, Connection::current_max_send_streams);
        u32::try_from(streams).unwrap_or(u32::MAX)
    }

    /// Number of requests that may be open now, at most `wanted`.
    pub fn room(&self, wanted: u32) -> u32 {
        if self.is_open() { wanted.min(self.granted()) } else { 0 }
    }

    /// Limits announced by the server, by name; empty if it sets none.
    pub fn announced(&self) -> Option<(&'static str, u64)> {
        let granted = self.granted();
        (granted < u32::MAX).then_some(("max_concurrent_streams", granted.into()))
    }

    /// False once the connection takes no more requests: it broke, or the server said GOAWAY.
    pub fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    /// Sends a request; its answer begins when the head is there.
    pub fn send(
        &mut self,
        request: Request<B>,
    ) -> impl Future<Output = hyper::Result<Response<Incoming>>> + use<B> {
        self.sender.send_request(request)
    }
}

/// Meaning of a request without an answer: the server reset its stream, or the connection
/// failed.
pub fn unanswered(error: &(dyn Error + 'static)) -> Answer {
    let mut cause = Some(error);
    while let Some(inner) = cause {
        if let Some(error) = inner.downcast_ref::<h2::Error>()
            && error.is_reset()
            && error.is_remote()
            && let Some(reason) = error.reason()
        {
            return Answer::Refused(STREAM_ERROR + u32::from(reason).min(0xf) as u16);
        }
        cause = inner.source();
    }
    Answer::Unanswered(words(error))
}

/// An error with all its causes.
fn words(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        words = format!("{words}: {inner}");
        cause = inner.source();
    }
    words
}

/// The server's preface is a SETTINGS frame on stream 0 (RFC 9113, sections 3.4 and 4.1): a length
/// of three bytes, its type, flags without ACK, and the stream.
pub fn recognise(head: &[u8]) -> Recognised {
    let start = &head[..head.len().min(SHOWN_BYTES_MAX)];
    if head.starts_with(b"HTTP/1") {
        return Recognised::No(format!(
            "it answers in HTTP/1: \"{}\"; HTTP/2 without TLS needs a server that expects it",
            start.escape_ascii()
        ));
    }
    match head {
        [_, _, _, SETTINGS, flags, 0, 0, 0, 0, ..] if flags & ACK == 0 => Recognised::Yes,
        _ if head.len() < FRAME_HEAD_BYTES && could_be_http1(head) => Recognised::NotYet,
        [_, _, _, kind, ..] if *kind != SETTINGS => {
            let text = format!("it starts with \"{}\"", start.escape_ascii());
            Recognised::No(text)
        }
        _ if head.len() < FRAME_HEAD_BYTES => Recognised::NotYet,
        _ => Recognised::No(format!("it starts with \"{}\"", start.escape_ascii())),
    }
}

fn could_be_http1(head: &[u8]) -> bool {
    head.iter().zip(b"HTTP/1").all(|(byte, due)| byte == due)
}

/// Serves one connection. Neither dates nor anything else in an answer depends on a clock.
pub fn serve<S, B>(stream: Stream, tasks: &Tasks, service: S) -> Soon<Result<(), Fault>>
where
    S: HttpService<Incoming, ResBody = B> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let connection = hyper::server::conn::http2::Builder::new(tasks.clone())
        .auto_date_header(false)
        .max_concurrent_streams(SERVED_STREAMS_MAX)
        .serve_connection(stream, service);
    Box::pin(async move { connection.await.map_err(|error| Fault::Malformed(words(&error))) })
}

const FRAME_HEAD_BYTES: usize = 9;
const SETTINGS: u8 = 4;
const ACK: u8 = 1;

/// Most streams that a reference server allows on a connection: it must not narrow a measured
/// window.
const SERVED_STREAMS_MAX: u32 = 65_535;

/// Most bytes of an unknown protocol that are shown.
const SHOWN_BYTES_MAX: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_recognised_by_its_settings() {
        let settings = [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 200];
        for length in 0..9 {
            assert_eq!(recognise(&settings[..length]), Recognised::NotYet, "{length}");
        }
        assert_eq!(recognise(&settings), Recognised::Yes);
        for (other, says) in [
            (&b"HTTP/1.1 400 Bad Request\r\n"[..], "answers in HTTP/1"),
            (b"220 mail.example ESMTP", "starts with"),
            (&[0, 0, 0, 4, 1, 0, 0, 0, 0], "starts with"),
            (&[0, 0, 0, 4, 0, 0, 0, 0, 1], "starts with"),
        ] {
            let Recognised::No(saw) = recognise(other) else { panic!("{other:?}") };
            assert!(saw.contains(says), "{saw}");
        }
        assert_eq!(recognise(b"HTT"), Recognised::NotYet);
        assert_eq!(recognise(b"HTTP/"), Recognised::NotYet);
    }
}
