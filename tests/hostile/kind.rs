//! One way to misbehave: a place in the bytes of an honest peer, and what is done there.

/// A kind of bad peer.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub name: &'static str,
    pub place: Place,
    pub act: Act,
}

/// A place in what the honest peer would send over one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// As soon as the connection stands, whichever side speaks first in the protocol.
    First,
    /// At this byte.
    At(u64),
    /// At the first byte after the session is established.
    Greeted,
    /// After this many eighths of all.
    Eighth(u64),
    /// At each of the first bytes, on a connection of its own.
    Each,
    /// At each of the first bytes after the session is established.
    EachGreeted,
}

/// What is done there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Says this instead of everything that follows.
    Instead(&'static [u8], End),
    /// Says this, and continues.
    Insert(&'static [u8]),
    /// Says this over and over, for this many bytes, instead of everything that follows. The peer
    /// need not keep it.
    Flood(&'static [u8], usize, End),
    /// The first bytes announce a body; the second are said over and over. The peer may keep it.
    Body(&'static [u8], &'static [u8], usize, End),
    /// Says another byte.
    Set(u8),
    /// Flips bits of the byte.
    Flip(u8),
    /// Leaves bytes out.
    Skip(usize),
    /// Says everything up to here a second time.
    Twice,
    /// Says nothing more; but with [`End::Deaf`] continues to.
    Cut(End),
    /// Says one byte each 50 ms from here on; over datagrams, one datagram.
    Drip,
}

/// What becomes of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It stays open.
    Stay,
    /// It is closed in this direction.
    Finish,
    /// It is reset.
    Reset,
    /// It stays, and nothing more is read from it.
    Deaf,
}

/// Does `act` at `place`.
pub const fn at(name: &'static str, place: Place, act: Act) -> Kind {
    Kind { name, place, act }
}

/// Connections over which [`Place::Each`] and [`Place::EachGreeted`] go.
pub const SPAN: u64 = 32;
