//! What to type instead of a name that is unknown.

use weigh_model::nearest::nearest;

/// What to type instead of `wanted`.
pub(super) fn instead(what: &str, wanted: &str, names: Vec<String>) -> String {
    // The nearest name is looked for in lower case.
    let lower: Vec<String> = names.iter().map(|name| name.to_ascii_lowercase()).collect();
    let near = nearest(wanted, lower.iter().map(String::as_str));
    let near = near.and_then(|near| lower.iter().position(|name| name == near));
    match (near, names.len()) {
        (Some(near), _) => format!("did you mean {}?", names[near]),
        (None, 0) => format!("name a file that defines a {what}"),
        (None, count) if count > NAMES_MAX => {
            format!("type one of {} and {} more", names[..NAMES_MAX].join(", "), count - NAMES_MAX)
        }
        (None, _) => format!("type one of {}", names.join(", ")),
    }
}

/// Names that are listed at most.
const NAMES_MAX: usize = 12;
