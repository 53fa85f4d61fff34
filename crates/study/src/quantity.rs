//! The quantities of claims: what each name in an expression stands for, of a run, of a search, of
//! published figures or of the audit.

use std::fmt;

use crate::expression::Bound;
use crate::selector::Selector;

/// Source of a name in an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Quantity {
    /// A figure of one cell of a run.
    Cell {
        /// The run's name.
        run: String,
        /// Which figure.
        source: Source,
        /// Which cell.
        at: Selector,
        /// Statistic over its repetitions.
        statistic: Statistic,
        /// Whether it is taken even where the generator was the limit.
        even_limited: bool,
    },
    /// Something about several cells along an axis.
    Along {
        /// The run's name.
        run: String,
        /// Which figure.
        source: Source,
        /// Which cells.
        at: Selector,
        /// The plan key of the axis.
        over: String,
        /// Statistic of them.
        what: Along,
    },
    /// Result of a search.
    Limit {
        /// The run's name.
        run: String,
        /// The figure: `capacity_per_s`.
        name: String,
        /// Which goal; the first if it is not said.
        goal: Option<String>,
        /// Which lane.
        at: Selector,
    },
    /// A figure of a cell with a background over that of the same cell without.
    Interference {
        /// The run's name.
        run: String,
        /// Which figure.
        metric: String,
        /// Which cell, the one with the background.
        at: Selector,
    },
    /// A figure of a real tool.
    Tool {
        /// The run's name: `tools/curl-post`.
        run: String,
        /// Which figure: `cpu_s_per_message`.
        figure: String,
    },
    /// A published figure.
    Published {
        /// Its index among the published figures.
        cell: usize,
    },
    /// Something about a published series.
    PublishedAlong {
        /// Indices of its figures in their order along x.
        cells: Vec<usize>,
        /// Statistic of them.
        what: Along,
    },
    /// Whether the audit finds something.
    Finding {
        /// The rule's code.
        rule: String,
        /// A text in the place.
        place: String,
        /// Whether it was found.
        is_found: bool,
    },
}

/// Which figure of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A metric.
    Metric(String),
    /// A count of the ledger, over all repetitions.
    Ledger(String),
}

/// Statistic over repetitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Statistic {
    /// The arithmetic mean.
    #[default]
    Mean,
    /// Standard deviation over mean.
    Variation,
    /// The smallest.
    Least,
    /// The largest.
    Most,
    /// The standard deviation.
    Deviation,
}

/// Value computed along an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Along {
    /// The rise of the least-squares line.
    Slope,
    /// Its value at 0.
    Intercept,
    /// Pearson's coefficient.
    Correlation,
    /// Where on the axis this comes to hold: between two values of it; infinite where it never
    /// does.
    First(Bound),
    /// A statistic over the figures; of published ones alone.
    Over(Statistic),
}

impl Quantity {
    /// The run that it is about; `None` for what is published.
    pub fn run(&self) -> Option<&str> {
        match self {
            Quantity::Cell { run, .. }
            | Quantity::Along { run, .. }
            | Quantity::Limit { run, .. }
            | Quantity::Tool { run, .. }
            | Quantity::Interference { run, .. } => Some(run),
            _ => None,
        }
    }

    /// The cells of a run that it is about; `None` where it is about none.
    pub(crate) fn at(&self) -> Option<&Selector> {
        match self {
            Quantity::Cell { at, .. }
            | Quantity::Along { at, .. }
            | Quantity::Limit { at, .. }
            | Quantity::Interference { at, .. } => Some(at),
            _ => None,
        }
    }

    /// True where all that is known is that it lies between two bounds: repeating it does not bring
    /// these closer together.
    pub(crate) fn is_bounded(&self) -> bool {
        match self {
            Quantity::Limit { .. } => true,
            Quantity::Along { what, .. } => matches!(what, Along::First(_)),
            _ => false,
        }
    }

    /// True for a figure of the energy model, which no run has measured.
    pub(crate) fn is_modelled(&self) -> bool {
        let (Quantity::Cell { source, .. } | Quantity::Along { source, .. }) = self else {
            return false;
        };
        matches!(source, Source::Metric(name) if name.starts_with("modelled_"))
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Metric(name) => f.write_str(name),
            Source::Ledger(name) => write!(f, "messages counted as {name}"),
        }
    }
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Statistic::Mean => "mean",
            Statistic::Variation => "coefficient of variation",
            Statistic::Least => "least",
            Statistic::Most => "most",
            Statistic::Deviation => "standard deviation",
        })
    }
}

impl fmt::Display for Along {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Along::Slope => f.write_str("slope"),
            Along::Intercept => f.write_str("value at 0"),
            Along::Correlation => f.write_str("correlation"),
            Along::First(bound) => write!(f, "place from which it is {bound}"),
            Along::Over(statistic) => write!(f, "{statistic}"),
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Quantity::Cell { run, source, at, statistic, even_limited } => {
                match statistic {
                    Statistic::Mean => write!(f, "{source} of {run}{at}"),
                    other => write!(f, "{other} of {source} over the repetitions of {run}{at}"),
                }?;
                match even_limited {
                    true => f.write_str(", even if the generator was the limit"),
                    false => Ok(()),
                }
            }
            Quantity::Along { run, source, at, over, what: Along::First(bound) } => {
                write!(f, "{over} from which {source} is {bound}, {run}{at}")
            }
            Quantity::Along { run, source, at, over, what } => {
                write!(f, "{what} of {source} over {over}, {run}{at}")
            }
            Quantity::Limit { run, name, goal, at } => {
                write!(f, "{name} of {run}{at}")?;
                goal.as_ref().map_or(Ok(()), |goal| write!(f, " for {goal}"))
            }
            Quantity::Interference { run, metric, at } => {
                write!(f, "{metric} with the background over without, {run}{at}")
            }
            Quantity::Tool { run, figure } => write!(f, "{figure} of {run}"),
            Quantity::Published { .. } => f.write_str("published figure"),
            Quantity::PublishedAlong { what, .. } => write!(f, "{what} of a published series"),
            Quantity::Finding { rule, place, .. } => {
                write!(f, "1 if the audit finds {rule} in {place}, else 0")
            }
        }
    }
}
