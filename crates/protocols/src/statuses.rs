//! Which statuses of an answer confirm a message (RFC 9110, section 15).

use weigh_model::protocol::{Invalid, Setting, SettingKind};

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
            let problem = format!("{text:?} names no statuses");
            Invalid::new(place, problem, "type numbers from 200 to 599, or 2xx: 200,204,3xx")
        })
    }

    /// True if `status` confirms.
    #[inline]
    pub(crate) fn hold(&self, status: u16) -> bool {
        self.0.iter().any(|(low, high)| (*low..=*high).contains(&status))
    }
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
