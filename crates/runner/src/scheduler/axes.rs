//! Axes with a stop rule: in the first round each lane goes up its axis, and ends at the first
//! value at which a condition of the plan holds.

use std::collections::BTreeMap;

use serde_json::Value;
use weigh_model::Condition;
use weigh_model::event::{AxisEnded, TrialFinished};
use weigh_model::plan::Plan;
use weigh_model::trial::Point;
use weigh_model::units::{parse_duration, parse_rate, parse_size};

/// All axes of a plan that have a stop rule.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axes {
    lanes: Vec<Lane>,
    /// By case: its lanes, one for each of its axes, and its position in each.
    of_case: Vec<Vec<(usize, usize)>>,
}

/// One axis in one lane: cases that differ only in this axis.
#[derive(Clone, Debug, PartialEq)]
struct Lane {
    axis: String,
    conditions: Vec<Condition>,
    /// The point without the axis.
    point: Point,
    /// Cases and their values, ascending.
    steps: Vec<(usize, Value)>,
    /// The position after which nothing is measured.
    end: Option<usize>,
}

impl Axes {
    /// The axes of `plan`, whose cases are at `points`.
    pub fn new(plan: &Plan, points: &[Point]) -> Axes {
        let mut axes = Axes { lanes: Vec::new(), of_case: vec![Vec::new(); points.len()] };
        for (axis, conditions) in &plan.stop {
            for (point, steps) in lanes(axis, points) {
                for (place, (case, _)) in steps.iter().enumerate() {
                    axes.of_case[*case].push((axes.lanes.len(), place));
                }
                let (axis, conditions) = (axis.clone(), conditions.clone());
                axes.lanes.push(Lane { axis, conditions, point, steps, end: None });
            }
        }
        axes
    }

    /// Level of each case on its axes: the first round runs lower levels first, so that all lanes
    /// go up together and smaller values come before larger ones.
    pub fn levels(&self) -> Vec<u32> {
        let level = |places: &Vec<(usize, usize)>| places.iter().map(|(_, at)| *at as u32).sum();
        self.of_case.iter().map(level).collect()
    }

    /// True if `case` is after the end of an axis.
    pub fn leave_out(&self, case: usize) -> bool {
        let mut places = self.of_case[case].iter();
        places.any(|(lane, place)| self.lanes[*lane].end.is_some_and(|end| *place > end))
    }

    /// True if `case` may still end up after the end of an axis: a smaller value has not been
    /// measured yet, by `is_weighed`.
    pub fn may_leave_out(&self, case: usize, is_weighed: impl Fn(usize) -> bool) -> bool {
        self.of_case[case].iter().any(|(lane, place)| {
            let lane = &self.lanes[*lane];
            let mut smaller = lane.steps[..*place].iter();
            lane.end.is_none() && smaller.any(|(case, _)| !is_weighed(*case))
        })
    }

    /// Judges the first result of `case`; returns every axis that ends here and had not ended
    /// before, or had ended higher.
    pub fn judge(&mut self, case: usize, result: &TrialFinished) -> Vec<AxisEnded> {
        let mut ended = Vec::new();
        for (lane, place) in self.of_case[case].clone() {
            let lane = &mut self.lanes[lane];
            let held = lane.conditions.iter().find_map(|condition| {
                let figure = result.figure(&condition.metric)?;
                condition.holds(figure)?.then_some((condition, figure))
            });
            let Some((condition, figure)) = held else { continue };
            if lane.end.is_some_and(|end| end <= place) {
                continue;
            }
            ended.push(AxisEnded {
                lane: lane.point.clone(),
                axis: lane.axis.clone(),
                at: lane.steps[place].1.clone(),
                condition: condition.to_string(),
                figure,
                not_weighed: lane.steps[place + 1..].iter().map(|step| step.1.clone()).collect(),
            });
            lane.end = Some(place);
        }
        ended
    }

    /// Applies an end from a journal, which takes precedence.
    pub fn take_over(&mut self, ended: &AxisEnded) {
        let is_meant = |lane: &&mut Lane| lane.axis == ended.axis && lane.point == ended.lane;
        let Some(lane) = self.lanes.iter_mut().find(is_meant) else { return };
        if let Some(place) = lane.steps.iter().position(|(_, value)| *value == ended.at) {
            lane.end = Some(lane.end.map_or(place, |end| end.min(place)));
        }
    }
}

/// The cases on `axis`, grouped by their other keys, in ascending order of their values.
fn lanes(axis: &str, points: &[Point]) -> Vec<(Point, Vec<(usize, Value)>)> {
    let mut lanes: BTreeMap<String, (Point, Vec<(usize, Value)>)> = BTreeMap::new();
    for (case, point) in points.iter().enumerate() {
        let mut rest = point.clone();
        let Some(value) = rest.remove(axis) else { continue };
        let name = serde_json::to_string(&rest).unwrap_or_default();
        lanes.entry(name).or_insert_with(|| (rest, Vec::new())).1.push((case, value));
    }
    let mut lanes: Vec<(Point, Vec<(usize, Value)>)> = lanes.into_values().collect();
    for (_, steps) in &mut lanes {
        let sizes: Option<Vec<f64>> = steps.iter().map(|(_, value)| size(value)).collect();
        // Values that are not quantities keep the plan's order.
        if let Some(sizes) = sizes {
            let mut sized: Vec<(f64, (usize, Value))> =
                sizes.into_iter().zip(steps.drain(..)).collect();
            sized.sort_by(|left, right| left.0.total_cmp(&right.0));
            steps.extend(sized.into_iter().map(|(_, step)| step));
        }
    }
    lanes
}

/// The size of a value of an axis: a number, a rate, a duration or a size.
pub fn size(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => {
            let number = text.trim().parse().ok();
            let rate = || parse_rate(text).ok().map(|rate| rate.per_second);
            let duration = || parse_duration(text).ok().map(|time| time.0 as f64);
            let size = || parse_size(text).ok().map(|bytes| bytes as f64);
            number.or_else(rate).or_else(duration).or_else(size)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_ascend_by_what_they_mean() {
        for (axis, values) in [
            ("load.connections", json!([5, 20, 100])),
            ("load.rate", json!(["900/s", "1k/s", "20k/s"])),
            ("load.think", json!(["900us", "1ms", "1s"])),
            ("load.size", json!(["100B", "1KiB", "2KB"])),
        ] {
            let values: Vec<Value> = values.as_array().unwrap().clone();
            let points: Vec<Point> = [2, 0, 1]
                .map(|at: usize| Point::from([(axis.to_owned(), values[at].clone())]))
                .to_vec();
            let lanes = lanes(axis, &points);
            let found: Vec<Value> = lanes[0].1.iter().map(|(_, value)| value.clone()).collect();
            assert_eq!((lanes.len(), found), (1, values), "{axis}");
        }
    }
}
