//! The streams in one direction that the peer opens: its control stream, those of QPACK, and
//! unknown ones (RFC 9114, section 6.2).

use super::codec::{
    Breach, CANCEL_PUSH, CLOSED_CRITICAL_STREAM, CONTROL, ENCODER_STREAM_ERROR, FRAME_ERROR,
    FRAME_UNEXPECTED, Frame, FrameReader, GOAWAY, ID_ERROR, MAX_PUSH_ID, MISSING_SETTINGS,
    SETTINGS, SETTINGS_ERROR, STREAM_CREATION_ERROR, number,
};

/// What is known of the peer's streams.
#[derive(Debug, Default)]
pub(super) struct PeerStreams {
    streams: Vec<PeerStream>,
    control: FrameReader,
    has_settings: bool,
    /// The number in a GOAWAY frame that was read, until it is taken from here.
    pub(super) goaway: Option<u64>,
}

#[derive(Debug)]
struct PeerStream {
    stream: u64,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// The begin of a type that is not whole.
    Unknown(Vec<u8>),
    Control,
    Encoder,
    Decoder,
    /// A type that is not known here: its bytes are passed over.
    Other,
}

impl PeerStreams {
    /// Takes bytes of a stream. `is_server` is true if the peer is a server. A GOAWAY frame before
    /// a broken rule counts.
    ///
    /// # Errors
    /// A rule that the peer broke.
    pub(super) fn take(
        &mut self,
        stream: u64,
        bytes: &[u8],
        is_last: bool,
        is_server: bool,
    ) -> Result<(), Breach> {
        let place = match self.streams.iter().position(|own| own.stream == stream) {
            Some(place) => place,
            None => {
                self.streams.push(PeerStream { stream, kind: Kind::Unknown(Vec::new()) });
                self.streams.len() - 1
            }
        };
        let bytes = self.learn(place, bytes, is_server)?;
        match &self.streams[place].kind {
            Kind::Control => self.take_control(bytes, is_server)?,
            // Section 3.2.3 of RFC 9204: without a table only its size can be set, to 0.
            Kind::Encoder if bytes.iter().any(|byte| *byte != 0x20) => {
                let what = "it adds to a dynamic table, which this end does not have";
                return Err(Breach::new(ENCODER_STREAM_ERROR, what));
            }
            _ => {}
        }
        if is_last {
            self.end(stream)?;
        }
        Ok(())
    }

    /// A stream has ended, or was abandoned.
    ///
    /// # Errors
    /// If it must not end.
    pub(super) fn end(&mut self, stream: u64) -> Result<(), Breach> {
        let Some(place) = self.streams.iter().position(|own| own.stream == stream) else {
            return Ok(());
        };
        match self.streams.swap_remove(place).kind {
            Kind::Control | Kind::Encoder | Kind::Decoder => {
                let what = "its control stream or one of QPACK has ended";
                Err(Breach::new(CLOSED_CRITICAL_STREAM, what))
            }
            Kind::Unknown(_) | Kind::Other => Ok(()),
        }
    }

    /// Reads the type of a stream, if it is not known. Returns the bytes behind it.
    fn learn<'b>(
        &mut self,
        place: usize,
        bytes: &'b [u8],
        is_server: bool,
    ) -> Result<&'b [u8], Breach> {
        let Kind::Unknown(begin) = &mut self.streams[place].kind else { return Ok(bytes) };
        let mut rest = bytes;
        let kind = loop {
            if let Some((kind, _)) = number(begin) {
                break kind;
            }
            let Some((byte, after)) = rest.split_first() else { return Ok(rest) };
            begin.push(*byte);
            rest = after;
        };
        let kind = match kind {
            CONTROL => Kind::Control,
            1 if is_server => {
                return Err(Breach::new(ID_ERROR, "it pushes, which this end does not allow"));
            }
            1 => return Err(Breach::new(STREAM_CREATION_ERROR, "a client pushes")),
            2 => Kind::Encoder,
            3 => Kind::Decoder,
            _ => Kind::Other,
        };
        let is_same = |own: &PeerStream| {
            !matches!(kind, Kind::Other)
                && std::mem::discriminant(&own.kind) == std::mem::discriminant(&kind)
        };
        if self.streams.iter().any(is_same) {
            return Err(Breach::new(STREAM_CREATION_ERROR, "a second stream of its type"));
        }
        self.streams[place].kind = kind;
        Ok(rest)
    }

    fn take_control(&mut self, bytes: &[u8], is_server: bool) -> Result<(), Breach> {
        let mut rest = bytes;
        while let Some(frame) = self.control.next(&mut rest)? {
            let (kind, payload) = match &frame {
                Frame::Whole(kind, payload) => (*kind, &payload[..]),
                Frame::Data(_) => return Err(unexpected("DATA")),
            };
            if !self.has_settings && kind != SETTINGS {
                let what = "its control stream does not begin with SETTINGS";
                return Err(Breach::new(MISSING_SETTINGS, what));
            }
            match kind {
                SETTINGS if self.has_settings => return Err(unexpected("a second SETTINGS")),
                SETTINGS => {
                    check_settings(payload)?;
                    self.has_settings = true;
                }
                GOAWAY => {
                    let (id, bytes) = number(payload).ok_or_else(cut_off)?;
                    if bytes != payload.len() {
                        return Err(cut_off());
                    }
                    if is_server && id % 4 != 0 {
                        return Err(Breach::new(ID_ERROR, "GOAWAY names no stream of a request"));
                    }
                    self.goaway = Some(id);
                }
                CANCEL_PUSH => {}
                MAX_PUSH_ID if !is_server => {}
                _ => return Err(unexpected("HEADERS, or a frame of pushes,")),
            }
        }
        Ok(())
    }
}

/// Section 7.2.4.1.
fn check_settings(payload: &[u8]) -> Result<(), Breach> {
    let mut rest = payload;
    while !rest.is_empty() {
        let (id, bytes) = number(rest).ok_or_else(cut_off)?;
        rest = &rest[bytes..];
        let (_, bytes) = number(rest).ok_or_else(cut_off)?;
        rest = &rest[bytes..];
        if matches!(id, 2..=5) {
            return Err(Breach::new(SETTINGS_ERROR, format!("setting {id} of HTTP/2")));
        }
    }
    Ok(())
}

fn unexpected(what: &str) -> Breach {
    Breach::new(FRAME_UNEXPECTED, format!("{what} on the control stream"))
}

fn cut_off() -> Breach {
    Breach::new(FRAME_ERROR, "a frame of the control stream has the wrong length")
}

#[cfg(test)]
mod tests {
    use super::super::codec::put_control;
    use super::*;

    fn taken(bytes: &[u8]) -> Result<Option<u64>, u64> {
        let mut whole = PeerStreams::default();
        let result = whole.take(3, bytes, false, true);
        // The same in single bytes.
        let mut single = PeerStreams::default();
        let last = bytes.iter().try_for_each(|byte| single.take(3, &[*byte], false, true));
        assert_eq!((&result, whole.goaway), (&last, single.goaway));
        result.map(|()| whole.goaway).map_err(|breach| breach.code)
    }

    #[test]
    fn control_streams_are_read() {
        let mut bytes = Vec::new();
        put_control(&mut bytes, 16_384);
        assert_eq!(taken(&bytes), Ok(None));
        bytes.extend_from_slice(&[GOAWAY as u8, 1, 8]);
        assert_eq!(taken(&bytes), Ok(Some(8)));
        let with = |more: &[u8]| taken(&[&bytes[..], more].concat());
        assert_eq!(with(&[GOAWAY as u8, 1, 9]), Err(ID_ERROR));
        assert_eq!(with(&[GOAWAY as u8, 2, 8, 8]), Err(FRAME_ERROR));
        assert_eq!(with(&[SETTINGS as u8, 0]), Err(FRAME_UNEXPECTED));
        assert_eq!(with(&[0, 1, 1]), Err(FRAME_UNEXPECTED));
        assert_eq!(with(&[1, 1, 1]), Err(FRAME_UNEXPECTED));
        assert_eq!(with(&[MAX_PUSH_ID as u8, 1, 1]), Err(FRAME_UNEXPECTED));
        assert_eq!(taken(&[0, GOAWAY as u8, 1, 8]), Err(MISSING_SETTINGS));
        assert_eq!(taken(&[0, SETTINGS as u8, 2, 2, 0]), Err(SETTINGS_ERROR));
        assert_eq!(taken(&[0, SETTINGS as u8, 1, 6]), Err(FRAME_ERROR));
        assert_eq!(taken(&[1]), Err(ID_ERROR));
        assert_eq!(taken(&[2, 0x20]), Ok(None));
        assert_eq!(taken(&[2, 0x3f, 0xe1, 0x1f]), Err(ENCODER_STREAM_ERROR));
        assert_eq!(taken(&[0x21, 9, 9, 9]), Ok(None), "a reserved type");
    }

    #[test]
    fn critical_streams_stay_and_are_alone() {
        let mut peer = PeerStreams::default();
        assert_eq!(peer.take(3, &[0, SETTINGS as u8, 0], false, true), Ok(()));
        let second = peer.take(7, &[0], false, true);
        assert_eq!(second.unwrap_err().code, STREAM_CREATION_ERROR);
        assert_eq!(peer.end(3).unwrap_err().code, CLOSED_CRITICAL_STREAM);
        assert_eq!(peer.take(11, &[0x21], true, true), Ok(()));
    }
}
