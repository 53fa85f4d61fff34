//! The client's end: a request for every call, done when the whole answer is there.

use std::sync::Arc;

use crate::adapter::client::{Answer, Client, Connected};
use crate::adapter::http2::{self, Requests};
use crate::adapter::stream::Stream;
use crate::adapter::tasks::{Soon, Tasks};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};

use super::request::Template;

/// A connection that takes requests.
struct Caller {
    requests: Requests<Full<Bytes>>,
    template: Arc<Template>,
    streams: u32,
}

/// Opens a connection that keeps at most `streams` requests in flight.
pub(super) async fn connect(
    stream: Stream,
    tasks: Tasks,
    template: Arc<Template>,
    streams: u32,
) -> Connected {
    let requests = http2::connect(stream, tasks).await?;
    Ok(Box::new(Caller { requests, template, streams }))
}

impl Client for Caller {
    fn room(&self) -> u32 {
        self.requests.room(self.streams)
    }

    fn is_open(&self) -> bool {
        self.requests.is_open()
    }

    fn granted(&self) -> Option<(&'static str, u64)> {
        self.requests.announced()
    }

    fn call(&mut self, body: &[u8]) -> Soon<Answer> {
        let template = Arc::clone(&self.template);
        let answering = self.requests.send(template.with(body));
        Box::pin(async move {
            let answer = match answering.await {
                Ok(answer) => answer,
                Err(error) => return http2::unanswered(&error),
            };
            let status = answer.status();
            let mut content = answer.into_body();
            while let Some(frame) = content.frame().await {
                if let Err(error) = frame {
                    return http2::unanswered(&error);
                }
            }
            match status.as_u16() {
                code if template.confirms(code) => Answer::Done,
                code => Answer::Refused(code),
            }
        })
    }
}
