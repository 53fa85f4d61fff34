//! Kinds of servers that are measured against, and how their work is counted.

/// Where a target counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counter {
    /// Requests, from nginx's `stub_status` page at `/stat`.
    StubStatus,
    /// Messages taken in, from Mosquitto's `$SYS` count of body bytes: its count of messages
    /// leaves out QoS 2.
    Sys,
    /// The file that the floor's sink writes when it hears SIGUSR1.
    File,
    /// Calls of SET, from Redis's INFO.
    Info,
    /// Messages taken in, from the page `/varz` of the monitor of a NATS server.
    Varz,
    /// Nowhere: the tool's own count must do.
    None,
}

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// nginx with one worker, answering every POST with `200 ok`.
    Nginx,
    /// The same behind TLS 1.3 with AES-128-GCM and a P-256 certificate of its own.
    NginxTls,
    /// Mosquitto without limits and without a log.
    Mosquitto,
    /// Redis without a store on disk.
    Redis,
    /// A NATS server without JetStream, with its monitor.
    Nats,
    /// The floor's sink for this protocol: `http` or `mqtt`.
    Sink(&'static str),
    /// The floor's TCP echo server.
    Echo,
    /// The server of sockperf.
    Sockperf,
    /// The server of netperf.
    Netperf,
    /// Our reference server for this protocol.
    Reference(&'static str),
}
