//! The axis of a search, its ends and its resolution: loads are on a grid, so that "the same load"
//! is the same for every goal.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use weigh_model::protocol::Invalid;

/// The quantity that is increased until the target cannot keep up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AxisKind {
    /// Messages per second of all clients together.
    Rate,
    /// Producing connections.
    Connections,
    /// Messages of one burst.
    Burst,
    /// Consuming connections.
    Subscribers,
    /// Bytes of one message.
    MessageSize,
}

impl AxisKind {
    /// All axes, in the order they are listed to a user.
    pub const ALL: [AxisKind; 5] = [
        AxisKind::Rate,
        AxisKind::Connections,
        AxisKind::Burst,
        AxisKind::Subscribers,
        AxisKind::MessageSize,
    ];

    /// Name in plan and command line.
    pub fn name(self) -> &'static str {
        match self {
            AxisKind::Rate => "rate",
            AxisKind::Connections => "connections",
            AxisKind::Burst => "burst",
            AxisKind::Subscribers => "subscribers",
            AxisKind::MessageSize => "message-size",
        }
    }

    /// Text after a load, with a space if needed.
    pub fn unit(self) -> &'static str {
        match self {
            AxisKind::Rate => "/s",
            AxisKind::Connections => " connections",
            AxisKind::Burst => " messages",
            AxisKind::Subscribers => " subscribers",
            AxisKind::MessageSize => "B",
        }
    }

    /// Whether only whole loads exist.
    pub fn is_whole(self) -> bool {
        self != AxisKind::Rate
    }
}

impl fmt::Display for AxisKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for AxisKind {
    type Err = String;
    fn from_str(text: &str) -> Result<AxisKind, String> {
        AxisKind::ALL.into_iter().find(|kind| kind.name() == text).ok_or_else(|| {
            let names = AxisKind::ALL.map(AxisKind::name).join(", ");
            format!("unknown axis of a limit {text:?}: type one of {names}")
        })
    }
}

/// An axis with its ends and its grid: multiples of the granularity, ends included. Written and
/// read as kind, min, max and granularity.
///
/// # Examples
///
/// ```
/// use weigh_limit::{Axis, AxisKind};
///
/// let axis = Axis::new(AxisKind::Connections, 1.0, 1000.0, 1.0)?;
/// assert_eq!((axis.min(), axis.max()), (1.0, 1000.0));
/// # Ok::<(), weigh_model::protocol::Invalid>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "Ends", try_from = "Ends")]
pub struct Axis {
    kind: AxisKind,
    granularity: f64,
    first: u64,
    last: u64,
}

/// A load as a number of grid steps from 0: exact, and with an order.
pub(crate) type Step = u64;

impl Axis {
    /// An axis from `min` to `max`, both above 0 and in the axis's unit, in steps of
    /// `granularity`. An end between two grid points moves inwards. The draft recommends a minimum
    /// large enough for at least one message in the shortest trial (section 4.6.8, "Min Load").
    ///
    /// # Errors
    /// If there are no two loads on the axis, or an end or the step is not usable.
    pub fn new(kind: AxisKind, min: f64, max: f64, granularity: f64) -> Result<Axis, Invalid> {
        let place = |end: &str| format!("limit.{kind}.{end}");
        if !(granularity.is_finite() && granularity > 0.0) {
            let fix = "give a positive step, such as 1";
            let problem = format!("loads cannot be {granularity} apart");
            return Err(Invalid::new(place("granularity"), problem, fix));
        }
        if kind.is_whole() && granularity.fract() != 0.0 {
            let problem = format!("{granularity} of{} is not a step of whole loads", kind.unit());
            return Err(Invalid::new(place("granularity"), problem, "give a whole number"));
        }
        if !(min.is_finite() && min > 0.0) {
            let problem = format!("cannot begin with a load of {min}");
            return Err(Invalid::new(place("min"), problem, "give one above 0"));
        }
        if !(max.is_finite() && max / granularity < STEPS_MAX) {
            let problem = format!("{max} is too large in steps of {granularity}");
            return Err(Invalid::new(place("max"), problem, "give fewer than 2^52 steps"));
        }
        // An end on the grid must not be moved by the rounding of a quotient.
        let first = (min / granularity - ROUNDING).ceil().max(1.0) as Step;
        let last = (max / granularity + ROUNDING).floor() as Step;
        if first >= last {
            let problem = format!("there are no two loads between {min} and {max}");
            let fix = "give a larger maximum, or a finer granularity";
            return Err(Invalid::new(place("max"), problem, fix));
        }
        Ok(Axis { kind, granularity, first, last })
    }

    /// The quantity that is increased.
    pub fn kind(&self) -> AxisKind {
        self.kind
    }

    /// The smallest load of the search.
    pub fn min(&self) -> f64 {
        self.load(self.first)
    }

    /// The largest load of the search.
    pub fn max(&self) -> f64 {
        self.load(self.last)
    }

    /// The distance between two loads.
    pub fn granularity(&self) -> f64 {
        self.granularity
    }

    /// The axis up to this step; `None` if it would have only one load.
    pub(crate) fn up_to(&self, last: Step) -> Option<Axis> {
        (self.first < last && last <= self.last).then_some(Axis { last, ..*self })
    }

    pub(crate) fn first(&self) -> Step {
        self.first
    }

    pub(crate) fn last(&self) -> Step {
        self.last
    }

    pub(crate) fn load(&self, step: Step) -> f64 {
        step as f64 * self.granularity
    }

    /// The grid point nearest to `load`, within the ends.
    pub(crate) fn nearest(&self, load: f64) -> Step {
        ((load / self.granularity).round().max(0.0) as Step).clamp(self.first, self.last)
    }
}

/// An axis as written.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ends {
    kind: AxisKind,
    min: f64,
    max: f64,
    granularity: f64,
}

impl From<Axis> for Ends {
    fn from(axis: Axis) -> Ends {
        let (min, max) = (axis.min(), axis.max());
        Ends { kind: axis.kind, min, max, granularity: axis.granularity }
    }
}

impl TryFrom<Ends> for Axis {
    type Error = Invalid;
    fn try_from(ends: Ends) -> Result<Axis, Invalid> {
        Axis::new(ends.kind, ends.min, ends.max, ends.granularity)
    }
}

/// Loads are held exactly as a count of steps and as a number of 53 bits.
const STEPS_MAX: f64 = (1u64 << 52) as f64;

/// Share of a step by which an end may miss the grid for the rounding of its quotient.
const ROUNDING: f64 = 1e-6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_move_inwards_to_the_grid() {
        let axis = Axis::new(AxisKind::Rate, 95.0, 1005.0, 10.0).unwrap();
        assert_eq!((axis.min(), axis.max()), (100.0, 1000.0));
        assert_eq!((axis.nearest(1.0), axis.nearest(104.0), axis.nearest(9e9)), (10, 10, 100));
        let fine = Axis::new(AxisKind::Rate, 0.3, 0.9, 0.1).unwrap();
        assert_eq!((fine.first(), fine.last()), (3, 9));
    }

    #[test]
    fn an_axis_is_read_as_it_was_written() {
        let axis = Axis::new(AxisKind::MessageSize, 60.0, 1005.0, 8.0).unwrap();
        let json = serde_json::to_string(&axis).unwrap();
        let expected = r#"{"kind":"message-size","min":64.0,"max":1000.0,"granularity":8.0}"#;
        assert_eq!(json, expected);
        assert_eq!(serde_json::from_str::<Axis>(&json).unwrap(), axis);
        let empty = json.replace("1000.0", "64.0");
        let error = serde_json::from_str::<Axis>(&empty).unwrap_err().to_string();
        assert!(error.contains("there are no two loads"), "{error}");
    }

    #[test]
    fn an_axis_without_room_is_told_what_to_type() {
        let error = |kind, min, max, step| Axis::new(kind, min, max, step).unwrap_err().to_string();
        for (message, part) in [
            (
                error(AxisKind::Rate, 0.0, 10.0, 1.0),
                "limit.rate.min: cannot begin with a load of 0",
            ),
            (error(AxisKind::Rate, 10.0, 10.4, 1.0), "there are no two loads"),
            (error(AxisKind::Rate, 1.0, f64::NAN, 1.0), "limit.rate.max"),
            (error(AxisKind::Burst, 1.0, 9.0, 0.5), "give a whole number"),
            (error(AxisKind::Rate, 1.0, 9.0, 0.0), "limit.rate.granularity"),
        ] {
            assert!(message.contains(part), "{message}");
        }
        assert!("rates".parse::<AxisKind>().unwrap_err().contains("message-size"));
        assert_eq!("burst".parse(), Ok(AxisKind::Burst));
    }
}
