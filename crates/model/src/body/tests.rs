//! Bodies of every source and size, in the clear and sealed.

use super::*;
use crate::mark::{MARK, Reading};

fn body(source: &str, content: &[u8], size: Option<u64>) -> Vec<u8> {
    let source = source.parse().unwrap();
    let composer = Composer::new(&source, content, size.map(Bytes), &MARK, 1_000).unwrap();
    let mut out = b"before".to_vec();
    composer.compose(&MARK, &mut out);
    out.split_off(6)
}

#[test]
fn a_sized_body_has_exactly_its_size_and_its_mark() {
    for size in [44, 64, 1000] {
        let body = body("filler", b"", Some(size));
        assert_eq!(body.len() as u64, size);
        assert_eq!(Mark::read(&body, 7), Reading::Whole(MARK));
    }
}

/// Seals by turning every byte round.
#[derive(Debug)]
struct Turner;

impl Sealer for Turner {
    fn seal(&self, content: &[u8], _: bool, out: &mut Vec<u8>) {
        out.push(b'!');
        out.extend(content.iter().map(|byte| !byte));
    }

    fn object_bytes(&self, content_bytes: usize) -> usize {
        content_bytes + 1
    }

    fn opens(&self, object: &[u8], consumer: u32, _: bool) -> bool {
        consumer == 0 && object.first() == Some(&b'!')
    }
}

/// A sealed body is as much larger as its object is; the mark stands behind that, in the clear.
#[test]
fn a_sealed_body_hides_its_content_and_shows_its_mark() {
    for (source, content, size, bytes) in [
        ("sealed:text:{}", &b""[..], None, 47),
        ("sealed:filler", b"", Some(64), 65),
        ("sealed:filler", b"", Some(44), 45),
        ("sealed:filler", b"", Some(43), 44),
        ("sealed:readings", b"{\"ph\":6.1}", None, 55),
    ] {
        let source: BodySource = source.parse().unwrap();
        let size = size.map(Bytes);
        let composer =
            Composer::sealed(&source, content, size, &MARK, 0, Arc::new(Turner)).unwrap();
        let mut body = Vec::new();
        composer.compose(&MARK, &mut body);
        assert_eq!((body.len(), composer.bytes_max()), (bytes, bytes), "{source}");
        assert_eq!(composer.is_marked(), bytes > 44, "{source}");
        if composer.is_marked() {
            assert_eq!(Mark::read(&body, 7), Reading::Whole(MARK), "{source}");
        }
        let object = &body[..bytes - if composer.is_marked() { MARK_BYTES } else { 0 }];
        assert!(object[0] == b'!' && object[1..].iter().all(|byte| !byte.is_ascii()));
        assert!(composer.opens(&body, 0, &MARK) && !composer.opens(&body, 1, &MARK));
        assert!(!composer.opens(b"", 0, &MARK));
        assert!(Composer::new(&source, content, size, &MARK, 0).is_err());
    }
}

#[test]
fn sealed_sources_lead_back_to_their_words() {
    let parse = |text: &str| text.parse::<BodySource>();
    for text in ["sealed:readings", "sealed,recipients=3,unsigned:template:{seq}"] {
        assert_eq!(parse(text).unwrap().to_string(), text);
    }
    assert_eq!(parse("sealed"), parse("sealed:readings"));
    assert_eq!(parse("sealed:file:a.bin").unwrap().path(), Some("a.bin"));
    for wrong in ["sealed:sealed:filler", "sealed:nothing", "sealed,5:filler", "seal:filler"] {
        let error = parse(wrong).unwrap_err();
        assert!(error.contains(": type "), "{error}");
    }
}

#[test]
fn a_body_too_small_for_the_mark_goes_without() {
    let source = BodySource::Filler;
    let composer = Composer::new(&source, b"", Some(Bytes(43)), &MARK, 0).unwrap();
    assert!(!composer.is_marked());
    assert_eq!(body("filler", b"", Some(43)), vec![b'.'; 43]);
    assert_eq!(body("text:hello", b"", Some(5)), b"hello");
}

#[test]
fn json_stays_json() {
    for (source, content, size) in [
        ("readings", &b"{\"ph\":6.1}\n{\"ph\":6.2}\n"[..], None),
        ("lines:x", b"{}", None),
        ("template:{\"n\":{seq},\"c\":{client},\"t\":{time}}", b"", Some(120)),
    ] {
        let body = body(source, content, size);
        assert_eq!(Mark::read(&body, 7), Reading::Whole(MARK), "{source}");
        let text = String::from_utf8(body).unwrap();
        assert!(size.is_none_or(|size| text.len() as u64 == size), "{text}");
        let value: serde_json::Value = serde_json::from_str(&text).expect(&text);
        assert!(value["mark"].is_string());
    }
}

#[test]
fn templates_are_filled_in() {
    let body = body("template:{seq}/{client}/{time}/{other}", b"", None);
    assert!(body.starts_with(b"12/3/1005/{other}WB1."));
}

#[test]
fn a_size_below_the_template_is_refused_with_the_size_to_type() {
    let source = BodySource::Template("0123456789{seq}".to_owned());
    let error = Composer::new(&source, b"", Some(Bytes(11)), &MARK, 0).unwrap_err();
    assert!(error.contains("12 bytes") && error.contains("-s 56B"), "{error}");
}

#[test]
fn a_placeholder_that_stands_for_nothing_is_found() {
    for (text, unknown) in [
        ("template:{foo}", Some("foo")),
        ("template:{seq} of {sequence}", Some("sequence")),
        ("template:{\"n\":{seq},\"c\":{client},\"t\":{time}}", None),
        ("template:{} { a } {\"a\":{\"b\":1}}", None),
        ("text:{foo}", None),
        ("sealed,recipients=2:template:{foo}", Some("foo")),
    ] {
        let source: BodySource = text.parse().unwrap();
        assert_eq!(source.unknown_placeholder(), unknown, "{text}");
    }
}
