//! What the reference brokers of AMQP 0-9-1 and AMQP 1.0 share: places of connections, work that
//! one shard leaves for another, and the memory of messages.

mod mailboxes;
mod memory;
mod place;

pub(crate) use mailboxes::Mailboxes;
pub(crate) use memory::Memory;
pub(crate) use place::Place;
