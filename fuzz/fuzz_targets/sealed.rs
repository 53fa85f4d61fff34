//! Sealed objects as anybody may send them: looked at, and opened with a key that they are not for.
//! An object of ours that was changed anywhere gives out its own content or nothing.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use weigh_model::seal::Cipher;
use weigh_seal::{OpenerKey, PlainPart, Policy, Sealing, SignatureKey, SignerKey, inspect, open};

struct Sealed {
    opener: OpenerKey,
    signer: SignatureKey,
    signed: Vec<u8>,
    unsigned: Vec<u8>,
}

static SEALED: LazyLock<Sealed> = LazyLock::new(|| {
    let opener = OpenerKey::random().expect("random bytes");
    let signer = SignerKey::random().expect("random bytes");
    let policy = Policy::plain(NOW_S).expect("random bytes");
    let recipients = [opener.recipient()];
    let made = |signer: Option<&SignerKey>| {
        let sealing = Sealing {
            cipher: Cipher::Aes128Gcm,
            recipients: &recipients,
            signer,
            policy: Some(&policy),
        };
        sealing.seal(&parts()).expect("it can be sealed")
    };
    let (signed, unsigned) = (made(Some(&signer)), made(None));
    Sealed { signer: signer.signature_key(), opener, signed, unsigned }
});

fuzz_target!(|data: &[u8]| {
    let sealed = &*SEALED;
    let _ = inspect(data);
    let _ = Policy::from_toml(&String::from_utf8_lossy(data), NOW_S);
    for signer in [None, Some(&sealed.signer)] {
        assert!(open(data, &sealed.opener, signer, NOW_S).is_err());
    }
    let Some((&[choice, high, low, with], more)) = data.split_first_chunk() else { return };
    let (object, signer) = match choice & 1 {
        0 => (&sealed.signed, Some(&sealed.signer)),
        _ => (&sealed.unsigned, None),
    };
    let mut changed = object.clone();
    let place = usize::from(u16::from_be_bytes([high, low])) % changed.len();
    changed[place] ^= with;
    if choice & 2 == 2 {
        changed.splice(place..place, more.iter().copied());
    }
    let _ = inspect(&changed);
    if let Ok(opened) = open(&changed, &sealed.opener, signer, NOW_S) {
        // Whoever takes a recipient's name away keeps a part from him, and no more than that.
        assert!(opened.parts.iter().all(|part| parts().contains(part)));
    }
});

fn parts() -> [PlainPart; 2] {
    [("first", &b"well"[..]), ("second", b"street")]
        .map(|(name, content)| PlainPart { name: name.into(), content: content.into() })
}

const NOW_S: i64 = 1_800_000_000;
