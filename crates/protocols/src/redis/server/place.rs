//! Names of keys, and what a turn of a shard works with.

pub(super) use crate::broker_core::Place;

/// A key: the number of its database, and its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) db: u8,
    pub(super) name: Box<[u8]>,
}

/// One turn of a shard, with the connections whose blocked command was answered.
pub(super) type Turn<'t> = crate::broker_core::Turn<'t, Vec<Place>>;

/// The refusal of a command, in the words of Redis.
pub(super) struct Refusal(pub(super) String);

impl From<&str> for Refusal {
    fn from(text: &str) -> Refusal {
        Refusal(text.to_owned())
    }
}
