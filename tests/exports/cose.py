"""Sealed objects as other people's programs see them: pycose for COSE, cryptography for the ciphers.

    cose.py open OBJECT PRIVATE-KEY [SIGNER]    writes the content to standard output
    cose.py seal FILE OUT CIPHER PUBLIC-KEY...  seals as anybody could who has read RFC 9052

pycose agrees on keys on the NIST curves alone: X25519 itself is that of cryptography here, and so
is ChaCha20-Poly1305, over the structures that pycose makes. Run by tests/exports/run.
"""

import hashlib
import os
import sys
from pathlib import Path

import cbor2
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.serialization import (
    Encoding, NoEncryption, PrivateFormat, PublicFormat, load_pem_private_key, load_pem_public_key,
)
from pycose import algorithms, headers
from pycose.keys import OKPKey, SymmetricKey
from pycose.keys.curves import X25519
from pycose.messages import CoseMessage, EncMessage
from pycose.messages.recipient import CoseRecipient, KeyAgreementWithKeyWrap


def exchange(_class, _curve, one, other):
    """Of the two keys of an agreement one has its private half."""
    private, public = (one, other) if one.d else (other, one)
    return X25519PrivateKey.from_private_bytes(private.d).exchange(
        X25519PublicKey.from_public_bytes(public.x))


algorithms._EcdhHkdf._ecdh = classmethod(exchange)


class ChaCha20(algorithms.CoseAlgorithm):
    """COSE algorithm 24 (RFC 9053, section 4.3), which pycose has no class for."""

    identifier, fullname = 24, "ChaCha20/Poly1305"

    @classmethod
    def get_key_length(cls):
        return 32

    @classmethod
    def encrypt(cls, key, nonce, data, aad):
        return ChaCha20Poly1305(key.k).encrypt(nonce, data, aad)

    @classmethod
    def decrypt(cls, key, nonce, ciphertext, aad):
        return ChaCha20Poly1305(key.k).decrypt(nonce, ciphertext, aad)


algorithms.CoseAlgorithm.register_attribute()(ChaCha20)
CIPHERS = {
    "aes-128-gcm": (algorithms.A128GCM, algorithms.EcdhEsA128KW),
    "aes-256-gcm": (algorithms.A256GCM, algorithms.EcdhEsA256KW),
    "chacha20-poly1305": (ChaCha20, algorithms.EcdhEsA256KW),
}


def public_key(path):
    raw = load_pem_public_key(Path(path).read_bytes())
    return raw.public_bytes(Encoding.Raw, PublicFormat.Raw)


def key_name(raw):
    return hashlib.sha256(raw).digest()[:8]


def open_object(path, key, signer=None):
    data = Path(path).read_bytes()
    if signer is not None:
        signed = CoseMessage.decode(data)
        name = public_key(signer)
        assert signed.uhdr[headers.KID] == key_name(name), "the signer's name"
        from pycose.keys.curves import Ed25519
        signed.key = OKPKey(crv=Ed25519, x=name)
        assert signed.verify_signature(), "the signature does not hold"
        data = signed.payload
    own = load_pem_private_key(Path(key).read_bytes(), None)
    secret = own.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())
    public = own.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    # Several parts are an array: whoever has a key opens what is for it.
    whole = cbor2.loads(data)
    parts = whole if isinstance(whole, list) else [whole]
    for part in parts:
        message = CoseMessage.decode(cbor2.dumps(part))
        for entry in message.recipients:
            if entry.uhdr[headers.KID] == key_name(public):
                entry.key = OKPKey(crv=X25519, x=public, d=secret)
                sys.stdout.buffer.write(message.decrypt(entry))


def seal_object(source, out, cipher, *keys):
    content, agreement = CIPHERS[cipher]
    secret = os.urandom(content.get_key_length())
    entries = []
    for path in keys:
        public = public_key(path)
        own = X25519PrivateKey.generate()
        own_public = own.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        own_secret = own.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())
        entry = KeyAgreementWithKeyWrap(
            phdr={headers.Algorithm: agreement},
            uhdr={headers.KID: key_name(public),
                  headers.EphemeralKey: OKPKey(crv=X25519, x=own_public)},
            payload=secret,
        )
        entry.key = OKPKey(crv=X25519, x=own_public, d=own_secret)
        entry.local_attrs = {headers.StaticKey: OKPKey(crv=X25519, x=public)}
        entries.append(entry)
    message = EncMessage(
        phdr={headers.Algorithm: content},
        uhdr={headers.IV: os.urandom(12)},
        payload=Path(source).read_bytes(),
        recipients=entries,
    )
    message.key = SymmetricKey(k=secret)
    Path(out).write_bytes(message.encode())


if __name__ == "__main__":
    {"open": open_object, "seal": seal_object}[sys.argv[1]](*sys.argv[2:])
