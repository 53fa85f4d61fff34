//! Methods of intervals, next to the figures.

use weigh_stats::Method;

/// Describes the method with this name in the summary, with its source.
pub(crate) fn method(name: &str) -> &'static str {
    if name == crate::summary::modelled::METHOD {
        return MODELLED;
    }
    METHODS.iter().find(|(method, _)| method.name() == name).map_or("", |(_, how)| how)
}

const MODELLED: &str = "draws of the coefficients within the uncertainty of their sources, those \
                        of one file correlated, and Student's t over the repetitions (JCGM \
                        101:2008).";

/// The methods of intervals over repetitions.
const METHODS: &[(Method, &str)] = &[
    (Method::TOverRuns, "each repetition gives one value; n - 1 degrees of freedom."),
    (
        Method::SkewnessCorrectedT,
        "each repetition gives one value; n - 1 degrees of freedom; the side towards the longer \
         tail is lengthened for skewness (N. J. Johnson, 1978).",
    ),
];
