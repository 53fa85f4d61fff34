//! Turns the message of a method from JSON into a template (ProtoJSON: names, enumerations, bytes
//! in base64, well-known types), with placeholders in its values.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost_reflect::{DynamicMessage, Kind, MessageDescriptor};
use serde_json::Value;
use weigh_model::protocol::Invalid;
use weigh_protocols::grpc::template::MessageTemplate;

use super::encode::{Encoder, PLACEHOLDERS};
use super::instead::instead;
use super::stand::Stand;
use super::where_wrong::{Path, line_of, wrong_part};

/// Compiles a message. `place` is the file or the key that holds the text. Returns the template,
/// and whether the body is in a field of text.
///
/// # Errors
/// The place, the line, the field, and what to type.
pub(super) fn compile(
    kind: &MessageDescriptor,
    text: &str,
    place: &str,
) -> Result<(MessageTemplate, bool), Invalid> {
    let mut json: Value = serde_json::from_str(text).map_err(|error| {
        let problem = format!("{place}:{}: it is not JSON: {error}", error.line());
        let fix = "type the message as a JSON object, such as {\"name\": \"{body}\"}";
        Invalid::new("grpc.message", problem, fix)
    })?;
    let stand = Stand::unused_in(text);
    let mut path = Path::default();
    Filler { stand, text, place }.fill(kind, &mut json, &mut path)?;
    let message = DynamicMessage::deserialize(kind.clone(), &json).map_err(|_| {
        let (path, said) = wrong_part(kind, &json);
        let line = line_of(text, &path);
        let problem = format!("{place}:{line}: {path} does not fit {}: {said}", kind.full_name());
        Invalid::new("grpc.message", problem, "change the value of this field")
    })?;
    let mut encoder = Encoder { stand, has_text_body: false };
    let parts = encoder.message(&message);
    Ok((MessageTemplate(parts), encoder.has_text_body))
}

/// Replaces placeholders that JSON does not allow at their place.
struct Filler<'t> {
    stand: Stand,
    text: &'t str,
    place: &'t str,
}

impl Filler<'_> {
    fn fill(
        &self,
        message: &MessageDescriptor,
        json: &mut Value,
        path: &mut Path,
    ) -> Result<(), Invalid> {
        if let Some(wrapped) = wrapped(message) {
            return self.fill_value(&wrapped, json, path);
        }
        let Value::Object(map) = json else { return Ok(()) };
        if message.full_name().starts_with("google.protobuf.") {
            return Ok(());
        }
        for (name, value) in map {
            let known = message.get_field_by_json_name(name);
            let known = known.or_else(|| message.get_field_by_name(name));
            path.push(name);
            let Some(field) = known else {
                // Extensions have brackets.
                let is_extension = name.starts_with('[');
                if !is_extension {
                    return Err(self.unknown(message, name, path));
                }
                path.pop();
                continue;
            };
            match (field.is_map(), field.is_list(), value, field.kind()) {
                (true, _, Value::Object(map), Kind::Message(entry)) => {
                    let kind = entry.map_entry_value_field().kind();
                    for (key, value) in map {
                        path.push(key);
                        self.fill_value(&kind, value, path)?;
                        path.pop();
                    }
                }
                (_, true, Value::Array(values), kind) => {
                    for (place, value) in values.iter_mut().enumerate() {
                        path.push_place(place);
                        self.fill_value(&kind, value, path)?;
                        path.pop();
                    }
                }
                (_, _, value, kind) => self.fill_value(&kind, value, path)?,
            }
            path.pop();
        }
        Ok(())
    }

    fn fill_value(&self, kind: &Kind, value: &mut Value, path: &mut Path) -> Result<(), Invalid> {
        match (kind, &*value) {
            (Kind::Message(inner), _) => return self.fill(inner, value, path),
            (Kind::Bytes, Value::String(text)) if has_placeholder(text) => {
                *value = Value::String(STANDARD.encode(text));
            }
            (Kind::String | Kind::Bytes | Kind::Bool | Kind::Enum(_), _) => {}
            (_, Value::String(text)) if text == "{seq}" => *value = self.stand.sequence.into(),
            (_, Value::String(text)) if text == "{client}" => *value = self.stand.client.into(),
            (_, Value::String(text)) if has_placeholder(text) => {
                let line = line_of(self.text, path);
                let problem =
                    format!("{}:{line}: {path} is a number, and {text:?} is none", self.place);
                let fix = "type \"{seq}\" or \"{client}\" alone";
                return Err(Invalid::new("grpc.message", problem, fix));
            }
            _ => {}
        }
        Ok(())
    }

    fn unknown(&self, message: &MessageDescriptor, name: &str, path: &Path) -> Invalid {
        let names = message.fields().map(|field| field.json_name().to_owned()).collect();
        let line = line_of(self.text, path);
        let problem = format!(
            "{}:{line}: {} has no field {name:?} ({path})",
            self.place,
            message.full_name()
        );
        Invalid::new("grpc.message", problem, instead("field", name, names))
    }
}

/// The kind of the value of a wrapper, which stands in JSON for itself.
fn wrapped(message: &MessageDescriptor) -> Option<Kind> {
    let is_wrapper = message.full_name().starts_with("google.protobuf.")
        && message.full_name().ends_with("Value")
        && message.fields().len() == 1
        && message.full_name() != "google.protobuf.ListValue";
    let value = message.get_field_by_name("value")?;
    is_wrapper.then(|| value.kind())
}

fn has_placeholder(text: &str) -> bool {
    PLACEHOLDERS.iter().any(|(word, _)| text.contains(word))
}
