//! Asking a server for the definitions of its services (gRPC Server Reflection Protocol, versions
//! v1 and v1alpha, which have the same messages).

use std::sync::{Arc, Mutex, PoisonError};

use weigh_model::connection::Fault;
use weigh_model::endpoint::percent_decoded;
use weigh_model::load::Pattern;
use weigh_model::protocol::{Dial, Invalid};
use weigh_model::trial::Trial;

use super::client::{self, CallFields};
use super::codec::{self, Messages, Value, code, put_bytes_head, read_fields};
use crate::http2_core::caller;
use crate::http2_core::exchange::{Exchange, Shape};
use crate::http2_core::fields::AnswerHead;
use crate::http2_core::request::RequestTemplate;

/// The method, in the versions that servers have, the newer first.
pub const METHODS: [&str; 2] = [
    "grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];

/// Status of a server without the method.
pub const UNIMPLEMENTED: u16 = code::UNIMPLEMENTED;

/// A question to the server.
#[derive(Clone, Copy, Debug)]
pub enum Question<'q> {
    /// The file that defines this service, and what it imports.
    FileOf(&'q str),
    /// The file of this name.
    File(&'q str),
    /// The names of all services.
    Services,
}

/// An answer of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answered {
    /// Files, each a `google.protobuf.FileDescriptorProto`.
    Files(Vec<Vec<u8>>),
    /// Names of services.
    Services(Vec<String>),
    /// There is no such thing: the server's code and words.
    Error(u64, String),
}

/// A call that has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// Its status.
    pub status: u16,
    /// The server's words to it.
    pub words: String,
    /// The messages of the answer.
    pub messages: Vec<Vec<u8>>,
}

/// Replies that came and were not taken.
#[derive(Clone, Debug, Default)]
pub struct Replies(Arc<Mutex<Vec<Reply>>>);

/// Connections to the target of a trial that call `method` with the message that is sent, once for
/// each. Their answers are in the replies.
///
/// # Errors
/// Metadata or a target that gRPC does not allow.
pub fn dial(trial: &Trial, method: &str) -> Result<(Dial, Replies), Invalid> {
    let replies = Replies::default();
    let asking = Asking {
        template: client::template(trial, &format!("/{method}"), None)?,
        replies: replies.clone(),
    };
    Ok((caller::dial(asking, Pattern::Request), replies))
}

impl Replies {
    /// Takes a reply, if one came.
    pub fn take(&self) -> Option<Reply> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// True if none came.
    pub fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

impl Question<'_> {
    /// The message.
    pub fn encode(self) -> Vec<u8> {
        let (field, text) = match self {
            Question::File(name) => (3, name),
            Question::FileOf(symbol) => (4, symbol),
            Question::Services => (7, "*"),
        };
        let mut message = Vec::new();
        put_bytes_head(&mut message, field, text.len());
        message.extend_from_slice(text.as_bytes());
        message
    }
}

impl Answered {
    /// Reads a message; `None` if it is invalid.
    pub fn decode(message: &[u8]) -> Option<Answered> {
        let mut found = None;
        let is_valid = read_fields(message, |number, value| {
            let Value::Bytes(inner) = value else { return };
            found = match number {
                4 => bytes_of(inner).map(Answered::Files),
                6 => services_of(inner).map(Answered::Services),
                7 => error_of(inner),
                _ => return,
            };
        });
        found.filter(|_| is_valid)
    }
}

/// The values of the field 1 of a message.
fn bytes_of(message: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    let is_valid = read_fields(message, |number, value| {
        if let (1, Value::Bytes(bytes)) = (number, value) {
            all.push(bytes.to_vec());
        }
    });
    is_valid.then_some(all)
}

fn services_of(message: &[u8]) -> Option<Vec<String>> {
    let name = |service: &Vec<u8>| {
        let name = bytes_of(service)?.into_iter().next_back()?;
        String::from_utf8(name).ok()
    };
    bytes_of(message)?.iter().map(name).collect()
}

fn error_of(message: &[u8]) -> Option<Answered> {
    let (mut code, mut words) = (0, String::new());
    let is_valid = read_fields(message, |number, value| match (number, value) {
        (1, Value::Number(number)) => code = number,
        (2, Value::Bytes(text)) => words = String::from_utf8_lossy(text).into_owned(),
        _ => {}
    });
    is_valid.then_some(Answered::Error(code, words))
}

/// Calls whose answers are kept.
struct Asking {
    template: RequestTemplate,
    replies: Replies,
}

/// State of an answer.
#[derive(Debug, Default)]
struct Answer {
    reply: Reply,
    messages: Messages,
    status: Option<u16>,
}

impl Exchange for Asking {
    type Fields = CallFields;
    type Answer = Answer;

    fn template(&self, _is_together: bool) -> &RequestTemplate {
        &self.template
    }

    fn streams(&self) -> u32 {
        1
    }

    fn gathers(&self) -> bool {
        false
    }

    fn shape(&self, body: &[u8]) -> Shape {
        Shape { bytes: codec::PREFIX_BYTES + body.len(), payload: body.len(), ..Shape::default() }
    }

    fn put(&self, body: &[u8], _shape: &Shape, out: &mut Vec<u8>) {
        out.extend_from_slice(&codec::prefix(body.len()));
        out.extend_from_slice(body);
    }

    fn head(&self, answer: &mut Answer, head: &AnswerHead<CallFields>) -> Result<(), Fault> {
        if head.status != 200 {
            answer.status = Some(code::UNKNOWN);
            answer.reply.words = format!("HTTP status {}", head.status);
        }
        Ok(())
    }

    fn data(&self, answer: &mut Answer, data: &[u8]) -> usize {
        let messages = &mut answer.reply.messages;
        let taken = answer.messages.take(data, ANSWER_BYTES_MAX, |message| {
            messages.push(message.to_vec());
            Ok(())
        });
        if let Err(code) = taken {
            answer.status = Some(code);
        }
        0
    }

    fn trailers(&self, answer: &mut Answer, fields: &CallFields) {
        answer.status = answer.status.or(fields.status);
        if let Some(message) = &fields.message {
            answer.reply.words = percent_decoded(&String::from_utf8_lossy(message));
        }
    }

    fn end(&self, answer: &Answer, _messages: usize) -> Result<Result<(), u16>, Fault> {
        let status = answer.status.unwrap_or(code::UNKNOWN);
        let reply = Reply { status, ..answer.reply.clone() };
        self.replies.0.lock().unwrap_or_else(PoisonError::into_inner).push(reply);
        Ok(Ok(()))
    }
}

/// Largest message of an answer: the definitions of a large service.
const ANSWER_BYTES_MAX: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_written_as_the_protocol_says() {
        assert_eq!(Question::FileOf("a.B").encode(), [0x22, 3, b'a', b'.', b'B']);
        assert_eq!(Question::File("f").encode(), [0x1a, 1, b'f']);
        assert_eq!(Question::Services.encode(), [0x3a, 1, b'*']);
    }

    #[test]
    fn answers_are_read() {
        let files = [0x22, 6, 0x0a, 1, b'x', 0x0a, 1, b'y'];
        let all = Answered::Files(vec![b"x".to_vec(), b"y".to_vec()]);
        assert_eq!(Answered::decode(&files), Some(all));
        let services = [0x32, 5, 0x0a, 3, 0x0a, 1, b's'];
        assert_eq!(Answered::decode(&services), Some(Answered::Services(vec!["s".to_owned()])));
        let error = [0x3a, 5, 0x08, 5, 0x12, 1, b'n'];
        assert_eq!(Answered::decode(&error), Some(Answered::Error(5, "n".to_owned())));
        for wrong in [&[][..], &[0x22], &[0x22, 2, 0x0a], &[0x08, 1]] {
            assert_eq!(Answered::decode(wrong), None, "{wrong:?}");
        }
    }
}
