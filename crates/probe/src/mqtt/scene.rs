//! State that all questions to a broker share: the clients, their names, and what has to be removed
//! afterwards.

use std::sync::Arc;
use std::time::{Duration, Instant};

use weigh_protocols::mqtt::codec::{Id, Publish, Qos, Version};

use super::client::{Client, Granted, Hello, Message, draft};
use crate::abilities::Ability;
use crate::finding::Asking;
use crate::reach::{Reach, Trouble, unused_name};

/// Bounds of searches for limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Largest payload or body that is sent, bytes.
    pub payload_bytes: u64,
    /// Longest topic and client identifier that are sent, bytes; at most 65,535. Longer than any
    /// application uses is dangerous: NATS 2.9.10 dies of a message of QoS 1 to the longest.
    pub name_bytes: u64,
    /// Most messages that a queue is filled with.
    pub queue_messages: u64,
}

/// A broker that is asked.
pub struct Scene {
    pub(super) reach: Reach,
    pub(super) bounds: Bounds,
    /// Its answers to clients of 3.1, 3.1.1 and 5.
    pub(super) v31: Result<(), Trouble>,
    pub(super) v311: Result<Granted, Trouble>,
    pub(super) v5: Result<Granted, Trouble>,
    /// The newest version that it speaks.
    pub(super) version: Version,
    pub(super) found: Vec<Ability>,
    /// Begin of names that no other client has.
    tag: String,
    names: u32,
    left: Vec<Left>,
}

/// State that would stay at the broker.
enum Left {
    /// A retained message of this topic.
    Retained(String),
    /// The session of this client.
    Session(String),
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
    /// A scene whose broker was never asked.
    pub(super) fn new(reach: Reach, bounds: Bounds) -> Scene {
        let unasked = || Trouble::Inapplicable("not asked".to_owned());
        Scene {
            reach,
            bounds,
            v31: Err(unasked()),
            v311: Err(unasked()),
            v5: Err(unasked()),
            version: Version::V311,
            found: Vec::new(),
            tag: unused_name(),
            names: 0,
            left: Vec::new(),
        }
    }

    /// Returns a topic that was never used, and below which no other client publishes.
    pub(super) fn topic(&mut self) -> String {
        self.names += 1;
        format!("weigh-probe/{}/{}", self.tag, self.names)
    }

    /// A client identifier that was never used, of letters and digits and at most 23 of them (MQTT
    /// 3.1.1, section 3.1.3.1: what every broker takes).
    pub(super) fn client_id(&mut self) -> String {
        self.names += 1;
        format!("weighprobe{}{:x}", self.tag, self.names)
    }

    /// A client whose session ends with it.
    pub(super) fn client(&mut self) -> Result<Client, Trouble> {
        let client_id = self.client_id();
        Client::open(&self.reach, &Hello::new(self.version, &client_id))
    }

    /// A client whose session stays when it leaves, until [`Scene::tidy`] ends it.
    pub(super) fn lasting(&mut self, client_id: &str) -> Result<Client, Trouble> {
        self.left.push(Left::Session(client_id.to_owned()));
        let hello = Hello::new(self.version, client_id);
        let session_expiry_s = SESSION_EXPIRY_S;
        Client::open(&self.reach, &Hello { clean: false, session_expiry_s, ..hello })
    }

    /// Publishes a message that the broker keeps, until [`Scene::tidy`] takes it back.
    pub(super) fn retain(&mut self, topic: &str, body: &[u8]) -> Result<(), Trouble> {
        self.left.push(Left::Retained(topic.to_owned()));
        let mut client = self.client()?;
        client.publish(&Publish { retain: true, ..draft(topic, body, Qos::AtLeastOnce) })?;
        client.leave();
        Ok(())
    }

    /// Publishes one message at QoS 1 from a client of its own.
    pub(super) fn publish(&mut self, topic: &str, body: &[u8]) -> Result<(), Trouble> {
        let mut client = self.client()?;
        client.publish(&draft(topic, body, Qos::AtLeastOnce))?;
        client.leave();
        Ok(())
    }

    /// Returns what has reached a subscriber of `topic` when a message that is published now
    /// arrives, and shortly after it.
    pub(super) fn heard(
        &mut self,
        client: &mut Client,
        topic: &str,
    ) -> Result<Vec<Message>, Trouble> {
        self.publish(topic, FENCE)?;
        let (mut came, _) = client.messages_until(FENCE)?;
        while let Some(message) = client.message(SETTLE)? {
            came.push(message);
        }
        Ok(came)
    }

    /// Returns the broker's answer to MQTT 5; an error if the broker does not support the version
    /// that the question needs.
    pub(super) fn needs_v5(&self) -> Result<&Granted, Trouble> {
        let is_missing = |_: &Trouble| {
            Trouble::Inapplicable("only MQTT 5 has it, which the broker does not speak".to_owned())
        };
        self.v5.as_ref().map_err(is_missing)
    }

    /// The number that the broker announced to a client of MQTT 5.
    pub(super) fn announced(&self, id: Id) -> Option<u32> {
        self.v5.as_ref().ok()?.number(id)
    }

    /// Returns how many unacknowledged messages it takes at once, at most `most`.
    pub(super) fn window(&self, most: u64) -> u64 {
        self.announced(Id::ReceiveMaximum).map_or(most, |max| most.min(max.into()))
    }

    /// Takes back everything that would stay at the broker. What cannot be taken back ends by
    /// itself where the broker speaks MQTT 5.
    pub(super) fn tidy(&mut self) {
        // The time of the questions may be over; that of putting things away begins.
        let patience = self.reach.patience;
        self.reach.end = self.reach.end.max(Instant::now() + 2 * patience);
        self.reach.stop = Arc::default();
        for left in std::mem::take(&mut self.left) {
            let _ = match left {
                Left::Session(client_id) => {
                    let hello = Hello::new(self.version, &client_id);
                    Client::open(&self.reach, &hello).map(Client::leave)
                }
                Left::Retained(topic) => self.clear(&topic),
            };
        }
    }

    /// Takes a retained message back (section 3.3.1.3: an empty one takes its place and is not
    /// kept).
    pub(super) fn clear(&mut self, topic: &str) -> Result<(), Trouble> {
        let mut client = self.client()?;
        let empty = Publish { retain: true, ..draft(topic, b"", Qos::AtLeastOnce) };
        // A broker that keeps nothing may refuse it.
        match client.publish(&empty) {
            Ok(()) | Err(Trouble::Refused(_)) => {}
            Err(other) => return Err(other),
        }
        client.leave();
        Ok(())
    }
}

/// Body of a message that is published to see that all messages before it have arrived.
const FENCE: &[u8] = b"fence";

/// Time that a message may come after a later one.
const SETTLE: Duration = Duration::from_millis(100);

/// Time that a session of MQTT 5 outlives a probe that was killed, seconds.
const SESSION_EXPIRY_S: u32 = 300;
