//! The definition of a warning.

use crate::severity::Severity;

/// The definition of a warning: its three parts, and where to read more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Name in records, kebab-case, or the code of a rule.
    pub name: &'static str,
    /// Its severity: the restriction on the use of the result.
    pub severity: Severity,
    /// Finding; `{}` for each figure of a record.
    pub what: &'static str,
    /// Reason for which it matters for the result.
    pub why: &'static str,
    /// What to type or do.
    pub fix: &'static str,
    /// A page of `docs` with details.
    pub docs: &'static str,
}

/// Makes the enum [`Warning`](super::Warning), the list of its entries, and the text of each:
/// `VARIANT(FIELD: TYPE, ...) NAME SEVERITY [WHAT, FIGURES] WHY FIX DOCS;`.
macro_rules! warnings {
    ($(
        $variant:ident $(($($field:ident: $kind:ty),*))? $name:literal $severity:ident
        [$what:literal $(, $figure:expr)*] $why:literal $fix:literal $docs:literal;
    )*) => {
        /// A warning with its figures.
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
            /// Its index in [`WARNINGS`].
            pub(super) fn place(&self) -> usize {
                enum Place { $($variant,)* }
                (match self { $(Warning::$variant { .. } => Place::$variant,)* }) as usize
            }

            /// Returns the finding in words.
            pub(super) fn seen(&self) -> String {
                match self {
                    $(Warning::$variant $(($($field),*))? => {
                        // A text need not use every figure.
                        $($(let _ = $field;)*)?
                        format!($what $(, $figure)*)
                    })*
                }
            }
        }
    };
}
