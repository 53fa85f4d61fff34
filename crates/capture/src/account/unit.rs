//! One unit of a protocol in a packet, by name.

/// What begins at a place of a stream: a packet of a protocol, a request, a record of TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// What it is called.
    pub name: String,
    /// How many bytes it takes; `None` where its first bytes do not tell.
    pub length: Option<u64>,
    /// True if its sender asks for messages with it.
    pub subscribes: bool,
}
