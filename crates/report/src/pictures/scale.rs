//! Ends and marks of a scale.

use serde_json::{Value, json};

use crate::figures::marks::{mark_at_most, next_mark, nice};

/// An axis for figures from `low` to `high` (both from values, not intervals): from zero if they
/// are of similar size, otherwise logarithmic. `reach` is the end of the widest interval: the scale
/// includes it unless that would press the values together.
pub fn axis(low: f64, high: f64, reach: f64) -> Value {
    if low > 0.0 && high / low > LOGARITHMIC_FROM {
        return logarithmic(low, high);
    }
    let end = reach.max(high).min(high * BEYOND_VALUES);
    let mut axis = json!({ "type": "value", "min": 0, "axisLabel": { "formatter": "@mark" } });
    if end > 0.0 {
        let step = nice(end / MARKS);
        axis["max"] = super::picture::lean((end / step).ceil() * step);
        axis["interval"] = super::picture::lean(step);
    }
    axis
}

/// A logarithmic axis with marks at 1, 2 and 5 times the powers of ten, or only the powers if there
/// are many.
pub fn logarithmic(low: f64, high: f64) -> Value {
    let mut marks = vec![mark_at_most(low)];
    while *marks.last().unwrap_or(&high) < high {
        marks.push(next_mark(*marks.last().unwrap_or(&high)));
    }
    let ends = (marks[0], *marks.last().unwrap_or(&high));
    if marks.len() > MARKS_MAX {
        marks.retain(|mark| (mark.log10() - mark.log10().round()).abs() < 1e-9);
    }
    let marks: Vec<Value> = marks.into_iter().map(super::picture::lean).collect();
    json!({
        "type": "log", "min": super::picture::lean(ends.0), "max": super::picture::lean(ends.1),
        "axisLabel": { "formatter": "@mark", "customValues": marks },
        "axisTick": { "show": false, "customValues": marks },
    })
}

/// Leaves out points that a logarithmic axis cannot show: 0 and below. They would be at minus
/// infinity, which browsers refuse to draw together with everything connected to them.
pub fn drop_unplaceable(option: &mut Value) {
    let is_log = |axis: &Value, index: u64| {
        let own = if axis.is_array() { &axis[index as usize] } else { axis };
        own["type"] == "log"
    };
    let (x, y) = (option["xAxis"].clone(), option["yAxis"].clone());
    let all = option.get_mut("series").and_then(Value::as_array_mut);
    for series in all.into_iter().flatten() {
        let index = |key: &str| series[key].as_u64().unwrap_or(0);
        let (is_log_x, is_log_y) =
            (is_log(&x, index("xAxisIndex")), is_log(&y, index("yAxisIndex")));
        let is_placeable = |point: &Value| {
            let values = if point["value"].is_array() { &point["value"] } else { point };
            let has_place = |index: usize| values[index].as_f64().is_none_or(|value| value > 0.0);
            (!is_log_x || has_place(0)) && (!is_log_y || has_place(1))
        };
        // References to shared data (`{"$line": ...}`) have no data of their own, and must not get
        // any.
        if let Some(data) = series.get_mut("data").and_then(Value::as_array_mut) {
            data.retain(is_placeable);
        }
    }
}

/// Figures that differ by more than this factor get a logarithmic scale.
const LOGARITHMIC_FROM: f64 = 30.0;

/// Largest ratio of the end of a scale to its largest value, to show intervals.
const BEYOND_VALUES: f64 = 1.5;

const MARKS: f64 = 5.0;

const MARKS_MAX: usize = 9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logarithmic_axis_has_no_point_at_zero() {
        let points = json!([[0, 5, null, null], [10, 0], { "value": [0, 3] }, [10, 5], [7, null]]);
        let series = |data: &Value| json!({ "type": "line", "data": data });
        let mut option = json!({
            "xAxis": { "type": "log" }, "yAxis": [{ "type": "value" }, { "type": "log" }],
            "series": [
                series(&points), { "yAxisIndex": 1, "data": points }, { "data": { "$rows": 1 } },
            ],
        });
        drop_unplaceable(&mut option);
        assert_eq!(option["series"][0]["data"], json!([[10, 0], [10, 5], [7, null]]));
        assert_eq!(option["series"][1]["data"], json!([[10, 5], [7, null]]));
        assert_eq!(option["series"][2]["data"], json!({ "$rows": 1 }));
        let mut shared =
            json!({ "xAxis": { "type": "log" }, "series": [{ "$line": ["p99", 0, 1] }] });
        let before = shared.clone();
        drop_unplaceable(&mut shared);
        assert_eq!(shared, before);
        let mut linear = json!({ "xAxis": {}, "yAxis": {}, "series": [series(&points)] });
        drop_unplaceable(&mut linear);
        assert_eq!(linear["series"][0]["data"], points);
    }

    #[test]
    fn scales_end_at_round_figures() {
        let scale = axis(3.0, 8.7, 9.0);
        assert_eq!((&scale["min"], &scale["max"]), (&json!(0), &json!(10)));
        let scale = axis(3.0, 8.7, 900.0);
        assert_eq!(scale["max"], json!(15), "an interval beyond every value is cut");
        let scale = axis(15.0, 900.0, 900.0);
        assert_eq!((&scale["type"], &scale["min"]), (&json!("log"), &json!(10)));
        let marks = &scale["axisLabel"]["customValues"];
        assert_eq!(*marks, json!([10, 20, 50, 100, 200, 500, 1000]));
        assert_eq!(axis(0.0, 0.0, 0.0)["max"], Value::Null);
    }
}
