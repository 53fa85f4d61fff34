//! What the charts of the screen show: the rate and the times of a trial.

use weigh_model::condition::Limit;
use weigh_model::live::QUANTILES;
use weigh_model::numbers::{exact, span, time};

use super::shown::Shown;
use super::view::View;
use crate::state::Point;

/// A course to be drawn.
pub struct Course {
    /// Its heading, which names the value of the top.
    pub title: Box<dyn Fn(f64) -> String>,
    /// Its values, the newest last.
    pub values: Vec<Option<f64>>,
    /// A value that is drawn as a line: what was offered, or what is allowed.
    pub line: Option<f64>,
}

/// Rate and times of the trial that is shown.
pub fn courses(shown: &Shown<'_>, view: &View) -> [Course; 2] {
    let state = shown.state;
    let place = view.trial.or(state.newest());
    let mut points = place.map_or_else(Vec::new, |place| state.course(place));
    // A rate over milliseconds, as at the end of a trial, is no rate of the load.
    points.retain(|point| point.length_s >= LENGTH_S_MIN && !point.is_draining);
    let is_current = place.is_some() && place == state.current;
    let second = state.seconds.back().filter(|_| is_current);
    let offered = second.and_then(|second| second.standing.offered_per_s);
    let name = QUANTILES[view.quantile].1;
    let length = points.last().map_or(0.0, |last| last.at_s);
    let line = offered.map_or("", |_| ", line: offered");
    let rate_title = move |top: f64| {
        let over = span(length.round() * 1e9);
        format!("arrived per second over {over} (top {}/s{line})", exact(top.round()))
    };
    let limit = state.run.as_ref().and_then(|run| {
        let wanted = [format!("response_time_ns.{name}"), format!("delivery_time_ns.{name}")];
        let own = run.thresholds.iter().find(|own| wanted.contains(&own.metric))?;
        match own.limit {
            Limit::Value(value) => Some(value),
            Limit::Change(_) => None,
        }
    });
    let line = limit.map_or("", |_| ", line: threshold");
    let has_times = points.iter().any(|point| point.response_ns[view.quantile].is_some());
    let time_title = move |top: f64| match has_times {
        true => format!("{name} from the due time (top {}{line})", time(top, false)),
        false => format!("{name}: too few messages in a second; p shows another percentile"),
    };
    let quantile = |point: &Point| point.response_ns[view.quantile].map(|time| time as f64);
    [
        Course {
            title: Box::new(rate_title),
            values: points.iter().map(|point| Some(point.arrived_per_s())).collect(),
            line: offered,
        },
        Course {
            title: Box::new(time_title),
            values: points.iter().map(quantile).collect(),
            line: limit,
        },
    ]
}

/// Length from which an interval is drawn, seconds: half of the shortest one.
const LENGTH_S_MIN: f64 = 0.05;
