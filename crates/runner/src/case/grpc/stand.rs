//! Numbers that stand for placeholders.

use prost_reflect::Value;
use weigh_protocols::grpc::template::Number;

/// Numbers that stand for those of a message while JSON is read: they are nowhere in its text, and
/// a float holds them exactly.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stand {
    pub(super) sequence: u32,
    pub(super) client: u32,
}

impl Stand {
    pub(super) fn unused_in(text: &str) -> Stand {
        let mut unused = (FIRST_STAND..).filter(|number| !text.contains(&number.to_string()));
        let mut next = || unused.next().unwrap_or(FIRST_STAND);
        Stand { sequence: next(), client: next() }
    }

    /// The number for which a value stands.
    pub(super) fn of(&self, value: &Value) -> Option<Number> {
        let number = match value {
            Value::I32(value) => f64::from(*value),
            Value::U32(value) => f64::from(*value),
            Value::I64(value) => *value as f64,
            Value::U64(value) => *value as f64,
            Value::F32(value) => f64::from(*value),
            Value::F64(value) => *value,
            _ => return None,
        };
        if number == f64::from(self.sequence) {
            Some(Number::Sequence)
        } else if number == f64::from(self.client) {
            Some(Number::Client)
        } else {
            None
        }
    }
}

/// The first number that is tried.
const FIRST_STAND: u32 = 9_000_001;
