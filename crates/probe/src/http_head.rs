//! Heads of answers of HTTP/1, with their fields.

use weigh_protocols::http1::answer::{self, Body};

use crate::exchange::Exchange;
use crate::reach::Trouble;

/// The head of an answer.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    /// Status and reason: `404 Not Found`.
    pub(crate) words: String,
    pub(crate) body: Body,
    fields: Vec<(String, String)>,
}

impl Head {
    /// Waits for the head of an answer.
    ///
    /// # Errors
    /// What is not HTTP/1, and the end of the connection or of the time.
    pub(crate) fn hear(line: &mut Exchange) -> Result<Head, Trouble> {
        line.hear(|input| {
            let mut fields = Vec::new();
            let read = answer::read_fields(input, false, &mut |name, value| {
                fields.push((name.to_lowercase(), String::from_utf8_lossy(value).into_owned()));
            });
            let read = read
                .map_err(|fault| Trouble::Foreign(format!("its answer is not HTTP/1: {fault}")))?;
            let Some((own, bytes)) = read else { return Ok(None) };
            let line = input.split(|byte| *byte == b'\r').next().unwrap_or_default();
            let line = String::from_utf8_lossy(line).into_owned();
            let words = line.split_once(' ').map_or("", |(_, words)| words.trim()).to_owned();
            Ok(Some((Head { status: own.status, words, body: own.body, fields }, bytes)))
        })
    }

    /// The value of a field, whose name is in lower case.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(own, _)| own == name).map(|(_, value)| value.trim())
    }
}
