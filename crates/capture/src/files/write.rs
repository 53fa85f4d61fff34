//! Writes pcapng files that Wireshark opens.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::interface_statistics::{
    InterfaceStatisticsBlock, InterfaceStatisticsOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness, PcapError};

use crate::error::WireError;
use crate::packet::{Link, Packet};

/// A pcapng file of one or several interfaces, with times in nanoseconds.
pub struct Writer {
    path: PathBuf,
    file: PcapNgWriter<BufWriter<File>>,
}

/// Statistics at the end of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Its time, in nanoseconds since 1970.
    pub at_ns: u64,
    /// Packets that passed the filter.
    pub received: u64,
    /// Those of them that were dropped.
    pub dropped: u64,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Writer").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Writer {
    /// Creates the file, or empties it. Packets name their interface by its place in `interfaces`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn create(path: &Path, interfaces: &[(&str, Link)]) -> Result<Writer, WireError> {
        let fail = |reason: String| WireError::File { path: path.to_owned(), reason };
        let file = File::create(path).map_err(|error| fail(error.to_string()))?;
        let section = SectionHeaderBlock {
            endianness: Endianness::native(),
            options: vec![SectionHeaderOption::UserApplication(Cow::Borrowed("Weighbridge"))],
            ..SectionHeaderBlock::default()
        };
        let file = BufWriter::with_capacity(1 << 20, file);
        let mut file = PcapNgWriter::with_section_header(file, section)
            .map_err(|error| fail(error.to_string()))?;
        for (name, link) in interfaces {
            let description = InterfaceDescriptionBlock {
                linktype: data_link(*link),
                snaplen: 0,
                options: vec![
                    InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
                    InterfaceDescriptionOption::IfTsResol(9),
                ],
            };
            file.write_pcapng_block(description).map_err(|error| fail(error.to_string()))?;
        }
        Ok(Writer { path: path.to_owned(), file })
    }

    /// Writes a packet of an interface.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn packet(&mut self, packet: &Packet<'_>, interface: u32) -> Result<(), WireError> {
        let written = self.file.write_pcapng_block(EnhancedPacketBlock {
            interface_id: interface,
            timestamp: Duration::from_nanos(packet.at_ns),
            original_len: packet.length,
            data: Cow::Borrowed(packet.bytes),
            options: Vec::new(),
        });
        self.settle(written)
    }

    /// Ends the file; `statistics` of the interfaces, in their order.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(mut self, statistics: &[Statistics]) -> Result<(), WireError> {
        for (number, own) in statistics.iter().enumerate() {
            // The library writes the time as one word; the format wants its upper half first.
            let timestamp = own.at_ns.rotate_left(32);
            let timestamp = if cfg!(target_endian = "little") { timestamp } else { own.at_ns };
            let written = self.file.write_pcapng_block(InterfaceStatisticsBlock {
                interface_id: number as u32,
                timestamp,
                options: vec![
                    InterfaceStatisticsOption::IsbIfRecv(own.received),
                    InterfaceStatisticsOption::IsbIfDrop(own.dropped),
                ],
            });
            self.settle(written)?;
        }
        let flushed = self.file.get_mut().flush();
        flushed.map_err(|error| WireError::File { path: self.path, reason: error.to_string() })
    }

    fn settle(&self, written: Result<usize, PcapError>) -> Result<(), WireError> {
        let fail = |error: PcapError| WireError::File {
            path: self.path.clone(),
            reason: error.to_string(),
        };
        written.map(|_| ()).map_err(fail)
    }
}

/// Copies a capture that a [`Writer`] wrote, with the secrets of its TLS connections, in the form
/// of `SSLKEYLOGFILE` (one line each), in front of the packets that they open: readers want them
/// first (pcapng, section 4.7), and during a run they come later. With the file one can then
/// read what was sent.
///
/// # Errors
/// If one of the files cannot be read or written, or if the first is not a pcapng file of this byte
/// order.
pub fn with_secrets(from: &Path, to: &Path, key_log: &[u8]) -> Result<(), WireError> {
    let fail = |path: &Path, reason: String| WireError::File { path: path.to_owned(), reason };
    let unread = |error: io::Error| fail(from, error.to_string());
    let unwritten = |error: io::Error| fail(to, error.to_string());
    let mut reader = BufReader::with_capacity(1 << 20, File::open(from).map_err(unread)?);
    let mut head = [0; 12];
    reader.read_exact(&mut head).map_err(unread)?;
    let word = |at: usize| [head[at], head[at + 1], head[at + 2], head[at + 3]];
    let [kind, length, order] = [0, 4, 8].map(|at| u32::from_ne_bytes(word(at)));
    if (kind, order) != (SECTION_HEADER, BYTE_ORDER) {
        return Err(fail(from, "not a pcapng file in the byte order of this machine".to_owned()));
    }
    let mut writer = BufWriter::with_capacity(1 << 20, File::create(to).map_err(unwritten)?);
    writer.write_all(&head).map_err(unwritten)?;
    let rest = u64::from(length).saturating_sub(head.len() as u64);
    io::copy(&mut reader.by_ref().take(rest), &mut writer).map_err(unwritten)?;
    writer.write_all(&secrets(key_log)).map_err(unwritten)?;
    io::copy(&mut reader, &mut writer).map_err(unwritten)?;
    writer.flush().map_err(unwritten)
}

/// A block of secrets: type, length, kind and length of the secrets, these, padded to four bytes,
/// and the length again (pcapng, section 4.7).
fn secrets(key_log: &[u8]) -> Vec<u8> {
    let padded = key_log.len().next_multiple_of(4);
    let length = (20 + padded) as u32;
    let mut block = Vec::with_capacity(length as usize);
    for word in [DECRYPTION_SECRETS, length, TLS_KEY_LOG, key_log.len() as u32] {
        block.extend(word.to_ne_bytes());
    }
    block.extend(key_log);
    block.resize(16 + padded, 0);
    block.extend(length.to_ne_bytes());
    block
}

fn data_link(link: Link) -> DataLink {
    match link {
        Link::Ethernet | Link::Loopback => DataLink::ETHERNET,
        Link::Raw => DataLink::RAW,
        Link::Cooked => DataLink::LINUX_SLL,
        Link::CookedTwo => DataLink::from(276),
        Link::Null => DataLink::NULL,
    }
}

/// Block type and kind of secrets (pcapng, section 4.7): "TLSK".
const DECRYPTION_SECRETS: u32 = 0x0000_000a;
const TLS_KEY_LOG: u32 = 0x544c_534b;
/// Type of a file's first block, and how that says its byte order (pcapng, section 4.1).
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
