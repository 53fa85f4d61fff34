//! Lists of messages in JSON, as a batch brings them to the server and an answer brings them back:
//! a body that is a JSON object or array stands in the list as it is, byte for byte; other text is
//! a JSON string; and binary data is an object with its base64 (RFC 4648, section 4).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

/// Content of an answer to a consumer.
#[derive(Deserialize)]
pub(crate) struct Page<'a> {
    /// The new readings.
    #[serde(borrow)]
    readings: Vec<&'a RawValue>,
    /// Cursor of the next request.
    #[serde(borrow)]
    next: &'a RawValue,
}

impl<'a> Page<'a> {
    /// Reads the body of an answer.
    pub(crate) fn read(body: &'a [u8]) -> Result<Page<'a>, String> {
        serde_json::from_slice(body).map_err(|error| {
            format!("an answer that is not {{\"readings\": [...], \"next\": \"...\"}}: {error}")
        })
    }

    /// Number of messages in it.
    pub(crate) fn len(&self) -> usize {
        self.readings.len()
    }

    /// The next cursor: the text of a string, or a number as written.
    pub(crate) fn next(&self) -> String {
        let text = self.next.get();
        serde_json::from_str(text).unwrap_or_else(|_| text.to_owned())
    }

    /// Passes on every body and returns their total number of bytes.
    pub(crate) fn each(&self, mut take: impl FnMut(&[u8])) -> usize {
        let mut bytes = 0;
        for element in &self.readings {
            with_body(element, |body| {
                bytes += body.len();
                take(body);
            });
        }
        bytes
    }
}

/// Reads the bodies of a batch.
pub(crate) fn each_of_batch(
    batch: &[u8],
    mut take: impl FnMut(&[u8]),
) -> Result<(), serde_json::Error> {
    let elements: Vec<&RawValue> = serde_json::from_slice(batch)?;
    elements.iter().for_each(|element| with_body(element, &mut take));
    Ok(())
}

/// Appends a batch of these bodies.
pub(crate) fn put_batch(out: &mut Vec<u8>, bodies: &mut dyn Iterator<Item = &[u8]>) {
    out.push(b'[');
    for (place, body) in bodies.enumerate() {
        if place > 0 {
            out.push(b',');
        }
        put_element(out, body);
    }
    out.push(b']');
}

/// Appends one body as an element of a list.
pub(crate) fn put_element(out: &mut Vec<u8>, body: &[u8]) {
    let is_bracketed =
        matches!((body.first(), body.last()), (Some(b'{'), Some(b'}')) | (Some(b'['), Some(b']')));
    let text = std::str::from_utf8(body).ok();
    let is_whole = |text| serde_json::from_str::<IgnoredAny>(text).is_ok();
    if is_bracketed && !body.starts_with(BASE64) && text.is_some_and(is_whole) {
        out.extend_from_slice(body);
        return;
    }
    if text.is_some() {
        return put_json_string(out, body);
    }
    out.extend_from_slice(BASE64);
    let start = out.len();
    out.resize(start + body.len().div_ceil(3) * 4, 0);
    let written = STANDARD.encode_slice(body, &mut out[start..]).unwrap_or(0);
    out.truncate(start + written);
    out.extend_from_slice(BASE64_END);
}

/// The body that an element stands for.
fn with_body(element: &RawValue, take: impl FnOnce(&[u8])) {
    let text = element.get();
    if text.starts_with('"')
        && let Ok(body) = serde_json::from_str::<String>(text)
    {
        return take(body.as_bytes());
    }
    let encoded = text.as_bytes().strip_prefix(BASE64);
    if let Some(encoded) = encoded.and_then(|rest| rest.strip_suffix(BASE64_END))
        && let Ok(body) = STANDARD.decode(encoded)
    {
        return take(&body);
    }
    take(text.as_bytes());
}

/// Appends a JSON string (RFC 8259, section 7); invalid UTF-8 in it is replaced.
pub(crate) fn put_json_string(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    for letter in String::from_utf8_lossy(text).chars() {
        match letter {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\0'..='\x1f' => {
                out.extend_from_slice(format!("\\u{:04x}", u32::from(letter)).as_bytes());
            }
            _ => out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out.push(b'"');
}

const BASE64: &[u8] = b"{\"base64\":\"";
const BASE64_END: &[u8] = b"\"}";

#[cfg(test)]
mod tests {
    use super::*;

    const BODIES: [&[u8]; 7] = [
        b"{\"ph\":6.1,\"mark\":\"WB1.x\"}",
        b"[1, 2 ]",
        b"12.50",
        b"say \"ah\"\n\\",
        b"{\"base64\":\"AA==\"}",
        b"{broken}",
        b"\xff\x00binary",
    ];

    #[test]
    fn bodies_come_out_as_they_went_in() {
        let mut batch = Vec::new();
        put_batch(&mut batch, &mut BODIES.into_iter());
        let value: serde_json::Value = serde_json::from_slice(&batch).unwrap();
        assert_eq!(value[0]["ph"], 6.1);
        assert_eq!(value[3], "say \"ah\"\n\\");
        let mut seen: Vec<Vec<u8>> = Vec::new();
        each_of_batch(&batch, |body| seen.push(body.to_vec())).unwrap();
        assert_eq!(seen, BODIES);
    }

    #[test]
    fn pages_of_others_are_read_whatever_their_cursor_and_spaces() {
        for (text, next) in [
            (&b"{\"readings\": [ {\"a\": 1} ,\"x\"], \"next\": \"c/1\"}"[..], "c/1"),
            (b"{\"next\":17,\"count\":2,\"readings\":[{\"a\": 1},\"x\"]}", "17"),
        ] {
            let page = Page::read(text).unwrap();
            assert_eq!((page.len(), &*page.next()), (2, next));
            let mut seen: Vec<Vec<u8>> = Vec::new();
            assert_eq!(page.each(|body| seen.push(body.to_vec())), 9);
            assert_eq!(seen, [&b"{\"a\": 1}"[..], b"x"]);
        }
        for text in [&b""[..], b"[]", b"{\"readings\":[]}", b"{\"readings\":3,\"next\":1}"] {
            assert!(Page::read(text).is_err(), "{}", text.escape_ascii());
        }
    }
}
