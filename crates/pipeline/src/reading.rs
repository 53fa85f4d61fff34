//! A reading of the pipeline: a JSON object with a sensor, a time and values. Other members are
//! kept and ignored.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::value::RawValue;

/// The members of a reading that the pipeline uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading<'a> {
    /// The sensor, such as `farm1/tank2`.
    pub sensor: Cow<'a, str>,
    /// The time, as in RFC 3339.
    pub time: Cow<'a, str>,
}

impl Reading<'_> {
    /// Parses a body.
    ///
    /// # Errors
    /// Why it is not a reading, with the position in the JSON.
    pub fn parse(body: &[u8]) -> Result<Reading<'_>, String> {
        let written: Written<'_> =
            serde_json::from_slice(body).map_err(|error| format!("not a reading: {error}"))?;
        let Written { sensor, time, values: _ } = written;
        if sensor.is_empty() {
            return Err(
                "not a reading: sensor is empty; type a name such as farm1/tank2".to_owned()
            );
        }
        if let Err(error) = time.parse::<jiff::Timestamp>() {
            return Err(format!(
                "not a reading: time {time:?} is not as in RFC 3339 ({error}); type \
                 2026-01-31T12:00:00Z"
            ));
        }
        Ok(Reading { sensor, time })
    }
}

/// Splits the body of a request: one reading, or an array of them. Each is a part of the body,
/// unchanged.
///
/// # Errors
/// Why it is not a reading; of an array also which element.
pub(crate) fn split(body: &Bytes) -> Result<Vec<Bytes>, String> {
    if body.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'[') {
        Reading::parse(body)?;
        return Ok(vec![body.clone()]);
    }
    let all: Vec<&RawValue> = serde_json::from_slice(body)
        .map_err(|error| format!("not an array of readings: {error}"))?;
    if all.is_empty() {
        return Err("an array without readings: send at least one".to_owned());
    }
    let one = |(number, raw): (usize, &RawValue)| {
        let bytes = raw.get().as_bytes();
        match Reading::parse(bytes) {
            Ok(_) => Ok(body.slice_ref(bytes)),
            Err(reason) => Err(format!("element {number} of the array: {reason}")),
        }
    };
    all.into_iter().enumerate().map(one).collect()
}

/// The object as received; other members are skipped.
#[derive(Deserialize)]
struct Written<'a> {
    #[serde(borrow)]
    sensor: Cow<'a, str>,
    #[serde(borrow)]
    time: Cow<'a, str>,
    #[expect(dead_code, reason = "only that it can be parsed matters")]
    values: Values,
}

/// An object with at least one value; the values are checked and not kept.
struct Values;

/// A number, a string or a Boolean.
struct Scalar;

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Values, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Values;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of values, such as {\"ph\": 6.1}")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Values, A::Error> {
                let mut count = 0u32;
                while let Some((IgnoredAny, Scalar)) = map.next_entry()? {
                    count = count.saturating_add(1);
                }
                if count == 0 {
                    return Err(de::Error::custom("values is empty: a reading has at least one"));
                }
                Ok(Values)
            }
        }
        deserializer.deserialize_map(Members)
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Scalar, D::Error> {
        struct One;
        impl Visitor<'_> for One {
            type Value = Scalar;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, a string, true or false")
            }
            fn visit_bool<E>(self, _value: bool) -> Result<Scalar, E> {
                Ok(Scalar)
            }
            fn visit_i64<E>(self, _value: i64) -> Result<Scalar, E> {
                Ok(Scalar)
            }
            fn visit_u64<E>(self, _value: u64) -> Result<Scalar, E> {
                Ok(Scalar)
            }
            fn visit_f64<E>(self, _value: f64) -> Result<Scalar, E> {
                Ok(Scalar)
            }
            fn visit_str<E>(self, _value: &str) -> Result<Scalar, E> {
                Ok(Scalar)
            }
        }
        deserializer.deserialize_any(One)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str =
        r#"{"sensor": "farm1/tank2", "time": "2026-01-31T12:00:00Z", "values": {"ph": 6.1}}"#;

    #[test]
    fn a_reading_is_read_and_other_members_are_left_alone() {
        let body = GOOD.replace("}}", r#"}, "mark": "WB1.x"}"#);
        for text in [GOOD, &body, &GOOD.replace('Z', "+02:00"), &GOOD.replace("6.1", "\"on\"")] {
            let reading = Reading::parse(text.as_bytes()).expect(text);
            assert_eq!(reading.sensor, "farm1/tank2");
            assert!(matches!(reading.sensor, Cow::Borrowed(_)));
        }
        let escaped = GOOD.replace("tank2", "tank\\u0032");
        assert_eq!(Reading::parse(escaped.as_bytes()).unwrap().sensor, "farm1/tank2");
    }

    #[test]
    fn what_is_no_reading_is_refused_with_the_reason() {
        let not = |text: &str| Reading::parse(text.as_bytes()).unwrap_err();
        assert!(not("").contains("EOF"));
        assert!(not("hello").contains("line 1 column 1"));
        assert!(not("7").contains("struct"));
        assert!(not(&GOOD.replace("sensor", "sender")).contains("missing field `sensor`"));
        assert!(not(&GOOD.replace("farm1/tank2", "")).contains("sensor is empty"));
        assert!(not(&GOOD.replace("2026-01-31T12:00:00Z", "noon")).contains("RFC 3339"));
        assert!(
            not(&GOOD.replace("2026-01-31T12:00:00Z", "2026-02-31T12:00:00Z")).contains("time")
        );
        assert!(not(&GOOD.replace("{\"ph\": 6.1}", "6.1")).contains("an object of values"));
        assert!(not(&GOOD.replace("{\"ph\": 6.1}", "{}")).contains("values is empty"));
        assert!(not(&GOOD.replace("6.1", "[6.1]")).contains("a number, a string, true or false"));
        assert!(not(&GOOD.replace("6.1", "null")).contains("a number, a string, true or false"));
        assert!(not(&format!("{GOOD} {GOOD}")).contains("trailing characters"));
        assert!(not(&GOOD.replace("}}", "}, \"time\": \"x\"}")).contains("duplicate field `time`"));
        assert!(Reading::parse(b"{\"sensor\": \"\xff\"}").is_err());
    }

    #[test]
    fn an_array_is_divided_without_changing_a_byte() {
        let other = GOOD.replace("tank2", "tank3");
        let body = Bytes::from(format!(" [{GOOD} ,\n{other}] "));
        assert_eq!(split(&body).unwrap(), [Bytes::from(GOOD), Bytes::from(other)]);
        let one = Bytes::from(format!("{GOOD}\n"));
        assert_eq!(split(&one).unwrap(), [one]);
        let text = |body: &str| split(&Bytes::from(body.to_owned())).unwrap_err();
        assert!(text("[]").contains("at least one"));
        assert!(text(&format!("[{GOOD},{{}}]")).contains("element 1 of the array"));
        assert!(text(&format!("[{GOOD},")).contains("not an array of readings"));
    }
}
