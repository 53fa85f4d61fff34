//! The peer's parameters (RFC 9113, section 6.5.2).

use super::events::STREAM_MAX;
use super::frame::{Breach, ErrorCode, FRAME_BYTES_MAX};
use super::table::SIZE_DEFAULT;

/// What the peer allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PeerSettings {
    /// Largest dynamic table of this end's encoder.
    pub(crate) table_bytes_max: u32,
    /// Streams that may be open at once; `None` for any number.
    pub(crate) streams_max: Option<u32>,
    /// Window of a new stream.
    pub(crate) window: u32,
    /// Largest payload of a frame.
    pub(crate) frame_bytes_max: usize,
}

impl PeerSettings {
    /// What holds before the peer's SETTINGS.
    pub(crate) const INITIAL: PeerSettings = PeerSettings {
        table_bytes_max: SIZE_DEFAULT as u32,
        streams_max: None,
        window: WINDOW_DEFAULT,
        frame_bytes_max: FRAME_BYTES_MAX,
    };

    /// Takes the parameters of a SETTINGS frame, in their order. `is_server` is true if the peer
    /// is a server.
    ///
    /// # Errors
    /// A value that is not allowed.
    pub(crate) fn take(&mut self, payload: &[u8], is_server: bool) -> Result<(), Breach> {
        for pair in payload.chunks_exact(6) {
            let [a, b, v, w, x, y] = *pair else { continue };
            let value = u32::from_be_bytes([v, w, x, y]);
            match u16::from_be_bytes([a, b]) {
                HEADER_TABLE_SIZE => self.table_bytes_max = value,
                ENABLE_PUSH if value > u32::from(!is_server) => {
                    return Err(Breach::protocol("a wrong value of ENABLE_PUSH"));
                }
                MAX_CONCURRENT_STREAMS => self.streams_max = Some(value),
                INITIAL_WINDOW_SIZE if value > STREAM_MAX => {
                    let what = "a wrong value of INITIAL_WINDOW_SIZE";
                    return Err(Breach::new(ErrorCode::FlowControl, what));
                }
                INITIAL_WINDOW_SIZE => self.window = value,
                MAX_FRAME_SIZE if !(16_384..=16_777_215).contains(&value) => {
                    return Err(Breach::protocol("a wrong value of MAX_FRAME_SIZE"));
                }
                MAX_FRAME_SIZE => self.frame_bytes_max = value as usize,
                _ => {}
            }
        }
        Ok(())
    }
}

pub(crate) const HEADER_TABLE_SIZE: u16 = 1;
pub(crate) const ENABLE_PUSH: u16 = 2;
pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 3;
pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;
pub(crate) const MAX_FRAME_SIZE: u16 = 5;
pub(crate) const MAX_HEADER_LIST_SIZE: u16 = 6;

/// Window of a connection and of its streams at the start (section 6.9.2).
pub(crate) const WINDOW_DEFAULT: u32 = 65_535;
