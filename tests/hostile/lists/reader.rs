//! Reads a table of kinds.

use crate::kind::{Act, End, Kind, Place};

/// The kinds of `table` in the sections for which `is_own` holds. What is read stays in memory, as
/// the tables do.
///
/// # Panics
/// At a line that is not a kind.
pub fn read(table: &'static str, is_own: impl Fn(&str) -> bool) -> Vec<Kind> {
    let mut kinds = Vec::new();
    let mut is_read = false;
    for line in table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(section) = line.strip_prefix('[') {
            is_read = is_own(section.trim_end_matches(']'));
        } else if is_read {
            let kind = kind(line);
            kinds.push(kind.unwrap_or_else(|| panic!("not a kind: {line}")));
        }
    }
    kinds
}

fn kind(line: &'static str) -> Option<Kind> {
    let (place, rest) = line.split_once(" | ")?;
    let (name, act) = rest.split_once(" | ")?;
    let mut words = Words(act);
    let kind = Kind { name, place: self::place(place.trim())?, act: self::act(&mut words)? };
    words.0.is_empty().then_some(kind)
}

fn place(text: &str) -> Option<Place> {
    let (word, number) = text.split_once(' ').unwrap_or((text, "0"));
    let number = number.parse().ok()?;
    match word {
        "first" => Some(Place::First),
        "at" => Some(Place::At(number)),
        "greeted" => Some(Place::Greeted),
        "eighth" => Some(Place::Eighth(number)),
        "each" => Some(Place::Each),
        "each-greeted" => Some(Place::EachGreeted),
        _ => None,
    }
}

fn act(words: &mut Words) -> Option<Act> {
    Some(match words.word()? {
        "instead" => Act::Instead(words.bytes()?, words.end()?),
        "insert" => Act::Insert(words.bytes()?),
        "flood" => Act::Flood(words.bytes()?, words.number()?, words.end()?),
        "body" => Act::Body(words.bytes()?, words.bytes()?, words.number()?, words.end()?),
        "set" => Act::Set(u8::try_from(words.number()?).ok()?),
        "flip" => Act::Flip(u8::try_from(words.number()?).ok()?),
        "skip" => Act::Skip(words.number()?),
        "twice" => Act::Twice,
        "cut" => Act::Cut(words.end()?),
        "drip" => Act::Drip,
        _ => return None,
    })
}

/// What is left of the words of an act.
struct Words(&'static str);

impl Words {
    fn word(&mut self) -> Option<&'static str> {
        let (word, rest) = self.0.split_once(' ').unwrap_or((self.0, ""));
        self.0 = rest;
        (!word.is_empty()).then_some(word)
    }

    fn number(&mut self) -> Option<usize> {
        self.word()?.parse().ok()
    }

    fn end(&mut self) -> Option<End> {
        Some(match self.word()? {
            "stay" => End::Stay,
            "finish" => End::Finish,
            "reset" => End::Reset,
            "deaf" => End::Deaf,
            _ => return None,
        })
    }

    /// Bytes in quotation marks.
    fn bytes(&mut self) -> Option<&'static [u8]> {
        let mut rest = self.0.strip_prefix('"')?;
        let mut bytes = Vec::new();
        loop {
            let mut letters = rest.chars();
            match letters.next()? {
                '"' => break,
                '\\' => {
                    let byte = match letters.next()? {
                        'x' => {
                            let digits = letters.as_str().get(..2)?;
                            letters = letters.as_str()[2..].chars();
                            u8::from_str_radix(digits, 16).ok()?
                        }
                        '0' => 0,
                        'n' => b'\n',
                        'r' => b'\r',
                        't' => b'\t',
                        other @ ('"' | '\\') => other as u8,
                        _ => return None,
                    };
                    bytes.push(byte);
                }
                letter => bytes.push(u8::try_from(letter).ok()?),
            }
            rest = letters.as_str();
        }
        let after = rest.strip_prefix('"').unwrap_or(rest);
        self.0 = after.strip_prefix(' ').unwrap_or(after);
        Some(bytes.leak())
    }
}

#[test]
fn a_line_is_a_kind() {
    let table = "# a comment\n\n[both]\nat 3   | a name | body \"\\0a\\\"\" \"\\xff\\r\" 5 deaf\n\
                 [servers 5]\nfirst | b | set 255\n";
    let read: Vec<Kind> = read(table, |section| section == "both");
    let [Kind { name, place, act }] = read[..] else { panic!("{read:?}") };
    assert_eq!((name, place), ("a name", Place::At(3)));
    assert_eq!(act, Act::Body(b"\0a\"", b"\xff\r", 5, End::Deaf));
    for line in ["first | a", "first | a | set 256", "first | a | instead \"a", "x | a | drip"] {
        assert!(kind(line).is_none(), "{line}");
    }
}
