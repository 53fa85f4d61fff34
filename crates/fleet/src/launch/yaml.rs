//! YAML, by a serializer that quotes whatever YAML 1.1 or 1.2 would take as something else.

use serde::Serialize;
use weigh_model::protocol::Invalid;

/// Writes a document.
pub(super) fn yaml(document: &impl Serialize) -> Result<String, Invalid> {
    serde_saphyr::to_string(document)
        .map_err(|error| Invalid::new("the document", error.to_string(), "report it"))
}
