//! The registry of protocols: one folder and one line each.

use weigh_model::Protocol;
use weigh_model::protocol::Invalid;

pub mod census;
pub mod http1;
pub mod mqtt;
pub mod tcp;

/// Every protocol there is, in the order they are listed to a user.
pub static PROTOCOLS: &[&dyn Protocol] = &[&mqtt::Mqtt, &http1::Http1, &tcp::Tcp];

/// The protocol of this name or alias, in any case.
///
/// # Errors
/// If there is none; the error proposes the nearest name.
pub fn find(name: &str) -> Result<&'static dyn Protocol, Invalid> {
    let wanted = name.to_ascii_lowercase();
    let known = |protocol: &&&'static dyn Protocol| names_of(**protocol).any(|own| own == wanted);
    PROTOCOLS.iter().find(known).copied().ok_or_else(|| unknown(name, &wanted))
}

/// The protocol whose URLs start with this scheme.
pub fn find_by_scheme(scheme: &str) -> Option<&'static dyn Protocol> {
    PROTOCOLS.iter().find(|protocol| protocol.scheme() == scheme).copied()
}

fn names_of(protocol: &dyn Protocol) -> impl Iterator<Item = &'static str> {
    std::iter::once(protocol.name()).chain(protocol.aliases().iter().copied())
}

fn unknown(name: &str, wanted: &str) -> Invalid {
    let nearest = nearest(wanted, PROTOCOLS.iter().flat_map(|protocol| names_of(*protocol)));
    let all: Vec<&str> = PROTOCOLS.iter().map(|protocol| protocol.name()).collect();
    let mend = match nearest {
        Some(own) => format!("did you mean {own}? There are: {}", all.join(", ")),
        None => format!("type one of {}", all.join(", ")),
    };
    Invalid::new("protocol", format!("{name:?} is not known"), mend)
}

/// The one of `names` that `wanted` may be a misspelling of.
pub fn nearest<'n>(wanted: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let (distance, name) = names.map(|name| (edit_distance(name, wanted), name)).min()?;
    (distance <= TYPO_EDITS_MAX).then_some(name)
}

/// Levenshtein's distance: the fewest insertions, deletions and substitutions.
fn edit_distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, from) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, to) in right.iter().enumerate() {
            let substituted = diagonal + usize::from(from != *to);
            diagonal = row[column + 1];
            row[column + 1] = substituted.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}

/// Edits within which a name counts as a slip of the fingers.
const TYPO_EDITS_MAX: usize = 2;
