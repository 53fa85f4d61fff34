//! Turns a message with placeholders into a template: parts that are the same in all messages, and
//! places (Protocol Buffers, "Encoding").

use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MapKey, Value};
use weigh_protocols::grpc::template::{Form, Number, Part};

use super::stand::Stand;

/// Makes a template.
pub(super) struct Encoder {
    /// Numbers that stand for those of a message.
    pub(super) stand: Stand,
    /// True once the body is in a field of text.
    pub(super) has_text_body: bool,
}

impl Encoder {
    /// The parts of a message.
    pub(super) fn message(&mut self, message: &DynamicMessage) -> Vec<Part> {
        let mut parts = Parts::default();
        for (field, value) in message.fields() {
            self.field(&field, value, &mut parts);
        }
        for (extension, value) in message.extensions() {
            let tag = extension.number();
            match value {
                Value::List(values) => {
                    values
                        .iter()
                        .for_each(|own| self.single(tag, &extension.kind(), own, &mut parts));
                }
                value => self.single(tag, &extension.kind(), value, &mut parts),
            }
        }
        parts.0
    }

    fn field(&mut self, field: &FieldDescriptor, value: &Value, parts: &mut Parts) {
        let (number, kind) = (field.number(), field.kind());
        match value {
            Value::List(values) if field.is_packed() => {
                let mut inner = Parts::default();
                values.iter().for_each(|value| self.payload(&kind, value, &mut inner));
                parts.tag(number, LENGTH);
                parts.sized(inner);
            }
            Value::List(values) => {
                values.iter().for_each(|value| self.single(number, &kind, value, parts));
            }
            Value::Map(map) => {
                let Some(entry) = kind.as_message() else { return };
                let key_kind = entry.map_entry_key_field().kind();
                let value_kind = entry.map_entry_value_field().kind();
                let mut entries: Vec<(&MapKey, &Value)> = map.iter().collect();
                entries.sort_by(|a, b| a.0.cmp(b.0));
                for (key, value) in entries {
                    let mut inner = Parts::default();
                    self.single(1, &key_kind, &Value::from(key.clone()), &mut inner);
                    self.single(2, &value_kind, value, &mut inner);
                    parts.tag(number, LENGTH);
                    parts.sized(inner);
                }
            }
            Value::Message(message) if field.is_group() => {
                parts.tag(number, GROUP_START);
                let inner = self.message(message);
                inner.into_iter().for_each(|part| parts.push(part));
                parts.tag(number, GROUP_END);
            }
            value => self.single(number, &kind, value, parts),
        }
    }

    /// A field with one value.
    fn single(&mut self, number: u32, kind: &Kind, value: &Value, parts: &mut Parts) {
        parts.tag(number, wire_type(kind));
        self.payload(kind, value, parts);
    }

    fn payload(&mut self, kind: &Kind, value: &Value, parts: &mut Parts) {
        if let Some((number, form)) = self.stand.of(value).zip(form(kind)) {
            return parts.push(Part::Number(number, form));
        }
        match value {
            Value::String(text) => {
                let inner = places(text.as_bytes());
                self.has_text_body |= inner.0.contains(&Part::Body);
                parts.sized(inner);
            }
            Value::Bytes(bytes) => parts.sized(places(bytes)),
            Value::Message(message) => {
                let inner = Parts(self.message(message));
                parts.sized(inner);
            }
            Value::Bool(value) => parts.varint((*value).into()),
            Value::EnumNumber(value) => parts.varint(i64::from(*value) as u64),
            Value::F32(value) => parts.bytes(&value.to_le_bytes()),
            Value::F64(value) => parts.bytes(&value.to_le_bytes()),
            Value::I32(value) => match kind {
                Kind::Sint32 => parts.varint(u64::from(((value << 1) ^ (value >> 31)) as u32)),
                Kind::Sfixed32 => parts.bytes(&value.to_le_bytes()),
                _ => parts.varint(i64::from(*value) as u64),
            },
            Value::I64(value) => match kind {
                Kind::Sint64 => parts.varint(((value << 1) ^ (value >> 63)) as u64),
                Kind::Sfixed64 => parts.bytes(&value.to_le_bytes()),
                _ => parts.varint(*value as u64),
            },
            Value::U32(value) => match kind {
                Kind::Fixed32 => parts.bytes(&value.to_le_bytes()),
                _ => parts.varint((*value).into()),
            },
            Value::U64(value) => match kind {
                Kind::Fixed64 => parts.bytes(&value.to_le_bytes()),
                _ => parts.varint(*value),
            },
            // Lists and maps are not inside of one another.
            Value::List(_) | Value::Map(_) => {}
        }
    }
}

/// Parts in their order; bytes that follow each other are one.
#[derive(Default)]
struct Parts(Vec<Part>);

impl Parts {
    fn push(&mut self, part: Part) {
        match part {
            Part::Bytes(bytes) => self.bytes(&bytes),
            other => self.0.push(other),
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        match self.0.last_mut() {
            _ if bytes.is_empty() => {}
            Some(Part::Bytes(last)) => last.extend_from_slice(bytes),
            _ => self.0.push(Part::Bytes(bytes.to_vec())),
        }
    }

    fn varint(&mut self, value: u64) {
        let mut bytes = Vec::new();
        prost::encoding::encode_varint(value, &mut bytes);
        self.bytes(&bytes);
    }

    fn tag(&mut self, number: u32, wire_type: u64) {
        self.varint(u64::from(number) << 3 | wire_type);
    }

    /// Parts behind their length, which is known if they are only bytes.
    fn sized(&mut self, inner: Parts) {
        match &inner.0[..] {
            [] => self.varint(0),
            [Part::Bytes(bytes)] => {
                self.varint(bytes.len() as u64);
                self.bytes(bytes);
            }
            _ => self.0.push(Part::Sized(inner.0)),
        }
    }
}

/// A text with its placeholders taken apart.
fn places(text: &[u8]) -> Parts {
    let mut parts = Parts::default();
    let mut rest = text;
    'text: while !rest.is_empty() {
        for (word, part) in PLACEHOLDERS {
            if let Some(after) = rest.strip_prefix(word.as_bytes()) {
                parts.push(part);
                rest = after;
                continue 'text;
            }
        }
        parts.bytes(&rest[..1]);
        rest = &rest[1..];
    }
    parts
}

/// Words in texts, and what they stand for.
pub(super) const PLACEHOLDERS: [(&str, Part); 3] = [
    ("{body}", Part::Body),
    ("{seq}", Part::Digits(Number::Sequence)),
    ("{client}", Part::Digits(Number::Client)),
];

fn form(kind: &Kind) -> Option<Form> {
    Some(match kind {
        Kind::Int32 => Form::Varint(31),
        Kind::Uint32 => Form::Varint(32),
        Kind::Int64 | Kind::Uint64 => Form::Varint(63),
        Kind::Sint32 => Form::ZigZag(31),
        Kind::Sint64 => Form::ZigZag(62),
        Kind::Fixed32 => Form::Fixed32(32),
        Kind::Sfixed32 => Form::Fixed32(31),
        Kind::Fixed64 | Kind::Sfixed64 => Form::Fixed64,
        Kind::Float => Form::Float,
        Kind::Double => Form::Double,
        Kind::Bool | Kind::String | Kind::Bytes | Kind::Message(_) | Kind::Enum(_) => return None,
    })
}

fn wire_type(kind: &Kind) -> u64 {
    match kind {
        Kind::Double | Kind::Fixed64 | Kind::Sfixed64 => 1,
        Kind::Float | Kind::Fixed32 | Kind::Sfixed32 => 5,
        Kind::String | Kind::Bytes | Kind::Message(_) => LENGTH,
        _ => 0,
    }
}

const LENGTH: u64 = 2;
const GROUP_START: u64 = 3;
const GROUP_END: u64 = 4;
