//! Masks secrets in the text of a plan, for errors that show a line: terminals scroll back, and
//! logs are kept.

/// Returns the text with a star for every byte of a secret, so that places stay valid: user and
/// password of a URL, and the value of a key with a password, a key or secret headers.
pub(crate) fn masked(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut is_in_list = false;
    for line in text.split_inclusive('\n') {
        let (key, value) = line.split_once('=').unwrap_or(("", line));
        if is_in_list {
            masked.push_str(&starred(line));
            is_in_list = !line.contains(']');
        } else if is_secret_key(key) {
            masked.push_str(&line[..=key.len()]);
            masked.push_str(&starred(value));
            is_in_list = value.contains('[') && !value.contains(']');
        } else {
            masked.push_str(&without_userinfo(line));
        }
    }
    masked
}

fn is_secret_key(key: &str) -> bool {
    let key = key.trim().trim_end_matches(['"', '\'']);
    SECRET_KEYS.iter().any(|secret| key.ends_with(secret))
}

/// Masks the user information of RFC 3986, 3.2: the part between `//` and `@` in an authority.
fn without_userinfo(line: &str) -> String {
    let mut masked = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find("//") {
        let (before, after) = rest.split_at(at + 2);
        masked.push_str(before);
        let authority = after.find(AUTHORITY_ENDS).unwrap_or(after.len());
        let userinfo = after[..authority].rfind('@').unwrap_or(0);
        masked.push_str(&starred(&after[..userinfo]));
        rest = &after[userinfo..];
    }
    masked + rest
}

/// A star for every byte except line ends.
fn starred(text: &str) -> String {
    text.bytes()
        .map(|byte| if matches!(byte, b'\r' | b'\n') { byte as char } else { '*' })
        .collect()
}

const SECRET_KEYS: [&str; 4] = ["password", "secret_headers", "tls_psk", "oscore_secret"];

const AUTHORITY_ENDS: [char; 7] = ['/', '?', '#', '"', '\'', ' ', '\n'];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_covered_and_nothing_moves() {
        for (text, shown) in [
            (
                "target = \"mqtt://ann:pa:ss@host:1883\"\n",
                "target = \"mqtt://*********@host:1883\"\n",
            ),
            ("mqtt.broker_password = \"é1\"\r\n", "mqtt.broker_password =******\r\n"),
            ("\"http.secret_headers\" = [\"a: b\"]", "\"http.secret_headers\" =*********"),
            ("secret_headers = [\n\"a\",\n]\nx = 1", "secret_headers =**\n****\n*\nx = 1"),
            ("coap.oscore_secret = \"k\"\n", "coap.oscore_secret =****\n"),
            ("# see https://example.org/a@b\n", "# see https://example.org/a@b\n"),
            ("http://a:b@one http://c:d@two", "http://***@one http://***@two"),
        ] {
            assert_eq!(masked(text), shown);
            assert_eq!(masked(text).len(), text.len());
        }
    }
}
