//! Stored captures: pcap and pcapng in, pcapng out.

mod read;
mod write;

pub use read::{account_of, read};
pub use write::{Statistics, Writer, with_secrets};
