//! The definition of a metric.

use super::unit::unit_of;

/// A metric, or a family of metrics whose names have slots: `response_time_ns.{part}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// As in `summary.json`. Its ending is its unit, see [`Metric::unit`].
    pub name: &'static str,
    /// The section of `docs/methodology.md` that lists it.
    pub section: &'static str,
    /// Direction of better values: lower or higher.
    pub better: Better,
    /// The heading of its column in the overview, at most two lines; empty if it has none. The page
    /// and the exports show every metric.
    pub heading: &'static str,
    /// Its definition, in a sentence or two.
    pub what: &'static str,
    /// Method by which it is computed or counted, and the standard.
    pub source: &'static str,
}

/// Direction of better values of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Less is better.
    Lower,
    /// More is better.
    Higher,
    /// It describes the load, the machine or the instrument.
    Neither,
}

impl Metric {
    /// Its unit as in summaries: `ns`, `B/message`; `1` for a plain number or a share.
    pub fn unit(&self) -> &'static str {
        unit_of(self.name)
    }

    /// The first word of its name: `wire`, `response_time_ns`.
    pub fn family(&self) -> &'static str {
        self.name.split('.').next().unwrap_or(self.name)
    }

    /// Its names: one for each statistic that its own name lists (`.{mean|max}`).
    pub fn names(&self) -> Vec<String> {
        let listed = |name: &str| {
            let (before, rest) = name.split_once('{')?;
            let (statistics, after) = rest.split_once('}').filter(|(all, _)| all.contains('|'))?;
            Some(statistics.split('|').map(|one| format!("{before}{one}{after}")).collect())
        };
        listed(self.name).unwrap_or_else(|| vec![self.name.to_owned()])
    }

    /// The recorded time that it is a statistic of: `response_time_ns`.
    pub(super) fn time(&self) -> Option<&'static str> {
        self.name.strip_suffix(".{part}").filter(|time| !time.contains('.'))
    }
}

/// Makes the list: `SECTION { NAME BETTER [HEADING] DEFINITION (SOURCE); }`.
macro_rules! metrics {
    ($($section:literal { $(
        $name:literal $better:ident $([$heading:literal])? $what:literal ($source:literal);
    )* })*) => {
        &[$($(Metric {
            name: $name,
            section: $section,
            better: Better::$better,
            heading: concat!($($heading)?),
            what: $what,
            source: $source,
        },)*)*]
    };
}
