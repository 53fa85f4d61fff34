//! One packet of a capture, live or stored.

use serde::{Deserialize, Serialize};

/// A packet with its link header, as captured.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// When it was captured, in nanoseconds since 1970.
    pub at_ns: u64,
    /// Its first bytes, from the link header on; a capture may have cut the rest.
    pub bytes: &'a [u8],
    /// Its whole length in bytes, link header included, checksum and preamble not.
    pub length: u32,
    /// Its link header.
    pub link: Link,
    /// The payload bytes of each segment that a super-packet will be cut into (`gso_size` of the
    /// kernel); 0 if this is a packet as it is on the wire, or if unknown.
    pub segment_bytes: u16,
}

/// The header before the IP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Link {
    /// Ethernet: 14 bytes, and 4 for each VLAN tag. Frame check sequence (4), preamble (8) and gap
    /// (12) are on a real wire too but never in a capture, and are not counted.
    #[default]
    Ethernet,
    /// The kernel's loopback interface: a header of 14 bytes in the form of Ethernet that was never
    /// on any wire. It is counted, so that figures can be compared, and labelled.
    Loopback,
    /// No header: a TUN device, or a file of bare IP packets.
    Raw,
    /// The header that captures on all interfaces get (LINKTYPE_LINUX_SLL): 16 bytes.
    Cooked,
    /// Its second version (LINKTYPE_LINUX_SLL2): 20 bytes.
    CookedTwo,
    /// The loopback header of the BSDs (LINKTYPE_NULL, LINKTYPE_LOOP): 4 bytes.
    Null,
}

impl Link {
    /// Bytes of the header without VLAN tags.
    pub fn header_bytes(self) -> usize {
        match self {
            Link::Ethernet | Link::Loopback => 14,
            Link::Raw => 0,
            Link::Cooked => 16,
            Link::CookedTwo => 20,
            Link::Null => 4,
        }
    }

    /// Its name in a report.
    pub fn words(self) -> &'static str {
        match self {
            Link::Ethernet => "Ethernet, 14 bytes without frame check sequence",
            Link::Loopback => "loopback, 14 bytes that exist in the capture only",
            Link::Raw => "no link header",
            Link::Cooked => "Linux cooked capture, 16 bytes that exist in the capture only",
            Link::CookedTwo => "Linux cooked capture 2, 20 bytes that exist in the capture only",
            Link::Null => "BSD loopback, 4 bytes that exist in the capture only",
        }
    }
}
