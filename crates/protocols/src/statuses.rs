//! Statuses of an answer that confirm a message (RFC 9110, section 15).

use weigh_model::connection::STREAM_ERROR;
use weigh_model::protocol::{ErrorWords, Invalid, Setting, SettingKind};

/// The key that holds them.
pub(crate) const STATUS: Setting = Setting {
    key: "status",
    kind: SettingKind::Text,
    default: "2xx",
    doc: "Statuses that confirm a message, with commas: 2xx, or 200,204,3xx; others are errors.",
};

/// Statuses by their ranges, both ends included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Statuses(Vec<(u16, u16)>);

impl Statuses {
    /// Reads `2xx`, `200,204`; empty is `2xx`. `place` is named in errors.
    pub(crate) fn read(text: &str, place: &str) -> Result<Statuses, Invalid> {
        let text = if text.is_empty() { STATUS.default } else { text };
        let one = |word: &str| -> Option<(u16, u16)> {
            let word = word.trim();
            let range = match word.strip_suffix("xx") {
                Some(class) => {
                    let class: u16 = class.parse().ok()?;
                    (class.checked_mul(100)?, class.checked_mul(100)? + 99)
                }
                None => (word.parse().ok()?, word.parse().ok()?),
            };
            // Interim answers (1xx) are no answers.
            (200..=599).contains(&range.0).then_some(range)
        };
        let ranges = text.split(',').map(one).collect::<Option<Vec<_>>>();
        ranges.map(Statuses).ok_or_else(|| {
            let problem = format!("{text:?} is not a list of statuses");
            Invalid::new(place, problem, "type numbers from 200 to 599, or 2xx: 200,204,3xx")
        })
    }

    /// True if `status` confirms.
    #[inline]
    pub(crate) fn hold(&self, status: u16) -> bool {
        self.0.iter().any(|(low, high)| (*low..=*high).contains(&status))
    }
}

/// A status of an answer in words (RFC 9110, section 15).
pub(crate) fn error(code: u16) -> ErrorWords {
    let advice = match code {
        301 | 302 | 303 | 307 | 308 => {
            "redirects are not followed: type the URL that the server names (curl -i shows it)"
        }
        401 | 403 | 407 => {
            "the server requires other credentials: type --user NAME with WEIGH_PASSWORD, or a \
             header with -H"
        }
        404 | 410 => "there is nothing at this path: check the URL",
        405 | 501 => "the server does not support this method: type --method GET, or another one",
        413 => "the body is too large for the server: type a smaller -s",
        415 => "the server does not support this kind of body: type -H \"content-type: ...\"",
        429 | 503 => {
            "the server refuses load: lower -R or -c, or raise its limit; the times of errors are \
            separate (error_time_ns)"
        }
        500..=599 => {
            "the server failed: see its log; response times do not include errors, whose times are \
            separate (error_time_ns)"
        }
        _ => ErrorWords::ADVICE,
    };
    ErrorWords { name: format!("status {code}"), advice }
}

/// A stream that the server reset ([`STREAM_ERROR`]).
pub(crate) fn stream_error(code: u16) -> Option<ErrorWords> {
    let own = code.checked_sub(STREAM_ERROR).filter(|own| *own < 0x80 - STREAM_ERROR)?;
    let name = format!("a reset of the stream (HTTP/2 error {own:#x})");
    Some(ErrorWords { name, advice: ErrorWords::ADVICE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_and_numbers_are_read() {
        let statuses = Statuses::read("201, 3xx", "http1.status").unwrap();
        for (status, is_held) in [(200, false), (201, true), (300, true), (399, true), (400, false)]
        {
            assert_eq!(statuses.hold(status), is_held, "{status}");
        }
        assert!(Statuses::read("", "p").unwrap().hold(204));
        for text in ["1xx", "600", "ok", "200,", "2x", "99999xx"] {
            let said = Statuses::read(text, "http1.status").unwrap_err().to_string();
            assert!(said.contains("http1.status") && said.contains("2xx"), "{text}: {said}");
        }
    }
}
