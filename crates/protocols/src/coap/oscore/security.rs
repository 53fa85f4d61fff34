//! The security context of two ends (RFC 8613, section 3): keys and the common IV are derived from
//! a secret that both have, and nonces and authenticated data from what a message says.

use aes::Aes128;
use ccm::Ccm;
use ccm::aead::{AeadInOut, KeyInit};
use ccm::consts::{U8, U13};
use hkdf::Hkdf;
use sha2::Sha256;

use super::cbor::Cbor;
use super::header::{KID_CONTEXT_BYTES_MAX, PartialIv};
use super::id::Id;

/// What both ends know beforehand.
#[derive(Clone, PartialEq, Eq)]
pub struct Secrets {
    /// The master secret.
    pub secret: Vec<u8>,
    /// The master salt; empty for none.
    pub salt: Vec<u8>,
    /// The ID context.
    pub id_context: Option<Vec<u8>>,
}

/// Keys are never printed.
impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secrets(hidden, ID context {:02x?})", self.id_context)
    }
}

/// One end of a security context: AES-CCM-16-64-128, keys by HKDF with SHA-256.
#[derive(Clone)]
pub struct SecurityContext {
    sender_id: Id,
    recipient_id: Id,
    id_context: Option<Vec<u8>>,
    common_iv: [u8; NONCE_BYTES],
    sender_key: [u8; KEY_BYTES],
    recipient_key: [u8; KEY_BYTES],
    sender: Cipher,
    recipient: Cipher,
}

/// Keys are never printed.
impl std::fmt::Debug for SecurityContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SecurityContext({:02x?} to {:02x?})", self.sender_id, self.recipient_id)
    }
}

impl SecurityContext {
    /// Derives the context of the end with `sender_id` (section 3.2.1).
    pub fn derive(secrets: &Secrets, sender_id: Id, recipient_id: Id) -> SecurityContext {
        let id_context = secrets.id_context.as_ref();
        let id_context = id_context.map(|own| own[..own.len().min(KID_CONTEXT_BYTES_MAX)].to_vec());
        let hkdf = Hkdf::<Sha256>::new(Some(&secrets.salt), &secrets.secret);
        let expand = |id: Id, kind: &str, out: &mut [u8]| {
            let info = info(id, id_context.as_deref(), kind, out.len() as u8);
            // It fails only for more than 255 hashes of output.
            let expanded = hkdf.expand(info.bytes(), out);
            debug_assert!(expanded.is_ok(), "16 bytes are fewer than 8,160");
        };
        let (mut sender_key, mut recipient_key) = ([0; KEY_BYTES], [0; KEY_BYTES]);
        let mut common_iv = [0; NONCE_BYTES];
        expand(sender_id, "Key", &mut sender_key);
        expand(recipient_id, "Key", &mut recipient_key);
        expand(Id::default(), "IV", &mut common_iv);
        SecurityContext {
            sender_id,
            recipient_id,
            common_iv,
            sender: Cipher::new(&sender_key.into()),
            recipient: Cipher::new(&recipient_key.into()),
            sender_key,
            recipient_key,
            id_context,
        }
    }

    /// The ID of this end.
    pub fn sender_id(&self) -> Id {
        self.sender_id
    }

    /// The ID of the other end.
    pub fn recipient_id(&self) -> Id {
        self.recipient_id
    }

    /// The ID context.
    pub fn id_context(&self) -> Option<&[u8]> {
        self.id_context.as_deref()
    }

    /// Key of the messages that this end sends.
    pub fn sender_key(&self) -> &[u8; KEY_BYTES] {
        &self.sender_key
    }

    /// Key of the messages that this end receives.
    pub fn recipient_key(&self) -> &[u8; KEY_BYTES] {
        &self.recipient_key
    }

    /// The nonce of the message to which the end with `id` gave this partial IV (section 5.2).
    pub fn nonce(&self, id: Id, partial_iv: PartialIv) -> [u8; NONCE_BYTES] {
        let mut nonce = [0; NONCE_BYTES];
        nonce[0] = id.bytes().len() as u8;
        let (id_end, end) = (NONCE_BYTES - 5, NONCE_BYTES);
        nonce[id_end - id.bytes().len()..id_end].copy_from_slice(id.bytes());
        nonce[end - partial_iv.bytes().len()..].copy_from_slice(partial_iv.bytes());
        nonce.iter_mut().zip(self.common_iv).for_each(|(own, common)| *own ^= common);
        nonce
    }

    /// Encrypts what stands in `text` from `from` on, and appends the tag.
    pub(super) fn seal(
        &self,
        nonce: [u8; NONCE_BYTES],
        aad: &Aad,
        text: &mut Vec<u8>,
        from: usize,
    ) {
        let plain = (&mut text[from..]).into();
        match self.sender.encrypt_inout_detached(&nonce.into(), aad.bytes(), plain) {
            Ok(tag) => text.extend_from_slice(&tag),
            // More than 64 KiB: no datagram is as large. What is not encrypted does not leave.
            Err(_) => text.truncate(from),
        }
    }

    /// Decrypts a ciphertext with its tag in `text`, which is then without the tag; false if it
    /// does not verify.
    pub(super) fn unseal(
        &self,
        nonce: [u8; NONCE_BYTES],
        aad: &Aad,
        text: &mut Vec<u8>,
        from: usize,
    ) -> bool {
        let Some(tag_at) = text.len().checked_sub(TAG_BYTES).filter(|at| *at >= from) else {
            return false;
        };
        let mut tag = [0; TAG_BYTES];
        tag.copy_from_slice(&text[tag_at..]);
        text.truncate(tag_at);
        let cipher = (&mut text[from..]).into();
        let nonce = nonce.into();
        self.recipient.decrypt_inout_detached(&nonce, aad.bytes(), cipher, &tag.into()).is_ok()
    }
}

/// What distinguishes the keys of one secret.
fn info(id: Id, id_context: Option<&[u8]>, kind: &str, length: u8) -> Cbor<INFO_BYTES_MAX> {
    let info = Cbor::new().array(5).string(id.bytes());
    let info = match id_context {
        Some(context) => info.string(context),
        None => info.null(),
    };
    info.small(ALGORITHM).text(kind).small(length)
}

/// The data that a message authenticates besides its plaintext.
#[derive(Debug)]
pub struct Aad(Cbor<AAD_BYTES_MAX>);

impl Aad {
    /// The data of a request and of its responses: the kid and the partial IV of the request
    /// (section 5.4). No option is of class I.
    pub fn of(request_kid: Id, request_piv: PartialIv) -> Aad {
        let external = Cbor::<AAD_BYTES_MAX>::new()
            .array(5)
            .small(OSCORE_VERSION)
            .array(1)
            .small(ALGORITHM)
            .string(request_kid.bytes())
            .string(request_piv.bytes())
            .string(b"");
        // The Enc_structure of COSE (RFC 9052, section 5.3).
        Aad(Cbor::new().array(3).text("Encrypt0").string(b"").string(external.bytes()))
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }
}

type Cipher = Ccm<Aes128, U8, U13>;

/// Bytes of a key of AES-CCM-16-64-128.
pub const KEY_BYTES: usize = 16;

/// Bytes of its nonce.
pub const NONCE_BYTES: usize = 13;

/// Bytes of its tag.
pub(super) const TAG_BYTES: usize = 8;

/// Its number in COSE (RFC 9053, section 4.2).
const ALGORITHM: u8 = 10;

/// Version of OSCORE (section 5.4).
const OSCORE_VERSION: u8 = 1;

/// Array, ID, ID context, algorithm, type and length: 1 + 8 + 34 + 1 + 4 + 1.
const INFO_BYTES_MAX: usize = 64;

/// Array, text, empty string and 1 + 1 + 2 + 8 + 6 + 1 bytes of external data.
const AAD_BYTES_MAX: usize = 48;

#[cfg(test)]
mod tests {
    use super::*;

    /// The values `info` of appendices C.1 to C.3. Tests of the crate have the others.
    #[test]
    fn what_keys_are_made_of_is_that_of_appendix_c() {
        let context = [0x37, 0xcb, 0xf3, 0x21, 0x00, 0x17, 0xa2, 0xd3];
        let of = |id: &[u8], context, kind, length| {
            let info = info(Id::of(id).unwrap(), context, kind, length);
            info.bytes().iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        assert_eq!(of(b"", None, "Key", 16), "8540f60a634b657910");
        assert_eq!(of(b"\x01", None, "Key", 16), "854101f60a634b657910");
        assert_eq!(of(b"\x00", None, "Key", 16), "854100f60a634b657910");
        assert_eq!(of(b"", None, "IV", 13), "8540f60a6249560d");
        let context = Some(&context[..]);
        assert_eq!(of(b"", context, "Key", 16), "85404837cbf3210017a2d30a634b657910");
        assert_eq!(of(b"\x01", context, "Key", 16), "8541014837cbf3210017a2d30a634b657910");
        assert_eq!(of(b"", context, "IV", 13), "85404837cbf3210017a2d30a6249560d");
    }
}
