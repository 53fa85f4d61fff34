//! State that all questions to a server share.

use serde_json::Value;
use weigh_protocols::nats::codec::Publish;

use super::line::{Line, Manner};
use crate::abilities::Ability;
use crate::finding::Asking;
use crate::mqtt::Bounds;
use crate::reach::{Reach, Trouble, unused_name};

/// A server that is asked.
pub(super) struct Scene {
    pub(super) reach: Reach,
    pub(super) bounds: Bounds,
    pub(super) info: Value,
    /// Streams that were created.
    pub(super) left: Vec<String>,
    pub(super) found: Vec<Ability>,
}

impl Asking for Scene {
    fn found(&mut self) -> &mut Vec<Ability> {
        &mut self.found
    }

    fn is_over(&self) -> bool {
        self.reach.until().is_err()
    }
}

impl Scene {
    pub(super) fn line(&self) -> Result<Line, Trouble> {
        Line::open(&self.reach, Manner::default())
    }
}

/// A subject that no other client uses.
pub(super) fn new_subject() -> String {
    format!("weigh-probe.{}", unused_name())
}

pub(super) fn message<'m>(subject: &'m str, body: &'m [u8]) -> Publish<'m> {
    Publish { subject: subject.as_bytes(), reply: b"", headers: b"", body }
}

pub(super) const BODY: &[u8] = b"{}";
