//! Files to audit, and errors of reading them.

use std::fmt;

/// A file to audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its name, for the places of findings.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// Error of a file that cannot be read: what, where, and the fix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Unreadable {
    place: String,
    problem: String,
    fix: String,
}

impl Unreadable {
    /// A problem with a file as a whole.
    pub fn new(place: &str, problem: impl Into<String>, fix: impl Into<String>) -> Unreadable {
        Unreadable { place: place.to_owned(), problem: problem.into(), fix: fix.into() }
    }

    /// A problem in one line of it, from 1.
    pub fn at(
        place: &str,
        line: u64,
        problem: impl Into<String>,
        fix: impl Into<String>,
    ) -> Unreadable {
        Unreadable::new(&format!("{place}, line {line}"), problem, fix)
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unreadable { place, problem, fix } = self;
        write!(f, "{place}: {problem}; {fix}")
    }
}
