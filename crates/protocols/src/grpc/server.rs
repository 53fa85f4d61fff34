//! The reference server: the store of `proto/store.proto` in memory.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weigh_model::server::ServerReport;
use weigh_model::trial::Settings;

use super::codec::{
    self, APPEND, APPEND_BATCH, APPEND_EACH, COUNT, Messages, PREFIX_BYTES, READ, READ_DEFAULT,
    SERVICE, Value, code, prefix, put_bytes_head, put_number, read_fields,
};
use super::messages::Shelf;
use crate::http2_core::answer::{Answer, Fields, KnownFields};
use crate::http2_core::fields::RequestHead;
use crate::http2_core::serving::Service;
use crate::http2_core::stored::Stored;
use crate::server_counts::ServerCounts;

/// State shared by all shards of one server.
pub(super) struct Rules {
    message_bytes_max: usize,
    shelf: Mutex<Shelf>,
}

/// One shard.
pub(super) struct Store {
    rules: Arc<Rules>,
    census: ServerCounts,
    stored: Stored,
}

/// A call whose messages are not complete.
#[derive(Default)]
pub(super) struct Call {
    method: Method,
    messages: Messages,
    /// Messages so far.
    count: u64,
    /// Answer to a `Read` or a `Count`; in an `AppendEach` answers that were not sent, with their
    /// prefixes.
    reply: Vec<u8>,
    /// The path of an unknown method.
    path: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Method {
    #[default]
    Unknown,
    Append,
    AppendBatch,
    AppendEach,
    Read,
    Count,
}

/// A status other than OK, with its message.
struct Status {
    code: u16,
    message: Cow<'static, str>,
}

impl Method {
    /// True if a call has any number of messages.
    fn is_stream(self) -> bool {
        matches!(self, Method::AppendBatch | Method::AppendEach)
    }
}

impl Rules {
    /// Reads them.
    pub(super) fn new(settings: &Settings) -> Rules {
        Rules {
            message_bytes_max: settings.integer("message_bytes_max") as usize,
            shelf: Mutex::new(Shelf::new(settings.integer("store") as usize)),
        }
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store {
    /// A shard that has counted nothing.
    pub(super) fn new(rules: Arc<Rules>) -> Store {
        Store { rules, census: ServerCounts::default(), stored: Stored::default() }
    }

    /// Takes the messages of a call that are complete with `data`.
    fn take(&mut self, call: &mut Call, data: &[u8]) -> Result<(), Status> {
        let Call { method, messages, count, reply, .. } = call;
        let Store { rules, census, stored } = self;
        let mut wrong = "";
        let taken = messages.take(data, rules.message_bytes_max, |message| {
            *count += 1;
            if *count > 1 && !method.is_stream() {
                wrong = "a call of this method has one message";
                return Err(code::INTERNAL);
            }
            let done = match method {
                Method::Append | Method::AppendBatch | Method::AppendEach => {
                    codec::reading(message).map(|reading| {
                        census.note(reading);
                        stored.put(reading);
                        rules.shelf().put(reading);
                        if *method == Method::AppendEach {
                            reply.extend_from_slice(&EMPTY_MESSAGE);
                        }
                        Ok(())
                    })
                }
                Method::Read => page(rules, message, reply),
                Method::Count => read_fields(message, |_, _| {}).then(|| {
                    put_number(reply, 1, rules.shelf().count());
                    Ok(())
                }),
                Method::Unknown => Some(Ok(())),
            };
            match done {
                Some(Ok(())) => Ok(()),
                Some(Err(why)) => {
                    wrong = why;
                    Err(code::INVALID_ARGUMENT)
                }
                None => {
                    wrong = "a message cannot be decoded";
                    Err(code::INTERNAL)
                }
            }
        });
        taken.map_err(|code| match code {
            code::OUT_OF_RANGE => Status::new(code, "a message is larger than allowed"),
            code::UNIMPLEMENTED => Status::new(code, "compressed messages are not supported"),
            code => {
                Status::new(code, if wrong.is_empty() { "a message is invalid" } else { wrong })
            }
        })
    }

    fn finish(&mut self, call: &mut Call, data: &[u8]) -> Result<Answer, Status> {
        if call.method == Method::Unknown {
            let path = call.path.escape_ascii();
            let message = format!("there is no {path} here; the service is {SERVICE}");
            return Err(Status { code: code::UNIMPLEMENTED, message: message.into() });
        }
        self.take(call, data)?;
        let is_whole = call.messages.is_empty();
        if !is_whole || (call.count == 0 && !call.method.is_stream()) {
            return Err(Status::new(code::INTERNAL, "the call ended before its message"));
        }
        let body = match call.method {
            Method::AppendBatch => {
                put_number(&mut call.reply, 1, call.count);
                framed(&call.reply)
            }
            Method::Read | Method::Count => framed(&call.reply),
            Method::AppendEach => Cow::Owned(std::mem::take(&mut call.reply)),
            Method::Append | Method::Unknown => Cow::Borrowed(&EMPTY_MESSAGE[..]),
        };
        Ok(Answer { head: Fields::Known(HEAD), body, trailers: Some(Fields::Known(OK)) })
    }
}

/// Reads a `ReadRequest` and appends its `ReadReply`; `None` if it is not valid.
fn page(rules: &Rules, message: &[u8], reply: &mut Vec<u8>) -> Option<Result<(), &'static str>> {
    let (mut since, mut limit, mut has_sensor) = (0, 0, false);
    let is_valid = read_fields(message, |number, value| match (number, value) {
        (1, Value::Number(number)) => since = number,
        (2, Value::Number(number)) => limit = number as u32 as usize,
        (3, Value::Bytes(sensor)) => has_sensor = !sensor.is_empty(),
        _ => {}
    });
    if !is_valid {
        return None;
    }
    if has_sensor {
        return Some(Err("the reference server looks into no reading: leave sensor out"));
    }
    let limit = if limit == 0 { READ_DEFAULT } else { limit };
    let (readings, next) = rules.shelf().read(since, limit, |_| true);
    for reading in readings {
        put_bytes_head(reply, 1, reading.len());
        reply.extend_from_slice(&reading);
    }
    put_number(reply, 2, next);
    Some(Ok(()))
}

impl Service for Store {
    type Call = Call;

    const KNOWN: KnownFields =
        &[&[(":status", "200"), ("content-type", "application/grpc")], &[("grpc-status", "0")]];

    fn accepted(&mut self) {
        self.census.note_connection();
    }

    fn begin(&mut self, head: &RequestHead) -> Call {
        let mut call = Call::default();
        call.method = match &head.path[..] {
            path if path == APPEND.as_bytes() => Method::Append,
            path if path == APPEND_BATCH.as_bytes() => Method::AppendBatch,
            path if path == APPEND_EACH.as_bytes() => Method::AppendEach,
            path if path == READ.as_bytes() => Method::Read,
            path if path == COUNT.as_bytes() => Method::Count,
            path => {
                call.path = path[..path.len().min(PATH_BYTES_MAX)].to_vec();
                Method::Unknown
            }
        };
        call
    }

    fn more(&mut self, call: &mut Call, data: &[u8]) -> Option<Answer> {
        if call.method == Method::Unknown {
            return None;
        }
        self.take(call, data).err().map(Status::answer)
    }

    fn part<'c>(&mut self, call: &'c mut Call) -> Option<&'c mut Vec<u8>> {
        let is_part = call.method == Method::AppendEach && !call.reply.is_empty();
        is_part.then_some(&mut call.reply)
    }

    fn end(&mut self, mut call: Call, data: &[u8]) -> Answer {
        self.finish(&mut call, data).unwrap_or_else(Status::answer)
    }

    fn stored(&mut self) -> &mut Stored {
        &mut self.stored
    }

    fn report(&self) -> ServerReport {
        self.census.report()
    }
}

impl Status {
    fn new(code: u16, message: &'static str) -> Status {
        Status { code, message: message.into() }
    }

    /// Trailers alone ("Responses"); messages are percent-encoded.
    fn answer(self) -> Answer {
        let mut message = String::new();
        for byte in self.message.bytes() {
            match byte {
                b'%' | ..=0x1f | 0x7f.. => message.push_str(&format!("%{byte:02X}")),
                _ => message.push(char::from(byte)),
            }
        }
        Answer::bare(Fields::Other(vec![
            (":status", "200".to_owned()),
            ("content-type", "application/grpc".to_owned()),
            ("grpc-status", self.code.to_string()),
            ("grpc-message", message),
        ]))
    }
}

/// A message with its prefix.
fn framed(message: &[u8]) -> Cow<'static, [u8]> {
    Cow::Owned([&prefix(message.len())[..], message].concat())
}

/// Places of the usual fields.
const HEAD: usize = 0;
const OK: usize = 1;

/// An `AppendReply` with its prefix.
const EMPTY_MESSAGE: [u8; PREFIX_BYTES] = [0; PREFIX_BYTES];

/// Bytes of an unknown path that the answer repeats.
const PATH_BYTES_MAX: usize = 200;
