//! Objects: what opens, what must not, and how many bytes each layer takes.

use weigh_model::seal::Cipher;
use weigh_seal::{
    OpenerKey, PlainPart, Policy, RecipientKey, SealError, Sealing, SignatureKey, SignerKey,
    inspect, open,
};

const NOW_S: i64 = 1_800_000_000;

/// Private keys as `openssl genpkey` writes them, made from a number.
fn private_pem(curve: u8, number: u8) -> String {
    let mut der = vec![0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, curve];
    der.extend([0x04, 0x22, 0x04, 0x20]);
    der.extend([number; 32]);
    pem("PRIVATE KEY", &der)
}

fn pem(label: &str, der: &[u8]) -> String {
    let body = pem_body(der);
    format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
}

fn pem_body(der: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    assert_eq!(der.len() % 3, 0, "these keys need no padding");
    let groups = der.chunks(3).flat_map(|group| {
        let bits = group.iter().fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
        [18, 12, 6, 0].map(|shift| char::from(DIGITS[bits >> shift & 63]))
    });
    groups.collect()
}

fn opener(number: u8) -> OpenerKey {
    OpenerKey::from_pem(&private_pem(X25519, number), "key.pem").unwrap()
}

fn signer(number: u8) -> SignerKey {
    SignerKey::from_pem(&private_pem(ED25519, number), "signer.pem").unwrap()
}

fn recipients(numbers: std::ops::RangeInclusive<u8>) -> Vec<RecipientKey> {
    numbers.map(|number| opener(number).recipient()).collect()
}

fn content(bytes: usize) -> PlainPart {
    PlainPart { name: "reading".into(), content: vec![7; bytes] }
}

fn plain(recipients: &[RecipientKey]) -> Sealing<'_> {
    Sealing { cipher: Cipher::Aes128Gcm, recipients, signer: None, policy: None }
}

/// Methodology 8.2: 40 + 84 n bytes at a content of one byte; 124 to 128 by the content's size.
#[test]
fn an_object_is_as_large_as_the_formula_says() {
    for (recipient_count, bytes, overhead) in
        [(1, 1, 124), (2, 1, 208), (5, 1, 460), (10, 1, 880), (1, 1_000_000, 128)]
    {
        let recipients = recipients(1..=recipient_count);
        let object = plain(&recipients).seal(&[content(bytes)]).unwrap();
        assert_eq!(object.len() - bytes, overhead, "{recipient_count} recipients, {bytes} B");
        let seen = inspect(&object).unwrap();
        let part = &seen.parts[0];
        assert_eq!(part.content_bytes, bytes);
        assert_eq!(part.recipients_bytes, 84 * usize::from(recipient_count));
        assert_eq!(part.policy_bytes, 0);
        assert_eq!(part.bytes, object.len());
    }
}

#[test]
fn every_recipient_opens_it_with_every_cipher_and_nobody_else() {
    let recipients = recipients(1..=3);
    for cipher in Cipher::ALL {
        let sealing = Sealing { cipher, ..plain(&recipients) };
        let object = sealing.seal(&[content(1_000)]).unwrap();
        for number in 1..=3 {
            let opened = open(&object, &opener(number), None, NOW_S).unwrap();
            assert_eq!(opened.parts[0].content, vec![7; 1_000]);
        }
        let stranger = open(&object, &opener(9), None, NOW_S);
        assert!(matches!(stranger, Err(SealError::NotARecipient(_))), "{stranger:?}");
    }
}

/// Whichever byte is changed and wherever the object ends too early, nothing comes out.
#[test]
fn no_changed_byte_changes_the_content() {
    let recipients = recipients(1..=1);
    let policy = Policy::from_toml("purpose = \"test\"", NOW_S).unwrap();
    let (owner, key) = (signer(5), opener(1));
    for by in [None, Some(&owner)] {
        let sealing = Sealing { signer: by, policy: Some(&policy), ..plain(&recipients) };
        let object = sealing.seal(&[content(40)]).unwrap();
        let public = by.map(SignerKey::signature_key);
        let opens = |object: &[u8]| open(object, &key, public.as_ref(), NOW_S);
        assert!(opens(&object).is_ok());
        for place in 0..object.len() {
            assert!(opens(&object[..place]).is_err(), "cut at {place}");
            let bit = place % 8;
            let mut changed = object.clone();
            changed[place] ^= 1 << bit;
            let opened = opens(&changed);
            // Labels that name keys stand outside of what is protected, as COSE has it.
            let same = opened.as_ref().is_ok_and(|opened| opened.parts == [content(40)]);
            assert!(opened.is_err() || same, "bit {bit} of byte {place}: {opened:?}");
        }
    }
}

#[test]
fn only_the_owners_signature_counts() {
    let recipients = recipients(1..=1);
    let (owner, other, key) = (signer(5), signer(6), opener(1));
    let sealing = Sealing { signer: Some(&owner), ..plain(&recipients) };
    let object = sealing.seal(&[content(10)]).unwrap();
    let with = |signer: Option<&SignatureKey>| open(&object, &key, signer, NOW_S);
    assert_eq!(with(Some(&owner.signature_key())).unwrap().signed_by, Some(owner.id()));
    assert!(matches!(with(Some(&other.signature_key())), Err(SealError::Signature(_))));
    assert!(matches!(with(None), Err(SealError::Signature(_))));
    let unsigned = plain(&recipients).seal(&[content(10)]).unwrap();
    let opened = open(&unsigned, &key, Some(&owner.signature_key()), NOW_S);
    assert!(matches!(opened, Err(SealError::Signature(_))));
}

#[test]
fn participants_open_their_parts_and_no_others() {
    let recipients = recipients(1..=2);
    let ids: Vec<String> = recipients.iter().map(|one| one.id().to_string()).collect();
    let text = format!(
        "[[participants]]\nkey = \"{}\"\nrole = \"doctor\"\nactions = [\"open\"]\n\
         [[participants]]\nkey = \"{}\"\nrole = \"office\"\nactions = [\"open\"]\n\
         parts = [\"address\"]\n",
        ids[0], ids[1]
    );
    let policy = Policy::from_toml(&text, NOW_S).unwrap();
    let sealing = Sealing { policy: Some(&policy), ..plain(&recipients) };
    let parts = [part("findings", b"well"), part("address", b"street")];
    let object = sealing.seal(&parts).unwrap();
    let doctor = open(&object, &opener(1), None, NOW_S).unwrap();
    assert_eq!(doctor.parts, parts);
    let office = open(&object, &opener(2), None, NOW_S).unwrap();
    assert_eq!(office.parts, parts[1..]);
    assert_eq!(office.withheld, ["findings"]);
}

#[test]
fn a_part_of_another_object_is_found_out() {
    let other = Policy::plain(NOW_S).unwrap();
    replay(&Policy::plain(NOW_S).unwrap(), &other);
    // The same policy, word for word: what it was sealed with still tells the objects apart.
    replay(&other, &other);
}

fn replay(one: &Policy, two: &Policy) {
    let recipients = recipients(1..=1);
    let seal = |policy: &Policy| {
        let sealing = Sealing { policy: Some(policy), ..plain(&recipients) };
        sealing.seal(&[part("a", b"first"), part("b", b"second")]).unwrap()
    };
    let (one, two) = (seal(one), seal(two));
    // A head of one byte, then two parts of which the second is one byte longer.
    let parts = |object: &[u8]| {
        let (first, second) = object[1..].split_at((object.len() - 2) / 2);
        (first.to_vec(), second.to_vec())
    };
    let ((first, second), (_, foreign)) = (parts(&one), parts(&two));
    let opened = |parts: &[&[u8]]| {
        let object = [&[0x80 + parts.len() as u8], parts.concat().as_slice()].concat();
        open(&object, &opener(1), None, NOW_S)
    };
    assert!(opened(&[&first, &second]).is_ok());
    for wrong in [
        vec![first.as_slice(), &foreign],
        vec![&second, &first],
        vec![&first, &first],
        vec![&first],
        vec![&first, &second, &second],
    ] {
        let opened = opened(&wrong);
        assert!(matches!(opened, Err(SealError::Misplaced { .. })), "{opened:?}");
    }
}

#[test]
fn an_object_opens_only_while_it_is_valid() {
    let recipients = recipients(1..=1);
    let text = "not_before = 2027-01-15T08:00:00Z\nexpires = \"2027-02-01T00:00:00Z\"";
    let policy = Policy::from_toml(text, NOW_S).unwrap();
    let (from, until) = (policy.not_before_s.unwrap(), policy.expires_s.unwrap());
    assert_eq!((from, until), (1_800_000_000, 1_801_440_000));
    let object = Sealing { policy: Some(&policy), ..plain(&recipients) };
    let object = object.seal(&[content(1)]).unwrap();
    let at = |now_s| open(&object, &opener(1), None, now_s);
    assert!(matches!(at(from - 1), Err(SealError::Forbidden(_))));
    assert!(at(from).is_ok());
    assert!(at(until - 1).is_ok());
    assert!(matches!(at(until), Err(SealError::Forbidden(_))));
}

#[test]
fn rules_decide_and_denial_wins() {
    let recipients = recipients(1..=2);
    let ids: Vec<String> = recipients.iter().map(|one| one.id().to_string()).collect();
    let participant = |id: &str, role: &str| {
        format!("[[participants]]\nkey = \"{id}\"\nrole = \"{role}\"\nactions = [\"open\"]\n")
    };
    let people = participant(&ids[0], "reader") + &participant(&ids[1], "guest");
    let opens = |rules: &str| {
        let policy = Policy::from_toml(&format!("{people}{rules}"), NOW_S).unwrap();
        let object = Sealing { policy: Some(&policy), ..plain(&recipients) };
        let object = object.seal(&[content(1)]).unwrap();
        [1, 2].map(|number| open(&object, &opener(number), None, NOW_S).is_ok())
    };
    assert_eq!(opens(""), [true, true]);
    assert_eq!(opens("[[rules]]\neffect = \"allow\"\nwho = \"reader\"\n"), [true, false]);
    let all = "[[rules]]\neffect = \"allow\"\n";
    assert_eq!(
        opens(&format!("{all}[[rules]]\neffect = \"deny\"\nwho = \"guest\"\n")),
        [true, false]
    );
    assert_eq!(opens("[[rules]]\neffect = \"allow\"\nwhere = \"at home\"\n"), [false, false]);
    let deny = "[[rules]]\neffect = \"deny\"\nwho = \"guest\"\nwhere = \"at home\"\n";
    assert_eq!(opens(&format!("{all}{deny}")), [true, false]);
    let later = "[[rules]]\neffect = \"allow\"\nfrom = 2030-01-01T00:00:00Z\n";
    assert_eq!(opens(later), [false, false]);
}

#[test]
fn keys_of_the_wrong_kind_are_named() {
    let told = |error: SealError| error.to_string();
    let signs = told(OpenerKey::from_pem(&private_pem(ED25519, 1), "a.pem").unwrap_err());
    assert!(signs.starts_with("a.pem: an Ed25519 key, which can sign but not open"), "{signs}");
    let opens = told(SignerKey::from_pem(&private_pem(X25519, 1), "b.pem").unwrap_err());
    assert!(opens.starts_with("b.pem: an X25519 key"), "{opens}");
    let private = told(RecipientKey::from_pem(&private_pem(X25519, 1), "c.pem").unwrap_err());
    assert!(private.starts_with("c.pem: found a private key"), "{private}");
    let locked =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let locked = told(OpenerKey::from_pem(locked, "e.pem").unwrap_err());
    assert!(locked.starts_with("e.pem: found a private key with a password"), "{locked}");
    let none = told(RecipientKey::from_pem("hello", "d.pem").unwrap_err());
    assert!(none.starts_with("d.pem: not a public key in PEM"), "{none}");
}

#[test]
fn what_cannot_be_sealed_is_refused() {
    let one = recipients(1..=1);
    let twice = [one.clone(), one.clone()].concat();
    assert!(matches!(plain(&[]).seal(&[content(1)]), Err(SealError::Asked { .. })));
    assert!(matches!(plain(&one).seal(&[]), Err(SealError::Asked { .. })));
    assert!(matches!(plain(&twice).seal(&[content(1)]), Err(SealError::Asked { .. })));
    let two = [part("a", b"1"), part("b", b"2")];
    assert!(matches!(plain(&one).seal(&two), Err(SealError::Asked { .. })));
    let named_twice = [part("a", b"1"), part("a", b"2")];
    let policy = Policy::plain(NOW_S).unwrap();
    let sealing = Sealing { policy: Some(&policy), ..plain(&one) };
    assert!(matches!(sealing.seal(&named_twice), Err(SealError::Asked { .. })));
}

#[test]
fn what_a_policy_cannot_say_is_refused_with_its_place() {
    let person = |key: &str| {
        format!("[[participants]]\nkey = \"{key}\"\nrole = \"r\"\nactions = [\"open\"]\n")
    };
    let twice = person("0123456789abcdef").repeat(2);
    for (text, line, column, said) in [
        ("version = 2", 1, 11, "unknown version 2"),
        ("issuer = \"me\"\npurpos = \"x\"", 2, 1, "unknown field `purpos`"),
        ("expires = \"tomorrow\"", 1, 11, "expires = tomorrow is not a time"),
        ("expires = 2027-01-01", 1, 11, "is not a time"),
        ("object = \"1\"", 1, 10, "is not the ID of an object"),
        ("previous_object_hash = \"ab\"", 1, 24, "is not a SHA-256"),
        ("audit_endpoint = \"here\"", 1, 18, "is not a URL"),
        (&person("me"), 1, 1, "\"me\" is not the ID of a key"),
        (&twice, 5, 1, "is given twice"),
        ("\n[[rules]]\neffect = \"allow\"\nwho = \"nobody\"", 2, 1, "not a participant"),
        ("[[rules]]\neffect = \"perhaps\"", 2, 10, "unknown variant `perhaps`"),
        ("purpose = ", 1, 11, ""),
        (
            "not_before = 2027-01-02T00:00:00Z\nexpires = 2027-01-01T00:00:00Z",
            2,
            11,
            "it expires before it opens",
        ),
    ] {
        match Policy::from_toml(text, NOW_S) {
            Err(SealError::Policy { at, problem, fix }) => {
                assert!(problem.contains(said) && !fix.is_empty(), "{text}: {problem}; {fix}");
                assert_eq!(at, Some((line, column)), "{text}: {problem}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
}

/// A policy must fit the keys and parts that it is sealed with.
#[test]
fn a_policy_that_speaks_of_others_is_refused() {
    let two = recipients(1..=2);
    let person = |place: usize, more: &str| {
        let id = two[place].id();
        format!("[[participants]]\nkey = \"{id}\"\nrole = \"r\"\nactions = [\"open\"]\n{more}")
    };
    let refused = |text: &str, recipients: &[RecipientKey]| {
        let policy = Policy::from_toml(text, NOW_S).unwrap();
        let sealing = Sealing { policy: Some(&policy), ..plain(recipients) };
        sealing.seal(&[content(1)]).unwrap_err().to_string()
    };
    let both = person(0, "") + &person(1, "");
    assert!(refused(&both, &two[..1]).contains("is missing; give it with --to"));
    assert!(refused(&person(0, ""), &two).contains("is not that of a participant"));
    let slip = refused(&person(0, "parts = [\"readin\"]"), &two[..1]);
    assert!(slip.ends_with("an unknown part \"readin\"; type one of its parts: reading"), "{slip}");
    let rule = "[[rules]]\neffect = \"deny\"\nwhat = \"x\"\n";
    assert!(refused(rule, &two).contains("an unknown part \"x\""));
}

fn part(name: &str, content: &[u8]) -> PlainPart {
    PlainPart { name: name.into(), content: content.to_vec() }
}

/// The last byte of the curves' object identifiers (RFC 8410, section 3).
const X25519: u8 = 0x6e;
const ED25519: u8 = 0x70;
