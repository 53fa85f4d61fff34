//! Protocols that exist only to be tried: each is a folder, and a line here.

pub mod netstring;
pub mod udp_echo;

use weigh_model::Protocol;

/// All of them.
pub static TOYS: &[&dyn Protocol] = &[&netstring::Netstring, &udp_echo::UdpEcho];
