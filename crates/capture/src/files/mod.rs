//! Stored captures: reads pcap and pcapng, writes pcapng.

mod read;
mod write;

pub use read::{account_of, read, read_from};
pub use write::{Statistics, Writer, with_secrets};
