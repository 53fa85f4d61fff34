//! What a load asks of a server.

/// Work of a server, per second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Load {
    /// The kind of message, whose cost is its own: the value of a family's split, such as a QoS.
    pub variant: String,
    /// Connections that stand.
    pub connections: f64,
    /// Messages.
    pub messages: f64,
    /// How often each of them reaches the server.
    pub arrivals: f64,
    /// Messages inside TLS.
    pub sealed: f64,
    /// Bytes of bodies; 0 where all cells have one size, which is then part of a message.
    pub bytes: f64,
    /// Bytes of bodies inside TLS.
    pub sealed_bytes: f64,
    /// Deliveries to subscribers.
    pub deliveries: f64,
    /// Connections opened, without TLS.
    pub opened: f64,
    /// Connections opened with a full handshake.
    pub full: f64,
    /// Connections opened with a resumed one.
    pub resumed: f64,
}

impl Load {
    /// Arrivals at the server: every message as often as it arrives, and every connection opened.
    pub fn arrivals_per_s(&self) -> f64 {
        self.messages * self.arrivals + self.opened + self.full + self.resumed
    }
}
