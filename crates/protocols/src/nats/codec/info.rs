//! INFO and CONNECT: what server and client say about themselves, as JSON.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a server announces. Fields that this client has no use for are ignored, such as
/// `connect_urls`: a load stays with the server it was given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Info {
    /// Unique identifier of the server.
    pub server_id: String,
    /// Its name.
    pub server_name: String,
    /// Its version; natural clients decide by it what they may use.
    pub version: String,
    /// Version of the protocol.
    pub proto: i32,
    /// Version of Go with which it was built; empty for a server without Go.
    pub go: String,
    /// Address at which it listens.
    pub host: String,
    /// Port at which it listens.
    pub port: u16,
    /// Whether it accepts headers.
    pub headers: bool,
    /// Largest payload that it accepts, in bytes.
    pub max_payload: u64,
    /// Whether it has JetStream.
    #[serde(skip_serializing_if = "is_false")]
    pub jetstream: bool,
    /// Whether it requires credentials.
    #[serde(skip_serializing_if = "is_false")]
    pub auth_required: bool,
    /// Whether the connection is to be upgraded to TLS now.
    #[serde(skip_serializing_if = "is_false")]
    pub tls_required: bool,
    /// Whether it is about to shut down (lame duck mode).
    #[serde(rename = "ldm", skip_serializing_if = "is_false")]
    pub is_lame_duck: bool,
}

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Connect {
    /// Whether each line is to be answered by `+OK`.
    pub verbose: bool,
    /// Whether subjects are to be checked strictly.
    pub pedantic: bool,
    /// Whether TLS is required by the client.
    pub tls_required: bool,
    /// User.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pass: Option<String>,
    /// Token, instead of user and password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_token: Option<String>,
    /// Name of the client.
    pub name: String,
    /// Language of the client.
    pub lang: String,
    /// Version of the client.
    pub version: String,
    /// 1 if it accepts an INFO at any time.
    pub protocol: i32,
    /// Whether the server is to send messages back to their own sender, if it subscribes.
    pub echo: bool,
    /// Whether it understands headers.
    pub headers: bool,
    /// Whether a request that has no subscriber is to be answered with status 503.
    pub no_responders: bool,
}

impl Default for Connect {
    fn default() -> Connect {
        Connect {
            verbose: true,
            pedantic: true,
            tls_required: false,
            user: None,
            pass: None,
            auth_token: None,
            name: String::new(),
            lang: String::new(),
            version: String::new(),
            protocol: 0,
            echo: true,
            headers: false,
            no_responders: false,
        }
    }
}

/// Reads JSON in which a `null` means that the field is absent, as servers in Go read it: some
/// clients write all fields.
///
/// # Errors
/// What is not JSON, or has another type.
pub fn from_json<T: DeserializeOwned>(json: &[u8]) -> Result<T, serde_json::Error> {
    let mut value: Value = serde_json::from_slice(json)?;
    remove_nulls(&mut value);
    serde_json::from_value(value)
}

/// JSON is at most as deep as its parser allows, 128 levels.
fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(remove_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_false(flag: &bool) -> bool {
    !*flag
}
