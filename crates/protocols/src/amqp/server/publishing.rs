//! Messages that come to the reference server: their frames, the queues they go to, and their
//! confirmation.

use weigh_model::server::{ConnectionId, Record};

use super::super::codec::{Frame, Header, Method, Properties, Short, bits, code, put_body};
use super::super::hub::Hub;
use super::super::peer::{Content, ContentStage};
use super::super::refusal::Refusal;
use super::Broker;
use crate::broker_core::Turn;

impl Broker {
    pub(super) fn begin_publish(
        &mut self,
        id: ConnectionId,
        number: u16,
        to: (&str, &str),
        bits: u8,
    ) -> Result<(), Refusal> {
        if bits & bits::IMMEDIATE != 0 {
            return Err(Refusal::missing("the flag immediate"));
        }
        let Some(channel) = self.channel(id, number) else { return Ok(()) };
        let content = &mut channel.content;
        content.stage = ContentStage::Header;
        content.bits = bits;
        content.exchange.clear();
        content.exchange.push_str(to.0);
        content.key.clear();
        content.key.push_str(to.1);
        Ok(())
    }

    /// The content of the channel of a frame; `None` if the channel is closing.
    fn content(
        &mut self,
        id: ConnectionId,
        frame: &Frame<'_>,
        stage: ContentStage,
    ) -> Result<Option<&mut Content>, Refusal> {
        let channel = self.channel(id, frame.channel);
        match channel {
            Some(channel) if channel.is_closing => Ok(None),
            Some(channel) if channel.content.stage == stage => Ok(Some(&mut channel.content)),
            _ => Err(Refusal::unexpected("a content that no method announced")),
        }
    }

    pub(super) fn take_header(
        &mut self,
        id: ConnectionId,
        frame: &Frame<'_>,
        hub: &Hub,
    ) -> Result<(), Refusal> {
        let Some(content) = self.content(id, frame, ContentStage::Header)? else { return Ok(()) };
        let header = Header::read(frame.payload)?;
        let most = hub.rules.message_bytes_max;
        if header.body_bytes > most {
            let text = format!("a message of {} bytes; at most {most}", header.body_bytes);
            return Err(Refusal::channel(code::CONTENT_TOO_LARGE, text));
        }
        content.properties.clear();
        content.properties.extend_from_slice(header.raw);
        content.is_persistent = Properties::read(header.raw)?.is_persistent();
        content.left = header.body_bytes;
        content.stage = ContentStage::Body;
        content.body.clear();
        Ok(())
    }

    pub(super) fn take_body(&mut self, id: ConnectionId, frame: &Frame<'_>) -> Result<(), Refusal> {
        let Some(content) = self.content(id, frame, ContentStage::Body)? else { return Ok(()) };
        let part = frame.payload;
        let Some(left) = content.left.checked_sub(part.len() as u64) else {
            return Err(Refusal::unexpected("a body that is larger than its header says"));
        };
        content.left = left;
        content.body.extend_from_slice(part);
        Ok(())
    }

    /// Publishes the message of a channel once it is whole.
    pub(super) fn publish_if_whole(
        &mut self,
        id: ConnectionId,
        number: u16,
        hub: &mut Hub,
        turn: &mut Turn<'_>,
    ) -> Result<(), Refusal> {
        let Some(channel) = self.channel(id, number) else { return Ok(()) };
        if channel.content.stage != ContentStage::Body || channel.content.left > 0 {
            return Ok(());
        }
        let mut content = std::mem::take(&mut channel.content);
        content.stage = ContentStage::Nothing;
        let mut routes = std::mem::take(&mut self.routes);
        routes.clear();
        let result = self.publish(id, number, &content, (hub, &mut routes), turn);
        for queue in &routes {
            self.dispatch(*queue, hub, turn);
        }
        self.routes = routes;
        // Memory of a large body is not kept for the next one.
        if content.body.capacity() > KEPT {
            content.body = Vec::new();
        }
        if let Some(channel) = self.channel(id, number) {
            channel.content = content;
        }
        result
    }

    fn publish(
        &mut self,
        id: ConnectionId,
        number: u16,
        content: &Content,
        (hub, routes): (&mut Hub, &mut Vec<u32>),
        turn: &mut Turn<'_>,
    ) -> Result<(), Refusal> {
        let Content { exchange, key, properties, body, .. } = content;
        hub.route(exchange, key, routes)?;
        hub.census.note(body);
        let (mut is_taken, mut is_stored) = (true, false);
        if routes.is_empty() {
            match content.bits & bits::MANDATORY {
                0 => hub.census.note_dropped(UNROUTABLE),
                _ => self.give_back(id, number, content, turn),
            }
        } else {
            let message = hub.message(exchange, key, properties, body);
            for queue in routes.iter() {
                let stores =
                    |own: &super::super::queue::Queue| own.terms.stores(content.is_persistent);
                let stores = hub.queues.get(*queue).is_some_and(stores);
                match hub.enqueue(*queue, std::sync::Arc::clone(&message)) {
                    true => is_stored |= stores,
                    false => is_taken = false,
                }
            }
        }
        self.confirm(id, number, is_taken, turn, |turn| {
            if is_stored {
                turn.out.store(Record::Message { name: key.as_bytes(), body });
            }
        });
        self.block_if_full(id, hub, turn);
        Ok(())
    }

    /// Confirms a message, if the channel asked for that; what is confirmed is stored in the same
    /// turn.
    fn confirm(
        &mut self,
        id: ConnectionId,
        number: u16,
        is_taken: bool,
        turn: &mut Turn<'_>,
        store: impl FnOnce(&mut Turn<'_>),
    ) {
        let Some(channel) = self.channel(id, number) else { return };
        let Some(published) = &mut channel.confirms else { return };
        *published += 1;
        let delivery_tag = *published;
        if is_taken {
            store(turn);
            self.say(id, number, &Method::Ack { delivery_tag, bits: 0 }, turn);
        } else {
            self.say(id, number, &Method::Nack { delivery_tag, bits: 0 }, turn);
        }
    }

    /// Returns a message that no queue takes; its confirmation follows.
    fn give_back(&mut self, id: ConnectionId, number: u16, content: &Content, turn: &mut Turn<'_>) {
        let returned = Method::Return {
            reply_code: code::NO_ROUTE,
            reply_text: Short(code::name(code::NO_ROUTE)),
            exchange: Short(&content.exchange),
            routing_key: Short(&content.key),
        };
        self.say(id, number, &returned, turn);
        self.put_content(id, number, &content.properties, &content.body, turn);
    }

    /// Appends header and body of a message.
    pub(super) fn put_content(
        &mut self,
        id: ConnectionId,
        number: u16,
        properties: &[u8],
        body: &[u8],
        turn: &mut Turn<'_>,
    ) {
        let Some(peer) = self.peer(id) else { return };
        let frame_max = peer.frame_max;
        let out = turn.out.stage(id);
        Header { body_bytes: body.len() as u64, raw: properties }.put(number, out);
        put_body(body, number, frame_max, out);
    }

    /// Lets a publisher wait while messages take all the memory that they may.
    fn block_if_full(&mut self, id: ConnectionId, hub: &mut Hub, turn: &mut Turn<'_>) {
        if !hub.memory.is_full() {
            return;
        }
        let Some(peer) = self.peer(id).filter(|peer| !peer.is_blocked) else { return };
        peer.is_blocked = true;
        hub.memory.note_blocked(peer.place);
        let hears = peer.hears_blocked;
        turn.out.hold(id);
        if hears {
            let reason = Short("low on memory");
            self.say(id, 0, &Method::Blocked { reason }, turn);
        }
    }
}

/// Cause of a message for which there is no queue.
const UNROUTABLE: &str = "unroutable";

/// Room for a body that is kept.
const KEPT: usize = 1 << 20;
