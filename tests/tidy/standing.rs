//! Findings that still stand. Entries are only deleted; each test says which ones are done.

/// Structs with more fields than the limit.
#[rustfmt::skip]
pub const WIDE_STRUCTS: &[(&str, &str)] = &[
    ("crates/model/src/load.rs", "Load"),
    ("crates/plan/src/load.rs", "LoadWords"),
];

/// Words to avoid (STYLE.md) that still stand below a folder, at most. The numbers only fall; a
/// folder that is not here has none.
#[rustfmt::skip]
pub const WORDS: &[(&str, usize)] = &[
    ("src", 154),
];
