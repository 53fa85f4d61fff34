//! The content that is arriving: a method, a header, and body frames until the size of the header
//! is reached (AMQP 0-9-1, section 4.2.6). Frames of another content must not come between.

use weigh_model::connection::Fault;

use super::super::codec::Header;

/// What arrives.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    stage: Stage,
    pub(super) purpose: Purpose,
    pub(super) tag: u64,
    pub(super) topic: String,
    /// Bytes of the body that have not come.
    left: u64,
    /// The body so far, where it does not come in one frame.
    body: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Nothing,
    Header,
    Body,
}

/// Method that the content belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Purpose {
    /// `basic.deliver`.
    #[default]
    Deliver,
    /// `basic.get-ok`; true if more messages wait.
    Get(bool),
    /// `basic.return`.
    Return,
}

impl Incoming {
    /// Begins a content.
    pub(super) fn begin(&mut self, purpose: Purpose, tag: u64, topic: &str) -> Result<(), Fault> {
        self.check(Stage::Nothing)?;
        self.stage = Stage::Header;
        (self.purpose, self.tag) = (purpose, tag);
        self.topic.clear();
        self.topic.push_str(topic);
        Ok(())
    }

    /// Takes the header; returns the bytes of the body.
    pub(super) fn header(&mut self, payload: &[u8]) -> Result<u64, Fault> {
        self.check(Stage::Header)?;
        let header = Header::read(payload).map_err(|flaw| Fault::Malformed(flaw.to_string()))?;
        self.left = header.body_bytes;
        self.stage = if self.left == 0 { Stage::Nothing } else { Stage::Body };
        Ok(self.left)
    }

    /// Takes a part of the body; returns true if it was the last one.
    pub(super) fn part(&mut self, part: &[u8]) -> Result<bool, Fault> {
        self.check(Stage::Body)?;
        let Some(left) = self.left.checked_sub(part.len() as u64) else {
            return Err(Fault::Malformed("a body is larger than its header says".to_owned()));
        };
        self.left = left;
        if left == 0 {
            self.stage = Stage::Nothing;
        }
        Ok(left == 0)
    }

    /// The whole body, of which `part` is the last part; [`Incoming::give_back`] follows.
    pub(super) fn whole(&mut self, part: &[u8]) -> Option<Vec<u8>> {
        if self.body.is_empty() {
            return None;
        }
        self.body.extend_from_slice(part);
        Some(std::mem::take(&mut self.body))
    }

    /// Keeps a part that is not the last one.
    pub(super) fn keep(&mut self, part: &[u8]) {
        self.body.extend_from_slice(part);
    }

    /// Keeps the memory of a body for the next one, if it is not large.
    pub(super) fn give_back(&mut self, mut body: Vec<u8>) {
        body.clear();
        if body.capacity() <= KEPT {
            self.body = body;
        }
    }

    /// Checks that no content is in progress.
    pub(super) fn check_idle(&self) -> Result<(), Fault> {
        self.check(Stage::Nothing)
    }

    fn check(&self, stage: Stage) -> Result<(), Fault> {
        if self.stage == stage {
            return Ok(());
        }
        let due = match self.stage {
            Stage::Nothing => "a method",
            Stage::Header => "a content header",
            Stage::Body => "a body",
        };
        Err(Fault::Malformed(format!("a frame of another type where {due} is due")))
    }
}

/// Room for a body that is kept.
const KEPT: usize = 1 << 20;
