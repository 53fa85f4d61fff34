//! The drivers of a server's processor time.
//!
//! An arrival that finds the server asleep costs a wake-up on top, and the first answer after it
//! costs more too, so that each kind of message has wake-ups of its own. A server that stays awake
//! for a time `t` after it was woken is woken `r / (1 + r t)` times a second by `r` arrivals, as a
//! counter with a dead time counts (W. Feller, 1948, "type I"): many at low rates, and no more
//! than `1 / t` at any. Without this driver the cost of a message measured at a low rate would
//! be taken for that at a high one. A connection that is opened is an arrival beside its message.
//!
//! With many connections the memory of the next message's is in no cache. An access takes longer
//! step by step as more memory is worked on (U. Drepper, "What every programmer should know about
//! memory", 2007, section 3.3.2): here in proportion to the logarithm of the connections.

use super::load::Load;

/// Something that takes processor time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Driver {
    /// The process itself.
    Process,
    /// A connection that stands, per second.
    Connection,
    /// A wake-up by what comes with messages of this value of the family's split.
    Wake(String),
    /// Extra cost of a message on a connection that is not in a cache, for each doubling of the
    /// connections.
    Cold,
    /// A message of this value of the family's split.
    Message(String),
    /// Extra cost of TLS for a message.
    Sealed,
    /// A byte of a body.
    Byte,
    /// Extra cost of TLS for a byte of a body.
    SealedByte,
    /// A delivery to a subscriber.
    Delivery,
    /// A connection opened and closed.
    Opened,
    /// A connection opened and closed with a full TLS handshake.
    Full,
    /// A connection opened and closed with a resumed TLS handshake.
    Resumed,
}

impl Driver {
    /// Amount of it in a load. `awake_s` is the shape of the wake-ups.
    pub fn amount(&self, load: &Load, awake_s: f64) -> f64 {
        match self {
            Driver::Process => 1.0,
            Driver::Connection => load.connections,
            Driver::Wake(variant) if *variant == load.variant => {
                let arrivals = load.arrivals_per_s();
                arrivals / (1.0 + arrivals * awake_s)
            }
            Driver::Wake(_) => 0.0,
            Driver::Cold => {
                load.arrivals_per_s() * (1.0 + load.connections / CONNECTIONS_IN_CACHE).log2()
            }
            Driver::Message(variant) if *variant == load.variant => load.messages,
            Driver::Message(_) => 0.0,
            Driver::Sealed => load.sealed,
            Driver::Byte => load.bytes,
            Driver::SealedByte => load.sealed_bytes,
            Driver::Delivery => load.deliveries,
            Driver::Opened => load.opened,
            Driver::Full => load.full,
            Driver::Resumed => load.resumed,
        }
    }

    /// Its name. `split` is the key whose values have costs of their own, if there is one.
    pub fn name(&self, split: Option<&str>) -> String {
        match (self, split) {
            (Driver::Process, _) => "the process itself, a second".to_owned(),
            (Driver::Connection, _) => "a connection held, a second".to_owned(),
            (Driver::Wake(variant), Some(split)) => format!("a wake-up, {split}={variant}"),
            (Driver::Wake(_), None) => "a wake-up".to_owned(),
            (Driver::Cold, _) => "a message, when connections double beyond 1,000".to_owned(),
            (Driver::Message(variant), Some(split)) => format!("a message, {split}={variant}"),
            (Driver::Message(_), None) => "a message".to_owned(),
            (Driver::Sealed, _) => "TLS around a message".to_owned(),
            (Driver::Byte, _) => "a byte of a body".to_owned(),
            (Driver::SealedByte, _) => "TLS around a byte of a body".to_owned(),
            (Driver::Delivery, _) => "a delivery to a subscriber".to_owned(),
            (Driver::Opened, _) => "a connection opened and closed".to_owned(),
            (Driver::Full, _) => "the same with a full TLS handshake".to_owned(),
            (Driver::Resumed, _) => "the same with a resumed TLS handshake".to_owned(),
        }
    }
}

/// The state of this number of connections, at some 5 kB with the kernel's part, is about what the
/// second-level cache of a core holds.
const CONNECTIONS_IN_CACHE: f64 = 1e3;
