//! One unit of a protocol in a packet, by name.

/// A unit at an offset of a stream: a packet of a protocol, a request, a record of TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Its name.
    pub name: String,
    /// Its length in bytes; `None` if its first bytes do not contain it.
    pub length: Option<u64>,
    /// True if its sender asks for messages with it.
    pub subscribes: bool,
}
