//! HPACK against the examples of RFC 7541 (appendix C), and against itself.

use proptest::collection::vec;
use proptest::prelude::*;

use super::decoder::{BlockReader, Decoder, Flaw, LIST_BYTES_MAX};
use super::encoder::{Encoder, Indexing};

type Field = (String, String);

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(pair).collect()
}

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<Field>, Flaw> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut fields = Vec::new();
    decoder.decode(block, |name, value| fields.push((text(name), text(value))))?;
    Ok(fields)
}

fn fields(all: &[(&str, &str)]) -> Vec<Field> {
    all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// C.2: one field in each representation.
#[test]
fn single_fields() {
    for (hex, name, value) in [
        (
            "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
            "custom-key",
            "custom-header",
        ),
        ("040c 2f73 616d 706c 652f 7061 7468", ":path", "/sample/path"),
        ("1008 7061 7373 776f 7264 0673 6563 7265 74", "password", "secret"),
        ("82", ":method", "GET"),
    ] {
        let decoded = decode(&mut Decoder::new(), &bytes(hex)).unwrap();
        assert_eq!(decoded, fields(&[(name, value)]));
    }
}

const REQUESTS: [&[(&str, &str)]; 3] = [
    &[(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "www.example.com")],
    &[
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "www.example.com"),
        ("cache-control", "no-cache"),
    ],
    &[
        (":method", "GET"),
        (":scheme", "https"),
        (":path", "/index.html"),
        (":authority", "www.example.com"),
        ("custom-key", "custom-value"),
    ],
];

const CODED_REQUESTS: [&str; 3] = [
    "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
    "8286 84be 5886 a8eb 1064 9cbf",
    "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
];

/// C.3 and C.4: requests on one connection, without and with the Huffman code.
#[test]
fn requests_are_decoded() {
    let plain = [
        "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "8286 84be 5808 6e6f 2d63 6163 6865",
        "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
    ];
    for blocks in [plain, CODED_REQUESTS] {
        let mut decoder = Decoder::new();
        for (block, due) in blocks.into_iter().zip(REQUESTS) {
            assert_eq!(decode(&mut decoder, &bytes(block)).unwrap(), fields(due));
        }
    }
}

/// C.4: the encoder writes what the RFC's writes.
#[test]
fn requests_are_encoded() {
    let mut encoder = Encoder::new();
    for (block, request) in CODED_REQUESTS.into_iter().zip(REQUESTS) {
        let mut out = Vec::new();
        for (name, value) in request {
            encoder.put(name.as_bytes(), value.as_bytes(), Indexing::Indexed, &mut out);
        }
        assert_eq!(out, bytes(block));
    }
}

/// C.5 and C.6: answers, with a table of 256 bytes from which entries are evicted.
#[test]
fn answers_are_decoded() {
    let plain = [
        "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 \
         303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 \
         6f6d",
        "4803 3330 37c1 c0bf",
        "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 \
         5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 \
         5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31",
    ];
    let coded = [
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b \
         ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
        "4883 640e ffc1 c0bf",
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad \
         94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 \
         65c0 03ed 4ee5 b106 3d50 07",
    ];
    let date = |second: &str| format!("Mon, 21 Oct 2013 20:13:{second} GMT");
    let (first, third) = (date("21"), date("22"));
    let location = ("location", "https://www.example.com");
    let cookie = "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";
    let due = [
        fields(&[(":status", "302"), ("cache-control", "private"), ("date", &first), location]),
        fields(&[(":status", "307"), ("cache-control", "private"), ("date", &first), location]),
        fields(&[
            (":status", "200"),
            ("cache-control", "private"),
            ("date", &third),
            location,
            ("content-encoding", "gzip"),
            ("set-cookie", cookie),
        ]),
    ];
    for blocks in [plain, coded] {
        let mut decoder = Decoder::new();
        // A size of 256: 31 + 0x61 + (1 << 7).
        assert_eq!(decode(&mut decoder, &[0x3f, 0xe1, 0x01]), Ok(vec![]));
        for (block, due) in blocks.into_iter().zip(&due) {
            assert_eq!(&decode(&mut decoder, &bytes(block)).unwrap(), due);
        }
    }
}

/// Sections 2.3.3, 4.2, 5.1, 5.2, 6.1 and 6.3.
#[test]
fn invalid_blocks_are_refused() {
    for hex in [
        "80",                      // Index 0.
        "be",                      // No dynamic entry yet.
        "ff ff ff ff ff 0f",       // An index that is too large.
        "7e 01 61",                // A name at an index without an entry.
        "82 20",                   // A size behind a field.
        "3f e2 1f",                // 4,097 bytes.
        "40",                      // A literal without a name.
        "40 01 61",                // A literal without a value.
        "40 01 61 02 61",          // A value that is cut off.
        "00 81 ff 01 61",          // Eight bits of padding.
        "00 84 ff ff ff ff 01 61", // The end mark of the Huffman code.
        "3f",                      // An integer that is cut off.
    ] {
        assert!(decode(&mut Decoder::new(), &bytes(hex)).is_err(), "{hex}");
    }
    assert_eq!(decode(&mut Decoder::new(), &bytes("20 3f e1 1f 82")).unwrap().len(), 1);
}

#[test]
fn a_list_of_fields_has_a_limit() {
    let mut encoder = Encoder::new();
    let mut out = Vec::new();
    for _ in 0..LIST_BYTES_MAX / 1000 + 1 {
        encoder.put(b"a", &[b'b'; 1000], Indexing::Plain, &mut out);
    }
    let mut count = 0;
    assert_eq!(Decoder::new().decode(&out, |_, _| count += 1), Ok(false));
    assert_eq!(count, LIST_BYTES_MAX / 1033);
}

/// A block that changes the table means something else the second time.
#[test]
fn a_block_is_known_again_only_while_it_means_the_same() {
    let mut reader = BlockReader::new();
    let mut reads = 0;
    let mut read = |block: &[u8]| {
        let found = reader.read(block, |decoder, block| {
            reads += 1;
            decode(decoder, block)
        });
        (found.unwrap().clone(), reads)
    };
    let (insert, newest) = ([0x40, 1, b'a', 1, b'1'], [0xbe]);
    assert_eq!(read(&insert), (fields(&[("a", "1")]), 1));
    assert_eq!(read(&newest), (fields(&[("a", "1")]), 2));
    assert_eq!(read(&newest), (fields(&[("a", "1")]), 2), "known");
    assert_eq!(read(&[0x82]), (fields(&[(":method", "GET")]), 3));
    assert_eq!(read(&newest).1, 3, "still known");
    assert_eq!(read(&[0x40, 1, b'b', 1, b'2']).1, 4);
    assert_eq!(read(&newest), (fields(&[("b", "2")]), 5), "another entry is the newest");
}

proptest! {
    #[test]
    fn fields_are_decoded_as_they_were_encoded(
        lists in vec(vec(("[a-c]{1,2}", "[x-z]{0,30}", any::<bool>()), 0..8), 1..20),
        limits in vec(prop::option::of(0_u32..5000), 20),
    ) {
        let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new());
        for (list, limit) in lists.iter().zip(limits) {
            if let Some(limit) = limit {
                encoder.limit(limit);
            }
            let mut out = Vec::new();
            encoder.begin(&mut out);
            for (name, value, is_indexed) in list {
                let indexing = if *is_indexed { Indexing::Indexed } else { Indexing::Plain };
                encoder.put(name.as_bytes(), value.as_bytes(), indexing, &mut out);
            }
            let due: Vec<Field> =
                list.iter().map(|(name, value, _)| (name.clone(), value.clone())).collect();
            prop_assert_eq!(decode(&mut decoder, &out).unwrap(), due);
        }
    }

    #[test]
    fn no_block_makes_the_decoder_panic(blocks in vec(vec(any::<u8>(), 0..60), 0..6)) {
        let mut decoder = Decoder::new();
        for block in blocks {
            let _ = decode(&mut decoder, &block);
        }
    }
}
