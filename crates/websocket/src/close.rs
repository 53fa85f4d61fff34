//! Close codes (RFC 6455, section 7.4): which there are, what they are called, and which one a
//! violation gets.

/// Violation of the rules, and the code to close with (RFC 6455, section 7.4.1).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Broken {
    /// 1002 for a violated rule, 1003 for text, 1007 for bytes that are not UTF-8, 1009 for a
    /// message that is too large.
    pub code: u16,
    /// The violated rule.
    pub what: String,
}

impl Broken {
    pub(crate) fn rule(what: impl Into<String>) -> Broken {
        Broken { code: RULE, what: what.into() }
    }
}

/// Reads code and reason of a close frame (RFC 6455, section 5.5.1).
///
/// # Errors
/// Half a code, a code that is never sent, or a reason that is not UTF-8.
pub fn read(payload: &[u8]) -> Result<(Option<u16>, &str), Broken> {
    let Some((code, why)) = payload.split_first_chunk::<2>() else {
        let is_empty = payload.is_empty();
        return if is_empty { Ok((None, "")) } else { Err(Broken::rule("half a close code")) };
    };
    let code = u16::from_be_bytes(*code);
    // Section 7.4: 1004 to 1006 and 1015 are never sent, nor is what is below 1000.
    if !matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) {
        return Err(Broken::rule(format!("{code} is not a close code")));
    }
    let why = std::str::from_utf8(why)
        .map_err(|_| Broken { code: ENCODING, what: "a reason that is not UTF-8".into() })?;
    Ok((Some(code), why))
}

/// The name of a code: RFC 6455, section 7.4.1, and the registry that section 11.7 set up.
pub fn name(code: u16) -> &'static str {
    match code {
        NORMAL => "normal closure",
        GOING_AWAY => "going away",
        RULE => "protocol error",
        TEXT => "unsupported data",
        ENCODING => "invalid payload data",
        1008 => "policy violation",
        TOO_BIG => "message too big",
        1010 => "an extension is missing",
        1011 => "internal error",
        1012 => "service restart",
        TRY_AGAIN_LATER => "try again later",
        1014 => "bad gateway",
        3000..=3999 => "a registered code",
        _ => "a private code",
    }
}

/// Says how the peer closed: `WebSocket close code 1013 (try again later): reason`.
pub fn words(code: Option<u16>, why: &str) -> String {
    match (code, why) {
        (None, _) => "a WebSocket close frame without a code".to_owned(),
        (Some(code), "") => {
            format!("WebSocket close code {code} ({}): it gave no reason", name(code))
        }
        (Some(code), why) => format!("WebSocket close code {code} ({}): {why}", name(code)),
    }
}

/// The payload of a close frame: the code, and as much of the reason as fits (RFC 6455, section
/// 5.5).
pub fn payload(code: u16, why: &str) -> Vec<u8> {
    let end = (0..=why.len().min(REASON_BYTES_MAX)).rev().find(|end| why.is_char_boundary(*end));
    let mut payload = code.to_be_bytes().to_vec();
    payload.extend_from_slice(&why.as_bytes()[..end.unwrap_or(0)]);
    payload
}

/// A control frame has at most 125 bytes, two of which are the code.
const REASON_BYTES_MAX: usize = 123;

/// The usual end.
pub const NORMAL: u16 = 1000;
/// A server that is being shut down.
pub const GOING_AWAY: u16 = 1001;
/// A violated rule.
pub const RULE: u16 = 1002;
/// A kind of data that the receiver does not accept.
pub const TEXT: u16 = 1003;
/// Text that is not UTF-8.
pub const ENCODING: u16 = 1007;
/// A message that the receiver's policy forbids.
pub const POLICY: u16 = 1008;
/// A message above the receiver's limit.
pub const TOO_BIG: u16 = 1009;
/// An overloaded server.
pub const TRY_AGAIN_LATER: u16 = 1013;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_names_and_some_are_never_sent() {
        assert_eq!(
            words(Some(1011), "too busy"),
            "WebSocket close code 1011 (internal error): too busy"
        );
        assert!(words(Some(4000), "").contains("4000 (a private code): it gave no reason"));
        assert!(words(None, "").contains("without a code"));
        assert_eq!(read(b"\x03\xe8done"), Ok((Some(1000), "done")));
        assert_eq!(read(b""), Ok((None, "")));
        for never in [0u16, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65_535] {
            assert_eq!(read(&never.to_be_bytes()).unwrap_err().code, RULE, "{never}");
        }
        assert_eq!(read(b"\x03").unwrap_err().code, RULE);
        assert_eq!(read(&payload(1008, "no")), Ok((Some(1008), "no")));
        let long = payload(1008, &"\u{e4}".repeat(100));
        assert_eq!(long.len(), 2 + 122, "no letter is cut");
        assert!(read(&long).is_ok());
        assert_eq!(read(b"\x03\xe8\xff").unwrap_err().code, ENCODING);
    }
}
