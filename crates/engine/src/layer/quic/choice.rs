//! Choices for both ends of QUIC, and how their sessions begin.

use std::sync::Arc;
use std::time::Duration;

use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::crypto::rustls::{NoInitialCipherSuite, QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    ClientConfig, Endpoint, EndpointConfig, IdleTimeout, ServerConfig, TransportConfig, VarInt,
};
use weigh_model::protocol::Transport;

use super::session::{PEER, Session};
use crate::layer::datagrams::{Begin, Clock};
use crate::layer::tls::{ClientChoice, ServerChoice, Tally, TlsError, Versions};

/// Congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// CUBIC (RFC 9438), as Linux uses it for TCP.
    Cubic,
    /// NewReno (RFC 9002, section 7).
    Reno,
    /// BBR, first version.
    Bbr,
}

/// Parameters of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Congestion control.
    pub congestion: Congestion,
    /// Largest datagram that it sends, in bytes: 1,200 to 65,000.
    pub datagram_bytes: u16,
    /// True if the kernel cuts runs of datagrams, and joins those that come in.
    pub is_cut_by_kernel: bool,
}

impl Tuning {
    /// Carrier of the layer's datagrams.
    pub(super) fn transport(&self) -> Transport {
        if self.is_cut_by_kernel { Transport::DatagramRuns } else { Transport::Datagram }
    }
}

/// Streams that the protocol inside uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Streams {
    /// The first of the client; nothing but QUIC confirms what was said on it last.
    One,
    /// As many as it opens, in both directions and in one.
    Many,
}

impl Streams {
    /// Streams in both directions that a client may have open at once.
    fn of_client_max(self) -> u32 {
        match self {
            Streams::One => 1,
            Streams::Many => STREAMS_MAX,
        }
    }

    /// Streams in one direction that a peer may have open at once.
    fn one_way_max(self) -> u32 {
        match self {
            Streams::One => 0,
            Streams::Many => STREAMS_ONE_WAY_MAX,
        }
    }
}

/// How sessions of a client begin.
pub(super) fn client(
    choice: &ClientChoice,
    streams: Streams,
    tuning: &Tuning,
    tally: &Arc<Tally>,
) -> Result<Begin<Session>, TlsError> {
    let choice = ClientChoice { versions: Versions::Tls13, ..choice.clone() };
    let (config, _) = choice.config(tally)?;
    let crypto = QuicClientConfig::try_from(config).map_err(no_suite)?;
    let mut transport = transport(streams, tuning);
    transport
        .keep_alive_interval(Some(KEEP_ALIVE))
        .max_concurrent_bidi_streams(VarInt::from_u32(0));
    let mut config = ClientConfig::new(Arc::new(crypto));
    config.transport_config(Arc::new(transport));
    let (ends, name) = (Arc::new(endpoint()), choice.name);
    let (clock, tally) = (Clock::start(), Arc::clone(tally));
    Ok(Arc::new(move |now| {
        let mut endpoint = Endpoint::new(Arc::clone(&ends), None, false, None);
        let line = endpoint.connect(clock.at(now), config.clone(), PEER, &name);
        let session = Session::client(endpoint, line, clock, now, Arc::clone(&tally));
        match streams {
            Streams::One => session.on_one_stream(),
            Streams::Many => session,
        }
    }))
}

/// How sessions of a server begin.
pub(super) fn server(
    choice: &ServerChoice,
    streams: Streams,
    tuning: &Tuning,
    tally: &Arc<Tally>,
) -> Result<Begin<Session>, TlsError> {
    let choice = ServerChoice { versions: Versions::Tls13, ..choice.clone() };
    let crypto = QuicServerConfig::try_from(choice.config()?).map_err(no_suite)?;
    let mut transport = transport(streams, tuning);
    transport.max_concurrent_bidi_streams(VarInt::from_u32(streams.of_client_max()));
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(Arc::new(transport)).migration(false);
    let (ends, config) = (Arc::new(endpoint()), Arc::new(config));
    let (clock, tally) = (Clock::start(), Arc::clone(tally));
    Ok(Arc::new(move |now| {
        let endpoint = Endpoint::new(Arc::clone(&ends), Some(Arc::clone(&config)), false, None);
        Session::server(endpoint, clock, now, Arc::clone(&tally))
    }))
}

fn endpoint() -> EndpointConfig {
    let mut config = EndpointConfig::default();
    config.supported_versions(vec![VERSION]);
    // Never fails: it is the largest that UDP has.
    let _ = config.max_udp_payload_size(PAYLOAD_BYTES_MAX);
    config
}

fn transport(streams: Streams, tuning: &Tuning) -> TransportConfig {
    let mut config = TransportConfig::default();
    let congestion: Arc<dyn ControllerFactory + Send + Sync> = match tuning.congestion {
        Congestion::Cubic => Arc::new(CubicConfig::default()),
        Congestion::Reno => Arc::new(NewRenoConfig::default()),
        Congestion::Bbr => Arc::new(BbrConfig::default()),
    };
    config
        .congestion_controller_factory(congestion)
        .max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(IDLE_MS))))
        .max_concurrent_uni_streams(VarInt::from_u32(streams.one_way_max()))
        .send_window(SEND_WINDOW_BYTES)
        .receive_window(VarInt::from_u32(RECEIVE_WINDOW_BYTES))
        .initial_mtu(tuning.datagram_bytes)
        .mtu_discovery_config(None)
        .enable_segmentation_offload(false)
        .datagram_receive_buffer_size(None);
    config
}

fn no_suite(error: NoInitialCipherSuite) -> TlsError {
    TlsError::plain(format!("QUIC: {error}"), "")
}

/// RFC 9000.
const VERSION: u32 = 1;

/// Time without packets after which an end gives the other up (RFC 9000, section 10.1).
const IDLE_MS: u32 = 30_000;

/// Time without packets after which a client sends PING.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Requests of a client that the reference server lets be open at once on a connection.
const STREAMS_MAX: u32 = 1_024;

/// Streams in one direction that a peer may open; protocols need a few.
const STREAMS_ONE_WAY_MAX: u32 = 16;

/// Bytes that an end keeps until they are acknowledged.
const SEND_WINDOW_BYTES: u64 = 4 << 20;

/// Bytes of all streams that a peer may send before they are read: as much as the largest body that
/// the servers take by default. Without a bound a peer that leaves out first bytes is kept whole.
const RECEIVE_WINDOW_BYTES: u32 = 16 << 20;

/// UDP's length field has 16 bits.
const PAYLOAD_BYTES_MAX: u16 = 65_527;
