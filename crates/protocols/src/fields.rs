//! Header fields that a user adds to every request, also those of gRPC (metadata): read from the
//! two
//! keys that hold them, and which of them are secrets.

use weigh_model::protocol::{Invalid, Setting, SettingKind};
use weigh_model::trial::Settings;

/// Key of fields that may be recorded.
pub const HEADERS: Setting = Setting {
    key: "headers",
    kind: SettingKind::Text,
    default: "",
    doc: "Further header fields, separated by |: \"X-Site: 7|Accept: */*\"; \\| stands for a |.",
};

/// Key of fields that must not be recorded.
pub const SECRET_HEADERS: Setting = Setting {
    key: "secret_headers",
    kind: SettingKind::Text,
    default: "",
    doc: "Further secret header fields, never printed or recorded: \"X-Api-Key: 7fe1\".",
};

/// True if the value of [`HEADERS`] holds a field that is a secret by its name, so that
/// none of it may be recorded.
pub fn has_secret(headers: &str) -> bool {
    split(headers).iter().any(|field| is_secret(field))
}

/// True for a field of a name that carries secrets (RFC 9110, section 11; RFC 6265, section 4).
pub fn is_secret(field: &str) -> bool {
    let name = field.split(':').next().unwrap_or_default().trim().to_ascii_lowercase();
    SECRET_NAMES.contains(&name.as_str())
}

/// Adds a field to the value `before` of a key.
pub fn joined(before: &str, field: &str) -> String {
    let field = field.replace('|', "\\|");
    if before.trim().is_empty() { field } else { format!("{before}|{field}") }
}

/// The fields of both keys as names and values. `taken` are the names, in lower case, that the
/// protocol sets itself, and what to do instead.
pub(crate) fn read(
    settings: &Settings,
    protocol: &str,
    taken: &[(&str, &str)],
    has_credentials: bool,
) -> Result<Vec<(String, String)>, Invalid> {
    let mut fields = Vec::new();
    for key in [HEADERS.key, SECRET_HEADERS.key] {
        let place = format!("{protocol}.{key}");
        // A secret is not shown even if it is wrong.
        let is_shown = key == HEADERS.key && !has_secret(settings.text(key));
        for text in split(settings.text(key)) {
            let shown = |text: &str| match is_shown {
                true => format!("{text:?}"),
                false => "one of the fields".to_owned(),
            };
            let wrong = |problem: String, fix: &str| Err(Invalid::new(&*place, problem, fix));
            let Some((name, value)) = text.split_once(':') else {
                let fix = "type NAME: VALUE, and separate several by |";
                return wrong(format!("{} is not a header field", shown(&text)), fix);
            };
            let (name, value) = (name.trim(), value.trim());
            if !is_token(name.as_bytes()) {
                let fix = "type letters, digits and hyphens";
                return wrong(format!("{} is not a field name", shown(name)), fix);
            }
            if value.bytes().any(|byte| byte != b'\t' && byte.is_ascii_control()) {
                let fix = "remove line ends and other control characters";
                return wrong(format!("{} has a control character", shown(value)), fix);
            }
            let lower = name.to_ascii_lowercase();
            if let Some((_, fix)) = taken.iter().find(|(own, _)| *own == lower) {
                return wrong(format!("{name} cannot be set"), fix);
            }
            if lower == "authorization" && has_credentials {
                let fix = "remove it or the credentials";
                return wrong("Authorization is set twice".to_owned(), fix);
            }
            fields.push((name.to_owned(), value.to_owned()));
        }
    }
    Ok(fields)
}

/// The fields of one value. A `\|` is a `|` of the field itself.
fn split(text: &str) -> Vec<String> {
    let (mut fields, mut field) = (Vec::new(), String::new());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' if characters.peek() == Some(&'|') => field.extend(characters.next()),
            '|' => fields.push(std::mem::take(&mut field)),
            other => field.push(other),
        }
    }
    fields.push(field);
    fields.retain(|field| !field.trim().is_empty());
    fields
}

/// Characters of a field name (RFC 9110, section 5.6.2).
pub(crate) fn is_token(text: &[u8]) -> bool {
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !text.is_empty() && text.iter().all(is_token)
}

/// Fields whose values are credentials.
const SECRET_NAMES: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "set-cookie"];

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: &[Setting] = &[HEADERS, SECRET_HEADERS];

    fn of(headers: &str, secret: &str) -> Result<Vec<(String, String)>, Invalid> {
        let given = [("headers", headers), ("secret_headers", secret)];
        let settings = Settings::new("http1", KEYS, given).unwrap();
        read(&settings, "http1", &[("host", "it is taken from the URL")], true)
    }

    #[test]
    fn fields_of_both_keys_are_read() {
        let value = joined(&joined("", "X-Site: a|b"), "Accept: */*");
        assert_eq!(value, "X-Site: a\\|b|Accept: */*");
        let fields = of(&value, "X-Api-Key: 7fe1").unwrap();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let all = [pair("X-Site", "a|b"), pair("Accept", "*/*"), pair("X-Api-Key", "7fe1")];
        assert_eq!(fields, all);
        assert_eq!(of("", "").unwrap(), []);
    }

    #[test]
    fn secrets_are_known_by_their_names() {
        assert!(has_secret("X: 1|authorization: Bearer x") && has_secret("Cookie: a=b"));
        assert!(!has_secret("X-Authorization-Kind: 1|Accept: a") && !has_secret(""));
    }

    #[test]
    fn what_is_wrong_is_named_and_no_secret_is_shown() {
        for (headers, told) in [
            ("x", "\"x\" is not a header field"),
            ("a b: c", "field name"),
            ("Host: x", "cannot be set"),
            ("X: a\u{1}b", "control character"),
        ] {
            assert!(of(headers, "").unwrap_err().to_string().contains(told), "{headers}");
        }
        for secret in ["hush-hush", "a hush-hush: c", "X: hush-hush\u{1}"] {
            let said = of("", secret).unwrap_err().to_string();
            assert!(said.contains("secret_headers") && !said.contains("hush"), "{said}");
        }
        assert!(of("authorization: Basic x", "").unwrap_err().to_string().contains("twice"));
    }
}
