//! The client's end: a request for every message, done when the whole answer is there.

use weigh_model::connection::Fault;
use weigh_model::protocol::Invalid;
use weigh_model::trial::Trial;

use super::codec::NAMING;
use crate::http2_core::exchange::{Exchange, Shape};
use crate::http2_core::fields::AnswerHead;
use crate::http2_core::head;
use crate::http2_core::request::RequestTemplate;
use crate::requests;
use crate::statuses::Statuses;

/// The requests of a trial.
pub(super) struct Requests {
    template: RequestTemplate,
    carries: bool,
    is_head: bool,
    statuses: Statuses,
    streams: u32,
}

impl Requests {
    /// Reads and checks those of a trial.
    ///
    /// # Errors
    /// What HTTP/2 does not allow, and its key.
    pub(super) fn new(trial: &Trial) -> Result<Requests, Invalid> {
        let settings = &trial.settings;
        Ok(Requests {
            template: head::template(trial, &NAMING)?,
            carries: head::carries(settings),
            is_head: settings.text("method") == "HEAD",
            statuses: Statuses::read(settings.text("status"), "http2.status")?,
            streams: requests::streams(trial),
        })
    }
}

impl Exchange for Requests {
    type Fields = ();
    /// The status.
    type Answer = u16;

    fn template(&self, _is_together: bool) -> &RequestTemplate {
        &self.template
    }

    fn streams(&self) -> u32 {
        self.streams
    }

    fn gathers(&self) -> bool {
        false
    }

    #[inline]
    fn shape(&self, body: &[u8]) -> Shape {
        let bytes = if self.carries { body.len() } else { 0 };
        Shape { bytes, payload: bytes, ..Shape::default() }
    }

    #[inline]
    fn put(&self, body: &[u8], _shape: &Shape, out: &mut Vec<u8>) {
        out.extend_from_slice(body);
    }

    fn is_bodiless(&self) -> bool {
        self.is_head
    }

    #[inline]
    fn head(&self, answer: &mut u16, head: &AnswerHead<()>) -> Result<(), Fault> {
        *answer = head.status;
        Ok(())
    }

    fn data(&self, _answer: &mut u16, data: &[u8]) -> usize {
        data.len()
    }

    #[inline]
    fn trailers(&self, _answer: &mut u16, _fields: &()) {}

    #[inline]
    fn end(&self, status: &u16, _messages: usize) -> Result<Result<(), u16>, Fault> {
        Ok(if self.statuses.hold(*status) { Ok(()) } else { Err(*status) })
    }
}
