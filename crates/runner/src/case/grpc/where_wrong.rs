//! Finds the part of a JSON message that does not fit its definition, and its line in the text.

use std::fmt;

use prost_reflect::{DynamicMessage, Kind, MessageDescriptor};
use serde_json::{Value, json};

/// Path to a part of a message.
#[derive(Clone, Debug, Default)]
pub(super) struct Path(Vec<Step>);

#[derive(Clone, Debug)]
enum Step {
    Name(String),
    Place(usize),
}

impl Path {
    pub(super) fn push(&mut self, name: &str) {
        self.0.push(Step::Name(name.to_owned()));
    }

    pub(super) fn push_place(&mut self, place: usize) {
        self.0.push(Step::Place(place));
    }

    pub(super) fn pop(&mut self) {
        self.0.pop();
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("the message");
        }
        for (place, step) in self.0.iter().enumerate() {
            match step {
                Step::Name(name) if place == 0 => f.write_str(name)?,
                Step::Name(name) => write!(f, ".{name}")?,
                Step::Place(place) => write!(f, "[{place}]")?,
            }
        }
        Ok(())
    }
}

/// The smallest part of `json` that is not a message of this kind, or part of one; and why.
pub(super) fn wrong_part(kind: &MessageDescriptor, json: &Value) -> (Path, String) {
    let mut path = Path::default();
    let said = narrow(kind, json, &mut path);
    (path, said)
}

fn narrow(kind: &MessageDescriptor, json: &Value, path: &mut Path) -> String {
    let whole = said(kind, json).unwrap_or_default();
    let Value::Object(map) = json else { return whole };
    for (name, value) in map {
        let alone = json!({ name: value });
        let Some(alone_said) = said(kind, &alone) else { continue };
        path.push(name);
        let field = kind.get_field_by_json_name(name).or_else(|| kind.get_field_by_name(name));
        let Some(field) = field else { return alone_said };
        match (field.kind(), value) {
            (Kind::Message(inner), Value::Object(_)) if !field.is_map() => {
                return narrow(&inner, value, path);
            }
            (kind_of_values, Value::Array(values)) => {
                for (place, value) in values.iter().enumerate() {
                    let one = json!({ name: [value] });
                    let Some(one_said) = said(kind, &one) else { continue };
                    path.push_place(place);
                    return match (kind_of_values, value) {
                        (Kind::Message(inner), Value::Object(_)) => narrow(&inner, value, path),
                        _ => one_said,
                    };
                }
                return alone_said;
            }
            _ => return alone_said,
        }
    }
    whole
}

/// Why `json` is not a message of this kind; `None` if it is one.
fn said(kind: &MessageDescriptor, json: &Value) -> Option<String> {
    DynamicMessage::deserialize(kind.clone(), json).err().map(|error| error.to_string())
}

/// The line of `text`, from 1, with the last name of a path.
pub(super) fn line_of(text: &str, path: &Path) -> usize {
    let mut from = 0;
    for step in &path.0 {
        let Step::Name(name) = step else { continue };
        let quoted = json!(name).to_string();
        let Some(at) = text[from..].find(&quoted) else { break };
        from += at + quoted.len();
    }
    1 + text[..from].matches('\n').count()
}
