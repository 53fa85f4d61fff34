//! Sealed objects: encrypted for several participants, bound to a policy, signed by their owner,
//! and independent of transport and storage.
//!
//! All formats are public standards: COSE (RFC 9052, RFC 9053) with ECDH-ES on X25519 and AES key
//! wrap for
//! each recipient, AES-GCM or ChaCha20-Poly1305 for the content, Ed25519 for the signature. The
//! policy is data that a reader evaluates, never code that it runs.
//!
//! ```text
//! COSE_Sign1                       who made it              (if signed)
//!   one part, or a CBOR array of parts
//!     COSE_Encrypt                 protected: algorithm, policy, which part of how many
//!       ciphertext                 the content
//!       recipient, recipient, …    the part's key, wrapped for each participant
//! ```
//!
//! Without an online key service, no format can revoke such an object, count how many times it
//! was opened, or protect its content once a participant has opened it.

mod bodies;
mod content;
mod critical;
mod error;
mod inspect;
mod keys;
mod object;
mod part;
mod policy;
mod policy_file;
mod recipient;

pub use bodies::{BodySealer, Figures};
pub use error::SealError;
pub use inspect::{Inspection, PartSizes, inspect};
pub use keys::{KeyFile, KeyId, OpenerKey, RecipientKey, SignatureKey, SignerKey};
pub use object::{ONLY, Opened, PlainPart, Sealing, open};
pub use policy::{Action, Effect, Participant, Policy, Rule};
/// Holds the text of a private key; the text is wiped from memory when dropped.
pub use zeroize::Zeroizing;
