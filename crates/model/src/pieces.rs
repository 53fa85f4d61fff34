//! Bodies piece by piece, for objects that are never whole in memory: made with their mark at the
//! end, and read with a running check over everything before it.

use crate::mark::{Before, END_BYTES, JSON_END, MARK_BYTES, Mark, Reading, read_end};

/// A body that is being made: content, file, filler, and the mark at the end.
#[derive(Clone, Debug)]
pub struct BodyMaker {
    head: Vec<u8>,
    head_at: usize,
    /// Bytes between the filler and the mark.
    key: &'static [u8],
    file_at: u64,
    file_bytes: u64,
    filler: u8,
    filler_left: u64,
    /// The mark and what follows it; `None` for a body that is too small for one.
    mark: Option<(Mark, &'static [u8])>,
    end: Vec<u8>,
    end_at: usize,
    check: u32,
    left: u64,
    whole: u64,
}

impl BodyMaker {
    pub(crate) fn new(
        (head, key): (Vec<u8>, &'static [u8]),
        file_bytes: u64,
        (filler_left, is_json): (u64, bool),
        mark: Option<(Mark, &'static [u8])>,
    ) -> BodyMaker {
        let end = mark.map_or(0, |(_, end)| key.len() + MARK_BYTES + end.len());
        let whole = head.len() as u64 + file_bytes + filler_left + end as u64;
        BodyMaker {
            head,
            head_at: 0,
            key,
            file_at: 0,
            file_bytes,
            filler: if is_json { b' ' } else { b'.' },
            filler_left,
            mark,
            end: Vec::new(),
            end_at: 0,
            check: 0,
            left: whole,
            whole,
        }
    }

    /// Bytes of the whole body.
    pub fn whole(&self) -> u64 {
        self.whole
    }

    /// Bytes that are not made yet.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Appends the next piece, at most `most` bytes, to `out`. `read` fills its slice with what the
    /// file holds from that place on.
    ///
    /// # Errors
    /// The error of `read`; the body cannot be finished then.
    pub fn make<E>(
        &mut self,
        most: usize,
        out: &mut Vec<u8>,
        mut read: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let until = out.len() + most;
        while out.len() < until && self.left > 0 {
            let (from, room) = (out.len(), until - out.len());
            if self.head_at < self.head.len() {
                let piece = &self.head[self.head_at..];
                out.extend_from_slice(&piece[..piece.len().min(room)]);
                self.head_at += out.len() - from;
            } else if self.file_at < self.file_bytes {
                let bytes = (self.file_bytes - self.file_at).min(room as u64);
                out.resize(from + bytes as usize, 0);
                read(self.file_at, &mut out[from..])?;
                self.file_at += bytes;
            } else if self.filler_left > 0 {
                let bytes = self.filler_left.min(room as u64);
                out.resize(from + bytes as usize, self.filler);
                self.filler_left -= bytes;
            } else {
                self.seal();
                let piece = &self.end[self.end_at..];
                out.extend_from_slice(&piece[..piece.len().min(room)]);
                self.end_at += out.len() - from;
            }
            if self.end.is_empty() {
                self.check = run_on(self.check, &out[from..]);
            }
            self.left -= (out.len() - from) as u64;
        }
        Ok(())
    }

    /// Makes the end of the body once everything before it is made.
    fn seal(&mut self) {
        let Some((mark, after)) = self.mark.take() else { return };
        self.end.resize(MARK_BYTES, 0);
        self.end.extend_from_slice(after);
        let before = Before::after(run_on(self.check, self.key));
        mark.seal_behind(before, &mut self.end, 0);
        self.end.splice(..0, self.key.iter().copied());
    }
}

/// Reads the identity and checks the content of a body that comes in pieces.
#[derive(Clone, Debug, Default)]
pub struct BodyReader {
    /// Check value of everything before `end`.
    check: u32,
    /// The last bytes so far: they may contain a mark.
    end: Vec<u8>,
}

impl BodyReader {
    /// Takes the next piece.
    pub fn take(&mut self, piece: &[u8]) {
        let keep = piece.len().min(END_BYTES);
        let (sure, last) = piece.split_at(piece.len() - keep);
        let pushed_out = (self.end.len() + keep).saturating_sub(END_BYTES);
        self.check = run_on(self.check, &self.end[..pushed_out]);
        self.end.drain(..pushed_out);
        self.check = run_on(self.check, sure);
        self.end.extend_from_slice(last);
    }

    /// Returns what the body turned out to be, whatever its trial.
    pub fn finish(&self) -> Reading {
        read_end(&self.end, |at| run_on(self.check, &self.end[..at]))
    }
}

/// CRC-32 of the bytes of `check` followed by `more`.
fn run_on(check: u32, more: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(check);
    hasher.update(more);
    hasher.finalize()
}

const _: () = assert!(END_BYTES == MARK_BYTES + JSON_END.len());

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::{BodySource, Composer};
    use crate::mark::MARK;
    use crate::units::Bytes;
    use weigh_stats::random::Random;

    fn in_pieces(composer: &Composer, file: &[u8], piece: usize) -> Vec<u8> {
        let mut maker = composer.begin(&MARK);
        let (mut out, whole) = (Vec::new(), maker.whole());
        while maker.left() > 0 {
            let before = out.len() as u64;
            maker
                .make(piece, &mut out, |at, place| {
                    let at = at as usize;
                    place.copy_from_slice(file.get(at..at + place.len()).ok_or("short")?);
                    Ok::<(), &str>(())
                })
                .unwrap();
            assert!(out.len() as u64 > before && out.len() as u64 + maker.left() == whole);
        }
        out
    }

    /// Piece by piece a body is, byte for byte, what it is at once.
    #[test]
    fn pieces_make_the_same_body() {
        for (source, content, size) in [
            ("filler", &b""[..], Some(44)),
            ("filler", b"", Some(10)),
            ("filler", b"", Some(100_000)),
            ("text:hello", b"", Some(1000)),
            ("text:{}", b"", None),
            ("readings", b"{\"ph\":6.1}", Some(300)),
            ("template:{\"n\":{seq},\"c\":{client}}", b"", Some(120)),
        ] {
            let source: BodySource = source.parse().unwrap();
            let size = size.map(Bytes);
            let at_once = Composer::new(&source, content, size, &MARK, 0).unwrap();
            let mut body = Vec::new();
            at_once.compose(&MARK, &mut body);
            let pieces = Composer::in_pieces(&source, (content, 0), size, &MARK, 0).unwrap();
            assert_eq!(pieces.bytes_max(), at_once.bytes_max(), "{source}");
            for piece in [1, 7, 44, 4096] {
                assert!(in_pieces(&pieces, b"", piece) == body, "{source} {size:?} by {piece}");
            }
        }
    }

    #[test]
    fn a_file_stands_before_its_mark_whatever_it_holds() {
        let source = BodySource::File("x".to_owned());
        let file: Vec<u8> = b"{\"a\":1}".repeat(1000);
        let composer =
            Composer::in_pieces(&source, (b"", file.len() as u64), None, &MARK, 0).unwrap();
        let body = in_pieces(&composer, &file, 1000);
        assert_eq!(body.len(), file.len() + MARK_BYTES);
        assert!(body.starts_with(&file));
        assert_eq!(Mark::read(&body, 7), Reading::Whole(MARK));
        let mut maker = composer.begin(&MARK);
        let short = maker.make(100, &mut Vec::new(), |_, _| Err("short"));
        assert_eq!(short, Err("short"));
        let size = Some(Bytes(5));
        let error = Composer::in_pieces(&source, (b"", 8000), size, &MARK, 0).unwrap_err();
        assert!(error.contains("8000 bytes") && error.contains("-s 8044B"), "{error}");
    }

    /// However a body is cut, the reader returns the same as [`Mark::read_any`] for the whole body:
    /// for Weighbridge's bodies, damaged ones and foreign ones.
    #[test]
    fn cuts_change_nothing() {
        let mut random = Random::new(5);
        for size in [0, 1, 43, 44, 45, 46, 47, 90, 1000] {
            for (json, damage) in [(false, false), (true, false), (false, true), (true, true)] {
                let text = if json { "text:{\"a\":1}" } else { "text:" };
                let source: BodySource = text.parse().unwrap();
                let size = Some(Bytes(size)).filter(|size| size.0 > 0);
                let Ok(composer) = Composer::new(&source, b"", size, &MARK, 0) else { continue };
                let mut body = Vec::new();
                composer.compose(&MARK, &mut body);
                if damage && !body.is_empty() {
                    let at = random.below(body.len() as u64) as usize;
                    body[at] ^= 1;
                }
                for _ in 0..20 {
                    let mut reader = BodyReader::default();
                    let mut rest = &body[..];
                    while !rest.is_empty() {
                        let cut = 1 + random.below(rest.len() as u64) as usize;
                        reader.take(&rest[..cut]);
                        rest = &rest[cut..];
                    }
                    assert_eq!(reader.finish(), Mark::read_any(&body), "{size:?} {json}");
                }
            }
        }
    }
}
