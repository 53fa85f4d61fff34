//! OSCORE (RFC 8613): requests and responses of CoAP that are encrypted and authenticated end to
//! end, as values and bytes. Message ID, token and type stay in the clear; code, options and
//! payload are inside, but for those that a proxy needs.

mod cbor;
mod contexts;
mod header;
mod id;
mod keys;
mod message;
mod security;
mod sequences;
mod sessions;
mod window;

pub(super) use contexts::{Contexts, Exchange, Refusal};
pub use header::{Header, PartialIv};
pub use id::{ID_BYTES_MAX, Id};
pub(super) use keys::Keys;
pub use message::{Binding, Nonce, OpenFailure, Scratch, open, put_protected};
pub use security::{Aad, Secrets, SecurityContext};
pub(super) use sessions::{Heard, Session, Sessions};
pub use window::Window;
