//! Rust code as words and signs with their lines, without comments and without code that only
//! tests compile; and the prose in it: string literals and doc comments.

use std::ops::RangeInclusive;

/// A word, a sign, or a literal. `::` is one sign; a string is `""`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    pub text: &'a str,
    /// Counted from 0.
    pub line: usize,
}

impl Token<'_> {
    pub fn is_word(&self) -> bool {
        self.text.starts_with(is_word_part)
    }
}

/// The tokens of what is compiled outside of tests.
pub fn production(code: &str) -> Vec<Token<'_>> {
    let all = tokens(code);
    let mut kept = Vec::with_capacity(all.len());
    let mut at = 0;
    while at < all.len() {
        if is_test_only(&all[at..]) {
            at = end_of_item(&all, at);
        } else {
            kept.push(all[at]);
            at += 1;
        }
    }
    kept
}

/// The lines of what only tests compile.
pub fn test_lines(code: &str) -> Vec<RangeInclusive<usize>> {
    let all = tokens(code);
    let mut found = Vec::new();
    let mut at = 0;
    while at < all.len() {
        if is_test_only(&all[at..]) {
            let end = end_of_item(&all, at);
            let last = all.get(end).map_or(usize::MAX, |next| next.line.saturating_sub(1));
            found.push(all[at].line..=last.max(all[at].line));
            at = end;
        } else {
            at += 1;
        }
    }
    found
}

/// A string literal, or the doc comments of consecutive lines.
pub struct Prose {
    pub text: String,
    /// Of its beginning, counted from 0.
    pub line: usize,
    pub is_doc: bool,
}

/// The prose of a file, tests included.
pub fn prose(code: &str) -> Vec<Prose> {
    let mut found: Vec<Prose> = Vec::new();
    let (mut at, mut line) = (0, 0);
    while at < code.len() {
        let rest = &code[at..];
        let length = length_of_token(rest);
        let text = &rest[..length];
        let doc = text.strip_prefix("///").or_else(|| text.strip_prefix("//!"));
        if let Some(doc) = doc {
            let lines_of = |prose: &Prose| prose.line + prose.text.matches('\n').count();
            match found.last_mut().filter(|last| last.is_doc && lines_of(last) + 1 == line) {
                Some(last) => last.text = format!("{}\n{doc}", last.text),
                None => found.push(Prose { text: doc.to_owned(), line, is_doc: true }),
            }
        } else if text.starts_with('"') || raw_string(text) > 0 {
            let body = text.trim_start_matches(['b', 'r', '#']).trim_end_matches('#');
            let text = body.trim_matches('"').to_owned();
            found.push(Prose { text, line, is_doc: false });
        }
        line += text.matches('\n').count();
        at += length;
    }
    found
}

/// The index behind the bracket that closes the one at `open`.
pub fn behind_bracket(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

fn is_test_only(tokens: &[Token]) -> bool {
    const TEST: &[&str] = &["#", "[", "cfg", "(", "test", ")", "]"];
    const ALL_TEST: &[&str] = &["#", "[", "cfg", "(", "all", "(", "test"];
    let begins = |start: &[&str]| {
        tokens.len() >= start.len() && tokens.iter().zip(start).all(|(is, due)| is.text == *due)
    };
    begins(TEST) || begins(ALL_TEST)
}

/// The index behind the item whose first attribute begins at `at`.
fn end_of_item(tokens: &[Token], mut at: usize) -> usize {
    while tokens.get(at).is_some_and(|token| token.text == "#") {
        at = behind_bracket(tokens, at + 1);
    }
    while at < tokens.len() {
        match tokens[at].text {
            ";" | "," => return at + 1,
            "{" => return behind_bracket(tokens, at),
            "}" => return at,
            "(" | "[" => at = behind_bracket(tokens, at),
            _ => at += 1,
        }
    }
    at
}

fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let (mut at, mut line) = (0, 0);
    while at < code.len() {
        let rest = &code[at..];
        let length = length_of_token(rest);
        let text = &rest[..length];
        let is_literal = text.starts_with('"') || text.starts_with('\'') || raw_string(text) > 0;
        if is_literal && !is_lifetime(text) {
            found.push(Token { text: "\"\"", line });
        } else if !text.starts_with(char::is_whitespace) && !is_comment(text) {
            found.push(Token { text, line });
        }
        line += text.matches('\n').count();
        at += length;
    }
    found
}

fn length_of_token(rest: &str) -> usize {
    let first = rest.chars().next().unwrap_or(' ');
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return length_of_comment(rest);
    }
    let raw = raw_string(rest);
    if raw > 0 {
        return raw;
    }
    if rest.starts_with("::") {
        return 2;
    }
    match first {
        '"' => length_of_string(rest),
        '\'' => length_of_quoted(rest),
        _ if is_word_part(first) => rest.find(|c: char| !is_word_part(c)).unwrap_or(rest.len()),
        _ => first.len_utf8(),
    }
}

fn length_of_comment(rest: &str) -> usize {
    let mut depth = 0_usize;
    let bytes = rest.as_bytes();
    let mut at = 0;
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => depth += 1,
            b"*/" => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn length_of_string(rest: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// A character or a lifetime.
fn length_of_quoted(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some((at, escaped))) => {
            let behind = at + escaped.len_utf8();
            behind + rest[behind..].find('\'').map_or(0, |end| end + 1)
        }
        (_, Some((at, '\''))) => at + 1,
        _ => 1 + rest[1..].find(|c: char| !is_word_part(c)).unwrap_or(rest.len() - 1),
    }
}

/// The length of the raw string that `rest` begins with, or 0.
fn raw_string(rest: &str) -> usize {
    let Some(behind) = rest.strip_prefix('b').unwrap_or(rest).strip_prefix('r') else { return 0 };
    let hashes = behind.len() - behind.trim_start_matches('#').len();
    if !behind[hashes..].starts_with('"') {
        return 0;
    }
    let close = format!("\"{}", "#".repeat(hashes));
    let body = rest.len() - behind.len() + hashes + 1;
    rest[body..].find(&close).map_or(rest.len(), |end| body + end + close.len())
}

fn is_lifetime(text: &str) -> bool {
    text.starts_with('\'') && !(text.len() > 1 && text.ends_with('\''))
}

fn is_comment(text: &str) -> bool {
    text.starts_with("//") || text.starts_with("/*")
}

fn is_word_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[test]
fn tokens_leave_out_comments_tests_and_what_strings_say() {
    let code = r####"
use a::b; // use c;
#[cfg(test)]
mod tests { fn x() { "}" } }
/* fn /* nested */ no() */
fn f<'a>(x: &'a str) -> char { let _ = r#"fn "g"#; '\'' }
#[cfg(test)]
#[path = "x.rs"]
mod other;
fn last() { ('"', b'x') }
"####;
    let found: Vec<&str> = production(code).iter().map(|token| token.text).collect();
    let text = found.join(" ");
    assert_eq!(
        text,
        "use a :: b ; fn f < 'a > ( x : & 'a str ) - > char { let _ = \"\" ; \"\" } \
         fn last ( ) { ( \"\" , b \"\" ) }"
    );
}

#[test]
fn prose_is_literals_and_doc_comments() {
    let code = "//! One\n//! two.\n\n/// Three. // no\nfn f() { g(r#\"a \"b\"#); } // \"c\"\n\
                #[cfg(test)]\nmod t {\n}\n";
    let found: Vec<(String, usize, bool)> =
        prose(code).into_iter().map(|prose| (prose.text, prose.line, prose.is_doc)).collect();
    let due = [(" One\n two.", 0, true), (" Three. // no", 3, true), ("a \"b", 4, false)];
    assert_eq!(found, due.map(|(text, line, is_doc)| (text.to_owned(), line, is_doc)));
    assert_eq!(test_lines(code), [5..=usize::MAX]);
}
