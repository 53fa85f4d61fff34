//! Texts with placeholders: `{port}`, `{dir}`. Braces around anything but a name of lower-case
//! letters and underscores are kept, so a configuration may use them freely.

use std::collections::BTreeMap;

/// Fills in every `{name}`. The error is a name without a value.
pub(crate) fn fill(text: &str, values: &BTreeMap<String, String>) -> Result<String, String> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        filled.push_str(&rest[..open]);
        rest = &rest[open..];
        match name_in_braces(rest) {
            Some(name) => {
                filled.push_str(values.get(name).ok_or_else(|| name.to_owned())?);
                rest = &rest[name.len() + 2..];
            }
            None => {
                filled.push('{');
                rest = &rest[1..];
            }
        }
    }
    filled.push_str(rest);
    Ok(filled)
}

/// The names in a text, in their order.
pub(crate) fn names(text: &str) -> Vec<&str> {
    text.match_indices('{').filter_map(|(at, _)| name_in_braces(&text[at..])).collect()
}

fn name_in_braces(text: &str) -> Option<&str> {
    let name = text.strip_prefix('{')?.split_once('}')?.0;
    let fits = |c: char| c.is_ascii_lowercase() || c == '_';
    (!name.is_empty() && name.chars().all(fits)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_filled_and_other_braces_stay() {
        let values = BTreeMap::from([("port".to_owned(), "7".to_owned())]);
        let text = "http { listen {port}; } {} {{port}} ${A}";
        assert_eq!(fill(text, &values).unwrap(), "http { listen 7; } {} {7} ${A}");
        assert_eq!(fill("{dir}/x", &values), Err("dir".to_owned()));
        assert_eq!(names(text), ["port", "port"]);
        assert_eq!(fill("open {", &values).unwrap(), "open {");
    }
}
