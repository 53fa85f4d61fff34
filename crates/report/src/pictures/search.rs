//! The course of a search for a limit: every trial at its load, met or missed, and the bounds after
//! it.

use serde_json::{Value, json};

use super::picture::{Kind, Picture, lean};
use super::scale;
use crate::summary::Summary;
use crate::summary::limit::{Limit, LimitTrial};

/// A picture for every goal of every lane that has trials.
pub(crate) fn pictures(summary: &Summary) -> Vec<Picture> {
    let lanes = summary.limits.iter().enumerate();
    lanes
        .filter(|(_, limit)| !limit.trials.is_empty())
        .flat_map(|(lane, limit)| {
            (0..limit.goals.len()).map(move |goal| picture(lane, limit, goal))
        })
        .collect()
}

fn picture(lane: usize, limit: &Limit, goal: usize) -> Picture {
    let loads = || limit.trials.iter().map(|trial| trial.load);
    let low = loads().fold(f64::INFINITY, f64::min);
    let high = loads().fold(0.0, f64::max);
    let mut y = scale::logarithmic(low, high);
    y["axisLabel"]["formatter"] = json!("@count");
    let found = &limit.goals[goal];
    Picture {
        name: format!("search-{}-{}", lane + 1, goal + 1),
        kind: Kind::Search,
        subject: found.name.clone(),
        part: String::new(),
        title: format!("{}: {}", limit.title(), found.sentence),
        note: format!(
            "Every point is a trial, in their order, at the load that it offered ({}); the lines \
             are the bounds of the goal after it.",
            limit.counted()
        ),
        height: 300,
        about: json!({ "unit": "1", "x": "trial" }),
        option: json!({
            "grid": { "top": 10, "left": 74, "right": 22, "height": 250 },
            "legend": {},
            "tooltip": { "trigger": "axis", "formatter": "@axis" },
            "xAxis": {
                "type": "value", "name": "trial", "nameLocation": "middle", "nameGap": 26,
                "min": 0, "max": limit.trials.len() + 1, "minInterval": 1,
                "splitLine": { "show": false }, "axisLabel": { "formatter": "@count" },
            },
            "yAxis": y,
            "series": series(limit, goal),
        }),
    }
}

/// Trials by result, and the bounds after each.
fn series(limit: &Limit, goal: usize) -> [Value; 5] {
    let came_out = |is_missed: Option<bool>| {
        move |trial: &LimitTrial| self::is_missed(trial, goal) == is_missed
    };
    let of_goal = |trial: &LimitTrial| trial.bounds.get(goal).copied().unwrap_or_default();
    [
        points("met the goal", "$c2", "circle", limit, came_out(Some(false))),
        points("missed the goal", "$c1", "triangle", limit, came_out(Some(true))),
        points("invalid", "$quiet", "diamond", limit, came_out(None)),
        bounds("lower bound", "$c2", 0, limit, |trial| of_goal(trial).0),
        bounds("upper bound", "$c1", 1, limit, |trial| of_goal(trial).1),
    ]
}

fn is_missed(trial: &LimitTrial, goal: usize) -> Option<bool> {
    trial.missed.get(goal).map(Option::is_some)
}

fn points(
    name: &str,
    colour: &str,
    symbol: &str,
    limit: &Limit,
    is_one: impl Fn(&LimitTrial) -> bool,
) -> Value {
    let trials = limit.trials.iter().enumerate();
    let data: Vec<Value> = trials
        .filter(|(_, trial)| is_one(trial))
        .map(|(index, trial)| json!([index + 1, lean(trial.load), null, null]))
        .collect();
    json!({
        "type": "line", "name": name, "color": colour, "symbol": symbol, "symbolSize": 8,
        "showSymbol": true, "lineStyle": { "width": 0 }, "data": data,
    })
}

fn bounds(
    name: &str,
    colour: &str,
    look: usize,
    limit: &Limit,
    bound: impl Fn(&LimitTrial) -> Option<f64>,
) -> Value {
    let trials = limit.trials.iter().enumerate();
    let data: Vec<Value> = trials
        .filter_map(|(index, trial)| Some(json!([index + 1, lean(bound(trial)?), null, null])))
        .collect();
    json!({
        "type": "line", "name": name, "color": colour, "step": "end", "symbol": "none",
        "look": look,
        "lineStyle": { "width": 1.5 }, "data": data,
    })
}
