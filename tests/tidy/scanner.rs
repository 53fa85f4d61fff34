//! Finds functions, names, words and links in lines. Good enough for code in the form of rustfmt.

use crate::lists::EMPTY_WORDS;

pub struct Function {
    pub name: String,
    pub at: usize,
    pub lines: usize,
}

/// All functions with a body, in rustfmt's form: a body ends at the first closing brace that
/// stands as far in as the function does.
pub fn functions(lines: &[&str]) -> Vec<Function> {
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let trimmed = line.trim_start();
        let Some(name) = declared_name(line).filter(|_| is_function(trimmed)) else { continue };
        let indent = &line[..line.len() - trimmed.len()];
        let head = lines[at..].iter().position(|line| line.ends_with(['{', ';', '}']));
        let Some(head) = head.map(|offset| at + offset) else { continue };
        let end = match lines[head].chars().last() {
            Some('{') => {
                let close = format!("{indent}}}");
                let rest = lines[head..].iter().position(|line| **line == *close);
                rest.map_or(lines.len() - 1, |offset| head + offset)
            }
            Some('}') => head,
            _ => continue,
        };
        found.push(Function { name: name.to_owned(), at, lines: end - at + 1 });
    }
    found
}

pub fn is_function(trimmed: &str) -> bool {
    trimmed.split(['(', '<']).next().is_some_and(|head| head.split(' ').any(|word| word == "fn"))
}

/// The name that a line declares: of a function, a type, a trait, a module, a macro.
pub fn declared_name(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().skip_while(|word| {
        word.starts_with("pub") || ["const", "async", "unsafe", "extern", "default"].contains(word)
    });
    let kind = words.next()?;
    if !["fn", "struct", "enum", "trait", "type", "mod", "union", "macro_rules!"].contains(&kind) {
        return None;
    }
    let name = words.next()?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    Some(&name[..end]).filter(|name| !name.is_empty())
}

/// The first banned word in a name, which may be in snake, kebab or camel case.
pub fn empty_word(name: &str) -> Option<String> {
    let mut words = vec![String::new()];
    for c in name.chars() {
        if c == '_' || c == '-' || c.is_uppercase() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
    }
    words.into_iter().find(|word| EMPTY_WORDS.contains(&word.as_str()))
}

/// Lines of code with their index: no comments, and nothing from the tests at the bottom.
pub fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .take_while(|(_, line)| *line != "#[cfg(test)]")
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// True if `word` stands in `line` on its own, not as a part of a longer name.
pub fn has_word(line: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back().is_some_and(is_part);
        let after = line[at + word.len()..].chars().next().is_some_and(is_part);
        !before && !after
    })
}

/// Targets of links to files, without their anchors.
pub fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| {
        let target = rest.split([')', '#']).next()?;
        let is_elsewhere = target.contains("://") || target.starts_with("mailto:");
        (!is_elsewhere && !target.is_empty()).then_some(target)
    })
}

pub fn words_after<'a>(line: &'a str, marker: &'a str) -> impl Iterator<Item = String> + 'a {
    line.split(marker).skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(rest.len());
        (end > 0).then(|| rest[..end].to_owned())
    })
}

/// What the scanner must see.
#[test]
fn the_scanner_sees_functions_and_names() {
    let lines = [
        "impl A {",
        "    pub fn one() {",
        "        2",
        "    }",
        "    fn two(",
        "        a: u8,",
        "    ) -> u8 {",
        "        a",
        "    }",
        "    fn three();",
        "    fn four() -> u8 { 4 }",
        "}",
    ];
    let found: Vec<(String, usize)> =
        functions(&lines).into_iter().map(|function| (function.name, function.lines)).collect();
    assert_eq!(found, [("one".to_owned(), 3), ("two".to_owned(), 5), ("four".to_owned(), 1)]);
    assert_eq!(declared_name("    pub(crate) async fn read_it<T>("), Some("read_it"));
    assert_eq!(declared_name("let common = 1;"), None);
    assert_eq!(empty_word("HttpHelper"), Some("helper".to_owned()));
    assert_eq!(empty_word("commonly"), None);
    assert!(has_word("use std::net::TcpStream;", "std::net"));
    assert!(!has_word("let tokios = 1;", "tokio"));
}
