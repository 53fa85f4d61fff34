//! Bodies that a server has parsed and serialised again in transit.

use crate::body::Composer;
use crate::mark::{Mark, Reading};

impl Composer {
    /// Reads a body that a server may have parsed and serialised again: if it is the same JSON
    /// value as the message that its mark names, it is that message, whatever happened to its
    /// spaces, its numbers and the order of its keys.
    pub fn read(&self, body: &[u8]) -> Reading {
        let value = |text: &[u8]| serde_json::from_slice::<serde_json::Value>(text).ok();
        let reading = Mark::read_any(body);
        if matches!(reading, Reading::Whole(_)) {
            return reading;
        }
        let Some(seen) = value(body) else { return reading };
        let text = seen.get(JSON_MARK_KEY).and_then(|mark| mark.as_str()).unwrap_or_default();
        let Reading::Corrupt(Some(mark)) = Mark::read_any(text.as_bytes()) else { return reading };
        let mut own = Vec::new();
        self.compose(&mark, &mut own);
        if value(&own).is_some_and(|own| own == seen) { Reading::Whole(mark) } else { reading }
    }
}

/// The key of the mark in a JSON object.
const JSON_MARK_KEY: &str = "mark";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mark::MARK;

    #[test]
    fn a_body_that_was_written_anew_means_the_same() {
        let content = b"{\"ph\":6.10,\"at\":\"a b\"}\n";
        let source = "lines:x".parse().unwrap();
        let composer = Composer::new(&source, content, None, &MARK, 0).unwrap();
        let mut whole = Vec::new();
        composer.compose(&MARK, &mut whole);
        let value: serde_json::Value = serde_json::from_slice(&whole).unwrap();
        let anew = serde_json::to_vec_pretty(&value).unwrap();
        assert_eq!(Mark::read_any(&anew), Reading::Foreign);
        assert_eq!(composer.read(&anew), Reading::Whole(MARK));
        assert_eq!(composer.read(&whole), Reading::Whole(MARK));
        // With a value changed it is not a message of Weighbridge.
        let text = String::from_utf8(anew).unwrap();
        assert_eq!(composer.read(text.replace("6.1", "6.2").as_bytes()), Reading::Foreign);
        let damaged = String::from_utf8(whole).unwrap().replace("6.10", "6.20");
        assert_eq!(composer.read(damaged.as_bytes()), Reading::Corrupt(Some(MARK)));
    }
}
