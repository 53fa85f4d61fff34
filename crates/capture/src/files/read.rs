//! Reads pcap and pcapng files, so that the same accounting runs on a stored capture.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::Path;

use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use pcap_file::{DataLink, PcapError};

use crate::account::{Account, Accounting, Settings};
use crate::error::WireError;
use crate::packet::{Link, Packet};

/// The account of a stored capture.
///
/// # Errors
/// If the file cannot be read, or is not a complete capture.
pub fn account_of(path: &Path, settings: Settings) -> Result<Account, WireError> {
    let mut accounting = Accounting::new(settings);
    read(path, &mut |packet| accounting.packet(packet))?;
    Ok(accounting.finish())
}

/// Passes every packet of a stored capture to `each`. A file that ends within a packet, as
/// after a crash, is an error: its account would be incomplete.
///
/// # Errors
/// If the file cannot be read, or is not a complete capture.
pub fn read(path: &Path, take: &mut dyn FnMut(&Packet<'_>)) -> Result<(), WireError> {
    let fail = |reason: String| WireError::File { path: path.to_owned(), reason };
    let file = File::open(path).map_err(|error| fail(error.to_string()))?;
    read_from(BufReader::with_capacity(1 << 20, file), take).map_err(fail)
}

/// Passes every packet of the bytes of a capture to `each`; see [`read`].
///
/// # Errors
/// If the bytes cannot be read, or are not a complete capture.
pub fn read_from(mut bytes: impl Read, take: &mut dyn FnMut(&Packet<'_>)) -> Result<(), String> {
    let mut magic = [0; 4];
    let begins = bytes.read_exact(&mut magic);
    begins.map_err(|_| "not a capture file: it has fewer than 4 bytes".to_owned())?;
    let whole = magic.as_slice().chain(bytes);
    match u32::from_be_bytes(magic) {
        PCAPNG => read_pcapng(whole, take),
        PCAP | PCAP_SWAPPED | PCAP_NANO | PCAP_NANO_SWAPPED => read_pcap(whole, take),
        other => Err(format!(
            "not a capture file: it begins with {other:#010x}, as no pcap or pcapng does"
        )),
    }
}

fn read_pcap(file: impl Read, take: &mut dyn FnMut(&Packet<'_>)) -> Result<(), String> {
    let mut reader = PcapReader::new(file).map_err(words)?;
    let link = link_of(reader.header().datalink)?;
    let mut number = 0_u64;
    while let Some(next) = reader.next_packet() {
        number += 1;
        let found = next.map_err(|error| format!("packet {number}: {}", words(error)))?;
        let at_ns = found.timestamp.as_nanos() as u64;
        take(&Packet { at_ns, bytes: &found.data, length: found.orig_len, link, segment_bytes: 0 });
    }
    Ok(())
}

fn read_pcapng(file: impl Read, take: &mut dyn FnMut(&Packet<'_>)) -> Result<(), String> {
    let mut reader = PcapNgReader::new(file).map_err(words)?;
    let mut interfaces: Vec<(Result<Link, String>, u64)> = Vec::new();
    let mut number = 0_u64;
    while let Some(next) = reader.next_block() {
        number += 1;
        match next.map_err(|error| format!("block {number}: {}", words(error)))? {
            Block::SectionHeader(_) => interfaces.clear(),
            Block::InterfaceDescription(found) => {
                let unit_ns = unit_ns(&found.options).ok_or_else(|| {
                    format!(
                        "block {number}: times below 1 ns or in powers of two are not supported"
                    )
                })?;
                interfaces.push((link_of(found.linktype), unit_ns));
            }
            Block::EnhancedPacket(found) => {
                let (link, unit_ns) = interfaces
                    .get(found.interface_id as usize)
                    .ok_or_else(|| format!("block {number}: unknown interface"))?;
                // The library hands over units as if they were nanoseconds.
                let at_ns = (found.timestamp.as_nanos() as u64).saturating_mul(*unit_ns);
                let (bytes, length) = (&*found.data, found.original_len);
                take(&Packet { at_ns, bytes, length, link: link.clone()?, segment_bytes: 0 });
            }
            Block::SimplePacket(found) => {
                let (link, _) = interfaces
                    .first()
                    .ok_or_else(|| format!("block {number}: unknown interface"))?;
                let (bytes, length) = (&*found.data, found.original_len);
                take(&Packet { at_ns: 0, bytes, length, link: link.clone()?, segment_bytes: 0 });
            }
            _ => {}
        }
    }
    Ok(())
}

/// The unit of an interface's times: 10 to the minus `if_tsresol`, a microsecond if it is absent
/// (pcapng, section 4.2).
fn unit_ns(options: &[InterfaceDescriptionOption<'_>]) -> Option<u64> {
    let digits = options.iter().find_map(|option| match option {
        InterfaceDescriptionOption::IfTsResol(value) => Some(*value),
        _ => None,
    });
    let digits = digits.unwrap_or(6);
    (digits <= 9).then(|| 10_u64.pow(9 - u32::from(digits)))
}

fn link_of(link: DataLink) -> Result<Link, String> {
    match link {
        DataLink::ETHERNET => Ok(Link::Ethernet),
        DataLink::RAW | DataLink::IPV4 | DataLink::IPV6 => Ok(Link::Raw),
        DataLink::LINUX_SLL => Ok(Link::Cooked),
        DataLink::NULL | DataLink::LOOP => Ok(Link::Null),
        other => match u32::from(other) {
            LINUX_SLL_TWO => Ok(Link::CookedTwo),
            LEGACY_RAW => Ok(Link::Raw),
            number => Err(format!("link headers of type {number} are not supported")),
        },
    }
}

fn words(error: PcapError) -> String {
    match error {
        PcapError::IncompleteBuffer => CUT_OFF.to_owned(),
        PcapError::IoError(error) if error.kind() == ErrorKind::UnexpectedEof => CUT_OFF.to_owned(),
        PcapError::IoError(error) => error.to_string(),
        other => other.to_string(),
    }
}

const CUT_OFF: &str = "the file ends within it";

// From draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng.
const PCAPNG: u32 = 0x0a0d_0d0a;
const PCAP: u32 = 0xa1b2_c3d4;
const PCAP_SWAPPED: u32 = 0xd4c3_b2a1;
const PCAP_NANO: u32 = 0xa1b2_3c4d;
const PCAP_NANO_SWAPPED: u32 = 0x4d3c_b2a1;
const LINUX_SLL_TWO: u32 = 276;
const LEGACY_RAW: u32 = 12;
