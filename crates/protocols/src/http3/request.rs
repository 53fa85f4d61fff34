//! The requests of a trial: the fields that are the same in all of them are encoded once.

use weigh_model::protocol::Invalid;
use weigh_model::trial::Trial;

use super::codec::{NAMING, put_data_head, put_headers};
use super::qpack;
use crate::http2_core::head;
use crate::http2_core::request::RequestPath;
use crate::name_pattern::NamePattern;
use crate::requests;
use crate::statuses::Statuses;

/// The requests of a trial.
pub(super) struct Requests {
    /// The section of fields up to a path that differs, or up to the length.
    before: Vec<u8>,
    path: Option<NamePattern>,
    after: Vec<u8>,
    carries: bool,
    is_head: bool,
    statuses: Statuses,
    streams: u32,
}

impl Requests {
    /// Reads and checks those of a trial.
    ///
    /// # Errors
    /// What HTTP/3 does not allow, and its key.
    pub(super) fn new(trial: &Trial) -> Result<Requests, Invalid> {
        let settings = &trial.settings;
        let template = head::template(trial, &NAMING)?;
        let (mut before, mut after) = (Vec::new(), Vec::new());
        qpack::put_prefix(&mut before);
        for (name, value) in &template.pseudo {
            qpack::put(name.as_bytes(), value.as_bytes(), &mut before);
        }
        let path = match template.path {
            RequestPath::Same(path) => {
                qpack::put(b":path", path.as_bytes(), &mut before);
                None
            }
            RequestPath::Filled(pattern) => Some(pattern),
        };
        for (name, value) in &template.fields {
            qpack::put(name.as_bytes(), value.as_bytes(), &mut after);
        }
        if before.len() + after.len() > SECTION_BYTES_MAX {
            let problem = "the header fields are too long";
            return Err(Invalid::new("http3.headers", problem, "leave some of them out"));
        }
        Ok(Requests {
            before,
            path,
            after,
            carries: template.has_length,
            is_head: settings.text("method") == "HEAD",
            statuses: Statuses::read(settings.text("status"), "http3.status")?,
            streams: requests::streams(trial),
        })
    }

    /// Appends the request that carries `body`. Returns how many bytes of it are payload.
    pub(super) fn put(&self, body: &[u8], out: &mut Vec<u8>) -> usize {
        put_headers(out, |out| {
            out.extend_from_slice(&self.before);
            if let Some(pattern) = &self.path {
                let mut path = Vec::new();
                pattern.fill(body, &mut path);
                qpack::put(b":path", &path, out);
            }
            out.extend_from_slice(&self.after);
            if self.carries {
                put_length(body.len(), out);
            }
        });
        if !self.carries || body.is_empty() {
            return 0;
        }
        put_data_head(out, body.len());
        out.extend_from_slice(body);
        body.len()
    }

    /// Requests that may be open at once.
    pub(super) fn streams(&self) -> u32 {
        self.streams
    }

    /// True if answers have no content whatever their heads say (HEAD).
    pub(super) fn is_bodiless(&self) -> bool {
        self.is_head
    }

    /// True if `status` confirms.
    pub(super) fn hold(&self, status: u16) -> bool {
        self.statuses.hold(status)
    }
}

fn put_length(length: usize, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let (mut at, mut left) = (digits.len(), length);
    loop {
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    qpack::put(b"content-length", &digits[at..], out);
}

/// Bytes of the fields that do not depend on the message.
const SECTION_BYTES_MAX: usize = 12 * 1024;
