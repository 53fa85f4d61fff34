//! Flow control (RFC 9113, sections 5.2 and 6.9): what may be sent, what waits until it may be
//! sent, and what the peer is allowed to send.

use std::collections::VecDeque;

use super::events::STREAM_MAX;
use super::frame::{
    self, Breach, DATA, END_STREAM, ErrorCode, FRAME_BYTES_MAX, FrameHead, put_window_update,
};
use super::peer::WINDOW_DEFAULT;

/// The sending side. `T` is what a stream sends behind its data; `None` if its data ends it.
#[derive(Debug)]
pub(crate) struct Outflow<T> {
    /// Window of the connection.
    window: i64,
    /// Window of new streams.
    initial: i64,
    frame_bytes_max: usize,
    /// Streams whose data waits, the longest waiting first.
    waiting: VecDeque<Waiting<T>>,
}

#[derive(Debug)]
struct Waiting<T> {
    stream: u32,
    window: i64,
    data: Vec<u8>,
    /// Bytes of `data` that were sent.
    sent: usize,
    then: Then<T>,
}

/// What follows the data of a stream.
#[derive(Debug)]
enum Then<T> {
    /// More data, some time.
    More,
    /// Nothing: the data ends the stream.
    Nothing,
    /// This.
    End(T),
}

/// The receiving side of a connection or a stream: updates are sent when half of the window is
/// used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Inflow {
    /// Bytes since the last update.
    used: u32,
}

impl<T> Outflow<T> {
    /// The sending side of a connection that has just opened.
    pub(crate) const fn new() -> Outflow<T> {
        Outflow {
            window: WINDOW_DEFAULT as i64,
            initial: WINDOW_DEFAULT as i64,
            frame_bytes_max: FRAME_BYTES_MAX,
            waiting: VecDeque::new(),
        }
    }

    /// Window of a stream to which the peer has added nothing.
    pub(crate) fn initial(&self) -> i64 {
        self.initial
    }

    /// Largest payload of a frame.
    #[inline]
    pub(crate) fn frame_bytes_max(&self) -> usize {
        self.frame_bytes_max
    }

    /// Begins the only DATA frame of a stream with this window, if nothing has to wait: the caller
    /// appends its `length` bytes. False if it did not begin.
    #[inline]
    pub(crate) fn begin(
        &mut self,
        stream: u32,
        window: i64,
        length: usize,
        ends: bool,
        out: &mut Vec<u8>,
    ) -> bool {
        let is_free = length as i64 <= self.window.min(window) && length <= self.frame_bytes_max;
        if is_free {
            self.window -= length as i64;
            let flags = if ends { END_STREAM } else { 0 };
            let frame = FrameHead { length, kind: DATA, flags, stream };
            out.extend_from_slice(&frame.bytes());
        }
        is_free
    }

    /// Sends `data` and then `end`, as far as the windows allow; the remainder waits.
    pub(crate) fn send(
        &mut self,
        stream: u32,
        window: i64,
        data: Vec<u8>,
        end: Option<T>,
        out: &mut Vec<u8>,
        put_end: impl FnMut(u32, T, &mut Vec<u8>),
    ) {
        let then = end.map_or(Then::Nothing, Then::End);
        self.waiting.push_back(Waiting { stream, window, data, sent: 0, then });
        self.pump(out, put_end);
    }

    /// Keeps a stream that sends data again and again; it has this window.
    pub(crate) fn keep(&mut self, stream: u32, window: i64) {
        let then = Then::More;
        self.waiting.push_back(Waiting { stream, window, data: Vec::new(), sent: 0, then });
    }

    /// Sends `length` bytes, which `put` appends, on a stream that is kept. True if they wait for a
    /// window or another frame: then [`Outflow::pump`] sends what may be sent.
    #[inline]
    pub(crate) fn send_kept(
        &mut self,
        stream: u32,
        length: usize,
        put: impl FnOnce(&mut Vec<u8>),
        out: &mut Vec<u8>,
    ) -> bool {
        let found = self.waiting.iter_mut().find(|waiting| waiting.stream == stream);
        let Some(waiting) = found else { return false };
        let free = self.window.min(waiting.window);
        let is_free = length as i64 <= free && length <= self.frame_bytes_max;
        if is_free && waiting.data.is_empty() {
            self.window -= length as i64;
            waiting.window -= length as i64;
            let frame = FrameHead { length, kind: DATA, flags: 0, stream };
            out.extend_from_slice(&frame.bytes());
            put(out);
            return false;
        }
        put(&mut waiting.data);
        true
    }

    /// Ends a stream that is kept, once its data is sent: by `end`, or by nothing.
    pub(crate) fn end_kept(
        &mut self,
        stream: u32,
        end: Option<T>,
        out: &mut Vec<u8>,
        put_end: impl FnMut(u32, T, &mut Vec<u8>),
    ) {
        if let Some(waiting) = self.waiting.iter_mut().find(|waiting| waiting.stream == stream) {
            waiting.then = end.map_or(Then::Nothing, Then::End);
        }
        self.pump(out, put_end);
    }

    /// Sends what waits, as far as the windows allow.
    pub(crate) fn pump(
        &mut self,
        out: &mut Vec<u8>,
        mut put_end: impl FnMut(u32, T, &mut Vec<u8>),
    ) {
        let mut place = 0;
        while let Some(waiting) = self.waiting.get_mut(place) {
            let is_done = loop {
                let left = &waiting.data[waiting.sent..];
                let free = self.window.min(waiting.window).max(0) as usize;
                let length = left.len().min(free).min(self.frame_bytes_max);
                let is_last = length == left.len();
                if length == 0 && !left.is_empty() {
                    break false;
                }
                let ends = is_last && matches!(waiting.then, Then::Nothing);
                if length > 0 || ends {
                    let flags = if ends { END_STREAM } else { 0 };
                    frame::put(out, DATA, flags, waiting.stream, &left[..length]);
                    self.window -= length as i64;
                    waiting.window -= length as i64;
                    waiting.sent += length;
                }
                if is_last {
                    break true;
                }
            };
            match (is_done, &waiting.then) {
                (true, Then::More) => {
                    waiting.data.clear();
                    waiting.sent = 0;
                    place += 1;
                }
                (true, _) => {
                    let done = self.waiting.remove(place);
                    if let Some(Waiting { stream, then: Then::End(end), .. }) = done {
                        put_end(stream, end, out);
                    }
                }
                (false, _) => place += 1,
            }
        }
    }

    /// Takes the peer's limit of the payload of a frame.
    pub(crate) fn limit_frames(&mut self, bytes_max: usize) {
        self.frame_bytes_max = bytes_max;
    }

    /// Number of streams whose data waits.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// True if data of a stream waits.
    pub(crate) fn is_waiting(&self, stream: u32) -> bool {
        let is_it = |waiting: &Waiting<T>| {
            let has_data = waiting.sent < waiting.data.len();
            waiting.stream == stream && (has_data || !matches!(waiting.then, Then::More))
        };
        self.waiting.iter().any(is_it)
    }

    /// Bytes that wait.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.waiting.iter().map(|waiting| waiting.data.len() - waiting.sent).sum()
    }

    /// Drops what waits of a stream.
    pub(crate) fn forget(&mut self, stream: u32) {
        self.waiting.retain(|waiting| waiting.stream != stream);
    }

    /// The peer takes more on the connection.
    ///
    /// # Errors
    /// If that is nothing, or more than a window can have (section 6.9.1).
    pub(crate) fn grow(&mut self, by: u32) -> Result<(), Breach> {
        if by == 0 {
            return Err(Breach::protocol("WINDOW_UPDATE by nothing"));
        }
        self.window += i64::from(by);
        if self.window > i64::from(STREAM_MAX) {
            return Err(Breach::new(ErrorCode::FlowControl, "a window is larger than allowed"));
        }
        Ok(())
    }

    /// The peer takes more on a stream, if its data waits.
    ///
    /// # Errors
    /// The code of the stream's error.
    pub(crate) fn grow_stream(&mut self, stream: u32, by: u32) -> Result<(), ErrorCode> {
        let found = self.waiting.iter_mut().find(|waiting| waiting.stream == stream);
        found.map_or(Ok(()), |waiting| grow(&mut waiting.window, by))
    }

    /// The peer changed the window of streams: those that wait change by the difference, and may
    /// become negative (section 6.9.2). Returns the difference.
    ///
    /// # Errors
    /// If a window becomes larger than it can be.
    pub(crate) fn set_initial(&mut self, initial: u32) -> Result<i64, Breach> {
        let by = i64::from(initial) - self.initial;
        self.initial = i64::from(initial);
        for waiting in &mut self.waiting {
            waiting.window += by;
            if waiting.window > i64::from(STREAM_MAX) {
                return Err(Breach::new(ErrorCode::FlowControl, "a window is larger than allowed"));
            }
        }
        Ok(by)
    }
}

/// Adds to the window of a stream.
///
/// # Errors
/// The code of the stream's error.
pub(crate) fn grow(window: &mut i64, by: u32) -> Result<(), ErrorCode> {
    *window += i64::from(by);
    match by {
        0 => Err(ErrorCode::Protocol),
        _ if *window > i64::from(STREAM_MAX) => Err(ErrorCode::FlowControl),
        _ => Ok(()),
    }
}

impl Inflow {
    /// Takes `bytes` of data on a stream, or on the connection (0), which are consumed at once.
    ///
    /// # Errors
    /// If the peer sent more than it may.
    #[inline]
    pub(crate) fn take(
        &mut self,
        stream: u32,
        bytes: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Breach> {
        self.used += bytes as u32;
        if self.used >= OWN_WINDOW / 2 {
            if self.used > OWN_WINDOW {
                return Err(Breach::new(ErrorCode::FlowControl, "more data than allowed"));
            }
            put_window_update(out, stream, self.used);
            self.used = 0;
        }
        Ok(())
    }
}

/// Window of this end, for the connection and for each stream: it never limits a measured load.
pub(crate) const OWN_WINDOW: u32 = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(_stream: u32, end: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(end.as_bytes());
    }

    #[test]
    fn data_waits_for_both_windows_and_its_end_for_all_of_it() {
        let (mut flow, mut out) = (Outflow::new(), Vec::new());
        flow.set_initial(3).unwrap();
        assert!(!flow.begin(1, 3, 4, true, &mut out) && out.is_empty());
        flow.send(1, flow.initial(), b"abcd".to_vec(), Some("end"), &mut out, ends);
        assert_eq!(out, [&[0, 0, 3, DATA, 0, 0, 0, 0, 1][..], b"abc"].concat());
        assert!(flow.is_waiting(1) && flow.waiting_bytes() == 1);
        out.clear();
        // The window is -2, and has to become positive.
        flow.set_initial(1).unwrap();
        flow.grow_stream(1, 2).unwrap();
        flow.pump(&mut out, ends);
        assert_eq!(out, b"");
        flow.grow_stream(1, 1).unwrap();
        flow.pump(&mut out, ends);
        assert_eq!(out, [&[0, 0, 1, DATA, 0, 0, 0, 0, 1][..], b"dend"].concat());
        assert!(!flow.is_waiting(1));
    }

    #[test]
    fn a_stream_that_waits_for_its_own_window_lets_others_pass() {
        let (mut flow, mut out) = (Outflow::<&str>::new(), Vec::new());
        flow.send(1, 0, b"a".to_vec(), None, &mut out, ends);
        flow.send(3, 9, b"b".to_vec(), None, &mut out, ends);
        assert_eq!(out, [0, 0, 1, DATA, END_STREAM, 0, 0, 0, 3, b'b']);
        flow.forget(1);
        assert_eq!(flow.waiting_bytes(), 0);
    }

    #[test]
    fn large_data_is_cut_into_frames() {
        let (mut flow, mut out) = (Outflow::<&str>::new(), Vec::new());
        flow.send(1, 65_535, vec![0; 40_000], None, &mut out, ends);
        assert_eq!(out.len(), 40_000 + 3 * 9);
        assert_eq!(flow.window, 65_535 - 40_000);
        flow.send(3, 65_535, vec![0; 40_000], None, &mut out, ends);
        assert_eq!((flow.window, flow.waiting_bytes()), (0, 14_465));
    }

    #[test]
    fn a_kept_stream_has_one_window_for_all_of_its_data() {
        let (mut flow, mut out) = (Outflow::<&str>::new(), Vec::new());
        flow.keep(1, 3);
        assert!(!flow.send_kept(1, 2, |out| out.extend_from_slice(b"ab"), &mut out));
        assert_eq!(out, [0, 0, 2, DATA, 0, 0, 0, 0, 1, b'a', b'b']);
        out.clear();
        // One byte leaves, one waits, and what follows waits behind it.
        assert!(flow.send_kept(1, 2, |out| out.extend_from_slice(b"cd"), &mut out));
        flow.pump(&mut out, ends);
        assert!(flow.send_kept(1, 1, |out| out.extend_from_slice(b"e"), &mut out));
        flow.pump(&mut out, ends);
        assert_eq!(out, [0, 0, 1, DATA, 0, 0, 0, 0, 1, b'c']);
        assert_eq!((flow.waiting_bytes(), flow.is_waiting(1)), (2, true));
        out.clear();
        flow.grow_stream(1, 5).unwrap();
        flow.pump(&mut out, ends);
        assert_eq!(out, [0, 0, 2, DATA, 0, 0, 0, 0, 1, b'd', b'e']);
        assert!(!flow.is_waiting(1));
        out.clear();
        flow.end_kept(1, Some("end"), &mut out, ends);
        assert_eq!((&*out, flow.waiting()), (&b"end"[..], 0));
        flow.keep(3, 9);
        out.clear();
        flow.end_kept(3, None, &mut out, ends);
        assert_eq!(out, [0, 0, 0, DATA, END_STREAM, 0, 0, 0, 3]);
    }

    #[test]
    fn windows_have_limits() {
        let mut flow = Outflow::<()>::new();
        assert_eq!(flow.grow(0).unwrap_err().code, ErrorCode::Protocol);
        assert_eq!(flow.grow(STREAM_MAX).unwrap_err().code, ErrorCode::FlowControl);
        let mut window = 1;
        assert_eq!(grow(&mut window, 0), Err(ErrorCode::Protocol));
        assert_eq!(grow(&mut window, STREAM_MAX), Err(ErrorCode::FlowControl));
    }

    #[test]
    fn updates_are_gathered() {
        let (mut flow, mut out) = (Inflow::default(), Vec::new());
        for _ in 0..1023 {
            flow.take(0, 8 << 10, &mut out).unwrap();
        }
        assert_eq!(out, b"");
        flow.take(0, 8 << 10, &mut out).unwrap();
        assert_eq!(out, [&[0, 0, 4, 8, 0, 0, 0, 0, 0][..], &(8_u32 << 20).to_be_bytes()].concat());
    }
}
