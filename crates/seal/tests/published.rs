//! Sizes against published ones: the COSE rows of `data/sealed_payload_overhead.csv`, each cell.

use coset::iana::Algorithm;
use coset::{
    CoseEncrypt, CoseEncrypt0Builder, CoseRecipientBuilder, HeaderBuilder, TaggedCborSerializable,
};
use weigh_model::seal::Cipher;
use weigh_seal::{OpenerKey, PlainPart, Sealing};

const TABLE: &str = include_str!("../../../data/sealed_payload_overhead.csv");

/// An object of ours for so many, without policy and signature.
fn object(payload: usize, recipients: usize) -> Vec<u8> {
    let openers: Vec<OpenerKey> = (0..recipients).map(|_| OpenerKey::random().unwrap()).collect();
    let recipients: Vec<_> = openers.iter().map(OpenerKey::recipient).collect();
    let sealing =
        Sealing { cipher: Cipher::Aes128Gcm, recipients: &recipients, signer: None, policy: None };
    sealing.seal(&[PlainPart { name: "content".into(), content: vec![7; payload] }]).unwrap()
}

/// The content of ours under a key that both ends have.
fn encrypt0(ours: &CoseEncrypt) -> Vec<u8> {
    CoseEncrypt0Builder::new()
        .protected(ours.protected.header.clone())
        .unprotected(ours.unprotected.clone())
        .ciphertext(ours.ciphertext.clone().unwrap())
        .build()
        .to_tagged_vec()
        .unwrap()
}

/// Ours with the content key wrapped under a key that both ends have.
fn shared_key(mut ours: CoseEncrypt) -> Vec<u8> {
    let header = HeaderBuilder::new().algorithm(Algorithm::A128KW).key_id(vec![7; 8]).build();
    let entry = &mut ours.recipients[0];
    let wrapped = entry.ciphertext.clone().unwrap();
    *entry = CoseRecipientBuilder::new().unprotected(header).ciphertext(wrapped).build();
    ours.to_tagged_vec().unwrap()
}

#[test]
fn every_published_size_of_cose_is_met() {
    let mut cells = 0;
    for row in csv::Reader::from_reader(TABLE.as_bytes()).records() {
        let row = row.unwrap();
        let number = |column: usize| row[column].parse::<usize>().unwrap();
        if !row[0].starts_with("COSE") {
            continue;
        }
        let (payload, recipients, overhead) = (number(2), number(3), number(4));
        let whole = object(payload, recipients.max(1));
        let parsed = || CoseEncrypt::from_tagged_slice(&whole).unwrap();
        let made = match &row[1] {
            how if how.starts_with("A128GCM, 12 B IV") => encrypt0(&parsed()),
            how if how.contains("ECDH-ES + A128KW") => whole.clone(),
            how if how.contains("A128KW with shared key") => shared_key(parsed()),
            // A draft, which nothing here makes.
            how if how.contains("HPKE") => continue,
            how => panic!("{how}: which object is that?"),
        };
        assert_eq!(made.len() - payload, overhead, "{row:?}");
        cells += 1;
    }
    assert_eq!(cells, 11, "rows of COSE that were held against an object");
}

/// What the guide says of sizes beyond the published ones.
#[test]
fn the_guides_sizes_are_right() {
    for (payload, frame) in [(1, 40), (256, 42), (65_536, 44)] {
        assert_eq!(object(payload, 1).len() - payload - 84, frame, "{payload} B");
    }
    let opener = OpenerKey::random().unwrap();
    for (cipher, entry) in [(Cipher::Aes256Gcm, 100), (Cipher::ChaCha20Poly1305, 100)] {
        let recipients = [opener.recipient()];
        let sealing = Sealing { cipher, recipients: &recipients, signer: None, policy: None };
        let part = PlainPart { name: "content".into(), content: vec![7] };
        let object = sealing.seal(&[part]).unwrap();
        let seen = weigh_seal::inspect(&object).unwrap();
        assert_eq!(seen.parts[0].recipients_bytes, entry, "{cipher}");
    }
}
