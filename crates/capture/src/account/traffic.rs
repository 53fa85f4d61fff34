//! Packets and bytes of one direction in one phase, and of a whole connection.

use std::ops::{Add, AddAssign, Index, IndexMut, SubAssign};

use serde::{Deserialize, Serialize};
use weigh_model::content::Phase;

use crate::account::layers::Layers;

/// Packets and bytes of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Packets on the wire; super-packets of the kernel count as the packets they become, unless
    /// the account was asked to count as captured.
    pub packets: u64,
    /// Packets as the capture saw them.
    pub packets_captured: u64,
    /// Bytes as the capture saw them, link headers included.
    pub bytes_captured: u64,
    /// Bytes by layer.
    pub layers: Layers,
    /// Packets that carry at least one byte of a stream.
    pub data_packets: u64,
    /// Packets of TCP that only acknowledge: nothing carried, no SYN, FIN or RST, no keep-alive.
    pub ack_only_packets: u64,
    /// Keep-alive probes: at most one byte, from before what the peer has already acknowledged.
    pub keep_alive_packets: u64,
    /// Packets that carry something (a byte, SYN or FIN) that the capture had seen before.
    pub retransmitted_packets: u64,
    /// Packets that came out of order. Behind a lossy hop these are the gaps and the
    /// retransmissions
    /// that fill them.
    pub out_of_order_packets: u64,
    /// Packets with SYN.
    pub syn_packets: u64,
    /// Packets with FIN.
    pub fin_packets: u64,
    /// Packets with RST.
    pub rst_packets: u64,
}

impl Traffic {
    /// Bytes on the wire.
    pub fn bytes(&self) -> u64 {
        self.layers.total()
    }
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, other: Traffic) {
        self.packets += other.packets;
        self.packets_captured += other.packets_captured;
        self.bytes_captured += other.bytes_captured;
        self.layers += other.layers;
        self.data_packets += other.data_packets;
        self.ack_only_packets += other.ack_only_packets;
        self.keep_alive_packets += other.keep_alive_packets;
        self.retransmitted_packets += other.retransmitted_packets;
        self.out_of_order_packets += other.out_of_order_packets;
        self.syn_packets += other.syn_packets;
        self.fin_packets += other.fin_packets;
        self.rst_packets += other.rst_packets;
    }
}

impl SubAssign for Traffic {
    fn sub_assign(&mut self, other: Traffic) {
        self.packets -= other.packets;
        self.packets_captured -= other.packets_captured;
        self.bytes_captured -= other.bytes_captured;
        self.layers -= other.layers;
        self.data_packets -= other.data_packets;
        self.ack_only_packets -= other.ack_only_packets;
        self.keep_alive_packets -= other.keep_alive_packets;
        self.retransmitted_packets -= other.retransmitted_packets;
        self.out_of_order_packets -= other.out_of_order_packets;
        self.syn_packets -= other.syn_packets;
        self.fin_packets -= other.fin_packets;
        self.rst_packets -= other.rst_packets;
    }
}

impl Add for Traffic {
    type Output = Traffic;

    fn add(mut self, other: Traffic) -> Traffic {
        self += other;
        self
    }
}

/// One direction, by phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phases {
    /// Set-up.
    pub set_up: Traffic,
    /// Messages.
    pub messages: Traffic,
    /// Tear-down.
    pub tear_down: Traffic,
}

impl Phases {
    /// All phases together.
    pub fn total(&self) -> Traffic {
        self.set_up + self.messages + self.tear_down
    }
}

impl Index<Phase> for Phases {
    type Output = Traffic;

    fn index(&self, phase: Phase) -> &Traffic {
        match phase {
            Phase::SetUp => &self.set_up,
            Phase::Messages => &self.messages,
            Phase::TearDown => &self.tear_down,
        }
    }
}

impl IndexMut<Phase> for Phases {
    fn index_mut(&mut self, phase: Phase) -> &mut Traffic {
        match phase {
            Phase::SetUp => &mut self.set_up,
            Phase::Messages => &mut self.messages,
            Phase::TearDown => &mut self.tear_down,
        }
    }
}

impl AddAssign for Phases {
    fn add_assign(&mut self, other: Phases) {
        for phase in Phase::ALL {
            self[phase] += other[phase];
        }
    }
}
