//! What is known of a warning.

use crate::severity::Severity;

/// A warning: the three things that a reader needs, and where to read more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name in records, kebab-case, or the code of a rule.
    pub name: &'static str,
    /// How severely it restricts the use of the result.
    pub severity: Severity,
    /// What was seen; `{}` where a record has a figure.
    pub what: &'static str,
    /// Why it matters for the result.
    pub why: &'static str,
    /// What to type or do.
    pub fix: &'static str,
    /// A page of `docs` that says more.
    pub docs: &'static str,
}

/// Makes the enum [`Warning`](super::Warning), the list of its entries, and the text of each:
/// `VARIANT(FIELD: TYPE, ...) NAME SEVERITY [WHAT, FIGURES] WHY FIX DOCS;`.
macro_rules! warnings {
    ($(
        $variant:ident $(($($field:ident: $kind:ty),*))? $name:literal $severity:ident
        [$what:literal $(, $figure:expr)*] $why:literal $fix:literal $docs:literal;
    )*) => {
        /// A warning with what was seen.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Warning {
            $(#[doc = concat!("`", $name, "`: ", $why, ".")] $variant $(($($kind),*))?,)*
        }

        /// The entries of all warnings, in the order of [`Warning`].
        pub const WARNINGS: &[Entry] = &[$(Entry {
            name: $name,
            severity: Severity::$severity,
            what: $what,
            why: $why,
            fix: $fix,
            docs: $docs,
        },)*];

        impl Warning {
            /// Its place in [`WARNINGS`].
            pub(super) fn place(&self) -> usize {
                enum Place { $($variant,)* }
                (match self { $(Warning::$variant { .. } => Place::$variant,)* }) as usize
            }

            /// What was seen, in words.
            pub(super) fn seen(&self) -> String {
                match self {
                    $(Warning::$variant $(($($field),*))? => {
                        // A text need not have every figure.
                        $($(let _ = $field;)*)?
                        format!($what $(, $figure)*)
                    })*
                }
            }
        }
    };
}
