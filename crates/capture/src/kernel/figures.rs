//! The counters that the kernel keeps for each TCP socket (`struct tcp_info`, linux/tcp.h), and the
//! rules by which they become packets and bytes on the wire.

use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};

use netlink_packet_sock_diag::inet::nlas::TcpInfo;
use serde::{Deserialize, Serialize};

use crate::clock::now_ns;
use crate::error::WireError;

/// Counts of one socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketView {
    /// Its own end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// Which end opened the connection.
    pub role: Role,
    /// Source of the figures.
    pub source: Source,
    /// When they were read, in nanoseconds since 1970.
    pub at_ns: u64,
    /// The figures.
    pub figures: TcpFigures,
}

/// Which end of a connection a socket is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It connected.
    Opened,
    /// It was accepted.
    Accepted,
}

/// Source of a socket's figures: every figure is labelled with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// From an own socket. Complete if read after both FINs and before close; later packets and a
    /// RST of its own are not included.
    OwnSocket,
    /// From a list of all sockets while it was alive: not its final counts.
    Listed,
    /// From the notification that the kernel sends when it frees a socket: its final counts.
    /// Packets
    /// of a socket in TIME_WAIT are not included: the FIN of a peer that closes later, and
    /// the acknowledgement of that.
    Freed,
}

/// Counters of a TCP socket, since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpFigures {
    /// State, as in net/tcp_states.h: 1 is established, 7 closed.
    pub state: u8,
    /// True if segments carry timestamps, which take 12 bytes of each header.
    pub timestamps: bool,
    /// Segments sent, as they are on the wire, whatever is offloaded.
    pub segments_out: u64,
    /// Segments received.
    pub segments_in: u64,
    /// Segments sent that carry data.
    pub data_segments_out: u64,
    /// Segments received that carry data.
    pub data_segments_in: u64,
    /// Bytes of data sent, those sent again included.
    pub bytes_sent: u64,
    /// Bytes of data sent again.
    pub bytes_retransmitted: u64,
    /// Bytes acknowledged by the peer; SYN and FIN count one each.
    pub bytes_acknowledged: u64,
    /// Bytes received in order; FIN counts one.
    pub bytes_received: u64,
    /// Segments retransmitted.
    pub segments_retransmitted: u64,
    /// Smoothed round-trip time in microseconds.
    pub round_trip_us: u32,
    /// Its mean deviation in microseconds.
    pub round_trip_deviation_us: u32,
    /// The shortest round trip in microseconds; absent before the first.
    pub round_trip_us_min: Option<u32>,
    /// Congestion window in segments.
    pub congestion_window_segments: u32,
    /// Slow-start threshold in segments; absent while there is none.
    pub slow_start_threshold_segments: Option<u32>,
    /// Largest segment to send, in bytes.
    pub segment_bytes_max: u32,
    /// Path MTU in bytes.
    pub path_mtu_bytes: u32,
    /// Rate at which data was delivered last, in bytes per second.
    pub delivery_bytes_per_s: u64,
    /// Segments sent and not acknowledged.
    pub unacknowledged_segments: u32,
}

impl SocketView {
    /// Reads an own socket. Its ends are given, since a closed socket no longer knows its peer.
    ///
    /// # Errors
    /// If the kernel refuses, or its answer is too short.
    pub fn of(
        socket: impl AsFd,
        [local, remote]: [SocketAddr; 2],
        role: Role,
    ) -> Result<SocketView, WireError> {
        let figures = TcpFigures::of(socket)?;
        let at_ns = now_ns();
        Ok(SocketView { local, remote, role, source: Source::OwnSocket, at_ns, figures })
    }
}

impl TcpFigures {
    /// Reads the figures of an own TCP socket. To be complete: `shutdown` the writing side, read to
    /// the end, read the figures, close.
    ///
    /// # Errors
    /// If the kernel refuses, or its answer is too short.
    pub fn of(socket: impl AsFd) -> Result<TcpFigures, WireError> {
        let mut bytes = [0_u8; TCP_INFO_BYTES_MAX];
        let mut length = bytes.len() as u32;
        #[expect(unsafe_code, reason = "rustix has no wrapper for TCP_INFO")]
        // SAFETY: getsockopt(2) writes at most `length` bytes to `bytes`, and the length written.
        let answer = unsafe {
            libc::getsockopt(
                socket.as_fd().as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                bytes.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        if answer < 0 {
            return Err(WireError::last("getsockopt(TCP_INFO)"));
        }
        let info = TcpInfo::parse(&bytes[..length as usize])
            .map_err(|error| WireError::Unexpected(error.to_string()))?;
        Ok(TcpFigures::from(&info))
    }

    /// True if the socket never sent nor received: a listener.
    pub fn is_idle(&self) -> bool {
        self.segments_out == 0 && self.segments_in == 0
    }

    /// Packets sent. An accepting socket does not count its SYN-ACK, which the kernel sends before
    /// there is a socket.
    pub fn packets_out(&self, role: Role) -> u64 {
        self.segments_out + u64::from(role == Role::Accepted)
    }

    /// Bytes of data sent, each once.
    pub fn content_out(&self) -> u64 {
        self.bytes_sent - self.bytes_retransmitted
    }

    /// Bytes of IP packets sent by the end that opened the connection: 20 (IPv6: 40) for IP, 20 for
    /// TCP, 12 for timestamps in each segment, and 8 more in the SYN (RFC 9293 section 3.1, RFC
    /// 7323 section 3.2; the SYN of Linux has 40 bytes of TCP header). Exact as long as the peer
    /// loses nothing: acknowledgements of gaps carry 12 to 36 bytes more (RFC 2018), which the
    /// kernel does not count.
    pub fn ip_bytes_out(&self, role: Role, is_six: bool) -> u64 {
        let ip = if is_six { 40 } else { 20 };
        let header = ip + 20 + if self.timestamps { 12 } else { 0 };
        let syn_more = 40 - 20 - if self.timestamps { 12 } else { 0 };
        self.bytes_sent + header * self.packets_out(role) + syn_more
    }
}

impl From<&TcpInfo> for TcpFigures {
    fn from(info: &TcpInfo) -> TcpFigures {
        TcpFigures {
            state: info.state,
            timestamps: info.options & OPTION_TIMESTAMPS != 0,
            segments_out: info.segs_out.into(),
            segments_in: info.segs_in.into(),
            data_segments_out: info.data_segs_out.into(),
            data_segments_in: info.data_segs_in.into(),
            bytes_sent: info.bytes_sent,
            bytes_retransmitted: info.bytes_retrans,
            bytes_acknowledged: info.bytes_acked,
            bytes_received: info.bytes_received,
            segments_retransmitted: info.total_retrans.into(),
            round_trip_us: info.rtt,
            round_trip_deviation_us: info.rttvar,
            round_trip_us_min: Some(info.min_rtt).filter(|rtt| *rtt != u32::MAX),
            congestion_window_segments: info.snd_cwnd,
            slow_start_threshold_segments: Some(info.snd_ssthresh)
                .filter(|threshold| *threshold != SSTHRESH_INFINITE),
            segment_bytes_max: info.snd_mss,
            path_mtu_bytes: info.pmtu,
            delivery_bytes_per_s: info.delivery_rate,
            unacknowledged_segments: info.unacked,
        }
    }
}

/// Room for what newer kernels add.
const TCP_INFO_BYTES_MAX: usize = 512;
/// TCPI_OPT_TIMESTAMPS, linux/tcp.h.
const OPTION_TIMESTAMPS: u8 = 1;
/// TCP_INFINITE_SSTHRESH, net/tcp.h.
const SSTHRESH_INFINITE: u32 = 0x7fff_ffff;
