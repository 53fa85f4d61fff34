//! What a protocol inside HTTP/2 adds to a client's connection: its requests, and the meaning of
//! their answers.

use weigh_model::Nanos;
use weigh_model::connection::Fault;

use super::fields::{AnswerFields, AnswerHead};
use super::request::RequestTemplate;

/// What a protocol makes of requests and answers.
pub(crate) trait Exchange: Send + Sync + 'static {
    /// Fields of an answer that it reads.
    type Fields: AnswerFields + Send;
    /// State of an answer.
    type Answer: Default + Send;

    /// Head of a request: of one message, or of several together.
    fn template(&self, is_together: bool) -> &RequestTemplate;

    /// Requests that may be open at once.
    fn streams(&self) -> u32;

    /// True if one request may carry several messages.
    fn gathers(&self) -> bool;

    /// True if one request carries all messages of a connection, and its answer an answer to each,
    /// in their order.
    fn is_dialogue(&self) -> bool {
        false
    }

    /// The longest time of a request, and the code of one that takes longer.
    fn deadline(&self) -> Option<(Nanos, u16)> {
        None
    }

    /// What the data of a request is for this body.
    fn shape(&self, body: &[u8]) -> Shape;

    /// Appends the data of that shape.
    fn put(&self, body: &[u8], shape: &Shape, out: &mut Vec<u8>);

    /// Messages of a dialogue that were answered since the last call.
    fn answered(&self, _answer: &mut Self::Answer) -> u32 {
        0
    }

    /// Code of an answer that cannot be read on.
    fn flaw(&self, _answer: &Self::Answer) -> Option<u16> {
        None
    }

    /// True if answers have no content whatever their heads say (HEAD).
    fn is_bodiless(&self) -> bool {
        false
    }

    /// Takes the head of an answer.
    ///
    /// # Errors
    /// If it shows that no request will ever succeed.
    fn head(&self, answer: &mut Self::Answer, head: &AnswerHead<Self::Fields>)
    -> Result<(), Fault>;

    /// Takes content of an answer. Returns how many bytes of it are payload.
    fn data(&self, answer: &mut Self::Answer, data: &[u8]) -> usize;

    /// Takes trailers, or the head of an answer that consists of it.
    fn trailers(&self, answer: &mut Self::Answer, fields: &Self::Fields);

    /// Result of a whole answer to `messages` messages: the code of an error answer.
    ///
    /// # Errors
    /// If it shows that no request will ever succeed.
    fn end(&self, answer: &Self::Answer, messages: usize) -> Result<Result<(), u16>, Fault>;
}

/// Data of a request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shape {
    /// What precedes the body, where that is short.
    pub(crate) prefix: Prefix,
    /// All bytes; 0 for a request without data.
    pub(crate) bytes: usize,
    /// Bytes of bodies among them.
    pub(crate) payload: usize,
    /// The producer of the message and its number there, where the data names them.
    pub(crate) numbers: (u32, u64),
}

/// Bytes before a body.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Prefix {
    bytes: [u8; 16],
    length: usize,
}

impl Prefix {
    /// Appends bytes; at most 16 fit, and what does not fit is left out.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if let Some(place) = self.bytes.get_mut(self.length) {
                *place = *byte;
                self.length += 1;
            }
        }
    }

    /// The bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}
