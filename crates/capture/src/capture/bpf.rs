//! Compiles a [`Filter`] to a program for the kernel's classic packet filter.
//!
//! The program passes a packet in case of uncertainty: packets with IPv6 extension headers and
//! later fragments
//! pass by their addresses alone, and the accounting looks again. It never drops a packet that the
//! filter admits.

use std::net::IpAddr;

use crate::error::WireError;
use crate::filter::Filter;

/// One instruction (`struct sock_filter`, linux/filter.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Operation code.
    pub code: u16,
    /// How many instructions to skip if true.
    pub jump_true: u8,
    /// How many instructions to skip if false.
    pub jump_false: u8,
    /// An operand.
    pub k: u32,
}

/// A program that passes at most `snap_bytes` of each packet that `filter` admits, for packets
/// whose IP header begins after `link_bytes`. Absent if everything passes whole.
///
/// # Errors
/// If the filter has more ports or addresses than fit.
pub fn program(
    filter: &Filter,
    link_bytes: u32,
    snap_bytes: u32,
) -> Result<Option<Vec<Instruction>>, WireError> {
    for (what, count, most) in [
        ("ports", filter.ports.len(), PORTS_MAX),
        ("addresses", filter.addresses.len(), ADDRESSES_MAX),
    ] {
        if count > most {
            return Err(WireError::FilterTooLong { what, count, most });
        }
    }
    if filter.is_open() {
        let pass_all = (snap_bytes < SNAP_ALL).then(|| vec![pass(snap_bytes)]);
        return Ok(pass_all);
    }
    let four = version_four(filter, link_bytes, snap_bytes);
    let six = version_six(filter, link_bytes, snap_bytes);
    let mut program = vec![
        load(WORD, ANCILLARY_PROTOCOL),
        jump_if(EQUAL, ETHER_IPV4, 2, 0),
        jump_if(EQUAL, ETHER_IPV6, 2, 0),
        pass(0),
        // The parts are too long for a conditional jump.
        jump(1),
        jump(four.len() as u32),
    ];
    program.extend(four);
    program.extend(six);
    Ok(Some(program))
}

/// Every part returns; none continues into the next.
fn version_four(filter: &Filter, link: u32, snap: u32) -> Vec<Instruction> {
    let words: Vec<[u32; 1]> = filter
        .addresses
        .iter()
        .filter_map(|address| match address {
            IpAddr::V4(four) => Some([u32::from(*four)]),
            IpAddr::V6(_) => None,
        })
        .collect();
    let mut part = match_addresses(filter, &words, [link + 12, link + 16]);
    if filter.ports.is_empty() {
        part.push(pass(snap));
        return part;
    }
    part.extend([
        load(BYTE, link + 9),
        jump_if(EQUAL, TCP, 2, 0),
        jump_if(EQUAL, UDP, 1, 0),
        pass(0),
        // A later fragment has no ports.
        load(HALF, link + 6),
        jump_if(SET, FRAGMENT_OFFSET, 0, 1),
        pass(snap),
        Instruction { code: LOAD_X_HEADER_LENGTH, jump_true: 0, jump_false: 0, k: link },
    ]);
    part.extend(match_ports(&filter.ports, snap, |at| load_indirect(link + at)));
    part
}

fn version_six(filter: &Filter, link: u32, snap: u32) -> Vec<Instruction> {
    let words: Vec<[u32; 4]> = filter
        .addresses
        .iter()
        .filter_map(|address| match address {
            IpAddr::V4(_) => None,
            IpAddr::V6(six) => {
                let octets = six.octets();
                Some(std::array::from_fn(|at| {
                    let word = &octets[at * 4..at * 4 + 4];
                    u32::from_be_bytes([word[0], word[1], word[2], word[3]])
                }))
            }
        })
        .collect();
    let mut part = match_addresses(filter, &words, [link + 8, link + 24]);
    if filter.ports.is_empty() {
        part.push(pass(snap));
        return part;
    }
    part.extend([
        load(BYTE, link + 6),
        jump_if(EQUAL, TCP, 4, 0),
        jump_if(EQUAL, UDP, 3, 0),
        // Behind extension headers the ports are somewhere else.
        jump_if(EQUAL, ICMP_SIX, 0, 1),
        pass(0),
        pass(snap),
    ]);
    part.extend(match_ports(&filter.ports, snap, |at| load(HALF, link + 40 + at)));
    part
}

/// Continues if one of the addresses is at one of the two places, or if any is allowed; otherwise
/// drops.
fn match_addresses<const N: usize>(
    filter: &Filter,
    words: &[[u32; N]],
    places: [u32; 2],
) -> Vec<Instruction> {
    if filter.addresses.is_empty() {
        return Vec::new();
    }
    let mut part = Vec::new();
    let each = 2 * N + 1;
    let mut left = words.len() * 2;
    for place in places {
        for address in words {
            left -= 1;
            for (at, word) in address.iter().enumerate() {
                part.push(load(WORD, place + 4 * at as u32));
                // Past the rest of this address and its jump to the end.
                let rest = 2 * (N - at - 1) + 1;
                part.push(jump_if(EQUAL, *word, 0, rest as u8));
            }
            part.push(jump((left * each + 1) as u32));
        }
    }
    part.push(pass(0));
    part
}

fn match_ports(ports: &[u16], snap: u32, load: impl Fn(u32) -> Instruction) -> Vec<Instruction> {
    let mut part = Vec::new();
    for place in [0, 2] {
        part.push(load(place));
        for port in ports {
            part.push(jump_if(EQUAL, u32::from(*port), 0, 1));
            part.push(pass(snap));
        }
    }
    part.push(pass(0));
    part
}

fn load(size: u16, k: u32) -> Instruction {
    Instruction { code: LOAD_ABSOLUTE | size, jump_true: 0, jump_false: 0, k }
}

fn load_indirect(k: u32) -> Instruction {
    Instruction { code: LOAD_INDIRECT | HALF, jump_true: 0, jump_false: 0, k }
}

fn jump_if(test: u16, k: u32, jump_true: u8, jump_false: u8) -> Instruction {
    Instruction { code: JUMP | test, jump_true, jump_false, k }
}

fn jump(k: u32) -> Instruction {
    Instruction { code: JUMP, jump_true: 0, jump_false: 0, k }
}

fn pass(k: u32) -> Instruction {
    Instruction { code: RETURN, jump_true: 0, jump_false: 0, k }
}

/// Largest possible packet, bytes.
pub const SNAP_ALL: u32 = u32::MAX;
/// A program has at most 4,096 instructions (BPF_MAXINSNS); these limits stay far below.
const PORTS_MAX: usize = 256;
const ADDRESSES_MAX: usize = 64;

// From linux/bpf_common.h and linux/filter.h.
const LOAD_ABSOLUTE: u16 = 0x20;
const LOAD_INDIRECT: u16 = 0x40;
const LOAD_X_HEADER_LENGTH: u16 = 0xb1;
const WORD: u16 = 0x00;
const HALF: u16 = 0x08;
const BYTE: u16 = 0x10;
const JUMP: u16 = 0x05;
const EQUAL: u16 = 0x10;
const SET: u16 = 0x40;
const RETURN: u16 = 0x06;
/// SKF_AD_OFF + SKF_AD_PROTOCOL: the EtherType, whatever the link header is.
const ANCILLARY_PROTOCOL: u32 = 0xffff_f000;
// From linux/if_ether.h and linux/in.h.
const ETHER_IPV4: u32 = 0x0800;
const ETHER_IPV6: u32 = 0x86dd;
const TCP: u32 = 6;
const UDP: u32 = 17;
const ICMP_SIX: u32 = 58;
const FRAGMENT_OFFSET: u32 = 0x1fff;

#[cfg(test)]
mod tests {
    use std::net::{Ipv6Addr, SocketAddr};

    use etherparse::PacketBuilder;

    use super::*;

    /// Runs a program as the kernel does (Documentation/networking/filter.rst), as far as the
    /// instructions above need it.
    fn run(program: &[Instruction], packet: &[u8]) -> u32 {
        let get = |at: u32, size: u16| -> Option<u32> {
            if at == ANCILLARY_PROTOCOL {
                let at = 12;
                return Some(u32::from(u16::from_be_bytes([packet[at], packet[at + 1]])));
            }
            let count = match size {
                WORD => 4,
                HALF => 2,
                _ => 1,
            };
            let bytes = packet.get(at as usize..at as usize + count)?;
            Some(bytes.iter().fold(0, |value, byte| value << 8 | u32::from(*byte)))
        };
        let (mut a, mut x, mut at) = (0_u32, 0_u32, 0_usize);
        loop {
            let Instruction { code, jump_true, jump_false, k } = program[at];
            at += 1;
            let is_true = match code {
                RETURN => return k,
                JUMP => {
                    at += k as usize;
                    continue;
                }
                LOAD_X_HEADER_LENGTH => {
                    let Some(byte) = get(k, BYTE) else { return 0 };
                    x = (byte & 15) * 4;
                    continue;
                }
                code if code == JUMP | EQUAL => a == k,
                code if code == JUMP | SET => a & k != 0,
                code => {
                    let from = if code & 0x60 == LOAD_INDIRECT { x.wrapping_add(k) } else { k };
                    let Some(value) = get(from, code & 0x18) else { return 0 };
                    a = value;
                    continue;
                }
            };
            at += usize::from(if is_true { jump_true } else { jump_false });
        }
    }

    fn packet(source: SocketAddr, destination: SocketAddr, tcp: bool) -> Vec<u8> {
        let builder = PacketBuilder::ethernet2([0; 6], [0; 6]);
        let builder = match (source.ip(), destination.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => builder.ipv4(from.octets(), to.octets(), 64),
            (IpAddr::V6(from), IpAddr::V6(to)) => builder.ipv6(from.octets(), to.octets(), 64),
            _ => panic!("mixed versions"),
        };
        let mut bytes = Vec::new();
        let (from, to) = (source.port(), destination.port());
        if tcp {
            builder.tcp(from, to, 1, 1).write(&mut bytes, b"x").unwrap();
        } else {
            builder.udp(from, to).write(&mut bytes, b"x").unwrap();
        }
        bytes
    }

    #[test]
    fn the_kernels_filter_decides_as_ours() {
        let addresses: [IpAddr; 4] = [
            [10, 0, 0, 1].into(),
            [10, 0, 0, 2].into(),
            Ipv6Addr::LOCALHOST.into(),
            Ipv6Addr::from(0x2001_0db8_u128 << 96 | 7).into(),
        ];
        let ports = [80, 1883, 40_000];
        let mut decided = [0, 0];
        for port_mask in 0..8_u32 {
            for address_mask in 0..16_u32 {
                let chosen = |mask: u32, at: usize| mask >> at & 1 == 1;
                let filter = Filter {
                    ports: (0..3).filter(|at| chosen(port_mask, *at)).map(|at| ports[at]).collect(),
                    addresses: (0..4)
                        .filter(|at| chosen(address_mask, *at))
                        .map(|at| addresses[at])
                        .collect(),
                };
                let Some(program) = program(&filter, 14, 96).unwrap() else { panic!("no program") };
                for (from, to) in [(0, 1), (1, 0), (0, 0), (2, 3), (3, 2), (3, 3)] {
                    for (one, other) in [(80, 40_000), (5, 1883), (7, 9), (40_000, 80)] {
                        let source = SocketAddr::new(addresses[from], one);
                        let destination = SocketAddr::new(addresses[to], other);
                        for tcp in [true, false] {
                            let found = run(&program, &packet(source, destination, tcp));
                            let is_meant = filter.admits(source, destination);
                            assert_eq!(found, if is_meant { 96 } else { 0 }, "{filter:?}");
                            decided[usize::from(is_meant)] += 1;
                        }
                    }
                }
            }
        }
        assert!(decided[0] > 1000 && decided[1] > 1000, "{decided:?}");
    }

    #[test]
    fn what_is_not_ip_is_dropped_unless_all_is_meant() {
        let mut arp = vec![0; 42];
        arp[12..14].copy_from_slice(&[8, 6]);
        let some = program(&Filter::port(80), 14, SNAP_ALL).unwrap().unwrap();
        assert_eq!(run(&some, &arp), 0);
        assert_eq!(program(&Filter::default(), 14, SNAP_ALL).unwrap(), None);
    }

    #[test]
    fn a_later_fragment_passes_by_its_address() {
        let source: SocketAddr = "10.0.0.1:5".parse().unwrap();
        let mut fragment = packet(source, "10.0.0.2:6".parse().unwrap(), false);
        fragment[14 + 6..14 + 8].copy_from_slice(&[0, 185]);
        let program = program(&Filter::port(80), 14, 96).unwrap().unwrap();
        assert_eq!(run(&program, &fragment), 96);
    }

    #[test]
    fn a_filter_that_does_not_fit_is_refused() {
        let filter = Filter { ports: (0..300).collect(), addresses: Vec::new() };
        let error = program(&filter, 14, 96).unwrap_err().to_string();
        assert_eq!(error, "the filter has 300 ports; at most 256 are allowed");
    }
}
