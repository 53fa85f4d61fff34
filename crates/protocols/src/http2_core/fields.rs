//! Header fields of requests and answers, checked as RFC 9113 (section 8) asks: a message that
//! breaks its rules is malformed.

use super::decoder::{BlockReader, Decoder, Flaw};

/// Fields of an answer, or of trailers, as far as every protocol needs them.
#[derive(Clone, Debug, Default)]
pub(crate) struct AnswerHead<F> {
    /// `:status`; 0 for trailers.
    pub(crate) status: u16,
    /// `content-length`.
    pub(crate) length: Option<u64>,
    /// Why the block is malformed.
    pub(crate) malformed: Option<&'static str>,
    /// What the protocol itself reads.
    pub(crate) own: F,
    order: Order,
}

/// The part of an answer's fields that one protocol reads.
pub(crate) trait AnswerFields: Clone + Default {
    /// Takes a field that is not a pseudo-header.
    fn take(&mut self, name: &[u8], value: &[u8]);
}

/// HTTP needs only the status.
impl AnswerFields for () {
    fn take(&mut self, _name: &[u8], _value: &[u8]) {}
}

/// Fields of a request, or of trailers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestHead {
    /// `:method`; empty for trailers.
    pub(crate) method: Vec<u8>,
    /// `:path`.
    pub(crate) path: Vec<u8>,
    /// `content-length`.
    pub(crate) length: Option<u64>,
    /// Why the block is malformed.
    pub(crate) malformed: Option<&'static str>,
    /// True if the fields are more than are taken.
    pub(crate) is_too_large: bool,
    has_scheme: bool,
    has_authority: bool,
    order: Order,
}

/// Kind of the fields so far: pseudo-headers stand first (section 8.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Order {
    #[default]
    Empty,
    Pseudo,
    Regular,
}

impl<F: AnswerFields> AnswerHead<F> {
    /// Reads a block.
    ///
    /// # Errors
    /// If it is not valid in HPACK.
    #[inline]
    pub(crate) fn read<'r>(
        reader: &'r mut BlockReader<AnswerHead<F>>,
        block: &[u8],
    ) -> Result<&'r AnswerHead<F>, Flaw> {
        reader.read(block, AnswerHead::decode)
    }

    fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<AnswerHead<F>, Flaw> {
        let mut head = AnswerHead::default();
        let is_whole = decoder.decode(block, |name, value| {
            let taken = head.take(name, value);
            head.malformed = head.malformed.or(taken.err());
        })?;
        if !is_whole {
            head.malformed = Some("its header fields are too many");
        }
        Ok(head)
    }

    /// True if the block can only be trailers.
    pub(crate) fn is_trailers(&self) -> bool {
        self.order != Order::Pseudo && self.status == 0
    }

    /// Takes a field.
    ///
    /// # Errors
    /// Why the field makes the message malformed.
    pub(crate) fn take(&mut self, name: &[u8], value: &[u8]) -> Result<(), &'static str> {
        check(name, value)?;
        if name[0] != b':' {
            self.order = Order::Regular;
            if name == b"content-length" {
                self.length = Some(length(value, self.length)?);
            }
            self.own.take(name, value);
            return Ok(());
        }
        if self.order == Order::Regular {
            return Err(PSEUDO_LATE);
        }
        self.order = Order::Pseudo;
        if name != b":status" || self.status != 0 {
            return Err("a pseudo-header that answers do not have");
        }
        self.status = match value {
            [a @ b'1'..=b'5', b @ b'0'..=b'9', c @ b'0'..=b'9'] => {
                [a, b, c].iter().fold(0, |sum, digit| sum * 10 + u16::from(**digit - b'0'))
            }
            _ => return Err("a :status that is not a status"),
        };
        Ok(())
    }
}

impl RequestHead {
    /// Reads a block.
    ///
    /// # Errors
    /// If it is not valid in HPACK.
    #[inline]
    pub(crate) fn read<'r>(
        reader: &'r mut BlockReader<RequestHead>,
        block: &[u8],
    ) -> Result<&'r RequestHead, Flaw> {
        reader.read(block, RequestHead::decode)
    }

    fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<RequestHead, Flaw> {
        let mut head = RequestHead::default();
        let is_whole = decoder.decode(block, |name, value| {
            let taken = head.take(name, value);
            head.malformed = head.malformed.or(taken.err());
        })?;
        head.is_too_large = !is_whole;
        Ok(head)
    }

    /// What is wrong with a request that has this head (section 8.3.1).
    pub(crate) fn wrong_as_request(&self) -> Option<&'static str> {
        if self.malformed.is_some() {
            return self.malformed;
        }
        let is_connect = self.method == b"CONNECT";
        let is_whole = match is_connect {
            true => self.has_authority && !self.has_scheme && self.path.is_empty(),
            false => !self.method.is_empty() && self.has_scheme && !self.path.is_empty(),
        };
        (!is_whole).then_some("a pseudo-header is missing")
    }

    /// What is wrong with trailers that have these fields (section 8.1).
    pub(crate) fn wrong_as_trailers(&self) -> Option<&'static str> {
        let has_pseudo = self.has_scheme || self.has_authority || self.order == Order::Pseudo;
        let has_pseudo = has_pseudo || !self.method.is_empty() || !self.path.is_empty();
        self.malformed.or(has_pseudo.then_some("trailers have a pseudo-header"))
    }

    /// Takes a field.
    ///
    /// # Errors
    /// Why the field makes the message malformed.
    pub(crate) fn take(&mut self, name: &[u8], value: &[u8]) -> Result<(), &'static str> {
        check(name, value)?;
        if name[0] != b':' {
            self.order = Order::Regular;
            if name == b"content-length" {
                self.length = Some(length(value, self.length)?);
            }
            return Ok(());
        }
        if self.order == Order::Regular {
            return Err(PSEUDO_LATE);
        }
        self.order = Order::Pseudo;
        let is_first = match name {
            b":method" => is_put(&mut self.method, value),
            b":path" => is_put(&mut self.path, value),
            b":scheme" => !std::mem::replace(&mut self.has_scheme, true),
            b":authority" => !std::mem::replace(&mut self.has_authority, true),
            _ => return Err("a pseudo-header that requests do not have"),
        };
        if is_first { Ok(()) } else { Err("a pseudo-header stands twice or is empty") }
    }
}

/// Fills an empty place with a text; false if the place or the text is not what it should be.
fn is_put(place: &mut Vec<u8>, value: &[u8]) -> bool {
    let is_first = place.is_empty() && !value.is_empty();
    place.extend_from_slice(value);
    is_first
}

/// Sections 8.2.1 and 8.2.2.
fn check(name: &[u8], value: &[u8]) -> Result<(), &'static str> {
    let is_of_name = |byte: &u8| matches!(byte, b'!'..=b'~') && !byte.is_ascii_uppercase();
    let plain = name.strip_prefix(b":").unwrap_or(name);
    if plain.is_empty() || !plain.iter().all(|byte| is_of_name(byte) && *byte != b':') {
        return Err("a field name is not allowed");
    }
    let is_edge = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let has_control = value.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n'));
    if has_control || is_edge(value.first()) || is_edge(value.last()) {
        return Err("a field value is not allowed");
    }
    match name {
        b"connection" | b"proxy-connection" | b"keep-alive" | b"transfer-encoding" | b"upgrade" => {
            Err("a field belongs to HTTP/1.1 only")
        }
        b"te" if value != b"trailers" => Err("te has another value than trailers"),
        _ => Ok(()),
    }
}

/// A length in digits; repetitions have to agree (RFC 9110, section 8.6).
fn length(value: &[u8], before: Option<u64>) -> Result<u64, &'static str> {
    const WRONG: &str = "content-length is not a length";
    let is_number = !value.is_empty() && value.len() <= 18 && value.iter().all(u8::is_ascii_digit);
    if !is_number {
        return Err(WRONG);
    }
    let number = value.iter().fold(0, |sum, digit| sum * 10 + u64::from(*digit - b'0'));
    if before.is_some_and(|before| before != number) { Err(WRONG) } else { Ok(number) }
}

const PSEUDO_LATE: &str = "a pseudo-header stands behind other fields";

#[cfg(test)]
mod tests {
    use super::super::encoder::{Encoder, Indexing};
    use super::*;

    fn block(fields: &[(&str, &str)]) -> Vec<u8> {
        let (mut encoder, mut out) = (Encoder::new(), Vec::new());
        for (name, value) in fields {
            encoder.put(name.as_bytes(), value.as_bytes(), Indexing::Plain, &mut out);
        }
        out
    }

    fn request(fields: &[(&str, &str)]) -> RequestHead {
        let mut reader = BlockReader::new();
        RequestHead::read(&mut reader, &block(fields)).unwrap().clone()
    }

    const WHOLE: [(&str, &str); 3] = [(":method", "POST"), (":scheme", "http"), (":path", "/a")];

    #[test]
    fn whole_requests_are_taken() {
        let head = request(&[&WHOLE[..], &[("content-length", "5"), ("te", "trailers")]].concat());
        assert_eq!((head.wrong_as_request(), head.length), (None, Some(5)));
        assert_eq!((&head.method[..], &head.path[..]), (&b"POST"[..], &b"/a"[..]));
        let connect = request(&[(":method", "CONNECT"), (":authority", "h:1")]);
        assert_eq!(connect.wrong_as_request(), None);
        assert_eq!(request(&[("a", "b")]).wrong_as_trailers(), None);
    }

    /// Sections 8.2.1, 8.2.2, 8.3 and 8.3.1.
    #[test]
    fn malformed_requests_are_found() {
        for wrong in [
            ("X-Upper", "1"),
            ("", "1"),
            ("a b", "1"),
            ("a:b", "1"),
            ("x", "a\nb"),
            ("x", " a"),
            ("x", "a\t"),
            ("connection", "close"),
            ("transfer-encoding", "chunked"),
            ("te", "gzip"),
            ("content-length", "5x"),
            (":status", "200"),
            (":unknown", "1"),
            (":path", "/twice"),
        ] {
            let head = request(&[&WHOLE[..], &[wrong]].concat());
            assert!(head.wrong_as_request().is_some(), "{wrong:?}");
        }
        let late = request(&[&[("x", "1")], &WHOLE[..]].concat());
        assert_eq!(late.wrong_as_request(), Some(PSEUDO_LATE));
        for missing in 0..3 {
            let mut fields = WHOLE.to_vec();
            fields.remove(missing);
            assert!(request(&fields).wrong_as_request().is_some(), "{missing}");
        }
        assert!(
            request(&[(":method", "GET"), (":scheme", "http"), (":path", "")])
                .wrong_as_request()
                .is_some()
        );
        assert!(request(&WHOLE).wrong_as_trailers().is_some());
        let two = [("content-length", "5"), ("content-length", "6")];
        assert!(request(&[&WHOLE[..], &two].concat()).wrong_as_request().is_some());
    }

    #[test]
    fn answers_have_one_status() {
        let answer = |fields: &[(&str, &str)]| {
            let mut reader = BlockReader::new();
            AnswerHead::<()>::read(&mut reader, &block(fields)).unwrap().clone()
        };
        let head = answer(&[(":status", "201"), ("content-length", "0")]);
        assert_eq!((head.status, head.length, head.malformed), (201, Some(0), None));
        assert!(!head.is_trailers() && answer(&[("a", "b")]).is_trailers());
        for wrong in [
            &[(":status", "20")][..],
            &[(":status", "600")],
            &[(":status", "200"), (":status", "200")],
            &[(":method", "GET")],
            &[("a", "b"), (":status", "200")],
        ] {
            assert!(answer(wrong).malformed.is_some(), "{wrong:?}");
        }
    }
}
