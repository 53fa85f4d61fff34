//! Push to many: channels with their subscribers on all shards of a server, the events that they
//! get, and what happens to a subscriber that does not read. The servers of `websocket` and `sse`
//! share it.

pub(crate) mod channel;
pub(crate) mod hub;
pub(crate) mod slow;
pub(crate) mod subscribers;
pub(crate) mod trial;
