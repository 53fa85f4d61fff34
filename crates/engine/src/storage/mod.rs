//! The store of a reference server: what it confirms is in an append-only file before the
//! confirmation leaves. The loop calls it, so it is the same for every protocol: the server hands
//! over records during a turn ([`weigh_model::server::Outboxes::store`]), and before anything
//! staged in the turn is sent, one write and, if the policy asks for it, one sync cover all of them
//! (group commit).

mod disk;
mod record;
mod spec;
mod store;
pub use disk::{Disk, FileDisk, StoreError};
pub use record::{FILE_HEAD, HEAD_BYTES, Records, append, messages};
pub use spec::{StorePolicy, StoreSpec};
pub use store::Store;

#[cfg(test)]
pub(crate) mod tests;
