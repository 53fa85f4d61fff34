//! What the reference brokers share: the connections of a shard and their places, work that one
//! shard leaves for another, connections whose input waits, the memory of messages, and settings.

mod held;
mod mailboxes;
mod memory;
mod numbered;
mod peers;
mod place;
mod settings;
mod shared;

pub(crate) use held::{Holding, Waiting};
pub(crate) use mailboxes::Mailboxes;
pub(crate) use memory::Memory;
pub(crate) use numbered::{Consuming, Numbered, take_first};
pub(crate) use peers::Peers;
pub(crate) use place::{Place, Turn};
pub(crate) use settings::{Login, login, seconds};
pub(crate) use shared::Shared;
