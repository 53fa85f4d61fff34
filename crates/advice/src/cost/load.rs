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
    /// The load of more or fewer devices.
    pub fn times(&self, by: f64) -> Load {
        Load { connections: self.connections * by, ..self.sending(by) }
    }

    /// The same connections with this number of messages per second.
    pub fn at_rate(&self, messages: f64) -> Load {
        self.sending(messages / self.messages)
    }

    fn sending(&self, by: f64) -> Load {
        Load {
            variant: self.variant.clone(),
            connections: self.connections,
            messages: self.messages * by,
            arrivals: self.arrivals,
            sealed: self.sealed * by,
            bytes: self.bytes * by,
            sealed_bytes: self.sealed_bytes * by,
            deliveries: self.deliveries * by,
            opened: self.opened * by,
            full: self.full * by,
            resumed: self.resumed * by,
        }
    }

    /// Messages per second, connections, and bytes of a message: its place among other loads.
    pub fn place(&self) -> [f64; 3] {
        let size = if self.messages > 0.0 { self.bytes / self.messages } else { 0.0 };
        [self.messages, self.connections, size]
    }

    /// Arrivals at the server: every message as often as it arrives, and every connection opened.
    pub fn arrivals_per_s(&self) -> f64 {
        self.messages * self.arrivals + self.opened + self.full + self.resumed
    }
}
