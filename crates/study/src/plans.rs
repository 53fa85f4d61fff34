//! The plans of a study: every table of a plan file is one, at each scale.

use std::collections::BTreeMap;

use weigh_plan::Resolved;

use crate::scale::{Scale, Way};
use crate::search::SearchAsked;

/// A plan of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyPlan {
    /// The name of its run: `published/E1-http`.
    pub name: String,
    /// The file it is from.
    pub way: Way,
    /// The name of its table: `E1-http`.
    pub table: String,
    /// Needs: names of targets, `wire` or `cgroup`.
    pub needs: Vec<String>,
    /// Plan at each scale.
    pub scales: BTreeMap<Scale, Planned>,
}

/// A plan at one scale.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// The plan, in which nothing is left open. Of a search it holds the lanes at the smallest
    /// load.
    pub resolved: Resolved,
    /// The search; `None` for a matrix.
    pub search: Option<SearchAsked>,
}

impl StudyPlan {
    /// Plan at this scale.
    pub fn at(&self, scale: Scale) -> &Planned {
        &self.scales[&scale]
    }
}

/// A plan needs to listen on the wire, or hosts of its own.
pub const NEEDS_WIRE: &str = "wire";

/// A plan needs groups of processes that bound memory and processor time.
pub const NEEDS_CGROUP: &str = "cgroup";
