//! Methods: the class, the number, and the fields of each (AMQP 0-9-1, section 1 of the reference;
//! `confirm`, `basic.nack`, `connection.blocked` and `connection.unblocked` are RabbitMQ's
//! extensions). Bits that follow each other share a byte, the first is the lowest ([`bits`]).

use super::code;
use super::field::{Cursor, Field, Long, Short};
use super::flaw::Flaw;
use super::frame::{FrameKind, end_frame, put_frame_head};
use super::table::Table;

/// Bits of the methods' fields.
pub mod bits {
    /// `queue.declare`, `exchange.declare`: only check that it exists.
    pub const PASSIVE: u8 = 1;
    /// `queue.declare`, `exchange.declare`: it survives the server.
    pub const DURABLE: u8 = 2;
    /// `queue.declare`: only for this connection.
    pub const EXCLUSIVE: u8 = 4;
    /// `queue.declare`: deleted with its last consumer.
    pub const QUEUE_AUTO_DELETE: u8 = 8;
    /// `exchange.declare`: deleted with its last binding.
    pub const EXCHANGE_AUTO_DELETE: u8 = 4;
    /// `exchange.declare`: not published to.
    pub const INTERNAL: u8 = 8;
    /// `queue.declare`, `exchange.declare`: no answer.
    pub const DECLARE_NO_WAIT: u8 = 16;
    /// `queue.bind`, `queue.purge`, `confirm.select`, `basic.cancel`: no answer.
    pub const NO_WAIT: u8 = 1;
    /// `queue.delete`, `exchange.delete`: only if it is unused.
    pub const IF_UNUSED: u8 = 1;
    /// `queue.delete`: only if it is empty.
    pub const IF_EMPTY: u8 = 2;
    /// `queue.delete`: no answer.
    pub const QUEUE_DELETE_NO_WAIT: u8 = 4;
    /// `exchange.delete`: no answer.
    pub const EXCHANGE_DELETE_NO_WAIT: u8 = 2;
    /// `basic.consume`: messages count as acknowledged when they are sent.
    pub const NO_ACK: u8 = 2;
    /// `basic.consume`: the only consumer of the queue.
    pub const CONSUME_EXCLUSIVE: u8 = 4;
    /// `basic.consume`: no answer.
    pub const CONSUME_NO_WAIT: u8 = 8;
    /// `basic.get`: the message counts as acknowledged when it is sent.
    pub const GET_NO_ACK: u8 = 1;
    /// `basic.publish`: return the message if no queue takes it.
    pub const MANDATORY: u8 = 1;
    /// `basic.publish`: return the message if no consumer takes it at once.
    pub const IMMEDIATE: u8 = 2;
    /// `basic.deliver`, `basic.get-ok`: it was delivered before.
    pub const REDELIVERED: u8 = 1;
    /// `basic.ack`, `basic.nack`: all up to this one.
    pub const MULTIPLE: u8 = 1;
    /// `basic.nack`: put it back into its queue.
    pub const NACK_REQUEUE: u8 = 2;
    /// `basic.reject`: put it back into its queue.
    pub const REQUEUE: u8 = 1;
}

macro_rules! methods {
    ($($class_name:literal $class:literal: {
        $($(#[$doc:meta])* $name:ident $id:literal $word:literal {
            $($field:ident: $kind:ty),* $(,)?
        })*
    })*) => {
        /// A method with its fields, named as in the specification.
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[allow(missing_docs, reason = "fields have the names of the specification")]
        pub enum Method<'a> {
            $($($(#[$doc])* $name { $($field: $kind),* },)*)*
        }

        impl<'a> Method<'a> {
            /// Reads the payload of a method frame.
            ///
            /// # Errors
            /// An unknown method, or fields that are not its own.
            pub fn read(payload: &'a [u8]) -> Result<Method<'a>, Flaw> {
                let from = &mut Cursor::new(payload);
                let method = match (u16::read(from)?, u16::read(from)?) {
                    $($(($class, $id) => Method::$name { $($field: Field::read(from)?),* },)*)*
                    _ => return Err(Flaw { code: code::NOT_IMPLEMENTED, what: UNKNOWN }),
                };
                from.finish()?;
                Ok(method)
            }

            /// Appends the method as a frame.
            pub fn put(&self, channel: u16, out: &mut Vec<u8>) {
                let at = put_frame_head(FrameKind::Method, channel, out);
                let (class, id) = self.ids();
                class.put(out);
                id.put(out);
                match self {
                    $($(Method::$name { $($field),* } => { $($field.put(out);)* })*)*
                }
                end_frame(at, out);
            }

            /// Numbers of its class and of itself.
            pub fn ids(&self) -> (u16, u16) {
                match self {
                    $($(Method::$name { .. } => ($class, $id),)*)*
                }
            }
        }

        /// Name of a method by the numbers of class and method: `basic.publish`.
        pub fn name(class: u16, id: u16) -> Option<&'static str> {
            match (class, id) {
                $($(($class, $id) => Some(concat!($class_name, ".", $word)),)*)*
                _ => None,
            }
        }
    };
}

methods! {
    "connection" 10: {
        /// The server's versions and mechanisms.
        Start 10 "start" {
            major: u8, minor: u8, server_properties: Table<'a>,
            mechanisms: Long<'a>, locales: Long<'a>,
        }
        /// The client's mechanism and credentials.
        StartOk 11 "start-ok" {
            client_properties: Table<'a>, mechanism: Short<'a>,
            response: Long<'a>, locale: Short<'a>,
        }
        /// A challenge of the mechanism.
        Secure 20 "secure" { challenge: Long<'a> }
        /// The answer to a challenge.
        SecureOk 21 "secure-ok" { response: Long<'a> }
        /// The server's limits; 0 means no limit.
        Tune 30 "tune" { channel_max: u16, frame_max: u32, heartbeat_s: u16 }
        /// The limits in force.
        TuneOk 31 "tune-ok" { channel_max: u16, frame_max: u32, heartbeat_s: u16 }
        /// Chooses the virtual host.
        Open 40 "open" { virtual_host: Short<'a>, reserved_1: Short<'a>, reserved_2: u8 }
        /// The connection may be used.
        OpenOk 41 "open-ok" { reserved_1: Short<'a> }
        /// Ends the connection, for a reason.
        ConnectionClose 50 "close" {
            reply_code: u16, reply_text: Short<'a>, class_id: u16, method_id: u16,
        }
        /// The connection is over.
        ConnectionCloseOk 51 "close-ok" { }
        /// The server takes no more messages for now.
        Blocked 60 "blocked" { reason: Short<'a> }
        /// The server takes messages again.
        Unblocked 61 "unblocked" { }
    }
    "channel" 20: {
        /// Opens a channel.
        ChannelOpen 10 "open" { reserved_1: Short<'a> }
        /// The channel is open.
        ChannelOpenOk 11 "open-ok" { reserved_1: Long<'a> }
        /// Stops or starts deliveries.
        Flow 20 "flow" { active: u8 }
        /// Confirms [`Method::Flow`].
        FlowOk 21 "flow-ok" { active: u8 }
        /// Ends the channel, for a reason.
        ChannelClose 40 "close" {
            reply_code: u16, reply_text: Short<'a>, class_id: u16, method_id: u16,
        }
        /// The channel is closed.
        ChannelCloseOk 41 "close-ok" { }
    }
    "exchange" 40: {
        /// Makes or checks an exchange.
        ExchangeDeclare 10 "declare" {
            reserved_1: u16, exchange: Short<'a>, kind: Short<'a>, bits: u8, arguments: Table<'a>,
        }
        /// The exchange exists.
        ExchangeDeclareOk 11 "declare-ok" { }
        /// Removes an exchange.
        ExchangeDelete 20 "delete" { reserved_1: u16, exchange: Short<'a>, bits: u8 }
        /// The exchange is gone.
        ExchangeDeleteOk 21 "delete-ok" { }
    }
    "queue" 50: {
        /// Makes or checks a queue.
        QueueDeclare 10 "declare" {
            reserved_1: u16, queue: Short<'a>, bits: u8, arguments: Table<'a>,
        }
        /// The queue exists.
        QueueDeclareOk 11 "declare-ok" {
            queue: Short<'a>, message_count: u32, consumer_count: u32,
        }
        /// Lets an exchange route to a queue.
        QueueBind 20 "bind" {
            reserved_1: u16, queue: Short<'a>, exchange: Short<'a>, routing_key: Short<'a>,
            bits: u8, arguments: Table<'a>,
        }
        /// The binding exists.
        QueueBindOk 21 "bind-ok" { }
        /// Removes all messages that wait.
        QueuePurge 30 "purge" { reserved_1: u16, queue: Short<'a>, bits: u8 }
        /// The messages are gone.
        QueuePurgeOk 31 "purge-ok" { message_count: u32 }
        /// Removes a queue.
        QueueDelete 40 "delete" { reserved_1: u16, queue: Short<'a>, bits: u8 }
        /// The queue is gone.
        QueueDeleteOk 41 "delete-ok" { message_count: u32 }
        /// Removes a binding.
        QueueUnbind 50 "unbind" {
            reserved_1: u16, queue: Short<'a>, exchange: Short<'a>, routing_key: Short<'a>,
            arguments: Table<'a>,
        }
        /// The binding is gone.
        QueueUnbindOk 51 "unbind-ok" { }
    }
    "basic" 60: {
        /// Limits unacknowledged deliveries.
        Qos 10 "qos" { prefetch_size: u32, prefetch_count: u16, bits: u8 }
        /// The limits are in force.
        QosOk 11 "qos-ok" { }
        /// Begins to consume.
        Consume 20 "consume" {
            reserved_1: u16, queue: Short<'a>, consumer_tag: Short<'a>, bits: u8,
            arguments: Table<'a>,
        }
        /// Deliveries may follow.
        ConsumeOk 21 "consume-ok" { consumer_tag: Short<'a> }
        /// Ends consuming.
        Cancel 30 "cancel" { consumer_tag: Short<'a>, bits: u8 }
        /// Consuming is over.
        CancelOk 31 "cancel-ok" { consumer_tag: Short<'a> }
        /// A message to an exchange; content follows.
        Publish 40 "publish" {
            reserved_1: u16, exchange: Short<'a>, routing_key: Short<'a>, bits: u8,
        }
        /// A message that no queue took; content follows.
        Return 50 "return" {
            reply_code: u16, reply_text: Short<'a>, exchange: Short<'a>, routing_key: Short<'a>,
        }
        /// A message for a consumer; content follows.
        Deliver 60 "deliver" {
            consumer_tag: Short<'a>, delivery_tag: u64, bits: u8, exchange: Short<'a>,
            routing_key: Short<'a>,
        }
        /// Asks for one message.
        Get 70 "get" { reserved_1: u16, queue: Short<'a>, bits: u8 }
        /// The message; content follows.
        GetOk 71 "get-ok" {
            delivery_tag: u64, bits: u8, exchange: Short<'a>, routing_key: Short<'a>,
            message_count: u32,
        }
        /// There is no message.
        GetEmpty 72 "get-empty" { reserved_1: Short<'a> }
        /// Acknowledges deliveries, or confirms messages.
        Ack 80 "ack" { delivery_tag: u64, bits: u8 }
        /// Refuses a delivery.
        Reject 90 "reject" { delivery_tag: u64, bits: u8 }
        /// Asks for unacknowledged deliveries again.
        Recover 110 "recover" { bits: u8 }
        /// Refuses deliveries, or says that messages were not taken.
        Nack 120 "nack" { delivery_tag: u64, bits: u8 }
    }
    "confirm" 85: {
        /// Asks for a confirmation of each message.
        ConfirmSelect 10 "select" { bits: u8 }
        /// Messages are confirmed from now on.
        ConfirmSelectOk 11 "select-ok" { }
    }
    "tx" 90: {
        /// Begins transactions.
        TxSelect 10 "select" { }
    }
}

impl Method<'_> {
    /// Its name in the specification: `basic.publish`.
    pub fn name(&self) -> &'static str {
        let (class, id) = self.ids();
        name(class, id).unwrap_or_default()
    }
}

const UNKNOWN: &str = "an unknown method";
